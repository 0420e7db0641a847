"""Rows of bits in numpy: bit i % 32 of int32 word i // 32, as masks are."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def packed(bits: npt.NDArray[np.bool_], width: int) -> npt.NDArray[np.int32]:
    """bool[n] as int32[width]; what is after the n bits is 0. ``n`` is at most ``32 * width``."""
    padded = np.pad(bits, (0, 32 * width - len(bits)))
    return np.packbits(padded, bitorder="little").view(np.int32)


def unpacked(row: npt.NDArray[np.int32], size: int | None = None) -> npt.NDArray[np.bool_]:
    """The first ``size`` bits of int32[width] (default: all) as bool[size]."""
    return np.unpackbits(row.view(np.uint8), count=size, bitorder="little").view(np.bool_)
