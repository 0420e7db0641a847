"""Best-first beam search (Meister, Vieira, Cotterell 2020): beam search's outputs, with fewer hypotheses read."""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from structgen.generation.search.beam import check_some
from structgen.generation.search.method import Scored
from structgen.generation.search.results import SearchOutcome
from structgen.generation.search.scores import Values
from structgen.generation.search.space import SearchNode, Space
from structgen.options import check_count


class Waiting(NamedTuple):
    """What may follow a node: the one at ``offset`` of those ranked."""

    minus_score: float
    order: int
    node: SearchNode
    tokens: list[int]
    scores: Values
    offset: int

    @property
    def length(self) -> int:
        """Of what would follow."""
        return self.node.length + 1


@dataclass(frozen=True, kw_only=True)
class BestFirst(Scored):
    """The outputs of ``Beam`` with early_stopping="never". See ``Scored`` for the other options.

    Attributes:
        num_beams: hypotheses of each length; None: 4, or twice as many as outputs are asked for.
        read_ahead: so many hypotheses are read in one call, the next best besides the one that is needed; 1: none.
        max_queue: most hypotheses that wait; beyond, the worst are forgotten, and the outputs may be others. None: any.
    """

    num_beams: int | None = None
    read_ahead: int = 4
    max_queue: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("num_beams", self.num_beams, optional=True)
        check_count("read_ahead", self.read_ahead)
        check_count("max_queue", self.max_queue, optional=True)
        self.check_falls("best_first")

    def run(self, space: Space, n: int, rng: np.random.Generator) -> SearchOutcome:
        """See ``Method.run``."""
        size = self.num_beams or (4 if n == 1 else max(4, 2 * n))
        walk, done = _Walk(self, space, max(size, n)), list[tuple[float, SearchNode]]()
        walk.open(space.root)
        while walk.queue and not (len(done) == walk.size and walk.bound() <= done[-1][0]):
            node = walk.pop()
            if node is not None and node.is_finished:
                done.append((self.final(node), node))
                done.sort(key=lambda pair: -pair[0])
                del done[walk.size :]
            elif node is not None:
                walk.open(node)
        check_some(done)
        return SearchOutcome(done)


@dataclass
class _Walk:
    """The hypotheses that wait, best first; ``popped`` and ``live`` count those of each length."""

    options: BestFirst
    space: Space
    size: int
    queue: list[Waiting] = field(default_factory=list)
    popped: Counter[int] = field(default_factory=Counter)
    live: Counter[int] = field(default_factory=Counter)

    def bound(self) -> float:
        """The most that one of those that wait may score in the end."""
        return float(-self.queue[0].minus_score / self.space.most_tokens**self.options.length_penalty)

    def open(self, node: SearchNode) -> None:
        """Let the best of what follows a node wait."""
        if node.expansion is None:
            self.space.expand([node, *self._next()])
        tokens, scores = self.space.ranked(node)
        self._push(node, tokens.tolist(), scores, 0)

    def pop(self) -> SearchNode | None:
        """The best of those that wait; None where it could not be closed, or its length has enough of them."""
        one = heapq.heappop(self.queue)
        length = one.length
        if self.live[length] < self.size:
            self._push(one.node, one.tokens, one.scores, one.offset + 1)
        child = self.space.child(one.node, one.tokens[one.offset])
        if child is None:
            return None
        rank = self.popped[length]
        self.popped[length] += 1
        if child.is_finished:
            return child if rank < self.size else None
        if self.live[length] == self.size:
            return None
        self.live[length] += 1
        return child

    def _push(self, node: SearchNode, tokens: list[int], scores: Values, index: int) -> None:
        if index == len(tokens) and node.is_cut:
            self.space.widen(node)
            ranked, scores = self.space.ranked(node)
            tokens = ranked.tolist()
        if index < len(tokens):
            order = self.popped.total() + len(self.queue)
            heapq.heappush(self.queue, Waiting(-float(scores[index]), order, node, tokens, scores, index))
        if self.options.max_queue is not None and len(self.queue) > self.options.max_queue:
            self.queue.remove(max(self.queue, key=lambda one: one.minus_score))
            heapq.heapify(self.queue)

    def _next(self) -> list[SearchNode]:
        """The next best of those that wait, as far as they are not read."""
        ahead = list[SearchNode]()
        for one in heapq.nsmallest(self.options.read_ahead - 1, self.queue):
            child = self.space.child(one.node, one.tokens[one.offset])
            if child is not None and self.live[one.length] < self.size:
                ahead.append(child)
        return ahead
