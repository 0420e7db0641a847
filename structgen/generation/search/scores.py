"""What a hypothesis is worth: sums of log-probabilities, less a regulariser of their evenness."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from structgen.errors import OptionsError

Values = npt.NDArray[np.float64]
Score = Literal["global", "local"]


@dataclass(frozen=True, slots=True)
class Surprisals:
    """What regularisers need to know of u = -log p of the choices so far; forced tokens are no choices.

    Attributes:
        count, mean, spread: how many, their mean, the sum of their squared distances from it (Welford).
        squares, greatest, last: Σ u², max u, the last one (0 before the first).
        steps: Σ (u_t - u_{t-1})². excess: Σ (u_t - min u_t)².
    """

    count: int = 0
    mean: float = 0.0
    spread: float = 0.0
    squares: float = 0.0
    greatest: float = 0.0
    last: float = 0.0
    steps: float = 0.0
    excess: float = 0.0

    def added(self, u: float, least: float) -> Surprisals:
        """With another choice, where the likeliest would have had ``least``."""
        count = self.count + 1
        mean = self.mean + (u - self.mean) / count
        return replace(
            self,
            count=count,
            mean=mean,
            spread=self.spread + (u - self.mean) * (u - mean),
            squares=self.squares + u * u,
            greatest=max(self.greatest, u),
            last=u,
            steps=self.steps + (u - self.last) ** 2,
            excess=self.excess + (u - least) ** 2,
        )


@dataclass(frozen=True, slots=True)
class Regulariser:
    """Of uniform information density (Meister, Cotterell, Vieira 2020).

    Attributes:
        value: of the choices so far.
        after: of each choice that may be next, given u [n] and the least of them.
        rises: whether it never falls as choices are added, so that scores never rise.
    """

    value: Callable[[Surprisals], float]
    after: Callable[[Surprisals, Values, float], Values]
    rises: bool


def _variance_after(so_far: Surprisals, u: Values, least: float) -> Values:
    mean = so_far.mean + (u - so_far.mean) / (so_far.count + 1)
    return np.asarray((so_far.spread + (u - so_far.mean) * (u - mean)) / (so_far.count + 1))


REGULARISERS = {
    "greedy": Regulariser(lambda s: s.excess, lambda s, u, least: s.excess + (u - least) ** 2, True),
    "variance": Regulariser(lambda s: s.spread / max(1, s.count), _variance_after, False),
    "local": Regulariser(
        lambda s: s.steps / max(1, s.count), lambda s, u, _: (s.steps + (u - s.last) ** 2) / (s.count + 1), False
    ),
    "max": Regulariser(lambda s: s.greatest, lambda s, u, _: np.maximum(s.greatest, u), True),
    "squared": Regulariser(lambda s: s.squares, lambda s, u, _: s.squares + u * u, True),
}


@dataclass(frozen=True, slots=True)
class Scoring:
    """s = Σ log p - ``uid_weight`` · R.

    Attributes:
        score: "global": p is the model's, which forced tokens cost too; "local": p is masked and renormalised.
        uid: which regulariser; None: none.

    Raises:
        OptionsError: a value out of range.
    """

    score: Score = "global"
    uid: str | None = None
    uid_weight: float = 0.0

    def __post_init__(self) -> None:
        if self.score not in ("global", "local"):
            raise OptionsError(f"score is {self.score!r:.100}; expected 'global' or 'local'", option="score")
        if self.uid is not None and self.uid not in REGULARISERS:
            names = ", ".join(REGULARISERS)
            raise OptionsError(f"uid is {self.uid!r:.100}; expected one of {names}, or None", option="uid")
        if not isinstance(self.uid_weight, (int, float)) or not 0 <= self.uid_weight < math.inf:
            raise OptionsError(f"uid_weight must be a number >= 0, not {self.uid_weight!r:.100}", option="uid_weight")

    @property
    def regulariser(self) -> Regulariser | None:
        """The one that counts."""
        return None if self.uid is None or not self.uid_weight else REGULARISERS[self.uid]
