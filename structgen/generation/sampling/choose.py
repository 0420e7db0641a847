"""Which sampler draws from given logits."""

from __future__ import annotations

from functools import cache
from typing import Any

from structgen.core.engines.apply.triton_here import triton_runs_on
from structgen.errors import BitmaskError
from structgen.generation.sampling.host import HostSampler
from structgen.generation.sampling.sampler import TokenSampler

_HOST: TokenSampler = HostSampler()


def sampler_for(logits: Any) -> TokenSampler:
    """The sampler for where ``logits`` are: one a device, kept. Which one it is, the log says once.

    Raises:
        BitmaskError: neither a numpy array nor a torch tensor.
    """
    device = getattr(logits, "device", None)
    if device is None or str(device) == "cpu":  # numpy arrays say "cpu", from version 2 on
        if not hasattr(logits, "dtype"):
            raise BitmaskError(f"logits are {type(logits).__name__}; wanted a numpy array or a torch tensor")
        return _HOST
    return _device_sampler(str(device))


@cache
def _device_sampler(device: str) -> TokenSampler:
    import torch

    if triton_runs_on(torch.device(device).type):
        from structgen.generation.sampling.triton_sampler import TritonSampler

        return TritonSampler(device)
    from structgen.generation.sampling.torch_sampler import TorchSampler

    return TorchSampler(device)
