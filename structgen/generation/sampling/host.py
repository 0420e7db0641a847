"""Draws on the processor: one pass of a kernel over each row where it lies, numpy's or torch's, no copy.

Temperature, and filters that keep the likeliest tokens up to a place, need only the kernel's sums and the few tokens
near the top. Other filters need all allowed tokens, in float64 (`filters`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from structgen.core.engines.bitmask import in_parts, threads_for_logits
from structgen.core.engines.logits import HostLogits, host_logits
from structgen.core.kernels.sampling import calls
from structgen.core.kernels.sampling.layout import (
    B_SIZE,
    BAD,
    F_HIGHEST,
    F_KEPT,
    F_LOG_PROB,
    F_SUM,
    F_TOTAL,
    FOUND,
)
from structgen.generation.filters.rows import LogProbs
from structgen.generation.sampling.draws import deviation, filtered_probs, needs_deviation, pick
from structgen.generation.sampling.params import SamplingParams, keeps_a_prefix
from structgen.generation.sampling.sampler import Bitmask, Choices, DrawRequest
from structgen.generation.sampling.uniforms import uniform, uniforms

# exp(-12) of the likeliest token: what is first looked at for a filter. Most often that is hundreds of tokens.
FIRST_DEPTH = 12.0
DEEPEST = 200.0  # what lies deeper weighs nothing, and is gathered all at once
GREATEST_SCALE = 1e30  # of temperatures so low that float32 has no inverse of them


@dataclass(slots=True)
class _Drawn:
    """What the kernel found for rows of one kind of logits; request i has row ``places[i]`` of ``source``."""

    source: HostLogits
    places: npt.NDArray[np.int64]
    logits: npt.NDArray[np.int64]
    masks: npt.NDArray[np.int64]
    tokens: npt.NDArray[np.int64]
    found: npt.NDArray[np.float64]
    blocks: npt.NDArray[np.float64]
    columns: int
    words: int


class HostSampler:
    """A ``TokenSampler`` for logits in the processor's memory: numpy arrays and torch tensors of any floating type."""

    def send(self, bitmask: Bitmask) -> Bitmask:
        """See ``TokenSampler.send``; here, nothing needs to move."""
        return bitmask

    def draw(self, logits: Any, masks: Bitmask, requests: Sequence[DrawRequest], *, kept: bool = False) -> Choices:
        """See ``TokenSampler.draw``. O(logits) for each request, and a sort where a filter needs one."""
        rows = host_logits(logits)
        tokens = np.empty(len(requests), np.int64)
        log_probs, log_kept = np.empty(len(requests)), np.empty(len(requests))
        if len(requests) == 1:
            numbers = np.array([uniform(requests[0].seed, requests[0].position)])
        else:
            numbers = uniforms([r.seed for r in requests], [r.position for r in requests])
        plain = [place for place, request in enumerate(requests) if request.adjustments is None]
        groups = [(plain, rows)] if plain else []
        changed = [place for place, request in enumerate(requests) if request.adjustments is not None]
        if changed:
            groups.append((changed, _adjusted(rows, [requests[place] for place in changed])))
        for places, group in groups:
            own = [requests[place] for place in places]
            drawn = _draw(group, masks, own, numbers[places], kept, in_order=group is not rows)
            for number, (place, request) in enumerate(zip(places, own, strict=True)):
                if drawn.tokens[number] != BAD and request.params.steps not in ((), ("temperature",)):
                    _filtered(drawn, number, request.params, float(numbers[place]))
            tokens[places] = drawn.tokens
            log_probs[places], log_kept[places] = drawn.found[:, F_LOG_PROB], drawn.found[:, F_KEPT]
        return Choices(tokens, log_probs, log_kept if kept else None)


def _adjusted(rows: HostLogits, requests: Sequence[DrawRequest]) -> HostLogits:
    """Copies of the requests' rows with their adjustments, in their order."""
    copies = np.stack([rows.row(request.logits_row) for request in requests])
    for row, request in zip(copies, requests, strict=True):
        assert request.adjustments is not None
        request.adjustments.apply(row)
    return host_logits(copies)


def _draw(
    rows: HostLogits, masks: Bitmask, requests: Sequence[DrawRequest], numbers: npt.NDArray[np.float64], kept: bool,
    in_order: bool,
) -> _Drawn:  # fmt: skip
    """Draw by temperature alone; ``in_order``: row i is request i's."""
    count, words = len(requests), masks.shape[1]
    places = np.arange(count) if in_order else np.array([request.logits_row for request in requests])
    scales = np.array([_scale(request.params) for request in requests])
    drawn = _Drawn(
        rows,
        places,
        rows.address + rows.stride * places,
        masks.ctypes.data + 4 * words * np.array([request.mask_row for request in requests]),
        np.empty(count, np.int64),
        np.empty((count, FOUND)),
        np.empty((count, B_SIZE * calls.blocks_of(words))),
        min(rows.columns, 32 * words),
        words,
    )

    def part(first: int, last: int) -> None:
        own = slice(first, last)
        calls.draw(
            drawn.logits[own], drawn.masks[own], scales[own], numbers[own], drawn.tokens[own], drawn.found[own],
            drawn.blocks[own], columns=drawn.columns, words=words, kind=rows.kind, kept=kept,
        )  # fmt: skip

    in_parts(part, count, threads_for_logits(count, drawn.columns))
    return drawn


def _scale(params: SamplingParams) -> float:
    return min(1 / params.temperature, GREATEST_SCALE) if params.temperature else 0.0


def _filtered(drawn: _Drawn, number: int, params: SamplingParams, uniform: float) -> None:
    """Draw anew for a row, among what its filters keep."""
    ids, weights, logits = (_likeliest if keeps_a_prefix(params) else _all)(drawn, number, params)
    order = np.argsort(ids)
    chosen = order[pick(weights[order], uniform)]
    drawn.tokens[number] = ids[chosen]
    drawn.found[number, F_LOG_PROB] = logits[chosen] - drawn.found[number, F_TOTAL]


def _gathered(drawn: _Drawn, number: int, least: float) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Allowed tokens of a row from a logit on, falling, of equals the lowest first; and their logits."""
    keys = calls.gather(
        int(drawn.logits[number]), int(drawn.masks[number]), drawn.blocks[number : number + 1], least,
        columns=drawn.columns, words=drawn.words, kind=drawn.source.kind,
    )  # fmt: skip
    keys[::-1].sort()
    logits, ids = calls.logits_of(keys)
    return ids, logits.astype(np.float64)


def _likeliest(
    drawn: _Drawn, number: int, params: SamplingParams
) -> tuple[npt.NDArray[np.int64], LogProbs, npt.NDArray[np.float64]]:
    """Tokens that top_k, top_p and min_p keep, their weights and logits: looked for near the top, then deeper."""
    highest, total, scale = drawn.found[number, F_HIGHEST], drawn.found[number, F_SUM], _scale(params)
    lowest = -math.log(params.min_p) + 1e-3 if params.min_p > 0 else math.inf  # below, min_p keeps nothing
    shares_top_k = params.top_k is not None and params.top_p < 1  # top_p is then of the mass of all top_k
    depth = FIRST_DEPTH
    while True:
        ids, logits = _gathered(drawn, number, highest - depth / scale)
        if depth == math.inf or not shares_top_k or len(ids) >= (params.top_k or 0):
            weights = np.exp((logits - highest) * scale)
            kept = _kept(weights, total, params)
            if kept < len(ids) or depth >= lowest or depth == math.inf or kept == params.top_k:
                return ids[:kept], weights[:kept], logits[:kept]
        depth = 4 * depth if depth < DEEPEST else math.inf


def _all(
    drawn: _Drawn, number: int, params: SamplingParams
) -> tuple[npt.NDArray[np.int64], LogProbs, npt.NDArray[np.float64]]:
    """All allowed tokens, ascending, their probabilities after the filters, and their logits."""
    ids, logits = _gathered(drawn, number, -math.inf)
    order = np.argsort(ids)
    ids, logits = ids[order], logits[order]
    sigma = None
    if needs_deviation(params.steps):
        sigma = deviation(drawn.source.row(int(drawn.places[number]))[: drawn.columns], params)
    return ids, filtered_probs(logits - drawn.found[number, F_TOTAL], params, sigma), logits


def _kept(weights: LogProbs, total: float, params: SamplingParams) -> int:
    """How many of the likeliest stay; ``weights`` may be only the first of all, whose sum is ``total``."""
    count = len(weights)
    if params.top_k is not None and params.top_k <= count:
        count = params.top_k
        total = float(weights[:count].sum())
    if params.top_p < 1:
        before = np.cumsum(weights[:count]) - weights[:count]
        count = max(1, int(np.count_nonzero(before < params.top_p * total)))
    if params.min_p > 0:
        count = max(1, int(np.count_nonzero(weights[:count] >= params.min_p * weights[0])))
    return count
