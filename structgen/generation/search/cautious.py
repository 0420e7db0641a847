"""Cautious next token (2025): where the model is unsure, several ways on are tried, and the most fluent is taken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from structgen.errors import OptionsError
from structgen.generation.sampling import filtered_probs
from structgen.generation.search.arithmetic import Arithmetic, CodedDraw, draw_on
from structgen.generation.search.results import SearchOutcome
from structgen.generation.search.scores import Values
from structgen.generation.search.space import SearchNode, Space
from structgen.options import check_count

SURE, UNSURE = 0.01, 1.5
"""Entropies, in nats, up to which one way and from which all are tried."""
MARKS = tuple('.,;:!?\n}]"')


def ends_at_a_mark(text: str) -> bool:
    """Whether a text ends in punctuation, a line, or a string, list or object of JSON."""
    return text.endswith(MARKS)


@dataclass(frozen=True, kw_only=True)
class Cautious(Arithmetic):
    """See ``Arithmetic`` for temperature and filters; outputs are drawn one by one.

    Attributes:
        max_trials: the most ways that are tried at once; 1 is sampling.
        boundary: whether a trial is over with a text.
    """

    max_trials: int = 10
    boundary: Callable[[str], bool] = ends_at_a_mark

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("max_trials", self.max_trials)
        if not callable(self.boundary):
            raise OptionsError(f"boundary is a function of texts, not {self.boundary!r:.60}", option="boundary")

    def run(self, space: Space, n: int, rng: np.random.Generator) -> SearchOutcome:
        """See ``Method.run``; in the order in which they were drawn."""
        nodes = [self._drawn(space, rng) for _ in range(n)]
        return SearchOutcome([(node.score, node) for node in nodes])

    def trials(self, probs: Values) -> int:
        """How many ways are tried: more, the more evenly tokens are distributed."""
        some = probs[probs > 0]
        unsure = (float(-(some * np.log(some)).sum()) - SURE) / (UNSURE - SURE)
        return int(1 + (self.max_trials - 1) * min(max(unsure, 0.0), 1.0))

    def _drawn(self, space: Space, rng: np.random.Generator) -> SearchNode:
        node = space.root
        while not node.is_finished:
            (whole,) = space.distributions([node])
            space.expansions += 1
            node.expansion = whole
            probs = filtered_probs(whole.log_probs - whole.log_mass, self.params)
            draws = [CodedDraw(node) for _ in range(self.trials(probs))]
            for draw in draws:
                draw.step(space, whole, probs, rng)
            if len(draws) > 1:
                draw_on(space, draws, self.params, rng, lambda draw: self.boundary(draw.node.hypothesis.text))
            base = node.log_local
            node = max(draws, key=lambda draw: (draw.node.log_local - base) / max(1, draw.choices)).node
            space.retain([node])
        return node
