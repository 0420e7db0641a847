"""Which sampler draws from given logits."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from structgen.decoding.sampling.sampler import TokenSampler
from structgen.device.apply.triton_here import triton_runs_on
from structgen.errors import BitmaskError

HOST_SAMPLER = ("structgen.decoding.sampling.host", "HostSampler")
"""Module and class that draw from logits on the host: numpy arrays, and tensors on the CPU."""


def sampler_for(logits: Any) -> TokenSampler:
    """The sampler for where ``logits`` are: one a device, kept. Which one it is, the log says once.

    Raises:
        BitmaskError: neither a numpy array nor a torch tensor.
    """
    device = getattr(logits, "device", None)
    if device is None or str(device) == "cpu":  # numpy arrays say "cpu", from version 2 on
        if not hasattr(logits, "dtype"):
            raise BitmaskError(f"logits are {type(logits).__name__}; wanted a numpy array or a torch tensor")
        return _host_sampler()
    return _device_sampler(str(device))


@cache
def _host_sampler() -> TokenSampler:
    module, name = HOST_SAMPLER
    sampler: TokenSampler = getattr(import_module(module), name)()
    return sampler


@cache
def _device_sampler(device: str) -> TokenSampler:
    import torch

    if triton_runs_on(torch.device(device).type):
        from structgen.device.triton_sampler import TritonSampler

        return TritonSampler(device)
    from structgen.device.torch_sampler import TorchSampler

    return TorchSampler(device)
