"""Verification rules: one token distributed as the target says, with a good chance that it is a drafted one.

Each takes the target's probabilities ``p`` and the draft's ``q`` over the same allowed tokens (both masked, then
filtered alike) and the drafted positions, and returns a position distributed exactly as ``p``. What is lost where ``p``
and ``q`` differ is the chance of returning a drafted position, never exactness.

A drafted token that was not drawn at random (copied, forced, an argmax) needs no rule: a token is drawn from ``p``, and
the draft was right or wrong. That is the chain's rule for a ``q`` of one point.

Sources: chain: Leviathan et al. 2023 and Chen et al. 2023, algorithm 1. k_sequential: Sun et al. 2023 (SpecTr),
algorithm 2. recursive: Jeon et al. 2024 (recursive rejection sampling without replacement), Yang et al. 2024.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from structgen.generation.sampling import LogProbs, sample

Rule = Callable[[LogProbs, LogProbs, Sequence[int], np.random.Generator], int]

_BISECTIONS = 20  # of an interval of length k - 1: the divisor comes within a millionth of the least, from above


@dataclass(frozen=True, slots=True)
class Draws:
    """Positions drawn at random for one place.

    Attributes:
        probs: the draft's probabilities over the allowed tokens, ascending by id.
        positions: what was drawn, in this order.
        rule: how they are to be verified, which depends on how they were drawn.
    """

    probs: LogProbs
    positions: tuple[int, ...]
    rule: Rule

    def __call__(self, p: LogProbs, rng: np.random.Generator) -> int:
        """A position distributed as ``p``."""
        return self.rule(p, self.probs, self.positions, rng)


def chain(p: LogProbs, q: LogProbs, positions: Sequence[int], rng: np.random.Generator) -> int:
    """One position drawn from ``q``: accepted with probability min(1, p/q), else one from max(p - q, 0), normalised.

    The chance of acceptance is 1 minus the total variation distance, the best there is for one draw. O(n).
    """
    (position,) = positions
    if rng.random() * q[position] < p[position]:
        return position
    return _sample_or(np.maximum(p - q, 0.0), p, rng)


def k_sequential(p: LogProbs, q: LogProbs, positions: Sequence[int], rng: np.random.Generator) -> int:
    """k positions drawn independently from ``q`` (the same may come twice), each tried in turn.

    Each is accepted with probability min(1, p / (ρ q)). With β = Σ min(q, p/ρ), the k tries return x with
    probability min(q, p/ρ)(x) · (1 - (1 - β)^k) / β, which stays below p(x) from the smallest ρ with
    1 - (1 - β)^k ≤ ρ β on; the rest is drawn from the difference. O(n), times 20 for finding ρ.
    """
    k = len(positions)
    rho = _smallest_divisor(p, q, k)
    for position in positions:
        if rng.random() * rho * q[position] < p[position]:
            return position
    overlap = np.minimum(q, p / rho)
    beta = overlap.sum()
    drafted = overlap * ((1 - (1 - beta) ** k) / beta) if beta > 0 else overlap
    return _sample_or(np.maximum(p - drafted, 0.0), p, rng)


def recursive(p: LogProbs, q: LogProbs, positions: Sequence[int], rng: np.random.Generator) -> int:
    """Positions drawn from ``q`` one after the other without replacement: the chain's rule again and again.

    After a rejection the target is the residual max(p - q, 0), normalised, and the draft is ``q`` without what was
    drawn. O(n k).
    """
    for position in positions:
        if rng.random() * q[position] < p[position]:
            return position
        residual = np.maximum(p - q, 0.0)
        total = residual.sum()
        if total <= 0:  # p equals q up to rounding: a rejection that rounding made
            return sample(p, rng)
        p = residual / total
        q = q.copy()
        q[position] = 0.0
        left = q.sum()
        if left <= 0:
            break
        q /= left
    return sample(p, rng)


def draw_with_replacement(q: LogProbs, count: int, rng: np.random.Generator) -> tuple[int, ...]:
    """``count`` independent positions, for ``k_sequential``."""
    return tuple(sample(q, rng) for _ in range(count))


def draw_without_replacement(q: LogProbs, count: int, rng: np.random.Generator) -> tuple[int, ...]:
    """Up to ``count`` different positions, for ``recursive`` (Gumbel-top-k: drawn one by one, Kool et al. 2019)."""
    possible = np.flatnonzero(q)
    keys = np.log(q[possible]) + rng.gumbel(size=possible.size)
    return tuple(int(position) for position in possible[np.argsort(-keys)[:count]])


def _smallest_divisor(p: LogProbs, q: LogProbs, k: int) -> float:
    """The least ρ in [1, k] with 1 - (1 - β(ρ))^k ≤ ρ β(ρ), from above (bisection; it holds at k)."""

    def holds(rho: float) -> bool:
        beta = float(np.minimum(q, p / rho).sum())
        return 1 - (1 - beta) ** k <= rho * beta

    low, high = 1.0, float(k)
    if k == 1 or holds(low):
        return 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _sample_or(weights: LogProbs, otherwise: LogProbs, rng: np.random.Generator) -> int:
    """A sample by ``weights``; by ``otherwise`` where rounding left nothing of them."""
    return sample(weights if weights.sum() > 0 else otherwise, rng)
