"""Structural tags, as XGrammar, vLLM and SGLang have them: `reader` makes constraints of them."""
