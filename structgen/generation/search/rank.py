"""The likeliest texts of a constraint, with bounds: best-first over spellings, summed by text.

A text's probability is the sum over all its spellings in tokens. What waits to be read is *open*: a text so far, and
the probability of what may follow it that nobody has looked at. An open text bounds those that begin with it. So the
probability of a text lies between what was seen of it and that plus what is open at its beginnings.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from structgen.generation.decoding.hypothesis import END
from structgen.generation.search.space import SearchNode, Space
from structgen.generation.target.results import Limit

READ_AHEAD = 8
"""Hypotheses that are read in one call."""
SLACK = 1e-9
"""Relative: what sums of the model's probabilities are wrong by."""


@dataclass(frozen=True, slots=True)
class RankedText:
    """A text that was seen: its probability lies from ``least`` to ``most``."""

    node: SearchNode
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class RankOutcome:
    """The likeliest texts as far as they are known.

    Attributes:
        texts: by ``least``, as it falls.
        exact: whether no other text may be likelier than one of them, nor one of them than another before it.
        open: probability of what nobody has looked at.
        others: of the texts that were seen besides.
    """

    texts: list[RankedText]
    exact: bool
    open: float
    others: float
    stopped_by: Limit | None


@dataclass(order=True, slots=True)
class _Open:
    """What may follow a node, from ``offset`` on of those that are ranked; below 0: the node is not read yet."""

    minus_mass: float
    order: int
    node: SearchNode = field(compare=False)
    offset: int = field(compare=False, default=-1)


class RankWalk:
    """Looks for the ``k`` likeliest texts of a space."""

    def __init__(self, space: Space, k: int) -> None:
        self.space, self.k = space, k
        space.longest_chain = 1  # what is forced may be unlikely for all that, and is read when it is its turn
        self._queue: list[_Open] = []
        self._pushed = 0
        self._seen: dict[bytes, float] = defaultdict(float)
        self._best: dict[bytes, SearchNode] = {}
        self._cut = 0.0  # probability of what has more tokens than the budget
        self._is_lost = False  # whether a probability was too small for a float

    def outcome(self) -> RankOutcome:
        """Search until the ranking is certain, everything was seen, or the budget is used up."""
        self._push(self.space.root, 1.0)
        stopped_by, next_look = None, 0
        while self._queue and stopped_by is None:
            if self.space.expansions >= next_look and self._may_be_certain():
                ranking = self._ranking(None)
                if ranking.exact:
                    return ranking
                next_look = self.space.expansions + max(READ_AHEAD, self.space.expansions // 16)
            self._follow(heapq.heappop(self._queue))
            stopped_by = self.space.exceeded()
        return self._ranking(stopped_by)

    # --- what is open ---
    def _push(self, node: SearchNode, mass: float, offset: int = -1) -> None:
        if mass > 0:
            self._pushed += 1
            heapq.heappush(self._queue, _Open(-mass, self._pushed, node, offset))
        elif offset < 0 or node.is_cut or offset < len(node.expansion.tokens):  # type: ignore[union-attr]
            self._is_lost = True

    def _follow(self, one: _Open) -> None:
        """Read a node, or look at the likeliest of what may follow it."""
        node = one.node
        if one.offset < 0:
            self._read(node)
        elif one.offset >= len(node.expansion.tokens):  # type: ignore[union-attr]
            self.space.widen(node)
            self._push(node, self._mass_from(node, one.offset), one.offset)
        else:
            self._take(node, one.offset)

    def _read(self, node: SearchNode) -> None:
        if node.expansion is None:
            ahead = [one.node for one in heapq.nsmallest(READ_AHEAD - 1, self._queue) if one.offset < 0]
            self.space.expand([node, *dict.fromkeys(ahead)])
        if node.hypothesis.is_cut_off:
            self._cut += math.exp(node.log_prob) - math.exp(node.log_prob + node.expansion.log_end)  # type: ignore[union-attr]
        self._push(node, self._mass_from(node, 0), 0)

    def _take(self, node: SearchNode, offset: int) -> None:
        assert node.expansion is not None
        token = int(node.expansion.tokens[offset])
        mass = math.exp(node.log_prob + float(node.expansion.log_probs[offset]))
        child = self.space.any_child(node, token)
        if child is None:
            self._cut += mass
        elif token == END or child.is_finished:
            self._note(child, mass)
        else:
            self._push(child, mass)
        self._push(node, self._mass_from(node, offset + 1), offset + 1)

    def _mass_from(self, node: SearchNode, offset: int) -> float:
        """Probability of what may follow from an offset on."""
        after = node.expansion
        assert after is not None
        left = float(np.exp(node.log_prob + after.log_probs[offset:]).sum())
        if not node.is_cut:
            return left
        kept = float(np.exp(node.log_prob + after.log_probs).sum())
        return left + max(math.exp(node.log_prob + after.log_mass) - kept, kept * SLACK)

    def _note(self, child: SearchNode, mass: float) -> None:
        data = child.hypothesis.data
        self._seen[data] += mass
        if data not in self._best or child.log_prob > self._best[data].log_prob:
            self._best[data] = child

    # --- what is certain ---
    def _may_be_certain(self) -> bool:
        """Whether no open text alone is likelier than the last of the best. Cheap; needed, and not enough."""
        if len(self._seen) < self.k:
            return False
        least = heapq.nlargest(self.k, self._seen.values())[-1]
        return -self._queue[0].minus_mass <= least

    def _ranking(self, stopped_by: Limit | None) -> RankOutcome:
        open_at: dict[bytes, float] = defaultdict(float)
        for one in self._queue:
            open_at[one.node.hypothesis.data] -= one.minus_mass
        order = sorted(self._seen, key=lambda data: (-self._seen[data], data))
        texts = [
            RankedText(self._best[data], self._seen[data], self._seen[data] + sum(_along(open_at, data)))
            for data in order
        ]
        best, others = texts[: self.k], texts[self.k :]
        unseen = max((sum(_along(open_at, data)) for data in open_at), default=0.0)
        most = [*(one.most for one in best[1:]), max([unseen, *(one.most for one in others)], default=0.0)]
        exact = all(one.least * (1 + SLACK) >= other for one, other in zip(best, _rising(most), strict=False))
        exact = exact and not self._is_lost and (len(best) == self.k or not self._queue)
        left = self._cut + sum(open_at.values())
        return RankOutcome(best, exact, left, sum(one.least for one in others), stopped_by)


def _along(open_at: dict[bytes, float], data: bytes) -> Iterator[float]:
    """What is open at the beginnings of a text."""
    return (open_at[data[:end]] for end in range(len(data) + 1) if data[:end] in open_at)


def _rising(most: list[float]) -> list[float]:
    """Of each number, the greatest from there on."""
    return np.maximum.accumulate(most[::-1])[::-1].tolist() if most else []
