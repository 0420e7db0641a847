"""Lark as llguidance and XGrammar write it: text → syntax tree → rules → the normal form."""
