"""Texts in order: sets of names, and documents whose parts may be quoted. What users build, save and open."""
