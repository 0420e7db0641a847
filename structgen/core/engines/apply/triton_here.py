"""Whether Triton runs on a device, tried once and said once."""

from __future__ import annotations

import logging
import os
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

LOG = logging.getLogger("structgen")


@cache
def triton_runs_on(device_type: str) -> bool:
    """Whether kernels run on "cuda" (ROCm goes by this name too), "cpu" (its interpreter), ...; one line in the log."""
    interprets = os.environ.get("TRITON_INTERPRET") == "1"
    if device_type == "cuda" or (device_type == "cpu" and interprets):
        problem = _problem(device_type)
    else:
        problem = "Triton does not compile for it"
    if problem:
        LOG.info("masks and sampling on %s: torch operations; %s", device_type, problem)
    else:
        LOG.info("masks and sampling on %s: Triton kernels", device_type)
    return not problem


def current(device: Any) -> AbstractContextManager[Any]:
    """While it lasts, kernels are launched on this torch device."""
    import torch

    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


def _problem(device_type: str) -> str:
    """Why a kernel of ours does not run; empty if it does. Triton may be absent, the GPU too old, a C compiler missing;
    each says so in its own way."""
    import torch

    try:
        from structgen.core.engines.apply.kernel import apply_kernel

        logits = torch.zeros(32, device=device_type)
        word = torch.ones(1, dtype=torch.int32, device=device_type)
        apply_kernel[1,](logits, 32, word, 1, word, 1, 1, 32, 1, 1, 0, INDEXED=False, BLOCK=32)
        right = torch.isfinite(logits).nonzero().flatten().tolist() == [0]
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    return "" if right else "a Triton kernel gave a wrong result"
