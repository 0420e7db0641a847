"""Quality-aware choice: of several draws, the one that is most like all of them (minimum Bayes risk)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from structgen.errors import GenerationError, OptionsError
from structgen.generation.decoding.critics import Candidate
from structgen.generation.search.arithmetic import Arithmetic
from structgen.generation.search.method import Method
from structgen.generation.search.rerank import Chosen, ranked
from structgen.generation.search.results import SearchOutcome
from structgen.generation.search.space import Space
from structgen.options import as_number

Utility = Callable[[Candidate, Candidate], float]


def same_value(one: Candidate, other: Candidate) -> float:
    """1 where two outputs have one value: the choice is then a vote."""
    return float(one.text == other.text or one.value == other.value)


@dataclass(frozen=True, kw_only=True)
class Quality(Chosen):
    """See ``Chosen`` for the other options.

    Attributes:
        utility: how good an output is if another were the right one. Its mean over the draws estimates what is to be
            expected of it.
    """

    of: Method = field(default_factory=Arithmetic)
    utility: Utility = same_value

    def __post_init__(self) -> None:
        super().__post_init__()
        if not callable(self.utility):
            raise OptionsError(f"utility is a function of two candidates, not {self.utility!r:.60}", option="utility")

    def run(self, space: Space, n: int, rng: np.random.Generator) -> SearchOutcome:
        """See ``Method.run``.

        Raises:
            GenerationError: the utility is no number.
        """
        nodes = self.found(space, n, rng)
        drawn = space.candidates(nodes)
        utilities = dict[tuple[str, str], float]()
        for one in drawn:
            for other in drawn:
                if (one.text, other.text) not in utilities:
                    utilities[one.text, other.text] = _checked(self.utility(one, other), one)
        means = [sum(utilities[one.text, other.text] for other in drawn) / len(drawn) for one in drawn]
        return ranked(nodes, means)


def _checked(utility: object, one: Candidate) -> float:
    number = as_number(utility)
    if not math.isfinite(number):
        raise GenerationError(f"The utility of {one.text!r:.100} is {utility!r:.60}; a finite number is expected.")
    return number
