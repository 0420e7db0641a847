"""Calls of kernels that are plain functions of arrays: they get the arrays' addresses, after a look at their types."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from structgen.kernels.objects import Kernel


def call(run: Kernel, operation: int, *arrays: npt.NDArray[Any], x: int = 0, y: int = 0) -> int:
    """Run an operation on arrays: C-contiguous, of at most two dimensions. What it returns; a few µs.

    The kernel believes the dtypes: the functions that call this one check or make them.

    Raises:
        TypeError: an array is not contiguous.
    """
    arguments = np.empty((max(len(arrays), 1), 3), np.int64)
    for row, array in zip(arguments, arrays, strict=False):
        if not array.flags.c_contiguous or array.ndim not in (1, 2):
            raise TypeError(f"kernels take C-contiguous vectors and matrices, got strides {array.strides}")
        row[0], row[1], row[2] = array.ctypes.data, len(array), array.shape[-1]
    return run(arguments.ctypes.data, operation, x, y, 0)
