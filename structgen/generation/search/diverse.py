"""Diverse beam search (Vijayakumar et al. 2018): groups of beams, each kept from what those before it chose."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import chain, zip_longest

import numpy as np

from structgen.errors import OptionsError
from structgen.generation.search.beam import Beam, Group, check_some
from structgen.generation.search.method import check_number
from structgen.generation.search.results import SearchOutcome
from structgen.generation.search.space import Space
from structgen.options import check_count


@dataclass(frozen=True, kw_only=True)
class Diverse(Beam):
    """See ``Beam`` for the other options; outputs come from the groups in turn, the best of each first.

    Attributes:
        num_beam_groups: None: one for each output, at least two.
        diversity_penalty: taken off the score of a token for each beam of the groups before that has chosen it at the
            same position. Forced tokens cost nothing.
        num_beams: of all groups together; None: two in each.
    """

    num_beam_groups: int | None = None
    diversity_penalty: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("num_beam_groups", self.num_beam_groups, optional=True)
        check_number("diversity_penalty", self.diversity_penalty, 0)

    def run(self, space: Space, n: int, rng: np.random.Generator) -> SearchOutcome:
        """See ``Method.run``."""
        groups = [Group(space, self, size) for size in self._sizes(n)]
        while any(group.run for group in groups):
            space.expand([entry.node for group in groups for entry in group.run])
            chosen = Counter[int]()
            for group in groups:
                if group.run:
                    chosen.update(group.step(chosen, self.diversity_penalty))
            space.retain([entry.node for group in groups for entry in group.run])
        in_turn = chain.from_iterable(zip_longest(*(group.done for group in groups)))
        finished = [pair for pair in in_turn if pair is not None]
        check_some(finished)
        return SearchOutcome(finished)

    def _sizes(self, n: int) -> list[int]:
        count = self.num_beam_groups or max(2, n)
        beams = self.num_beams or 2 * count
        if beams % count:
            raise OptionsError(
                f"num_beams={beams} are not to be shared out to num_beam_groups={count}", option="num_beams"
            )
        return [beams // count] * count
