"""Draws without replacement, exact: best-first search on scores with Gumbel noise (Kool et al. 2019).

The first n finished hypotheses are n different outputs, the first one a sample, the next a sample of the others, and so
on. For the global target what the mask forbids counts as one more child, which is drawn and thrown away: what is left
is the model's distribution given the constraint.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from structgen.errors import OptionsError
from structgen.generation.search.method import Merge, Method
from structgen.generation.search.results import SearchOutcome
from structgen.generation.search.scores import Scoring, Values
from structgen.generation.search.space import MOST_KEPT, Distribution, SearchNode, Space
from structgen.generation.target.results import Budget
from structgen.options import check_count

MODEL_TOKENS = 65_536


@dataclass(frozen=True, kw_only=True)
class Gumbel(Method):
    """``n`` different outputs, drawn one after the other without replacement.

    Attributes:
        target: "global": of the model's distribution, given that the output is allowed and fits; "local": masked and
            renormalised at each token.
        budget: how much the model may read; where that ends the search, fewer come.
        read_ahead: hypotheses that are read in one call.
    """

    merge: Merge = "none"
    target: Literal["global", "local"] = "global"
    budget: Budget | None = None
    read_ahead: int = 8
    is_closed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("read_ahead", self.read_ahead)
        if self.target not in ("global", "local"):
            raise OptionsError(f"target is {self.target!r:.100}; expected 'global' or 'local'", option="target")
        if self.budget is not None and not isinstance(self.budget, Budget):
            raise OptionsError(f"budget is {self.budget!r:.100}; expected Budget(...) or None", option="budget")

    @property
    def scoring(self) -> Scoring:
        """See ``Method.scoring``."""
        return Scoring(self.target)

    @property
    def limits(self) -> Budget:
        """See ``Method.limits``."""
        return self.budget or Budget(model_tokens=MODEL_TOKENS)

    def run(self, space: Space, n: int, rng: np.random.Generator) -> SearchOutcome:
        """See ``Method.run``; in the order of the draws."""
        walk, drawn = _Walk(self, space, int(rng.integers(1 << 62))), list[tuple[float, SearchNode]]()
        walk.open(space.root, float(rng.gumbel()))
        stopped_by = None
        while walk.queue and len(drawn) < n and stopped_by is None:
            child = walk.pop()
            if child is not None:
                drawn.append((child.score, child))
            stopped_by = space.exceeded()
        return SearchOutcome(drawn, stopped_by=stopped_by if len(drawn) < n and walk.queue else None)


class _Waiting(NamedTuple):
    """The child at ``offset`` of those of a node, which fall by their perturbed scores."""

    minus_perturbed: float
    order: int
    node: SearchNode
    perturbed: Values
    offset: int


@dataclass
class _Walk:
    """What waits, by perturbed scores. ``given``: those of the nodes, by their tokens."""

    options: Gumbel
    space: Space
    seed: int
    queue: list[_Waiting] = field(default_factory=list)
    given: dict[tuple[int, ...], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._pushed = 0
        self._read: dict[tuple[int, ...], Distribution] = {}

    def open(self, node: SearchNode, perturbed: float) -> None:
        """Let what follows a node wait."""
        self.given[node.hypothesis.tokens] = perturbed
        if node.hypothesis.tokens not in self._read:
            self._ask([node, *self._next(node)])
        self._rank(node, self._read.pop(node.hypothesis.tokens), 0, MOST_KEPT)

    def pop(self) -> SearchNode | None:
        """Follow the best of what waits: what it gives if it is finished."""
        one = heapq.heappop(self.queue)
        assert one.node.expansion is not None
        child = self.space.any_child(one.node, int(one.node.expansion.tokens[one.offset]))
        self._push(one.node, one.perturbed, one.offset + 1)
        if child is None or child.is_finished:
            return child
        self.open(child, -one.minus_perturbed)
        return None

    def _ask(self, nodes: list[SearchNode]) -> None:
        self.space.expansions += len(nodes)
        for node, whole in zip(nodes, self.space.distributions(nodes), strict=True):
            self._read[node.hypothesis.tokens] = whole

    def _rank(self, node: SearchNode, whole: Distribution, offset: int, most: int) -> None:
        """Keep the best of what follows a node, and let the one at ``offset`` of it wait."""
        perturbed = self._perturbed(node, whole)
        order = np.argsort(-perturbed, kind="stable")[:most]
        order = order[perturbed[order] > -math.inf]
        node.expansion = Distribution(whole.tokens[order], whole.log_probs[order], whole.log_mass, whole.log_end)
        node.is_cut = len(whole.tokens) > most
        self._push(node, perturbed[order], offset)

    def _perturbed(self, node: SearchNode, whole: Distribution) -> Values:
        """Gumbels of the children, given that their greatest is the node's."""
        is_global = self.options.target == "global"
        scores = (node.log_prob if is_global else node.log_local - whole.log_mass) + whole.log_probs
        rng = np.random.default_rng([self.seed, *node.hypothesis.tokens])
        noisy, greatest = scores + rng.gumbel(size=len(scores)), -math.inf
        if is_global and whole.log_mass < 0:
            greatest = node.log_prob + float(_log1mexp(np.array([whole.log_mass]))[0]) + float(rng.gumbel())
        greatest = max(greatest, float(noisy.max(initial=-math.inf)))
        return conditioned(noisy, greatest, self.given[node.hypothesis.tokens])

    def _push(self, node: SearchNode, perturbed: Values, offset: int) -> None:
        if offset < len(perturbed):
            self._pushed += 1
            heapq.heappush(self.queue, _Waiting(-float(perturbed[offset]), self._pushed, node, perturbed, offset))
        elif node.is_cut:  # the same noise again, and all that follows
            (whole,) = self.space.distributions([node])
            self._rank(node, whole, offset, len(whole.tokens))

    def _next(self, node: SearchNode) -> list[SearchNode]:
        """The next best of what waits, as far as it is not read."""
        ahead = list[SearchNode]()
        for one in heapq.nsmallest(self.options.read_ahead - 1, self.queue):
            assert one.node.expansion is not None
            child = self.space.any_child(one.node, int(one.node.expansion.tokens[one.offset]))
            if child is not None and not child.is_finished and child.hypothesis.tokens not in self._read:
                ahead.append(child)
        return ahead


def conditioned(noisy: Values, greatest: float, wanted: float) -> Values:
    """Gumbels whose greatest was ``greatest``, given that it is ``wanted``; in the same order. Kool et al., B."""
    with np.errstate(invalid="ignore", divide="ignore"):
        v = wanted - noisy + _log1mexp(noisy - greatest)
        shifted = wanted - np.maximum(0.0, v) - np.log1p(np.exp(-np.abs(v)))
    return np.asarray(np.where(noisy == -math.inf, -math.inf, shifted))


def _log1mexp(x: Values) -> Values:
    """log(1 - eˣ) for x <= 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.where(x > -math.log(2), np.log(-np.expm1(x)), np.log1p(-np.exp(x))))
