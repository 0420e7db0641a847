"""Arithmetic sampling (Vilnis et al. 2023): n draws at once that cover the distribution evenly.

Each output is what a number in [0, 1) encodes, as in arithmetic coding; the numbers are 1/n apart, and one random
number shifts them all. So every output is distributed as one that is drawn alone, and of every beginning u of
probability p(u) there are n · p(u) outputs, rounded up or down.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from structgen.errors import IncompleteOutputError, OptionsError
from structgen.generation.filters.table import FilterParams
from structgen.generation.sampling import SamplingParams, filtered_probs
from structgen.generation.search.method import Merge, Method
from structgen.generation.search.results import SearchOutcome
from structgen.generation.search.scores import Scoring, Values
from structgen.generation.search.space import Distribution, SearchNode, Space

BELOW_ONE = math.nextafter(1.0, 0.0)
# As ``Output``: so many tokens may be refused at one position before the known completion is followed.
MOST_REFUSED = 32


@dataclass(frozen=True, kw_only=True)
class Arithmetic(Method, FilterParams):
    """``n`` draws of the local distribution, as ``generate`` draws them: masked, then temperature (1) and filters.

    Attributes:
        temperature, top_k, top_p, ...: see ``FilterOptions``.
    """

    merge: Merge = "none"
    temperature: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.params.temperature:
            raise OptionsError("temperature must be above 0: these are draws", option="temperature")
        if self.top_n_sigma is not None:
            raise OptionsError("top_n_sigma is for generate: it needs all logits", option="top_n_sigma")

    @cached_property
    def params(self) -> SamplingParams:
        """Temperature and filters."""
        return SamplingParams(**{one.name: getattr(self, one.name) for one in fields(FilterParams)})

    @property
    def scoring(self) -> Scoring:
        """See ``Method.scoring``."""
        return Scoring("local")

    def run(self, space: Space, n: int, rng: np.random.Generator) -> SearchOutcome:
        """See ``Method.run``; in the order of the codes."""
        start = rng.random()
        draws = [CodedDraw(space.root, (start + number / n) % 1.0, math.log(n)) for number in range(n)]
        draw_on(space, draws, self.params, rng, lambda draw: False)
        return SearchOutcome([(draw.node.score, draw.node) for draw in draws])


def draw_on(
    space: Space,
    draws: Sequence[CodedDraw],
    params: SamplingParams,
    rng: np.random.Generator,
    is_over: Callable[[CodedDraw], bool],
) -> None:
    """A token more for each, in one call of the model, until each has ended or is over."""
    while running := [draw for draw in draws if not draw.node.is_finished and not is_over(draw)]:
        nodes = list({id(draw.node): draw.node for draw in running}.values())
        space.expansions += len(nodes)
        for node, whole in zip(nodes, space.distributions(nodes), strict=True):
            node.expansion = whole
            probs = filtered_probs(whole.log_probs - whole.log_mass, params)
            for draw in running:
                if draw.node is node:
                    draw.step(space, whole, probs, rng)
            node.expansion = None
        space.retain([draw.node for draw in draws if not draw.node.is_finished])


@dataclass
class CodedDraw:
    """One output on its way.

    Attributes:
        code: what is left of its number.
        log_expected: logarithm of how many outputs are expected to begin as this one does; below 0, each token is drawn
            by a number of its own.
        choices: tokens that were not forced.
    """

    node: SearchNode
    code: float = 0.0
    log_expected: float = -math.inf
    choices: int = 0

    def step(self, space: Space, whole: Distribution, probs: Values, rng: np.random.Generator) -> None:
        """A token more. ``probs`` are those of the tokens of ``whole``."""
        self.choices += len(whole.tokens) > 1
        if self.log_expected < 0:  # it is alone: its number has no more digits, and needs none
            self.code = rng.random()
        refused: list[int] = []
        for weights in (probs, np.exp(whole.log_probs - whole.log_mass)):  # what filters took away is next
            while len(refused) < MOST_REFUSED and (position := self._position(weights, refused)) is not None:
                child = space.child(self.node, int(whole.tokens[position]))
                if child is not None:
                    self.node = child
                    return
                refused.append(position)
        child = space.planned(self.node)
        if child is None:
            raise IncompleteOutputError(
                "A stop string comes before the output is whole; change stop.",
                partial=self.node.hypothesis.text,
                option="stop",
            )
        self.node = child

    def _position(self, weights: Values, refused: Sequence[int]) -> int | None:
        """Where the code falls, among those that were not refused; the code becomes what it is within that interval."""
        if refused:
            weights = weights.copy()
            weights[list(refused)] = 0.0
        edges = np.cumsum(weights)
        if not edges[-1] > 0:
            return None
        target = self.code * edges[-1]
        position = min(int(np.searchsorted(edges, target, side="right")), int(np.flatnonzero(weights)[-1]))
        high, low = float(edges[position]), float(edges[position - 1]) if position else 0.0
        self.code = min(max((target - low) / (high - low), 0.0), BELOW_ONE)
        if not refused:
            self.log_expected += math.log((high - low) / float(edges[-1]))
        return position
