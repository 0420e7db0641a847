"""What filters need of torch: many rows at once, on the device where they are, and the drawing rule there."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

BLOCK = 1024
"""Tokens that are summed together: sums of sums are exact to more places, and their order does not depend on the
device's scheduling, as that of one long scan does."""


@dataclass(frozen=True, slots=True)
class TensorRows:
    """``rows.LogitsRow`` for many rows [n, C], in the precision of the device's sums; ``sigma`` is a column [n, 1]."""

    scores: Tensor
    log_probs: Tensor
    sigma: Tensor | None

    @property
    def probs(self) -> Tensor:
        """Probabilities of what is left."""
        return torch.softmax(self.scores, 1)

    @property
    def places(self) -> Tensor:
        """The numbers of the columns, [C]."""
        return torch.arange(self.scores.shape[1], device=self.scores.device)

    def only(self, order: Tensor, kept: Tensor) -> Tensor:
        """Which columns stay, given which places of ``order`` do; the first always does."""
        kept[:, 0] = True
        return torch.zeros_like(kept).scatter_(1, order, kept)

    @staticmethod
    def descending(probs: Tensor) -> tuple[Tensor, Tensor]:
        """Probabilities as they fall, equals by rising column, and their columns."""
        ranked = torch.sort(probs, dim=1, descending=True, stable=True)
        return ranked.values, ranked.indices

    @staticmethod
    def running_sums(values: Tensor) -> Tensor:
        """Cumulative sums of each row, [n, C], the same on every run."""
        rows, columns = values.shape
        blocks = torch.nn.functional.pad(values, (0, -columns % BLOCK)).view(rows, -1, BLOCK)
        inside = blocks.cumsum(2)
        sums = inside[:, :, -1]
        return (inside + (sums.cumsum(1) - sums)[:, :, None]).view(rows, -1)[:, :columns]

    @staticmethod
    def surprise(probs: Tensor) -> Tensor:
        """-p log p, 0 at 0. (``torch.special.entr`` is not on all devices.)"""
        return -probs * torch.where(probs > 0, probs, 1).log()

    def entropy(self, probs: Tensor) -> Tensor:
        """Of each row, [n, 1]."""
        return self.surprise(probs).sum(1, keepdim=True)


def deviation(rows: Tensor) -> Tensor:
    """The standard deviation of each row's finite values, floating [n, 1]; 0 where there is none."""
    finite = torch.isfinite(rows)
    count = finite.sum(1, keepdim=True).clamp(min=1)
    mean = rows.masked_fill(~finite, 0).sum(1, keepdim=True) / count
    return (((rows - mean) ** 2).masked_fill(~finite, 0).sum(1, keepdim=True) / count).sqrt()


def pick(weights: Tensor, uniforms: Tensor) -> Tensor:
    """The drawing rule, int64 [n]: the first column whose cumulative weight exceeds u times the row's sum.

    Only columns with a weight are returned, whatever rounding does; -1 for a row without one.
    """
    rows, columns = weights.shape
    blocks = torch.nn.functional.pad(weights, (0, -columns % BLOCK)).view(rows, -1, BLOCK)
    sums = blocks.sum(2)
    edges = sums.cumsum(1)
    target = uniforms[:, None] * edges[:, -1:]
    block = _first(edges, sums, target).clamp(min=0)
    before = torch.where(block > 0, edges.gather(1, (block - 1).clamp(min=0)), 0)
    chosen = blocks[torch.arange(rows, device=weights.device), block[:, 0]]
    inside = _first(chosen.cumsum(1), chosen, target - before)
    return torch.where(inside < 0, -1, block * BLOCK + inside)[:, 0]


def _first(edges: Tensor, weights: Tensor, target: Tensor) -> Tensor:
    """The first column with a weight whose edge is beyond ``target`` [n, 1]; else the last with a weight; else -1."""
    ids = torch.arange(weights.shape[1], device=weights.device)
    some = weights > 0
    first = torch.where(some & (edges > target), ids, weights.shape[1]).amin(1, keepdim=True)
    return torch.where(first < weights.shape[1], first, torch.where(some, ids, -1).amax(1, keepdim=True))
