"""Lark's LALR parser with its contextual lexer, as a machine over tokens."""
