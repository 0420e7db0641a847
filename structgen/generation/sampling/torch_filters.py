"""``decoding.sampling.filters`` for many rows at once, as torch operations on the device where the rows are.

A filter says which tokens stay, given probabilities [n, C] in the precision of the device's sums; a row's values of the
parameters are columns [n, 1].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

Values = Mapping[str, Tensor]
"""Each parameter's column [n, 1], by name; ``sigma`` among them where ``top_n_sigma`` is used."""
BLOCK = 1024
"""Tokens that are summed together: sums of sums are exact to more places, and their order does not depend on the
device's scheduling, as that of one long scan does."""


def filtered_weights(log_probs: Tensor, steps: Sequence[str], values: Values) -> Tensor:
    """Probabilities after ``steps``, floating [n, C]; rows sum to 1.

    Args:
        log_probs: of the allowed tokens at temperature 1, floating [n, C]; -inf elsewhere.
        steps: what ``SamplingParams.steps`` says, of all rows alike.
    """
    scores = log_probs
    for step in steps:
        if step == "temperature":
            scores = scores / values["temperature"]
        elif step == "top_n_sigma":
            left = scores > -torch.inf
            highest = log_probs.masked_fill(~left, -torch.inf).amax(1, keepdim=True)
            scores = scores.masked_fill(~(left & (log_probs >= highest - values[step] * values["sigma"])), -torch.inf)
        else:
            scores = scores.masked_fill(~_FILTERS[step](torch.softmax(scores, 1), values[step]), -torch.inf)
    return torch.softmax(scores, 1)


def deviation(rows: Tensor) -> Tensor:
    """The standard deviation of each row's finite values, floating [n, 1]; 0 where there is none."""
    finite = torch.isfinite(rows)
    count = finite.sum(1, keepdim=True).clamp(min=1)
    mean = rows.masked_fill(~finite, 0).sum(1, keepdim=True) / count
    return (((rows - mean) ** 2).masked_fill(~finite, 0).sum(1, keepdim=True) / count).sqrt()


def running_sums(values: Tensor) -> Tensor:
    """Cumulative sums of each row, [n, C], the same on every run."""
    rows, columns = values.shape
    blocks = torch.nn.functional.pad(values, (0, -columns % BLOCK)).view(rows, -1, BLOCK)
    inside = blocks.cumsum(2)
    sums = inside[:, :, -1]
    return (inside + (sums.cumsum(1) - sums)[:, :, None]).view(rows, -1)[:, :columns]


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


def _descending(probs: Tensor) -> tuple[Tensor, Tensor]:
    """Probabilities as they fall, equals by rising column, and their columns."""
    ranked = torch.sort(probs, dim=1, descending=True, stable=True)
    return ranked.values, ranked.indices


def _places(order: Tensor, kept: Tensor) -> Tensor:
    """Which columns are kept, given which places of ``order`` are; the first always is."""
    kept[:, 0] = True
    return torch.zeros_like(kept).scatter_(1, order, kept)


def _surprise(probs: Tensor) -> Tensor:
    """-p log p, 0 at 0. (``torch.special.entr`` is not on all devices.)"""
    return -probs * torch.where(probs > 0, probs, 1).log()


def _entropy(probs: Tensor) -> Tensor:
    return _surprise(probs).sum(1, keepdim=True)


def _top_k(probs: Tensor, k: Tensor) -> Tensor:
    _, order = _descending(probs)
    return _places(order, torch.arange(probs.shape[1], device=probs.device) < k) & (probs > 0)


def _top_p(probs: Tensor, share: Tensor) -> Tensor:
    ranked, order = _descending(probs)
    return _places(order, running_sums(ranked) - ranked < share)


def _min_p(probs: Tensor, least: Tensor) -> Tensor:
    return probs >= least * probs.amax(1, keepdim=True)


def _typical_p(probs: Tensor, share: Tensor) -> Tensor:
    order = torch.sort((-probs.log() - _entropy(probs)).abs(), dim=1, stable=True).indices
    ranked = probs.gather(1, order)
    return _places(order, running_sums(ranked) - ranked < share)


def _epsilon_cutoff(probs: Tensor, least: Tensor) -> Tensor:
    return (probs >= least) | (probs == probs.amax(1, keepdim=True))


def _eta_cutoff(probs: Tensor, eta: Tensor) -> Tensor:
    return _epsilon_cutoff(probs, torch.minimum(eta, eta.sqrt() * torch.exp(-_entropy(probs))))


def _top_h(probs: Tensor, share: Tensor) -> Tensor:
    ranked, order = _descending(probs)
    mass = running_sums(ranked)
    entropy = mass.log() + running_sums(_surprise(ranked)) / mass
    few = ((entropy <= share * entropy[:, -1:] + 1e-12) & (ranked > 0)).sum(1, keepdim=True)
    return _places(order, torch.arange(probs.shape[1], device=probs.device) < few)


_FILTERS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "top_h": _top_h,
    "top_k": _top_k,
    "top_p": _top_p,
    "min_p": _min_p,
    "typical_p": _typical_p,
    "epsilon_cutoff": _epsilon_cutoff,
    "eta_cutoff": _eta_cutoff,
}
