"""The definition of a draw, row by row in float64: what samplers on devices are compared with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from structgen.decoding.sampling import (
    SamplingParams,
    allowed_token_ids,
    deviation,
    filtered_probs,
    masked_log_probs,
)
from structgen.decoding.sampling.draws import pick
from structgen.decoding.sampling.penalties import Adjustments
from structgen.decoding.sampling.sampler import DrawRequest
from structgen.decoding.sampling.uniforms import uniforms


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
        return filtered_probs(self.log_probs, self.params, deviation(self.row))

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
        edges = np.cumsum(self.probs)
        low = edges[place - 1] if place else 0.0
        return bool(self.allowed[place] == token and low - within <= self.uniform <= edges[place] + within)


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
