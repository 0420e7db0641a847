"""Temperature and filters over the allowed tokens of one row, in float64: what every other way to draw is tested by.

A filter says which tokens stay, given the scores (natural logarithms, up to a constant; -inf is gone) that the steps
before have left.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from structgen.errors import OptionsError
from structgen.generation.sampling.params import SamplingParams

LogProbs = npt.NDArray[np.float64]
Kept = npt.NDArray[np.bool_]


def filtered_probs(log_probs: LogProbs, params: SamplingParams, sigma: float | None = None) -> LogProbs:
    """Probabilities after ``params.steps``; they sum to 1, in the same positions.

    Args:
        log_probs: of the allowed tokens at temperature 1, float64 [n].
        params: temperature must be greater than 0.
        sigma: the ``deviation`` of the whole row of logits, which ``top_n_sigma`` needs.
    """
    scores = np.array(log_probs, dtype=np.float64)
    for step in params.steps:
        if step == "temperature":
            scores /= params.temperature
        elif step == "top_n_sigma":
            scores[~_top_n_sigma(log_probs, scores, params, sigma)] = -np.inf
        else:
            scores[~_FILTERS[step](_softmax(scores), params)] = -np.inf
    return _softmax(scores)


def deviation(logits_row: npt.NDArray[np.floating[Any]], params: SamplingParams) -> float | None:
    """The standard deviation of a row's finite logits, not masked (few allowed ones say little); None if no filter of
    ``params`` needs it."""
    if params.top_n_sigma is None:
        return None
    finite = logits_row[np.isfinite(logits_row)]
    return float(finite.std(dtype=np.float64)) if finite.size else 0.0


def _softmax(scores: LogProbs) -> LogProbs:
    probs = np.exp(scores - scores.max())
    return np.asarray(probs / probs.sum())


def _descending(probs: LogProbs) -> npt.NDArray[np.int64]:
    """Positions by falling probability, equals by rising position."""
    return np.argsort(-probs, kind="stable")


def _only(size: int, positions: npt.NDArray[np.int64]) -> Kept:
    kept = np.zeros(size, np.bool_)
    kept[positions] = True
    return kept


def _entropy(probs: LogProbs) -> float:
    some = probs[probs > 0]
    return float(-(some * np.log(some)).sum())


def _top_k(probs: LogProbs, params: SamplingParams) -> Kept:
    return _only(probs.size, _descending(probs)[: params.top_k]) & (probs > 0)


def _top_p(probs: LogProbs, params: SamplingParams) -> Kept:
    order = _descending(probs)
    before = np.cumsum(probs[order]) - probs[order]
    return _only(probs.size, order[: max(1, int(np.count_nonzero(before < params.top_p)))])


def _min_p(probs: LogProbs, params: SamplingParams) -> Kept:
    return np.asarray(probs >= params.min_p * probs.max())


def _typical_p(probs: LogProbs, params: SamplingParams) -> Kept:
    with np.errstate(divide="ignore"):
        order = np.argsort(np.abs(-np.log(probs) - _entropy(probs)), kind="stable")
    before = np.cumsum(probs[order]) - probs[order]
    return _only(probs.size, order[: max(1, int(np.count_nonzero(before < params.typical_p)))])


def _epsilon_cutoff(probs: LogProbs, params: SamplingParams) -> Kept:
    return np.asarray((probs >= params.epsilon_cutoff) | (probs == probs.max()))


def _eta_cutoff(probs: LogProbs, params: SamplingParams) -> Kept:
    least = min(params.eta_cutoff, math.sqrt(params.eta_cutoff) * math.exp(-_entropy(probs)))
    return np.asarray((probs >= least) | (probs == probs.max()))


def _top_h(probs: LogProbs, params: SamplingParams) -> Kept:
    """The entropy of the first k, renormalised, is log Γ - Σ p log p / Γ with Γ = Σ p; it rises with k."""
    assert params.top_h is not None
    order = _descending(probs)
    ranked = probs[order][probs[order] > 0]
    mass = np.cumsum(ranked)
    entropy = np.log(mass) - np.cumsum(ranked * np.log(ranked)) / mass
    few = int(np.count_nonzero(entropy <= params.top_h * entropy[-1] + 1e-12))
    return _only(probs.size, order[: max(1, few)])


def _top_n_sigma(log_probs: LogProbs, scores: LogProbs, params: SamplingParams, sigma: float | None) -> Kept:
    """Differences of logits are those of log-probabilities, whatever temperature came before."""
    if sigma is None:
        raise OptionsError("top_n_sigma needs the deviation of the row of logits, and no row was given")
    assert params.top_n_sigma is not None
    left = np.isfinite(scores)
    return np.asarray(left & (log_probs >= log_probs[left].max() - params.top_n_sigma * sigma))


_FILTERS: dict[str, Callable[[LogProbs, SamplingParams], Kept]] = {
    "top_h": _top_h,
    "top_k": _top_k,
    "top_p": _top_p,
    "min_p": _min_p,
    "typical_p": _typical_p,
    "epsilon_cutoff": _epsilon_cutoff,
    "eta_cutoff": _eta_cutoff,
}
