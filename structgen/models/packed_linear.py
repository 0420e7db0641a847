"""Linear layers on the CPU that read a few tokens at once for little more than one. Imports torch.

A forward of one token is limited by reading the weights, and one of 16 should cost hardly more. For few rows, however,
MKL's float32 product spends most of its time on rearranging the weights, at each call: 135 million of them take
31 ms for one row, 83 ms for 8 and 141 ms for 16 (two cores). With the weights rearranged once it is 35 ms and 42 ms.
That takes a copy of the weights for each number of rows; without copies, the transposed product takes 52 ms and 59 ms.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

SIZES = (8, 16, 32)
"""Numbers of rows that weights are rearranged for; fewer rows are padded, more are cut into pieces."""
FEW, MOST = 3, 96
"""Up to so many rows the plain product is as quick, and beyond so many as well."""
COPIES_BYTES = 2 << 30
"""What all copies may take."""


def pack_linear_layers(model: torch.nn.Module) -> tuple[int, ...]:
    """Replace the float32 linear layers of a model on the CPU; the weights are shared. Nothing where MKL is missing.

    Copies are made when a number of rows is first met; results differ from before by rounding.

    Returns:
        the numbers of rows that are quick, ascending.
    """
    has_mkl: bool = torch.backends.mkl.is_available()  # type: ignore[no-untyped-call]
    if not (has_mkl and hasattr(torch.ops.mkl, "_mkl_linear")):
        return ()
    found = [
        (parent, name, layer)
        for parent in model.modules()
        for name, layer in parent.named_children()
        if type(layer) is torch.nn.Linear and layer.weight.dtype == torch.float32 and layer.weight.device.type == "cpu"
    ]
    copy = sum(layer.weight.numel() * 4 for _, _, layer in found)
    count = COPIES_BYTES // max(copy, 1)
    sizes = SIZES if count >= len(SIZES) else SIZES[1:2] if count else ()
    for parent, name, layer in found:
        setattr(parent, name, PackedLinear(layer, sizes))
    return sizes if found else ()


class PackedLinear(torch.nn.Linear):
    """A linear layer for inference, over the parameters of another."""

    def __init__(self, layer: torch.nn.Linear, sizes: tuple[int, ...]) -> None:
        torch.nn.Module.__init__(self)
        self.in_features, self.out_features = layer.in_features, layer.out_features
        self.weight, self.bias = layer.weight, layer.bias
        self._sizes = sizes
        self._packed: dict[int, Any] = {}

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """x W^T + b for float32[..., in_features]."""
        rows = input.numel() // self.in_features
        if rows in self._sizes:  # what the model pads trees to: nothing to rearrange
            return self._product(input, rows)
        if not FEW < rows <= MOST:
            return functional.linear(input, self.weight, self.bias)
        flat = input.reshape(rows, self.in_features)
        if self._sizes:
            most = self._sizes[-1]
            pieces = [self._padded(flat[start : start + most]) for start in range(0, rows, most)]
            out = pieces[0] if len(pieces) == 1 else torch.cat(pieces)
        else:
            out = torch.mm(self.weight, flat.t()).t()
            out = out if self.bias is None else out + self.bias
        return out.reshape(*input.shape[:-1], self.out_features)

    def _padded(self, flat: torch.Tensor) -> torch.Tensor:
        """The product for at most as many rows as the largest size."""
        rows = len(flat)
        size = next(size for size in self._sizes if size >= rows)
        return self._product(functional.pad(flat, (0, 0, 0, size - rows)), size)[:rows]

    def _product(self, rows: torch.Tensor, size: int) -> torch.Tensor:
        """The product for exactly so many rows."""
        packed = self._packed.get(size)
        if packed is None:
            packed = self._packed[size] = torch.ops.mkl._mkl_reorder_linear_weight(self.weight.detach(), size)
        out: torch.Tensor = torch.ops.mkl._mkl_linear(rows.contiguous(), packed, self.weight, self.bias, size)
        return out
