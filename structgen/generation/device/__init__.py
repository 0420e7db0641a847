"""Sampling on the device where a model's logits are: torch operations anywhere, fused Triton kernels where they run."""

from structgen.generation.device.choose import sampler_for

__all__ = ["sampler_for"]
