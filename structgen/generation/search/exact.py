"""The likeliest valid outputs, with a certificate: search without caps, by bounds (Dijkstra)."""

from __future__ import annotations

import heapq
import math
from collections.abc import Hashable
from dataclasses import dataclass, field, fields
from typing import ClassVar, NamedTuple

import numpy as np

from structgen.errors import OptionsError
from structgen.generation.decoding.hypothesis import END
from structgen.generation.search.beam import Beam
from structgen.generation.search.method import Scored
from structgen.generation.search.results import SearchOutcome
from structgen.generation.search.scores import Values
from structgen.generation.search.space import SearchNode, Space
from structgen.generation.target.results import Budget
from structgen.options import check_count

MODEL_TOKENS = 16_384


@dataclass(frozen=True, kw_only=True)
class Exact(Scored):
    """The ``n`` best of all outputs. See ``Scored`` for the other options.

    Attributes:
        budget: how much the model may read. Where that ends the search, its ``gap`` says how much better an output that
            it has not seen may be.
        read_ahead: hypotheses that are read in one call.
        num_beams: of the beam search that comes first, so that there is an output whatever the budget; 0: none comes.
    """

    length_penalty: float = 0.0
    budget: Budget | None = None
    read_ahead: int = 8
    num_beams: int = 4
    is_closed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("read_ahead", self.read_ahead)
        check_count("num_beams", self.num_beams, 0)
        if self.budget is not None and not isinstance(self.budget, Budget):
            raise OptionsError(f"budget is {self.budget!r:.100}; expected Budget(...) or None", option="budget")
        self.check_falls("exact")

    @property
    def limits(self) -> Budget:
        """See ``Method.limits``."""
        return self.budget or Budget(model_tokens=MODEL_TOKENS)

    def run(self, space: Space, n: int, rng: np.random.Generator) -> SearchOutcome:
        """See ``Method.run``."""
        walk = _Walk(self, space, n)
        if self.num_beams and space.root.hypothesis.closes:
            options = {one.name: getattr(self, one.name) for one in fields(Scored)}
            beam = Beam(early_stopping=True, **options)
            for score, node in beam.searched(space, max(n, self.num_beams)).done:
                walk.note(score, node)
        return walk.outcome()


class _Open(NamedTuple):
    """A finished node (``offset`` -1), or what may follow one: the one at ``offset`` of those ranked."""

    minus_bound: float
    order: int
    node: SearchNode
    tokens: list[int]
    scores: Values
    offset: int


@dataclass
class _Walk:
    """What waits, by the most that may come of it; ``best``: the best finished of each key that were seen."""

    options: Exact
    space: Space
    n: int
    queue: list[_Open] = field(default_factory=list)
    best: dict[Hashable, float] = field(default_factory=dict)
    seen: dict[tuple[int, ...], tuple[float, SearchNode]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._pushed = 0
        self.worst = -math.inf  # what an output must score to be among the best
        self._longest = float(self.space.most_tokens**self.options.length_penalty)

    def note(self, score: float, node: SearchNode) -> None:
        """A finished output was seen."""
        self.seen[node.hypothesis.tokens] = score, node
        key = self.space.key_of(node.hypothesis)
        if score > self.best.get(key, -math.inf):
            self.best[key] = score
            if score > self.worst and len(self.best) >= self.n:
                self.worst = heapq.nlargest(self.n, self.best.values())[-1]

    def outcome(self) -> SearchOutcome:
        """Search until nothing that waits can be among the best, or the budget is used up."""
        self._open(self.space.root)
        stopped_by = None
        while self.queue and -self.queue[0].minus_bound > self.worst and stopped_by is None:
            self._follow(heapq.heappop(self.queue))
            stopped_by = self.space.exceeded()
        bound = -self.queue[0].minus_bound if self.queue else -math.inf
        gap = max(0.0, bound - self.worst) if bound > -math.inf else 0.0
        finished = sorted(self.seen.values(), key=lambda pair: -pair[0])
        return SearchOutcome(finished, gap, stopped_by if gap else None)

    def _follow(self, one: _Open) -> None:
        child = self.space.any_child(one.node, one.tokens[one.offset])
        self._push(one.node, one.tokens, one.scores, one.offset + 1)
        if child is None:
            return
        if child.is_finished:
            self.note(self.options.final(child), child)
        else:
            self._open(child)

    def _open(self, node: SearchNode) -> None:
        """Let what follows a node wait; the end is known at once."""
        if node.expansion is None:
            self.space.expand([node, *self._next()])
        ranked, scores = self.space.ranked(node)
        tokens = ranked.tolist()
        if node.expansion.log_end > -math.inf and (ended := self.space.any_child(node, END)) is not None:  # type: ignore[union-attr]
            self.note(self.options.final(ended), ended)
        self._push(node, tokens, scores, 0)

    def _push(self, node: SearchNode, tokens: list[int], scores: Values, index: int) -> None:
        if index < len(tokens) and tokens[index] == END:
            index += 1
        if index >= len(tokens) and node.is_cut:
            self.space.widen(node)
            ranked, scores = self.space.ranked(node)
            tokens = ranked.tolist()
            index += index < len(tokens) and tokens[index] == END
        if index < len(tokens) and (bound := float(scores[index]) / self._longest) > self.worst:
            self._pushed += 1
            heapq.heappush(self.queue, _Open(-bound, self._pushed, node, tokens, scores, index))

    def _next(self) -> list[SearchNode]:
        """The next best of what waits, as far as it is not read."""
        ahead = (
            self.space.any_child(one.node, one.tokens[one.offset])
            for one in heapq.nsmallest(self.options.read_ahead - 1, self.queue)
        )
        return [node for node in ahead if node is not None]
