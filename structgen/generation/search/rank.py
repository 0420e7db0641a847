"""The likeliest texts of a constraint, with bounds: best-first over spellings, summed by text.

A text's probability is the sum over all its spellings in tokens. What waits to be read is *open*: a text so far, and
the probability of what may follow it that nobody has looked at. An open text bounds those that begin with it: of the
tokens that may follow, a single text has those that are beginnings of one another, in canonical spelling one. So the
probability of a text lies between what was seen of it and that plus what it can have of what is open at its beginnings.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
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
    """What may follow a node, from ``offset`` on of those that are ranked; below 0: the node is not read yet.

    ``minus_most`` is the most of its ``mass`` that a single text can have.
    """

    minus_most: float
    order: int
    mass: float = field(compare=False)
    node: SearchNode = field(compare=False)
    offset: int = field(compare=False, default=-1)
    after: _After | None = field(compare=False, default=None)


class _After:
    """The probabilities of what may follow a node that was read, as they fall.

    Args:
        nested: how many of these tokens one text can begin with; None: of all spellings of a text, so as many as
            are beginnings of one another.
    """

    def __init__(self, node: SearchNode, nested: int | None) -> None:
        expansion = node.expansion
        assert expansion is not None
        self.tokens = expansion.tokens
        self.probs = np.exp(node.log_prob + expansion.log_probs)
        kept = float(self.probs.sum())
        cut = math.exp(node.log_prob + expansion.log_mass) - kept if node.is_cut else 0.0
        self._cut = max(cut, kept * SLACK) if node.is_cut else 0.0
        self._left = np.append(np.cumsum(self.probs[::-1])[::-1], 0.0) + self._cut
        self._is_one = nested == 1
        texts = node.hypothesis.grammar.vocabulary.tokens
        self._nested = nested or _nested(texts[token] or b"" for token in self.tokens.tolist() if token != END)

    def mass(self, offset: int) -> float:
        """Of what is from an offset on."""
        return float(self._left[offset])

    def most(self, offset: int) -> float:
        """Of that, what a single text can have: one token of each length that it begins with."""
        top = float(self.probs[offset : offset + self._nested].sum())
        if not self._is_one:
            top += self._cut
        elif offset == len(self.probs):
            top = float(self.probs[-1]) if offset else self._cut  # what was cut off is less likely
        return min(top, self.mass(offset))


class RankWalk:
    """Looks for the ``k`` likeliest texts of a space.

    Args:
        has_one_spelling: whether each text is spelled in one way only.
    """

    def __init__(self, space: Space, k: int, *, has_one_spelling: bool = False) -> None:
        self.space, self.k, self._has_one_spelling = space, k, has_one_spelling
        space.longest_chain = 1  # what is forced may be unlikely for all that, and is read when it is its turn
        self._queue: list[_Open] = []
        self._pushed = 0
        self._seen: dict[bytes, float] = defaultdict(float)
        self._best: dict[bytes, SearchNode] = {}
        self._cut = 0.0  # probability of what has more tokens than the budget
        self._is_lost = False  # whether a probability was too small for a float

    def outcome(self) -> RankOutcome:
        """Search until the ranking is certain, everything was seen, or the budget is used up."""
        self._push_unread(self.space.root, 1.0)
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
    def _push_unread(self, node: SearchNode, mass: float) -> None:
        if mass > 0:
            self._pushed += 1
            heapq.heappush(self._queue, _Open(-mass, self._pushed, mass, node))
        else:
            self._is_lost = True

    def _push(self, node: SearchNode, offset: int, after: _After) -> None:
        if (mass := after.mass(offset)) > 0:
            self._pushed += 1
            heapq.heappush(self._queue, _Open(-after.most(offset), self._pushed, mass, node, offset, after))
        elif node.is_cut or offset < len(after.tokens):
            self._is_lost = True

    def _follow(self, one: _Open) -> None:
        """Read a node, or look at the likeliest of what may follow it."""
        node, after = one.node, one.after
        if after is None:
            self._read(node)
        elif one.offset >= len(after.tokens):
            self.space.widen(node)
            self._push(node, one.offset, self._after(node))
        else:
            self._take(node, one.offset, after)

    def _after(self, node: SearchNode) -> _After:
        return _After(node, 1 if self._has_one_spelling else None)

    def _read(self, node: SearchNode) -> None:
        if node.expansion is None:
            ahead = [one.node for one in heapq.nsmallest(READ_AHEAD - 1, self._queue) if one.offset < 0]
            self.space.expand([node, *dict.fromkeys(ahead)])
        if node.hypothesis.is_cut_off:
            self._cut += math.exp(node.log_prob) - math.exp(node.log_prob + node.expansion.log_end)  # type: ignore[union-attr]
        self._push(node, 0, self._after(node))

    def _take(self, node: SearchNode, offset: int, after: _After) -> None:
        token, mass = int(after.tokens[offset]), float(after.probs[offset])
        child = self.space.any_child(node, token)
        if child is None:
            self._cut += mass
        elif token == END or child.is_finished:
            self._note(child, mass)
        else:
            self._push_unread(child, mass)
        self._push(node, offset + 1, after)

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
        return -self._queue[0].minus_most <= least

    def _ranking(self, stopped_by: Limit | None) -> RankOutcome:
        open_at: dict[bytes, float] = defaultdict(float)
        for one in self._queue:
            open_at[one.node.hypothesis.data] -= one.minus_most
        order = sorted(self._seen, key=lambda data: (-self._seen[data], data))
        texts = [RankedText(self._best[data], self._seen[data], self._most(data, open_at)) for data in order]
        best, others = texts[: self.k], texts[self.k :]
        if self._has_one_spelling:  # what is open is of one of the open texts, and of no other
            unseen = max((-one.minus_most for one in self._queue), default=0.0)
        else:
            unseen = max((sum(_along(open_at, data)) for data in open_at), default=0.0)
        most = [*(one.most for one in best[1:]), max([unseen, *(one.most for one in others)], default=0.0)]
        exact = all(one.least * (1 + SLACK) >= other for one, other in zip(best, _rising(most), strict=False))
        exact = exact and not self._is_lost and (len(best) == self.k or not self._queue)
        left = self._cut + math.fsum(one.mass for one in self._queue)
        return RankOutcome(best, exact, left, sum(one.least for one in others), stopped_by)

    def _most(self, data: bytes, open_at: dict[bytes, float]) -> float:
        """Of a text that was seen: with what is open at its beginnings, where that may be another spelling of it."""
        return self._seen[data] + (0.0 if self._has_one_spelling else sum(_along(open_at, data)))


def _along(open_at: dict[bytes, float], data: bytes) -> Iterator[float]:
    """What is open at the beginnings of a text."""
    return (open_at[data[:end]] for end in range(len(data) + 1) if data[:end] in open_at)


def _nested(texts: Iterable[bytes]) -> int:
    """The most of some texts that a single text can begin with."""
    most, beginnings = 1, list[bytes]()
    for text in sorted(texts):
        while beginnings and not text.startswith(beginnings[-1]):
            beginnings.pop()
        beginnings.append(text)
        most = max(most, len(beginnings))
    return most


def _rising(most: list[float]) -> list[float]:
    """Of each number, the greatest from there on."""
    return np.maximum.accumulate(most[::-1])[::-1].tolist() if most else []
