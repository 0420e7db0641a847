"""The kernel that draws tokens on a processor: bitmasks over rows of logits, in one pass over each row."""
