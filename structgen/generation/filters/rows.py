"""What a filter sees of one row of logits, in float64, and what filters are written with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

LogProbs = npt.NDArray[np.float64]
Positions = npt.NDArray[np.int64]
Kept = npt.NDArray[np.bool_]
SHARES = (0.01, 1e-4, 1e-8, 0.0)
"""Of the likeliest token's probability: who has less is looked at only where all who have more stay."""


@dataclass(frozen=True, slots=True)
class LogitsRow:
    """What a filter sees of the allowed tokens [n] of one row of logits.

    Attributes:
        scores: natural logarithms, up to a constant, that the steps before have left; -inf is gone.
        log_probs: at temperature 1, before any step.
        sigma: the standard deviation of the whole row of logits, for filters that need it.
    """

    scores: LogProbs
    log_probs: LogProbs
    sigma: float | None

    @property
    def probs(self) -> LogProbs:
        """Probabilities of what is left; they sum to 1."""
        probs = np.exp(self.scores - self.scores.max())
        return np.asarray(probs / probs.sum())

    def only(self, positions: Positions) -> Kept:
        """That these stay."""
        kept = np.zeros(self.scores.size, np.bool_)
        kept[positions] = True
        return kept

    @staticmethod
    def leading(probs: LogProbs, count: Callable[[LogProbs], int]) -> Positions:
        """Positions of the likeliest that stay, by falling probability; see ``first``."""
        highest = float(probs.max())
        return LogitsRow.first(-probs, [-share * highest for share in SHARES], lambda order: count(probs[order]))

    @staticmethod
    def first(keys: LogProbs, limits: Sequence[float], count: Callable[[Positions], int]) -> Positions:
        """Positions that stay, by rising key, equals by rising position; at least one.

        Args:
            keys: one for each position.
            limits: rising; keys above one are looked at only where all below it stay. None is above the last.
            count: how many stay of some positions, in their order: all of them where the next might, too.

        O(keys), and a sort of those that are looked at: few where few stay.
        """
        order, few = np.zeros(0, np.int64), 0
        for limit in limits:
            some = np.flatnonzero(keys <= limit)
            order = some[np.argsort(keys[some], kind="stable")]
            few = count(order)
            if few < order.size:
                break
        return order[: max(1, few)]

    @staticmethod
    def log(probs: LogProbs) -> LogProbs:
        """Natural logarithms; -inf of 0."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(probs))

    @staticmethod
    def entropy(probs: LogProbs) -> float:
        """In nats."""
        some = probs[probs > 0]
        return float(-(some * np.log(some)).sum())
