"""Masks applied to logits where these are: a Triton kernel on GPUs, torch operations elsewhere."""

from structgen.core.engines.apply.apply import apply_bitmask, free_blocked, unpacked

__all__ = ["apply_bitmask", "free_blocked", "unpacked"]
