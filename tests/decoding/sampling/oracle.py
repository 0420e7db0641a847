"""What any sampler should draw, from the definition in float64; and whether a boundary was too near to tell."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from structgen.decoding.sampling import DrawRequest, SamplingParams, deviation, filtered_probs, masked_log_probs
from structgen.decoding.sampling.penalties import Adjustments
from structgen.decoding.sampling.uniforms import uniforms

NEAR = 2e-6
"""Relative to the sum of all weights: float32 exponentials are good for so much."""


def random_bitmask(rng: np.random.Generator, rows: int, size: int, density: float) -> npt.NDArray[np.int32]:
    """int32 [rows, words]; every row allows something."""
    words = -(-size // 32)
    bits = rng.random((rows, 32 * words)) < density
    bits[np.arange(rows), rng.integers(size, size=rows)] = True
    bits[:, size:] = False
    return np.packbits(bits, axis=1, bitorder="little").view(np.int32)


def allowed(bitmask_row: npt.NDArray[np.int32], size: int) -> npt.NDArray[np.int64]:
    """The ids of set bits."""
    return np.flatnonzero(np.unpackbits(bitmask_row.view(np.uint8), bitorder="little")[:size])


def expected(
    logits_row: npt.NDArray[np.floating[Any]], ids: npt.NDArray[np.int64], request: DrawRequest
) -> tuple[set[int], npt.NDArray[np.float64], float]:
    """The tokens that may be drawn (several where the number lies at a boundary), log-probabilities of all tokens
    (NaN: not allowed), and the logarithm of the mass that the mask kept."""
    row = logits_row.astype(np.float32)
    if request.adjustments is not None:
        request.adjustments.apply(row)
    log_probs = masked_log_probs(row, ids)
    spread = np.full(len(row), np.nan)
    spread[ids] = log_probs
    whole = masked_log_probs(row, None)
    kept = float(np.logaddexp.reduce(whole[ids]))
    if request.params.temperature == 0:
        return {int(ids[int(log_probs.argmax())])}, spread, kept
    sigma = deviation(row) if request.params.top_n_sigma is not None else None
    probs = filtered_probs(log_probs, request.params, sigma)
    edges = np.cumsum(probs)
    target = uniforms([request.seed], [request.position])[0] * edges[-1]
    possible = np.flatnonzero(probs)
    near = [
        int(ids[place]) for place in possible
        if edges[place] - probs[place] - NEAR <= target <= edges[place] + NEAR
    ]  # fmt: skip
    return set(near), spread, kept


def some_adjustments(rng: np.random.Generator, size: int, count: int) -> Adjustments:
    """Changes of some tokens' logits."""
    ids = rng.choice(size, min(count, size), replace=False).astype(np.int64)
    n = len(ids)
    return Adjustments(
        ids,
        rng.normal(size=n).astype(np.float32),
        rng.choice([1.0, 1.3, 0.8], n).astype(np.float32),
        rng.normal(size=n).astype(np.float32),
    )


PARAMS: dict[str, dict[str, Any]] = {
    "greedy": {"temperature": 0.0},
    "plain": {"temperature": 1.0},
    "cold": {"temperature": 0.3},
    "hot": {"temperature": 2.5},
    "freezing": {"temperature": 1e-38},
    "top_k": {"temperature": 0.9, "top_k": 5},
    "top_k of all": {"temperature": 0.9, "top_k": 10**6},
    "top_p": {"temperature": 1.1, "top_p": 0.8},
    "top_p of nearly all": {"temperature": 3.0, "top_p": 0.999},
    "min_p": {"temperature": 1.5, "min_p": 0.05},
    "all three": {"temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.02},
    "another order": {"temperature": 0.8, "top_p": 0.9, "min_p": 0.02, "order": ("min_p", "top_p", "temperature")},
    "typical": {"temperature": 1.0, "typical_p": 0.7},
    "epsilon": {"temperature": 1.0, "epsilon_cutoff": 0.003},
    "eta": {"temperature": 1.0, "eta_cutoff": 0.01},
    "sigma": {"temperature": 2.0, "top_n_sigma": 1.0},
    "top_h": {"temperature": 1.0, "top_h": 0.5},
    "much": {"temperature": 1.0, "top_h": 0.8, "top_k": 50, "typical_p": 0.9, "eta_cutoff": 1e-3, "top_n_sigma": 2.0},
}


def params(name: str, seed: int) -> SamplingParams:
    """One of PARAMS."""
    return SamplingParams(seed=seed, **PARAMS[name])
