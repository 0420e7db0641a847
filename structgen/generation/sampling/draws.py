"""The drawing rule, and draws without replacement: what an output asks for when a token was turned down."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from structgen.generation.sampling.filters import LogProbs, filtered_probs
from structgen.generation.sampling.params import SamplingParams

Uniform = Callable[[int], float]
"""A float in [0, 1) for each attempt, from 0 on."""
FirstDraw = Callable[[LogProbs, np.random.Generator], int]
"""Draws a position from probabilities [n], distributed as they say."""


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
