"""What drawing gives: samples, what is known about the target, and what it cost."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Generic, Literal

import numpy as np

from structgen.core.constraints.base import Constraint, T_co, value_of
from structgen.errors import OptionsError
from structgen.options import check_count

Method = Literal["exact", "weighted", "asap", "local", "smc", "mh", "rejection"]


Limit = Literal["model_tokens", "seconds", "attempts"]
"""What of a budget is used up."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of one draw; None: no limit. Whichever is met first ends it.

    Attributes:
        model_tokens: tokens read by the model, the prompt's not counted (a call that is under way may exceed it by
            its own tokens).
        seconds: wall-clock time.
        attempts: walks from the root, rejected ones included.

    Raises:
        OptionsError: a limit that is no number, or negative.
    """

    model_tokens: int | None = None
    seconds: float | None = None
    attempts: int | None = None

    def __post_init__(self) -> None:
        check_count("model_tokens", self.model_tokens, 0, optional=True)
        check_count("attempts", self.attempts, 0, optional=True)
        seconds = self.seconds
        if seconds is not None and not (isinstance(seconds, (int, float)) and seconds >= 0):
            raise OptionsError(
                f"seconds must be a number >= 0, or None, not {seconds!r:.100}", option="seconds", value=seconds
            )

    def used_up(self, model_tokens: int, seconds: float) -> Limit | None:
        """Which limit so many tokens, or so much time, have met. Attempts are counted by who makes them."""
        if self.model_tokens is not None and model_tokens >= self.model_tokens:
            return "model_tokens"
        if self.seconds is not None and seconds >= self.seconds:
            return "seconds"
        return None


@dataclass(frozen=True, slots=True)
class Sample(Generic[T_co]):
    """One text.

    Attributes:
        text: bytes that are no UTF-8 become U+FFFD.
        token_ids: without end of sequence.
        log_prob: nats, of these tokens and the end under P (not divided by P(L)).
        log_weight: nats. Averages of f(text) · exp(log_weight) over all attempts are unbiased for Z · E[f]; 0 for
            methods that use no weights.
        exact: drawn from the target itself, independently of the others.
    """

    text: str
    token_ids: tuple[int, ...]
    log_prob: float
    log_weight: float
    exact: bool
    _constraint: Constraint[T_co] | None = field(default=None, repr=False, compare=False)

    @property
    def value(self) -> T_co:
        """What the constraint makes of the text, as ``GenerationResult.value``; of a grammar that makes nothing of it
        (some compiled ones), the text. Read when asked for.

        Raises:
            RefusedValueError: the type's own validators refuse it; a sample it is all the same.
        """
        return value_of(self._constraint, self.text)


@dataclass(frozen=True)
class SampleRun(Generic[T_co]):
    """What one call of ``draw`` gave.

    Attributes:
        samples: in the order of their attempts.
        method, requested: as asked for.
        stopped_by: the budget that ran out before ``requested`` samples were there; None if all are there. Texts that
            need few model calls are the first to be there, so a run that was stopped favours them.
        log_z_bounds: nats; P(L) lies between them. With a critic, what is said of P(L) here is said of
            Σ P(text) · exp(critic(text)) over the language.
        tv_bound: bound of the total variation distance to the target of "asap" with what is known now.
        log_z: estimate of log P(L): that of the weights of all attempts (of the acceptance for "exact" and
            "rejection"), or the nearest that the bounds leave, which is never farther from P(L); NaN where there was no
            attempt, and for methods that give none.
        ess: effective sample size; NaN for "asap" and "mh", whose samples come with no measure of it.
        attempts, rejected, stuck: walks; turned down by the coin; led to where no text can be completed.
        model_tokens, model_calls: read and made during this call.
        steps, hits: tokens walked, and how many of them were known without asking the model.
        seconds: wall-clock time.
    """

    samples: list[Sample[T_co]]
    method: Method
    requested: int
    stopped_by: Literal["model_tokens", "seconds", "attempts"] | None
    log_z_bounds: tuple[float, float]
    tv_bound: float
    log_z: float
    ess: float
    attempts: int
    rejected: int
    stuck: int
    model_tokens: int
    model_calls: int
    steps: int
    hits: int
    seconds: float
    log_weights: list[float] = field(repr=False, default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether all the samples asked for are there."""
        return self.stopped_by is None

    @property
    def z_bounds(self) -> tuple[float, float]:
        """P(L) lies between them."""
        return math.exp(self.log_z_bounds[0]), math.exp(self.log_z_bounds[1])

    @property
    def texts(self) -> list[str]:
        """The texts."""
        return [sample.text for sample in self.samples]

    @property
    def values(self) -> list[T_co]:
        """The values; errors as ``Sample.value``."""
        return [sample.value for sample in self.samples]


def effective_sample_size(log_weights: list[float]) -> float:
    """Kish's: (Σw)² / Σw²; 0 for none."""
    weights = np.array(log_weights)
    weights = weights[weights > -math.inf]
    if not len(weights):
        return 0.0
    weights = np.exp(weights - weights.max())
    return float(weights.sum() ** 2 / (weights**2).sum())


def log_mean_exp(log_weights: list[float]) -> float:
    """Logarithm of the mean of the weights; -inf for none."""
    values = np.array(log_weights)
    if not len(values) or values.max() == -math.inf:
        return -math.inf
    top = float(values.max())
    return top + math.log(float(np.exp(values - top).mean()))
