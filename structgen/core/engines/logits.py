"""Logits in the processor's memory, as kernels see them: where a row lies, how far the next, what the numbers are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from structgen.core.kernels.sampling.layout import BFLOAT16, FLOAT16, FLOAT32, FLOAT64
from structgen.errors import BitmaskError

_KINDS = {"float32": FLOAT32, "float16": FLOAT16, "bfloat16": BFLOAT16, "float64": FLOAT64}
_NUMPY_KINDS = {np.dtype(name): kind for name, kind in _KINDS.items() if name != "bfloat16"}  # by name takes 5 µs
_WIDTHS = {FLOAT32: 4, FLOAT16: 2, BFLOAT16: 2, FLOAT64: 8}


@lru_cache(64)
def _torch_kind(dtype: Any) -> int | None:
    return _KINDS.get(str(dtype).removeprefix("torch."))


@dataclass(slots=True)
class HostLogits:
    """Rows of logits.

    Attributes:
        address, stride: of the first row, and bytes from a row to the next.
        rows, columns: how many.
        kind: FLOAT32, FLOAT16, BFLOAT16 or FLOAT64.
        owner: the array or tensor, which keeps them alive.
    """

    address: int
    stride: int
    rows: int
    columns: int
    kind: int
    owner: Any

    def row(self, index: int) -> npt.NDArray[np.float32]:
        """A copy of a row as float32."""
        row = self.owner[index]
        return np.array(row if isinstance(row, np.ndarray) else row.detach().float().numpy(), np.float32)


def host_logits(logits: Any) -> HostLogits:
    """Logits [rows, columns] of a numpy array or a torch tensor on the processor. A copy only where the numbers of a
    row do not lie side by side. O(1).

    Raises:
        BitmaskError: no such array: another type, dtype or shape.
    """
    if isinstance(logits, np.ndarray):
        kind = _NUMPY_KINDS.get(logits.dtype)
    else:
        kind = _torch_kind(getattr(logits, "dtype", None))
    if kind is None or getattr(logits, "ndim", 0) != 2:
        shown = f"{getattr(logits, 'dtype', type(logits).__name__)}, shape {tuple(getattr(logits, 'shape', ()))}"
        raise BitmaskError(f"logits are {shown}; wanted a floating array or tensor of shape [rows, vocabulary]")
    if isinstance(logits, np.ndarray):
        rows = logits if logits.strides[1] == logits.itemsize else np.ascontiguousarray(logits)
        return HostLogits(rows.ctypes.data, rows.strides[0], len(rows), rows.shape[1], kind, rows)
    rows = logits if logits.stride(1) == 1 else logits.contiguous()
    count, columns = rows.shape
    return HostLogits(rows.data_ptr(), rows.stride(0) * _WIDTHS[kind], count, columns, kind, rows)
