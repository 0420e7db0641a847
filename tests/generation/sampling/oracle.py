"""The definition of a draw, row by row in float64: what all samplers are compared with; and cases for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from structgen.generation.sampling import (
    SamplingParams,
    allowed_token_ids,
    deviation,
    filtered_probs,
    masked_log_probs,
)
from structgen.generation.sampling.draws import pick
from structgen.generation.sampling.penalties import Adjustments
from structgen.generation.sampling.sampler import DrawRequest
from structgen.generation.sampling.uniforms import uniforms

NEAR = 2e-6
"""Relative to the sum of all weights: float32 exponentials are good for so much."""


class Row:
    """What is to be found for one request.

    Attributes:
        allowed: the ids that the mask allows and the logits reach.
        usable: whether a token can be drawn.
        probs: of the allowed ids after the filters (greedy: all on one).
        log_probs: of the allowed ids at temperature 1.
        log_kept: what the mask kept.
    """

    def __init__(self, logits: np.ndarray, bitmask: np.ndarray, request: DrawRequest) -> None:
        row = logits[request.logits_row].astype(np.float32 if logits.dtype != np.float64 else np.float64)
        self.row = row[: 32 * bitmask.shape[1]].copy()
        if request.adjustments is not None:
            request.adjustments.apply(self.row)
        self.params = request.params
        self.uniform = float(uniforms([request.seed], [request.position])[0])
        self.allowed = allowed_token_ids(bitmask[request.mask_row], len(self.row))
        chosen = self.row[self.allowed]
        self.usable = bool(len(chosen)) and bool(np.isfinite(chosen.max()))

    @property
    def log_probs(self) -> np.ndarray:
        return masked_log_probs(self.row, self.allowed)

    @property
    def log_kept(self) -> float:
        highest, top = self.row[self.allowed].max(initial=-np.inf), self.row.max()
        if not np.isfinite([highest, top]).all():
            return float(highest) - float(top)
        some, whole = (values.astype(float) for values in (self.row[self.allowed], self.row))
        ratio = np.exp(some - highest).sum() / np.exp(whole - top).sum()
        return min(0.0, float(highest) - float(top) + float(np.log(ratio)))

    @property
    def probs(self) -> np.ndarray:
        return filtered_probs(self.log_probs, self.params, deviation(self.row, self.params))

    def token(self) -> int:
        """-1 where none can be drawn."""
        if not self.usable:
            return -1
        if self.params.temperature == 0:
            return int(self.allowed[self.row[self.allowed].argmax()])
        return int(self.allowed[pick(self.probs, self.uniform)])

    def accepts(self, token: int, within: float) -> bool:
        """Whether a token is the one, or the random number is within so much of its interval."""
        if token == self.token():
            return True
        place = int(np.searchsorted(self.allowed, token))
        if not self.usable or self.params.temperature == 0 or place >= len(self.allowed):
            return False
        probs = self.probs
        high = float(probs[: place + 1].sum())
        inside = high - probs[place] - within <= self.uniform <= high + within
        return bool(self.allowed[place] == token and probs[place] > 0 and inside)

    def log_prob(self, token: int) -> float:
        """Of an allowed token."""
        return float(self.log_probs[np.searchsorted(self.allowed, token)])

    def check_distribution(self, drawn: npt.NDArray[np.int64]) -> None:
        """G-test: 2 n KL(observed | expected) is χ² with (kinds - 1) degrees of freedom."""
        seen = np.bincount(drawn, minlength=len(self.row))[self.allowed]
        expected = self.probs * len(drawn)
        assert seen[expected == 0].sum() == 0
        both = (seen > 0) & (expected > 0)
        statistic = 2 * (seen[both] * np.log(seen[both] / expected[both])).sum()
        degrees = np.count_nonzero(expected) - 1
        assert abs(statistic - degrees) < 4.5 * np.sqrt(2 * degrees)


def bits(allowed: np.ndarray) -> np.ndarray:
    """Booleans [M, V] as a bitmask, int32 [M, ceil(V / 32)]."""
    padded = np.pad(allowed, ((0, 0), (0, -allowed.shape[1] % 32)))
    return np.packbits(padded, axis=1, bitorder="little").view(np.int32)


def requests(
    count: int, params: Sequence[SamplingParams], adjustments: Sequence[Adjustments | None] = (None,)
) -> list[DrawRequest]:
    """One for each row, with params and adjustments in turn."""
    return [
        DrawRequest(params[row % len(params)], 7 * row + 1, row, row, row, adjustments[row % len(adjustments)])
        for row in range(count)
    ]


def random_bitmask(rng: np.random.Generator, rows: int, size: int, density: float) -> npt.NDArray[np.int32]:
    """int32 [rows, words]; every row allows something."""
    allowed = rng.random((rows, size)) < density
    allowed[np.arange(rows), rng.integers(size, size=rows)] = True
    return bits(allowed)


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
    "bregman": {"temperature": 1.0, "bregman_cost": 0.02},
    "much": {"temperature": 1.0, "top_h": 0.8, "top_k": 50, "typical_p": 0.9, "eta_cutoff": 1e-3, "top_n_sigma": 2.0},
}


def params(name: str, seed: int) -> SamplingParams:
    """One of PARAMS."""
    return SamplingParams(seed=seed, **PARAMS[name])
