"""The tokens of a vocabulary as one flat byte trie in depth-first order, so that a mask is one loop without recursion.

The walk of an automaton with state ``s0`` over the trie, all there is to know about the layout::

    states[0] = s0
    node = 0
    while node < len(trie.byte):
        state = step(states[trie.depth[node]], trie.byte[node])
        if state is dead:
            node = trie.subtree_end[node]           # no token below this node
            continue
        states[trie.depth[node] + 1] = state        # states needs trie.max_depth + 1 places
        token = trie.token[node]
        while token >= 0:                           # every id that spells these bytes
            allow(token)
            token = trie.next_same[token]
        node += 1
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structgen.core.kernels.tokens.calls import common_prefixes, fill_nodes, filter_chains

_ARRAYS = {"byte": np.uint8, "depth": np.int32, "subtree_end": np.int32, "token": np.int32, "next_same": np.int32}


@dataclass(frozen=True, eq=False)
class Trie:
    """Byte strings and their token ids; N nodes, V token ids.

    There is no root node: node 0 is the first child of the root. Children are in ascending order of their byte.
    The arrays are shared and must not be written to.

    Attributes:
        byte: uint8[N], the byte on the edge into the node.
        depth: int32[N], the number of bytes before that one (0 for the children of the root).
        subtree_end: int32[N], index of the first node after the node's subtree.
        token: int32[N], lowest token id whose bytes end at the node, or -1.
        next_same: int32[V], next higher token id with the same bytes, or -1.
    """

    byte: NDArray[np.uint8]
    depth: NDArray[np.int32]
    subtree_end: NDArray[np.int32]
    token: NDArray[np.int32]
    next_same: NDArray[np.int32]

    def __len__(self) -> int:
        """The number of nodes."""
        return len(self.byte)

    @cached_property
    def max_depth(self) -> int:
        """Length in bytes of the longest token; 0 for the empty trie."""
        return int(self.depth.max()) + 1 if len(self) else 0

    @cached_property
    def roots(self) -> NDArray[np.int32]:
        """int32[256], of each byte the first child of the root with it or a higher one; N where there is none."""
        first = np.append(np.flatnonzero(self.depth == 0), len(self)).astype(np.int32)
        first_nodes: NDArray[np.int32] = first[np.searchsorted(self.byte[first[:-1]], np.arange(256))]
        return first_nodes

    @cached_property
    def in_order(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """All ids in the order of their nodes, and int32[N + 1], how many of these stand before each node."""
        places = [np.flatnonzero(self.token >= 0)]
        tokens = [self.token[places[0]]]
        while len(tokens[-1]):  # those with the same bytes
            following = self.next_same[tokens[-1]]
            places.append(places[-1][following >= 0])
            tokens.append(following[following >= 0])
        sizes = np.concatenate(places)
        before = np.zeros(len(self) + 1, np.int32)
        np.cumsum(np.bincount(sizes, minlength=len(self)), out=before[1:])
        order: NDArray[np.int32] = np.concatenate(tokens)[np.argsort(sizes, kind="stable")]
        return order, before

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays by name, as ``trie_from_arrays`` takes them."""
        return {name: getattr(self, name) for name in _ARRAYS}


def build_trie(tokens: Sequence[bytes], token_bytes: NDArray[np.uint8], token_offsets: NDArray[np.int32]) -> Trie:
    """The trie of all non-empty tokens, in O(total bytes) after the sort.

    Args:
        tokens: the bytes of each id; empty: the id spells nothing and is not in the trie.
        token_bytes: uint8, the same tokens one after the other.
        token_offsets: int32[len(tokens) + 1], where each starts in ``token_bytes``.
    """
    # The sort is stable, so that ids with the same bytes stay in ascending order.
    order = np.array(sorted(filter(tokens.__getitem__, range(len(tokens))), key=tokens.__getitem__), dtype=np.int32)
    common = np.zeros(len(order), dtype=np.int32)
    common_prefixes(token_bytes, token_offsets, order, common)
    lengths = np.diff(token_offsets)[order]
    size = int((lengths - common).sum(dtype=np.int64))
    trie = Trie(
        byte=np.empty(size, dtype=np.uint8),
        depth=np.empty(size, dtype=np.int32),
        subtree_end=np.empty(size, dtype=np.int32),
        token=np.full(size, -1, dtype=np.int32),
        next_same=np.full(len(tokens), -1, dtype=np.int32),
    )
    open_nodes = np.empty(int(lengths.max(initial=0)), dtype=np.int32)
    fill_nodes(token_bytes, token_offsets, order, common, open_nodes, *trie.arrays().values())
    return trie


def subtrie(trie: Trie, keep: NDArray[np.bool_]) -> Trie:
    """The trie of the tokens with ``keep[id]`` (bool[V]) only; ids keep their meaning. O(N + V)."""
    if keep.dtype != np.bool_ or keep.shape != trie.next_same.shape:
        raise ValueError(f"keep is {keep.dtype}{list(keep.shape)}, expected bool[{len(trie.next_same)}]")
    token, next_same = trie.token.copy(), trie.next_same.copy()
    filter_chains(np.ascontiguousarray(keep), token, next_same)
    kept_before = np.zeros(len(trie) + 1, dtype=np.int32)
    np.cumsum(token >= 0, out=kept_before[1:])
    alive = kept_before[trie.subtree_end] > kept_before[:-1]
    new_index = np.zeros(len(trie) + 1, dtype=np.int32)
    np.cumsum(alive, out=new_index[1:])
    return Trie(
        byte=trie.byte[alive],
        depth=trie.depth[alive],
        subtree_end=new_index[trie.subtree_end[alive]],
        token=token[alive],
        next_same=next_same,
    )


def trie_from_arrays(arrays: Mapping[str, NDArray[Any]], vocabulary_size: int) -> Trie | None:
    """The trie of ``Trie.arrays()`` read back from a file; None if they are not one of this vocabulary's width.

    Kernels index without bounds checks, so every index is checked here.
    """
    kept = {name: arrays.get(name) for name in _ARRAYS}
    if any(a is None or a.dtype != _ARRAYS[name] or a.ndim != 1 for name, a in kept.items()):
        return None
    trie = Trie(**{name: np.ascontiguousarray(a) for name, a in kept.items()})
    size = len(trie)
    if len(trie.next_same) != vocabulary_size or any(len(arrays[n]) != size for n in _ARRAYS if n != "next_same"):
        return None
    position = np.arange(size, dtype=np.int32)
    ids = np.arange(vocabulary_size, dtype=np.int32)
    sound = (
        np.all((trie.subtree_end > position) & (trie.subtree_end <= size))
        and np.all((trie.depth >= 0) & (np.diff(trie.depth, prepend=np.int32(-1)) <= 1))
        and np.all((trie.token >= -1) & (trie.token < vocabulary_size))
        and np.all((trie.next_same == -1) | ((trie.next_same > ids) & (trie.next_same < vocabulary_size)))
    )
    return trie if sound else None
