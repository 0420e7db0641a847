"""Texts of a regular language with bounds on their characters: long strings as they are, in tags."""
