"""Temperature and filters over the allowed tokens of one row, the drawing rule, and draws without replacement.

The last are what an output asks for when a token was turned down.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from structgen.generation.filters.rows import LogitsRow, LogProbs
from structgen.generation.filters.table import FILTER_NAMED
from structgen.generation.sampling.params import SamplingParams

PIECE = 16_384
"""Logits that are summed at once: they fit in a cache."""
Uniform = Callable[[int], float]
"""A float in [0, 1) for each attempt, from 0 on."""
FirstDraw = Callable[[LogProbs, np.random.Generator], int]
"""Draws a position from probabilities [n], distributed as they say."""


def filtered_probs(log_probs: LogProbs, params: SamplingParams, sigma: float | None = None) -> LogProbs:
    """Probabilities after ``params.steps``; they sum to 1, in the same positions.

    Args:
        log_probs: of the allowed tokens at temperature 1, float64 [n].
        params: temperature must be greater than 0.
        sigma: the ``deviation`` of the whole row of logits, for filters that need it.
    """
    return kept_probs(np.array(log_probs, dtype=np.float64), log_probs, params.steps, params, sigma)


def kept_probs(
    scores: LogProbs, log_probs: LogProbs, steps: Sequence[str], params: SamplingParams, sigma: float | None
) -> LogProbs:
    """Probabilities after these of the steps; ``scores``, which others have left, are changed. See ``LogitsRow``."""
    for step in steps:
        if step == "temperature":
            scores /= params.temperature
        else:
            kept = FILTER_NAMED[step].keeps(LogitsRow(scores, log_probs, sigma), getattr(params, step))
            scores[~kept] = -np.inf
    return LogitsRow(scores, log_probs, sigma).probs


def deviation(logits_row: npt.NDArray[np.floating[Any]], params: SamplingParams) -> float | None:
    """The standard deviation of a row's finite logits, not masked (few allowed ones say little); None if no filter of
    ``params`` needs it."""
    if not needs_deviation(params.steps):
        return None
    count, total, squares = 0, 0.0, 0.0
    for start in range(0, len(logits_row), PIECE):
        part = logits_row[start : start + PIECE].astype(np.float64)
        if not math.isfinite(float(part.sum())):
            part = part[np.isfinite(part)]
        count, total = count + len(part), total + float(part.sum())
        squares += float(np.square(part, out=part).sum())
    return math.sqrt(max(0.0, squares / count - (total / count) ** 2)) if count else 0.0


def needs_deviation(steps: Sequence[str]) -> bool:
    """Whether one of the steps reads the deviation of the whole row."""
    return any(FILTER_NAMED[step].needs_deviation for step in steps if step != "temperature")


def draw(
    log_probs: LogProbs,
    params: SamplingParams,
    uniform: Uniform,
    *,
    sigma: float | None = None,
    first: int | None = None,
) -> Iterator[int]:
    """Positions in ``log_probs``, drawn one after the other without replacement.

    The first is the sample (or the argmax); a caller that has to turn one down takes the next, which is distributed
    as the sample given that it is none of those before. Ends when the filters leave no more. ``first`` is the first
    position, if it was drawn already; ``sigma`` see ``filtered_probs``.
    """
    if params.temperature == 0:
        left = log_probs.copy()
        while np.isfinite(left[best := int(left.argmax())]):
            yield best
            left[best] = -np.inf
        return
    probs, attempt = filtered_probs(log_probs, params, sigma), 0
    while (total := probs.sum()) > 0:
        position = pick(probs, uniform(attempt)) if first is None or attempt else first
        yield position
        probs[position] = 0.0
        attempt += 1
        if total < 1e-12:  # what is left is rounding error
            return


def pick(weights: LogProbs, uniform: float) -> int:
    """The drawing rule: the first position whose cumulative weight exceeds ``uniform`` times the sum of all weights."""
    edges = np.cumsum(weights)
    position = int(np.searchsorted(edges, uniform * edges[-1], side="right"))
    if position >= weights.size or weights[position] == 0:  # rounding at the very end of the cumulative sum
        position = int(np.flatnonzero(weights)[-1])
    return position


def sample(weights: LogProbs, rng: np.random.Generator) -> int:
    """A position drawn with probability in proportion to ``weights`` (not all zero)."""
    return pick(weights, rng.random())
