"""Beams with an attribute: hypotheses are compared by what a critic says of their texts, too."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from structgen.errors import GenerationError, OptionsError
from structgen.generation.decoding.critics import CheckedCritic, CriticLike, critic
from structgen.generation.search.beam import Beam, BeamEntry, Group, check_some
from structgen.generation.search.results import SearchOutcome
from structgen.generation.search.space import SearchNode, Space

REFUSED = -1e9
"""Nats, for beginnings that the critic refuses: they go on only where it refuses all."""


@dataclass(frozen=True, kw_only=True)
class Attribute(Beam):
    """See ``Beam`` for the other options.

    Attributes:
        critic: log P(attribute | beginning), in nats. It is asked once a step, about the best ``2 * num_beams``; what
            it says of a beginning takes the place of what it said of a shorter one.
    """

    critic: CriticLike

    def __post_init__(self) -> None:
        super().__post_init__()
        judge_of_beginnings(self.critic)

    def run(self, space: Space, n: int, rng: np.random.Generator) -> SearchOutcome:
        """See ``Method.run``.

        Raises:
            GenerationError: the critic refuses all outputs.
        """
        group = _WeighedGroup(space, self, self.beams(n), asked=judge_of_beginnings(self.critic))
        for _ in group.steps():
            pass
        check_some(group.done)
        return SearchOutcome(not_refused([pair for pair in group.done if pair[1] not in group.refused]))


def judge_of_beginnings(given: CriticLike) -> CheckedCritic:
    """A critic that may be asked about beginnings; a plain function is taken to be one.

    Raises:
        OptionsError: it was made for whole texts.
    """
    judge = given if isinstance(given, CheckedCritic) else critic(given, prefixes=True)
    if not judge.prefixes:
        raise OptionsError(
            "the critic is asked about beginnings and was made for whole texts only; say that it judges prefixes",
            option="critic",
        )
    return judge


def not_refused(finished: list[tuple[float, SearchNode]]) -> list[tuple[float, SearchNode]]:
    """Outputs that a critic has left.

    Raises:
        GenerationError: none.
    """
    if not finished:
        raise GenerationError("The critic refuses all outputs that were found; let it give scores above -inf.")
    return finished


@dataclass
class _WeighedGroup(Group):
    """A beam whose entries have what the critic says as their offset."""

    asked: CheckedCritic = field(kw_only=True)
    refused: set[SearchNode] = field(default_factory=set)

    def _pool(self, penalties: Counter[int], weight: float) -> list[tuple[int, BeamEntry]]:
        self.run = [BeamEntry(entry.node) for entry in self.run]
        chosen = super()._pool(penalties, weight)
        scores = self.asked(self.space.candidates([entry.node for _, entry in chosen]))
        self.refused |= {entry.node for (_, entry), score in zip(chosen, scores, strict=True) if score == -math.inf}
        weighed = [
            (token, BeamEntry(entry.node, max(score, REFUSED)))
            for (token, entry), score in zip(chosen, scores, strict=True)
        ]
        return sorted(weighed, key=lambda pair: -pair[1].score)
