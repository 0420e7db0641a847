"""One critic for whatever weighs texts: best of several outputs, weights of particles, search.

The target that a critic asks for is P(text | language) times exp(weight * critic(text)). A critic is a function from
candidates to nats; ``critic`` says what it promises, and checks what it gives.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Real
from typing import Any, Protocol, TypeAlias

from structgen.core.bounded_cache import BoundedCache
from structgen.core.constraints.base import Constraint, partial_of, value_of
from structgen.errors import GenerationError, OptionsError
from structgen.options import as_number, check_count


@dataclass(frozen=True)
class Candidate:
    """A text that a critic is asked about.

    Attributes:
        text: the output, or its beginning.
        is_whole: whether it is a whole output.
        logprob: nats, of what wrote it; what it is of, the caller says.
        constraint: what reads values; None: free text.
    """

    text: str
    is_whole: bool = True
    logprob: float = 0.0
    constraint: Constraint | None = field(default=None, repr=False, compare=False)

    @cached_property
    def value(self) -> Any:
        """What the constraint makes of a whole text; read when asked for. Errors as ``Constraint.parse``."""
        return value_of(self.constraint, self.text)

    @cached_property
    def partial(self) -> Any:
        """The value as far as it goes; that of a whole text is ``value``."""
        return self.value if self.is_whole else partial_of(self.constraint, self.text)


class Critic(Protocol):
    """What scores candidates. A plain function is one."""

    def __call__(self, candidates: Sequence[Candidate], /) -> Sequence[float]:
        """A score for each, in nats: -inf refuses, +inf is no score. The same text has the same score, whatever is
        asked about with it."""
        ...


CriticLike: TypeAlias = "Critic | Callable[[Sequence[Candidate]], Iterable[float]]"


class CheckedCritic:
    """A critic with its promises. Make it with ``critic``; what it gives is checked, and remembered by text.

    Attributes:
        weight: what scores are multiplied by.
        prefixes: whether it may be asked about beginnings.
        most: an upper bound of its scores of whole texts, times the weight; None: none is known.
        asked: candidates that the function was asked about.
    """

    def __init__(
        self, function: CriticLike, weight: float, prefixes: bool, most: float | None, batch: int, memo: int
    ) -> None:
        self._function, self._batch = function, batch
        self._memo: BoundedCache[tuple[str, bool], float] | None = BoundedCache(memo) if memo else None
        self.weight, self.prefixes = weight, prefixes
        self.most = None if most is None else weight * most
        self.asked = 0

    def __call__(self, candidates: Sequence[Candidate], /) -> list[float]:
        """The weighted score of each. Equal texts are asked about once; a weight of 0 asks about none.

        Raises:
            GenerationError: the function raised, gave another number of scores, or one that is no score; or it is asked
                about a beginning and does not promise to judge those.
        """
        if not self.weight:
            return [0.0] * len(candidates)
        started = next((each for each in candidates if not each.is_whole), None)
        if started is not None and not self.prefixes:
            raise GenerationError(
                f"The critic is asked about the beginning {started.text!r:.100} and was made for whole texts only; "
                "say that it judges prefixes if it does.",
                text=started.text,
            )
        scores = self._remembered(map(_key, candidates))
        unknown = list({_key(each): each for each in candidates if _key(each) not in scores}.values())
        for start in range(0, len(unknown), self._batch):
            part = unknown[start : start + self._batch]
            scores.update(zip(map(_key, part), self._asked(part), strict=True))
        if self._memo is not None:
            for key, score in scores.items():
                self._memo.put(key, score)
        return [self.weight * scores[_key(each)] for each in candidates]

    def _asked(self, candidates: Sequence[Candidate]) -> list[float]:
        self.asked += len(candidates)
        try:
            scores = list(self._function(candidates))
        except Exception as error:
            raise GenerationError(
                f"The critic raised {type(error).__name__}: {error}; it was asked about {len(candidates)} texts, the "
                f"first {candidates[0].text!r:.100}. Let it give -inf for what it refuses.",
                text=candidates[0].text,
            ) from error
        if len(scores) != len(candidates):
            raise GenerationError(
                f"The critic gave {len(scores)} scores for {len(candidates)} candidates; it must give one for each."
            )
        return [self._checked(score, each) for score, each in zip(scores, candidates, strict=True)]

    def _checked(self, score: Any, candidate: Candidate) -> float:
        """A score as a float: a number, not NaN, not +inf, no more than ``most``."""
        number = as_number(score)
        if math.isnan(number) or number == math.inf:
            raise GenerationError(
                f"The critic gave {score!r:.60} for {candidate.text!r:.100}; a score is a number of nats or -inf.",
                text=candidate.text,
            )
        if candidate.is_whole and self.most is not None and self.weight * number > self.most + 1e-9:
            raise GenerationError(
                f"The critic gave {number:g} for {candidate.text!r:.100} and promised at most "
                f"{self.most / self.weight:g}; samples would not be exact. Raise most.",
                text=candidate.text,
            )
        return number

    def _remembered(self, keys: Iterable[tuple[str, bool]]) -> dict[tuple[str, bool], float]:
        if self._memo is None:
            return {}
        return {key: score for key in keys if (score := self._memo.get(key)) is not None}


def critic(
    function: CriticLike,
    *,
    weight: float = 1.0,
    prefixes: bool = False,
    most: float | None = None,
    batch: int = 64,
    memo: int = 4096,
) -> CheckedCritic:
    """What scores texts, with what it promises.

    Args:
        function: from candidates to a score in nats for each; -inf refuses a text.
        weight: what scores are multiplied by; at least 0, and 0 is no critic.
        prefixes: whether it may be asked about beginnings, as a potential is.
        most: an upper bound of its scores of whole texts: with it exact samples of the target can be drawn.
        batch: the most candidates that it is asked about at once.
        memo: how many scores are remembered, by text; 0: none.

    Raises:
        OptionsError: an option has a value that it cannot have, or is given for what is a critic already.
    """
    if isinstance(function, CheckedCritic):
        if (weight, prefixes, most, batch, memo) != (1.0, False, None, 64, 4096):
            raise OptionsError("this critic has its promises already; give them where it is made", option="critic")
        return function
    if not callable(function):
        raise OptionsError(f"a critic is a function of candidates, not {function!r:.100}", option="critic")
    for name, value, low in (("weight", weight, 0.0), ("most", most, -math.inf)):
        if value is not None and not (_is_number(value) and math.isfinite(value) and value >= low):
            raise OptionsError(f"{name} is {value!r:.60}; a finite number is expected", option=name, value=value)
    if not isinstance(prefixes, bool):
        raise OptionsError(f"prefixes must be True or False, not {prefixes!r:.60}", option="prefixes", value=prefixes)
    check_count("batch", batch)
    check_count("memo", memo, 0)
    return CheckedCritic(function, weight, prefixes, most, batch, memo)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _key(candidate: Candidate) -> tuple[str, bool]:
    return candidate.text, candidate.is_whole
