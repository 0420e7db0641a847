"""The machine for context-free grammars: from the normal form to matchers."""
