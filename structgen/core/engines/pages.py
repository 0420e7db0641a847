"""Large arrays whose memory goes back to the system as soon as they are gone.

What an allocator of small objects hands out for them depends on what was freed before: it may come from the same heap
as these, which cannot shrink below what is still in use. Pages of their own cost nothing until they are written.
"""

from __future__ import annotations

import math
import mmap
from typing import Any

import numpy as np
import numpy.typing as npt

# Private, not shared, where the system tells these apart: a forked process must not write into its parent's arrays.
_FLAGS = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}


def zero_pages(shape: int | tuple[int, ...], dtype: type[np.generic]) -> npt.NDArray[Any]:
    """An array of zeros on pages of its own, at least one of them."""
    count = shape if isinstance(shape, int) else math.prod(shape)
    pages = mmap.mmap(-1, max(count * np.dtype(dtype).itemsize, 1), **_FLAGS)
    return np.frombuffer(pages, dtype, count).reshape(shape)
