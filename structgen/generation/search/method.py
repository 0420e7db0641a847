"""What all methods of search are: frozen options, and ``run``."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from structgen.errors import OptionsError
from structgen.generation.search.results import SearchOutcome
from structgen.generation.search.scores import Score, Scoring
from structgen.generation.search.space import SearchNode, Space
from structgen.generation.target.results import Budget

Merge = Literal["text", "value", "none"]
MERGES = ("text", "value", "none")


@dataclass(frozen=True, kw_only=True)
class Method(ABC):
    """A method of search: its options.

    Attributes:
        merge: what counts as one output: equal texts ("text"), equal JSON values ("value"), or nothing: two spellings
            of a text in tokens are two outputs ("none").
        is_closed: whether a hypothesis is followed only where it is known how it could be closed.
        needs_states: whether it asks for the model's hidden states (``Space.states``).

    Raises:
        OptionsError: a value out of range.
    """

    merge: Merge = "text"
    is_closed: ClassVar[bool] = True
    needs_states: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.merge not in MERGES:
            raise OptionsError(f"merge is {self.merge!r:.100}; expected one of {', '.join(MERGES)}", option="merge")

    @property
    def scoring(self) -> Scoring:
        """What hypotheses are worth."""
        return Scoring()

    @property
    def limits(self) -> Budget | None:
        """How much it may ask the model."""
        return None

    def constrained(self, constraint: Any) -> Any:
        """The constraint that is searched, in place of the one that is given.

        Raises:
            ConstraintError: the method cannot be used under it.
        """
        return constraint

    @abstractmethod
    def run(self, space: Space, n: int, rng: np.random.Generator) -> SearchOutcome:
        """At least ``n`` finished outputs, best first, or as many as there are."""


@dataclass(frozen=True, kw_only=True)
class Scored(Method):
    """A method that looks for high scores.

    Attributes:
        score: "global": log-probabilities of the model, forced tokens included; "local": masked and renormalised.
        length_penalty: finished outputs of t tokens, the end included, are compared by score / t ** length_penalty.
        uid, uid_weight: the regulariser ("greedy", "variance", "local", "max", "squared") and its weight.
    """

    score: Score = "global"
    length_penalty: float = 1.0
    uid: str | None = None
    uid_weight: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("length_penalty", self.length_penalty)
        _ = self.scoring

    @property
    def scoring(self) -> Scoring:
        """See ``Method.scoring``."""
        return Scoring(self.score, self.uid, self.uid_weight)

    def final(self, node: SearchNode, offset: float = 0.0) -> float:
        """What a finished output is compared by."""
        return float((node.score + offset) / node.length**self.length_penalty)

    def check_falls(self, name: str) -> None:
        """Refuse what makes scores rise as tokens are added.

        Raises:
            OptionsError: a negative length penalty, a regulariser that may fall.
        """
        if self.length_penalty < 0:
            raise OptionsError(
                f"{name} needs a length_penalty >= 0, not {self.length_penalty}; use method='beam'",
                option="length_penalty",
            )
        regulariser = self.scoring.regulariser
        if regulariser is not None and not regulariser.rises:
            raise OptionsError(
                f"uid={self.uid!r} may fall as tokens are added, which {name} cannot bound; use method='beam', or one "
                "of 'greedy', 'max', 'squared'",
                option="uid",
            )


def check_number(name: str, value: Any, low: float = -math.inf, high: float = math.inf) -> None:
    """Raise where an option is no finite number between the bounds.

    Raises:
        OptionsError: so it is.
    """
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if not is_number or not low <= value <= high:
        bounds = "".join(f" {sign} {bound:g}" for sign, bound in ((">=", low), ("<=", high)) if math.isfinite(bound))
        raise OptionsError(f"{name} must be a finite number{bounds}, not {value!r:.100}", option=name, value=value)
