"""Which tokens never stand side by side where byte pair encoding made them.

Byte pair encoding merges, again and again, the pair of lowest rank. A pair of tokens (a, b) is *blocked* if that would
have merged something across the border between them: if for some s at the right edge of a and some p at the left edge
of b the merge (s, p) of rank r exists, r < used(s) and r <= used(p), where used(x) is the rank of the merge that took
up x within its token, and infinite for the token itself. Tokens that their own text does not encode to are never made.
A sequence of tokens, none of them blocked beside the next, is the encoding of its text, and the only one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ids: TypeAlias = NDArray[np.int64]
NEVER = np.int64(1) << 40
"""The rank of a merge that there is not."""


@dataclass(frozen=True)
class Merges:
    """The merges of a vocabulary of V tokens: ``left[i]`` and ``right[i]`` become ``result[i]``.

    Attributes:
        left, right, result: int64[n], token ids.
        rank: int64[n]; the lowest goes first. Merges of one rank make one text.
    """

    left: Ids
    right: Ids
    result: Ids
    rank: Ids

    @classmethod
    def of_pairs(cls, pairs: Sequence[tuple[int, int, int, int]]) -> Merges:
        """From (left, right, result, rank)."""
        columns = np.array(pairs, np.int64).reshape(-1, 4).T
        return cls(*(np.ascontiguousarray(column) for column in columns))

    @classmethod
    def of_ranks(cls, ranks: Mapping[bytes, int]) -> Merges:
        """Of an encoding that merges whatever two tokens spell a third, whose id is the rank (tiktoken)."""
        result = [
            (ranks[text[:cut]], ranks[text[cut:]], rank, rank)
            for text, rank in ranks.items()
            for cut in range(1, len(text))
            if text[:cut] in ranks and text[cut:] in ranks
        ]
        return cls.of_pairs(result)


class BlockedPairs:
    """The pairs of one encoding.

    Args:
        tokens: bytes of each id, V of them; empty for ids that are no text.
        merges: of these ids.

    Attributes:
        is_made: bool[V], whether a token's own text encodes to it.
        spelled: of the tokens of several bytes that are not made, what their text encodes to.
    """

    def __init__(self, tokens: Sequence[bytes], merges: Merges) -> None:
        self._size = len(tokens)
        last, self.is_made, self.spelled = _encoded(tokens, merges)
        made = self.is_made[merges.left] & self.is_made[merges.right]
        order = np.flatnonzero(made)[np.lexsort((merges.rank[made], merges.left[made]))]
        self._left, self._right, self._rank = merges.left[order], merges.right[order], merges.rank[order]
        has_parts = last >= 0
        self._parent, self._last_part, self._made_by = (np.full(self._size, -1, np.int64) for _ in range(3))
        self._parent[has_parts] = merges.left[last[has_parts]]
        self._last_part[has_parts] = merges.right[last[has_parts]]
        self._made_by[has_parts] = merges.rank[last[has_parts]]
        self._first = np.searchsorted(self._left, np.arange(self._size + 1))
        self._number, self._start, self._end = self._intervals()

    def after(self, token: int) -> NDArray[np.bool_]:
        """bool[V]: the tokens that never stand behind this one. O(V)."""
        pieces, used, part = [], NEVER, token
        while part >= 0:
            first = self._first[part]
            stop = first + np.searchsorted(self._rank[first : self._first[part + 1]], used)
            pieces.append(np.arange(first, stop))
            used, part = self._made_by[part], self._last_part[part]
        merges = np.concatenate(pieces)
        edges = np.zeros(self._size + 1, np.int32)
        np.add.at(edges, self._start[merges], 1)
        np.add.at(edges, self._end[merges], -1)
        blocked = np.cumsum(edges[:-1]) > 0
        blocked[self._number[self._right[merges]]] = True
        result: NDArray[np.bool_] = blocked[self._number]
        return result

    def _intervals(self) -> tuple[Ids, Ids, Ids]:
        """Number tokens so that those that begin with a token come right behind it, by the rank that took it up. The
        numbers, and for each merge the interval of the tokens in which its right part is taken up no earlier."""
        parent, rank = self._parent, self._made_by
        depth, size = self._depths(), np.ones(self._size, np.int64)
        by_depth = np.argsort(depth, kind="stable")
        levels = np.split(by_depth, np.searchsorted(depth[by_depth], np.arange(1, depth.max(initial=0) + 1)))
        for level in reversed(levels[1:]):
            np.add.at(size, parent[level], size[level])
        order = np.lexsort((rank, parent))
        before = np.cumsum(size[order]) - size[order]
        firsts = np.searchsorted(parent[order], parent[order])
        offset = np.empty(self._size, np.int64)
        offset[order] = before - before[firsts]
        number = offset
        for level in levels[1:]:
            number[level] += number[parent[level]] + 1
        first_child = np.searchsorted(_pairs(parent[order], rank[order]), _pairs(self._right, self._rank))
        end = number[self._right] + size[self._right]
        child = order[np.minimum(first_child, self._size - 1)]
        has_child = (first_child < self._size) & (parent[child] == self._right)
        return number, np.where(has_child, number[child], end), end

    def _depths(self) -> Ids:
        depth = np.zeros(self._size, np.int64)
        above = self._parent.copy()
        while (above >= 0).any():
            depth += above >= 0
            above = np.where(above >= 0, self._parent[above], -1)
        return depth


def _pairs(first: Ids, second: Ids) -> Ids:
    """Numbers that order as the pairs do."""
    return (first << 32) + second


def _encoded(tokens: Sequence[bytes], merges: Merges) -> tuple[Ids, NDArray[np.bool_], dict[int, list[int]]]:
    """Encode the text of every token at once, a merge of each in turn.

    Returns the merge that made each token (-1: none did), whether it is made, and the encodings of those that are not.
    """
    byte_ids = {token[0]: number for number, token in enumerate(tokens) if len(token) == 1}
    byte_id = np.array([byte_ids.get(byte, -1) for byte in range(256)], np.int64)
    lengths = np.array([len(token) for token in tokens], np.int64)
    symbols = byte_id[np.frombuffer(b"".join(tokens), np.uint8)]
    owner = np.repeat(np.arange(len(tokens)), lengths)
    last, is_made = np.full(len(tokens), -1, np.int64), lengths == 1
    look_up = _LookUp(merges)
    spelled: dict[int, list[int]] = {}
    several = lengths[owner] > 1
    symbols, owner = symbols[several], owner[several]
    ranks = look_up.ranks(symbols, owner)
    while len(owner):
        starts = np.flatnonzero(np.concatenate([[True], owner[1:] != owner[:-1]]))
        count = np.diff(np.append(starts, len(owner)))
        least = np.repeat(np.minimum.reduceat(ranks, starts), count)
        done = least >= NEVER
        for index, number in zip(starts[done[starts]].tolist(), count[done[starts]].tolist(), strict=True):
            token = int(owner[index])
            is_made[token] = number == 1 and int(symbols[index]) == token
            if not is_made[token]:
                last[token], spelled[token] = -1, symbols[index : index + number].tolist()
        hits = np.flatnonzero((ranks == least) & ~done)
        hits = hits[np.concatenate([[True], owner[hits][1:] != owner[hits][:-1]])[: len(hits)]]  # each one's first
        made = look_up.merges(symbols[hits], symbols[hits + 1])
        last[owner[hits]], symbols[hits] = made, merges.result[made]
        kept = ~done
        kept[hits + 1] = False
        changed = np.zeros(len(owner), bool)
        changed[hits] = True
        changed[np.maximum(hits - 1, 0)] = True
        symbols, owner, ranks, changed = symbols[kept], owner[kept], ranks[kept], changed[kept]
        ranks = look_up.ranks(symbols, owner, ranks, changed)
    last[~is_made] = -1
    return last, is_made, spelled


class _LookUp:
    """Merges by their parts."""

    def __init__(self, merges: Merges) -> None:
        keys = _pairs(merges.left, merges.right)
        self._order = np.argsort(keys, kind="stable")
        self._keys, self._rank = keys[self._order], merges.rank

    def merges(self, left: Ids, right: Ids) -> Ids:
        """The merge of each pair; -1: there is none."""
        keys = _pairs(left, right)
        index = np.minimum(np.searchsorted(self._keys, keys), max(0, len(self._keys) - 1))
        if not len(self._keys):
            return np.full(len(keys), -1, np.int64)
        return np.where(self._keys[index] == keys, self._order[index], -1)

    def ranks(self, symbols: Ids, owner: Ids, cached: Ids | None = None, changed: Any = None) -> Ids:
        """The rank of each symbol with the next one of its text; of those that ``changed`` only."""
        ranks = np.full(len(symbols), NEVER, np.int64) if cached is None else cached
        inner = np.flatnonzero(owner[:-1] == owner[1:]) if changed is None else np.flatnonzero(changed)
        if changed is not None:
            ranks[inner] = NEVER
            inner = inner[inner + 1 < len(owner)]
            inner = inner[owner[inner] == owner[inner + 1]]
        result = self.merges(symbols[inner], symbols[inner + 1])
        ranks[inner] = np.where(result >= 0, self._rank[result], NEVER)
        return ranks
