"""Outputs of another method, ranked by a critic: reranking of beams, and the best of several draws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from structgen.errors import OptionsError
from structgen.generation.decoding.critics import CriticLike, critic
from structgen.generation.search.arithmetic import Arithmetic
from structgen.generation.search.attribute import not_refused
from structgen.generation.search.beam import Beam
from structgen.generation.search.method import Method, check_number
from structgen.generation.search.results import SearchOutcome
from structgen.generation.search.scores import Scoring
from structgen.generation.search.space import SearchNode, Space
from structgen.generation.target.results import Budget
from structgen.options import check_count


@dataclass(frozen=True, kw_only=True)
class Chosen(Method):
    """What methods are that choose among the outputs of another.

    Attributes:
        of: the method that finds them, made with its options.
        candidates: how many it is asked for; at least as many as outputs.
    """

    of: Method = field(default_factory=Beam)
    candidates: int = 8

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("candidates", self.candidates)
        if not isinstance(self.of, Method) or not self.of.is_closed:
            raise OptionsError(
                f"of is {self.of!r:.100}; expected a method with its options, such as Beam(), and not Exact()",
                option="of",
            )

    @property
    def scoring(self) -> Scoring:
        """See ``Method.scoring``."""
        return self.of.scoring

    @property
    def limits(self) -> Budget | None:
        """See ``Method.limits``."""
        return self.of.limits

    def constrained(self, constraint: Any) -> Any:
        """See ``Method.constrained``."""
        return self.of.constrained(constraint)

    def found(self, space: Space, n: int, rng: np.random.Generator) -> list[SearchNode]:
        """The candidates, some of them several times if they were drawn so."""
        return [node for _, node in self.of.run(space, max(n, self.candidates), rng).finished]


@dataclass(frozen=True, kw_only=True)
class Rerank(Chosen):
    """See ``Chosen`` for the other options.

    Attributes:
        critic: of whole texts, in nats; -inf refuses one.
        logprob_weight: what the log-probability of an output counts besides.
    """

    critic: CriticLike
    logprob_weight: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("logprob_weight", self.logprob_weight)
        critic(self.critic)

    def run(self, space: Space, n: int, rng: np.random.Generator) -> SearchOutcome:
        """See ``Method.run``.

        Raises:
            GenerationError: the critic refuses all outputs.
        """
        nodes = self.found(space, n, rng)
        scores = critic(self.critic)(space.candidates(nodes))
        return ranked(
            nodes, [self.logprob_weight * node.score + score for node, score in zip(nodes, scores, strict=True)]
        )


def ranked(nodes: Sequence[SearchNode], scores: Sequence[float]) -> SearchOutcome:
    """Those that are not refused, best first; of equals, the first."""
    finished = [pair for pair in zip(scores, nodes, strict=True) if pair[0] > -math.inf]
    return SearchOutcome(not_refused(sorted(finished, key=lambda pair: -pair[0])))


@dataclass(frozen=True, kw_only=True)
class BestOf(Rerank):
    """Of ``candidates`` draws, those that the critic likes best. See ``Rerank`` for the other options."""

    of: Method = field(default_factory=Arithmetic)
    logprob_weight: float = 0.0
