"""Draws on the processor: one pass of a kernel over each row where it lies, numpy's or torch's, no copy.

Temperature, and filters that can tell what they keep from the likeliest tokens (`filters.top_tokens`), need only the
kernel's sums and the few tokens near the top. What comes before the temperature needs all allowed tokens, in float64.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, TypeAlias

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
from structgen.generation.filters.rows import LogitsRow, LogProbs
from structgen.generation.filters.top_tokens import TOP_FILTERS, TopTokens
from structgen.generation.sampling.draws import PIECE, deviation, filtered_probs, kept_probs, needs_deviation, pick
from structgen.generation.sampling.logits_row import allowed_token_ids
from structgen.generation.sampling.params import SamplingParams
from structgen.generation.sampling.sampler import Bitmask, Choices, DrawRequest
from structgen.generation.sampling.uniforms import uniform, uniforms

# exp(-6) of the likeliest token: what is first looked at for a filter. Most often that is dozens of tokens.
FIRST_DEPTH = 6.0
DEEPEST = 200.0  # what lies deeper weighs nothing, and is gathered all at once
WEIGHTLESS = -1e4  # nats: exp of it is 0
LEAST_SCALE, GREATEST_SCALE = 1e-30, 1e30  # of temperatures so high, or so low, that float32 has no inverse of them


@dataclass(slots=True)
class _Drawn:
    """What the kernel found for rows of one kind of logits; request i has row ``places[i]`` of ``source``."""

    source: HostLogits
    places: npt.NDArray[np.int64]
    logits: npt.NDArray[np.int64]
    masks: npt.NDArray[np.int64]
    tokens: npt.NDArray[np.int64]
    figures: npt.NDArray[np.float64]
    blocks: npt.NDArray[np.float64]
    columns: int
    words: int
    bitmask: Bitmask
    mask_rows: Sequence[int]


_Kept: TypeAlias = "tuple[npt.NDArray[np.int64], LogProbs, npt.NDArray[np.float64]]"
"""Tokens, ascending, their weights and their logits."""


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
        plain = [index for index, request in enumerate(requests) if request.adjustments is None]
        groups = [(plain, rows)] if plain else []
        changed = [index for index, request in enumerate(requests) if request.adjustments is not None]
        if changed:
            groups.append((changed, _adjusted(rows, [requests[index] for index in changed])))
        for places, group in groups:
            group_requests = [requests[index] for index in places]
            drawn = _draw(group, masks, group_requests, numbers[places], kept, in_order=group is not rows)
            for number, (index, request) in enumerate(zip(places, group_requests, strict=True)):
                if drawn.tokens[number] != BAD and request.params.steps not in ((), ("temperature",)):
                    _filtered(drawn, number, request.params, float(numbers[index]))
            tokens[places] = drawn.tokens
            log_probs[places], log_kept[places] = drawn.figures[:, F_LOG_PROB], drawn.figures[:, F_KEPT]
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
    scales, mask_rows = np.array([_scale(request.params) for request in requests]), [one.mask_row for one in requests]
    drawn = _Drawn(
        rows,
        places,
        rows.address + rows.stride * places,
        masks.ctypes.data + 4 * words * np.array(mask_rows),
        np.empty(count, np.int64),
        np.empty((count, FOUND)),
        np.empty((count, B_SIZE * calls.blocks_of(words))),
        min(rows.columns, 32 * words),
        words,
        masks,
        mask_rows,
    )

    def part(first: int, last: int) -> None:
        span = slice(first, last)
        calls.draw(
            drawn.logits[span], drawn.masks[span], scales[span], numbers[span], drawn.tokens[span], drawn.figures[span],
            drawn.blocks[span], columns=drawn.columns, words=words, kind=rows.kind, kept=kept,
        )  # fmt: skip

    in_parts(part, count, threads_for_logits(count, drawn.columns))
    return drawn


def _scale(params: SamplingParams) -> float:
    return min(max(1 / params.temperature, LEAST_SCALE), GREATEST_SCALE) if params.temperature else 0.0


def _filtered(drawn: _Drawn, number: int, params: SamplingParams, uniform: float) -> None:
    """Draw anew for a row, among what its filters keep."""
    ids, weights, logits = _near_the_top(drawn, number, params) or _all(drawn, number, params)
    chosen = pick(weights, uniform)
    drawn.tokens[number] = ids[chosen]
    drawn.figures[number, F_LOG_PROB] = logits[chosen] - drawn.figures[number, F_TOTAL]


def _gathered(drawn: _Drawn, number: int, least: float) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Allowed tokens of a row from a logit on, falling, of equals the lowest first; and their logits."""
    keys = calls.gather(
        int(drawn.logits[number]), int(drawn.masks[number]), drawn.blocks[number : number + 1], least,
        columns=drawn.columns, words=drawn.words, kind=drawn.source.kind,
    )  # fmt: skip
    keys[::-1].sort()
    logits, ids = calls.logits_of(keys)
    return ids, logits.astype(np.float64)


def _near_the_top(drawn: _Drawn, number: int, params: SamplingParams) -> _Kept | None:
    """What the filters keep, where the first of them can tell it from the likeliest tokens: looked for near the top,
    then deeper. None where it looks at all, or comes before the temperature."""
    first = params.steps[1] if params.steps[0] == "temperature" else ""
    keeps = TOP_FILTERS.get(first)
    if keeps is None:
        return None
    highest, total, scale = drawn.figures[number, F_HIGHEST], drawn.figures[number, F_SUM], _scale(params)
    sigma, depth = _deviation(drawn, number, params), FIRST_DEPTH
    spread = cache(partial(_spread, drawn, number, scale))
    while True:
        ids, logits = _gathered(drawn, number, highest - depth / scale)
        weights = np.exp((logits - highest) * scale)
        kept = keeps(TopTokens(weights, logits, total, depth, scale, sigma, spread), getattr(params, first))
        if not isinstance(kept, float):
            break
        depth = kept if kept < DEEPEST else math.inf
    order = np.argsort(ids[kept])
    ids, weights, logits = ids[kept][order], weights[kept][order], logits[kept][order]
    if len(params.steps) > 2:
        scores = LogitsRow.log(weights)
        weights = kept_probs(scores, logits - drawn.figures[number, F_TOTAL], params.steps[2:], params, sigma)
    return ids, weights, logits


def _all(drawn: _Drawn, number: int, params: SamplingParams) -> _Kept:
    """All allowed tokens, their probabilities after the filters, and their logits."""
    ids, logits = _allowed(drawn, number)
    log_probs, sigma = logits - drawn.figures[number, F_TOTAL], _deviation(drawn, number, params)
    return ids, filtered_probs(log_probs, params, sigma), logits


def _allowed(drawn: _Drawn, number: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """All allowed tokens of a row, ascending, and their logits."""
    row = drawn.source.row(int(drawn.places[number]))[: drawn.columns]
    ids = allowed_token_ids(drawn.bitmask[drawn.mask_rows[number]], drawn.columns)
    logits = row if len(ids) == len(row) else row[ids]
    return ids, logits.astype(np.float64)


def _spread(drawn: _Drawn, number: int, scale: float) -> float:
    """Σ w · log w over the allowed tokens, w being 1 for the likeliest; piece by piece, as they fit in a cache."""
    row, highest, total = drawn.source.row(int(drawn.places[number])), drawn.figures[number, F_HIGHEST], 0.0
    words = drawn.bitmask[drawn.mask_rows[number]]
    bits = None if (words == -1).all() else np.unpackbits(np.ascontiguousarray(words).view(np.uint8), bitorder="little")
    for start in range(0, drawn.columns, PIECE):
        scores = np.subtract(row[start : min(start + PIECE, drawn.columns)], highest, dtype=np.float64)
        if scale != 1:
            scores *= scale
        if bits is not None:  # what is not allowed may be any number, and none
            scores[bits[start : start + len(scores)] == 0] = WEIGHTLESS
        np.maximum(scores, WEIGHTLESS, out=scores)
        weights = np.exp(scores)
        total += float(np.einsum("i,i", weights, scores))  # not by BLAS, which would wake its threads
    return total


def _deviation(drawn: _Drawn, number: int, params: SamplingParams) -> float | None:
    if not needs_deviation(params.steps):
        return None
    return deviation(drawn.source.row(int(drawn.places[number]))[: drawn.columns], params)
