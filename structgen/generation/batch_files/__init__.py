"""Batches from file to file: prompts in, a line of JSON for each out, taken up again where a run was broken off."""
