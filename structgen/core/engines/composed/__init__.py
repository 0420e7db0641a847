"""Constraints inside constraints: grammars whose terminals other grammars read, tagged text, JSON lines."""
