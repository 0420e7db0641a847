"""Sampling on the device where a model's logits are, and masks applied there."""
