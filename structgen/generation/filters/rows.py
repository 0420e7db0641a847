"""What a filter sees of one row of logits, in float64, and what filters are written with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

LogProbs = npt.NDArray[np.float64]
Positions = npt.NDArray[np.int64]
Kept = npt.NDArray[np.bool_]


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
    def descending(probs: LogProbs) -> Positions:
        """Positions by falling probability, equals by rising position."""
        return np.argsort(-probs, kind="stable")

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
