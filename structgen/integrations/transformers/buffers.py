"""Memory for masked scores that is taken again once nobody else holds it: fresh memory costs more than the masking."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

# `generate` still has the scores of the last step when it asks for the next ones, so two alternate; the third is for
# a list of processors that keeps one more.
KEPT = 3


class Buffers:
    """Tensors that nobody else sees, of the shape that was last asked for."""

    def __init__(self) -> None:
        self._kept: deque[tuple[Tensor, int | None]] = deque(
            maxlen=KEPT
        )  # with the holders of memory that only we hold

    def like(self, scores: Tensor) -> Tensor:
        """A tensor of the same shape, dtype and device, contiguous; its contents are arbitrary.

        It belongs to the caller: as long as it, or a view of it, is alive, it is not given away again.
        """
        kept = self._kept
        if kept and not _fits(kept[0][0], scores):
            kept.clear()
        for tensor, unheld in kept:
            if unheld is not None and _holders(tensor) == unheld:
                return tensor.detach()
        tensor = scores.detach().new_empty(scores.shape)
        kept.append((tensor, _holders(tensor)))
        return tensor.detach()


def _fits(tensor: Tensor, scores: Tensor) -> bool:
    return (
        tensor.shape == scores.shape
        and tensor.dtype == scores.dtype
        and tensor.device == scores.device
        and tensor.is_inference() == scores.is_inference()
    )


def _holders(tensor: Tensor) -> int | None:
    """How many tensors, views and arrays hold the memory of a tensor; None where torch does not say."""
    import torch

    count = getattr(torch._C, "_storage_Use_Count", None)
    return None if count is None else int(count(tensor.untyped_storage()._cdata))
