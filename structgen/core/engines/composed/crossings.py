"""Tokens in which one text goes over into another: where they can, and by which pieces.

A **place** is one between two bytes of a token; the **piece** is what the token has before it, the **rest** what it
has after it. Pieces are nodes of the vocabulary's trie, and places are kept in their order, as arrays: free text can
cross nearly everywhere, which is a million places in a large vocabulary; a state leaves a handful to look at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from structgen.core.vocabulary.special_tokens import LEAD
from structgen.core.vocabulary.trie import Trie
from structgen.core.vocabulary.vocabulary import Vocabulary

Ints = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]
Remainders = tuple[tuple[bytes, int], ...]
MOST_PLACES = 1 << 24
"""So many places of sets of bytes looked for before are kept."""


@dataclass(frozen=True, eq=False)
class Crossings:
    """Places where tokens may cross, by the piece before the crossing. Make them with `CrossingIndex.between`.

    Attributes:
        gates: int32[pieces], the longest token that begins each piece (-1: none): where the mask of the first text does
            not have it, the piece cannot be its end.
        nodes: int32[pieces], the pieces' nodes in the trie.
        places: int32[n], the places, those of a piece together.
        starts: int64[pieces + 1], where those of each piece begin.
    """

    index: CrossingIndex = field(repr=False)
    gates: Ints
    nodes: Ints
    places: Ints
    starts: npt.NDArray[np.int64]
    _remainders: dict[int, Remainders] = field(default_factory=dict, repr=False)
    _holding: dict[int, Flags] = field(default_factory=dict, repr=False)

    def piece(self, number: int) -> bytes:
        """The text of a piece."""
        first = self.places[self.starts[number]]
        return self.index.tokens[self.index.owners[first]][: self.index.cuts[first]]

    def holding(self, needed: int) -> Flags:
        """Which pieces hold a byte of a set; kept."""
        flags = self._holding.get(needed)
        if flags is None:
            flags = self._holding[needed] = self.index.holding(needed)[self.nodes]
        return flags

    def remainders(self, number: int) -> Remainders:
        """What follows a piece, with the token that piece and rest make; kept."""
        lacking = self._remainders.get(number)
        if lacking is None:
            places = self.places[self.starts[number] : self.starts[number + 1]]
            lacking = self._remainders[number] = self.index.remainders(places)
        return lacking

    def lacking(self, number: int, mask: Flags) -> Remainders:
        """The same of tokens that a mask does not have; not kept."""
        places = self.places[self.starts[number] : self.starts[number + 1]]
        return self.index.remainders(places[~mask[self.index.owners[places]]])

    def lack(self, possible: Flags, mask: Flags) -> Flags:
        """Which of some pieces begin a token that a mask does not have. O(places)."""
        open_places = np.repeat(possible, np.diff(self.starts)) & ~mask[self.index.owners[self.places]]
        counts = np.concatenate(([0], np.cumsum(open_places)))
        flags: Flags = counts[self.starts[1:]] > counts[self.starts[:-1]]
        return flags


class CrossingIndex:
    """All places inside the tokens of a vocabulary. Make it with `crossing_index`.

    Attributes:
        tokens: bytes of each id.
        ids: lowest token id of each text.
        owners: int32[places], the token of each place.
        cuts: int32[places], the bytes that the token has before it.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.tokens = vocabulary.tokens
        trie = vocabulary.trie
        self._trie = trie
        above, self._gates = _nodes(trie)
        self._holding: dict[int, Flags] = {}
        nodes, owners = _places(trie, above)
        # What begins a special token's stand-in is in no text, and no token may go over into half of one.
        is_text = ~np.array([LEAD in token for token in vocabulary.tokens])[owners]
        nodes, self.owners = nodes[is_text], owners[is_text]
        self._nodes = nodes
        self.cuts: Ints = trie.depth[nodes] + 1
        self._first = vocabulary.token_bytes[vocabulary.token_offsets[self.owners] + self.cuts]
        self._known: dict[tuple[int, int], Crossings] = {}
        self._kept = 0
        self.ids = dict(zip(reversed(vocabulary.tokens), range(vocabulary.size - 1, -1, -1), strict=True))
        self.ids.pop(b"", None)

    def between(self, last: int, first: int) -> Crossings:
        """Places with a byte of the set ``last`` before them and one of ``first`` after; kept. O(bytes of tokens)."""
        crossings = self._known.get((last, first))
        if crossings is None:
            crossings = self._find(last, first)
            self._kept += len(crossings.places)
            if self._kept > MOST_PLACES:
                self._known, self._kept = {}, len(crossings.places)
            self._known[last, first] = crossings
        return crossings

    def _find(self, last: int, first: int) -> Crossings:
        chosen = _flags(last)[self._trie.byte][self._nodes] & _flags(first)[self._first]
        places = np.flatnonzero(chosen).astype(np.int32)
        nodes, starts = np.unique(self._nodes[places], return_index=True)
        ends = np.append(starts, len(places)).astype(np.int64)
        return Crossings(self, self._gates[nodes], nodes, places, ends)

    def holding(self, needed: int) -> Flags:
        """Which nodes of the trie have a byte of a set on their way; kept. O(nodes)."""
        flags = self._holding.get(needed)
        if flags is None:
            flags = _flags(needed)[self._trie.byte]
            for below, parents in _layers(self._trie):
                flags[below] |= flags[parents]
            self._holding[needed] = flags
        return flags

    def remainders(self, places: Ints) -> Remainders:
        """What stands after some places, with the tokens that it ends."""
        tokens = self.owners[places].tolist()
        cuts = self.cuts[places].tolist()
        return tuple((self.tokens[token][cut:], token) for token, cut in zip(tokens, cuts, strict=True))


def _layers(trie: Trie) -> Iterator[tuple[Ints, Ints]]:
    """Of each depth but the first: its nodes, and the node above each."""
    layer = np.flatnonzero(trie.depth == 0).astype(np.int32)
    for depth in range(1, trie.max_depth):
        below = np.flatnonzero(trie.depth == depth).astype(np.int32)
        yield below, layer[np.searchsorted(layer, below) - 1]
        layer = below


def _nodes(trie: Trie) -> tuple[Ints, Ints]:
    """Of each node of the trie: the one above (-1: none), and the longest token that begins it."""
    above = np.full(len(trie), -1, np.int32)
    gates = trie.token.copy()
    for below, parents in _layers(trie):
        above[below] = parents
        gates[below] = np.where(gates[below] >= 0, gates[below], gates[parents])
    return above, gates


def _places(trie: Trie, above: Ints) -> tuple[Ints, Ints]:
    """The places, sorted by the node of their piece: that node, and the token."""
    tokens, nodes = [trie.token[trie.token >= 0]], [np.flatnonzero(trie.token >= 0).astype(np.int32)]
    while len(tokens[-1]):  # those with the same bytes
        following = trie.next_same[tokens[-1]]
        nodes.append(nodes[-1][following >= 0])
        tokens.append(following[following >= 0])
    node, token = above[np.concatenate(nodes)], np.concatenate(tokens)
    found_nodes, found_tokens = [], []
    while len(node):
        node, token = node[node >= 0], token[node >= 0]
        found_nodes.append(node)
        found_tokens.append(token)
        node = above[node]
    if not found_nodes:
        return np.zeros(0, np.int32), np.zeros(0, np.int32)
    node, token = np.concatenate(found_nodes), np.concatenate(found_tokens)
    order = np.argsort(node, kind="stable")
    return node[order], token[order]


def has_tokens(row: Ints, tokens: npt.NDArray[np.integer]) -> Flags:
    """Which tokens (-1: none) a mask has."""
    flags: Flags = (tokens >= 0) & (row[np.maximum(tokens, 0) >> 5] >> (tokens & 31) & 1).astype(np.bool_)
    return flags


@lru_cache(4)
def crossing_index(vocabulary: Vocabulary) -> CrossingIndex:
    """The index of a vocabulary; kept for the last few. O(bytes of all tokens)."""
    return CrossingIndex(vocabulary)


def _flags(members: int) -> Flags:
    return np.unpackbits(np.frombuffer(members.to_bytes(32, "little"), np.uint8), bitorder="little").astype(np.bool_)
