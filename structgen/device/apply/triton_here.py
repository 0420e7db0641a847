"""Whether Triton compiles for a device, asked once and said once."""

from __future__ import annotations

import logging
import os
from functools import cache
from importlib import import_module

LOG = logging.getLogger("structgen")


@cache
def triton_runs_on(device_type: str) -> bool:
    """Whether kernels run on "cuda" (ROCm goes by this name too), "cpu" (its interpreter), ...; one line in the log."""
    try:
        import_module("triton")
    except ImportError as error:
        missing = f"no Triton here ({error})"
    else:
        if device_type == "cuda" or os.environ.get("TRITON_INTERPRET") == "1":
            LOG.info("masks and sampling on %s: Triton kernels", device_type)
            return True
        missing = "Triton does not compile for it"
    LOG.info("masks and sampling on %s: torch operations, %s", device_type, missing)
    return False
