"""Temperature and filters over the allowed tokens of one row, the drawing rule, and draws without replacement.

The last are what an output asks for when a token was turned down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from structgen.generation.filters.rows import LogitsRow, LogProbs
from structgen.generation.filters.table import FILTER_NAMED
from structgen.generation.sampling.params import SamplingParams

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
    scores = np.array(log_probs, dtype=np.float64)
    for step in params.steps:
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
    finite = logits_row[np.isfinite(logits_row)]
    return float(finite.std(dtype=np.float64)) if finite.size else 0.0


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
