"""What others call of the tokens' kernel: one function an operation. Arrays of other dtypes are a TypeError."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from structgen.core.kernels.calls import Function
from structgen.core.kernels.loading import kernel
from structgen.core.kernels.tokens.layout import *

Bytes = npt.NDArray[np.uint8]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]

run = kernel("tokens")
_add_rows = Function(run, ADD_ROWS, [np.int32], [np.int32] * 4)
_token_kinds = Function(run, TOKEN_KINDS, [np.uint8, np.int32], [np.int32] * 2)
_node_kinds = Function(run, NODE_KINDS, [np.int32], [np.int64, np.uint8])
_subtree_kinds = Function(run, SUBTREE_KINDS, [np.int32, np.uint8], [np.int32])
_subtree_rises = Function(run, SUBTREE_RISES, [np.int32], [np.int32] * 2)
_path_kinds = Function(run, PATH_KINDS, [np.int32, np.int32, np.uint8], [np.int64] * 2)
_common_prefixes = Function(run, COMMON_PREFIXES, [np.uint8, np.int32, np.int32], [np.int32])
_fill_nodes = Function(
    run, FILL_NODES, [np.uint8, *[np.int32] * 3], [np.int32, np.uint8, np.int32, np.int32, np.int32, np.int32]
)
_filter_chains = Function(run, FILTER_CHAINS, [np.bool_], [np.int32] * 2)


def kind_of(byte: int) -> int:
    """Kind of a byte of text inside a string (0..28); of one beyond ASCII NON_ASCII, see `node_kinds`."""
    return run(0, KIND_OF, byte, 0, 0)


def add_rows(table: Int32, base: int, pool: Int32, flags: Int32, loops: Int32, wides: Int32) -> None:
    """Copy an automaton's rows to ``pool`` (256 entries a state) from state ``base`` on.

    ``table`` int32[n, 256]: next state or -1. Ors PARTIAL_FLAG into ``flags`` of the states inside a UTF-8 sequence and
    sets ``loops``, the kinds of characters that leave a state as it is, and ``wides`` (two a state), where every
    character beyond ASCII leads that is no white space, and those that are (NOWHERE: all are dead; SOME - n: those that
    are not to state n; APART: not to one).
    """
    _add_rows(table, pool, flags, loops, wides, x=base)


def token_kinds(data: Bytes, offsets: Int32, kinds: Int32, points: Int32) -> None:
    """Flags of each token, and how many code points begin in it.

    ``data`` uint8, ``offsets`` int32[V + 1]: the tokens. Writes ``kinds`` int32[V], ``points`` int32[V].
    """
    _token_kinds(data, offsets, kinds, points)


def node_kinds(nodes: Int32, path: Int64, kinds: Bytes) -> None:
    """Kind of the character that ends at each node of a trie, into ``kinds`` uint8[N].

    NON_ASCII where one beyond ASCII is not whole yet, BROKEN where the text is not UTF-8 from the token's first byte
    on. ``nodes`` int32[N, 4] in depth-first order (byte, depth, subtree end, token); ``path`` int64[depth + 2, 2] is
    scratch.
    """
    _node_kinds(nodes, path, kinds)


def subtree_kinds(nodes: Int32, own_kinds: Bytes, kinds: Int32) -> None:
    """Kinds of the characters below each node of a trie, as bits; that of the node itself only where it is BROKEN.

    ``own_kinds`` uint8[N]: see `node_kinds`. BROKEN counts as NEVER.
    """
    _subtree_kinds(nodes, own_kinds, kinds)


def subtree_rises(nodes: Int32, best: Int32, rises: Int32) -> None:
    """How many code points begin below each node of a trie, at most on one path (int32[N]); its own does not count.

    ``nodes`` as in `node_kinds`; ``best`` int32[depth + 2] is scratch.
    """
    _subtree_rises(nodes, best, rises)


def path_kinds(nodes: Int32, next_same: Int32, own_kinds: Bytes, path: Int64, kinds: Int64) -> None:
    """Kinds of all characters of each token of a trie (int64[V], in place), NEVER where it is not UTF-8.

    ``own_kinds`` uint8[N]: see `node_kinds`. ``path`` int64[depth + 2] is scratch: the kinds up to each level.
    """
    _path_kinds(nodes, next_same, own_kinds, path, kinds)


def common_prefixes(token_bytes: Bytes, offsets: Int32, order: Int32, common: Int32) -> None:
    """``common[i]``: how many leading bytes token ``order[i]`` shares with its predecessor in the order."""
    _common_prefixes(token_bytes, offsets, order, common)


def fill_nodes(
    token_bytes: Bytes, offsets: Int32, order: Int32, common: Int32, open_nodes: Int32,
    byte: Bytes, depth: Int32, subtree_end: Int32, token: Int32, next_same: Int32,
) -> None:  # fmt: skip
    """Append the nodes of each token in sorted order; ``open_nodes[d]`` is the node at depth d on the current path."""
    _fill_nodes(token_bytes, offsets, order, common, open_nodes, byte, depth, subtree_end, token, next_same)


def filter_chains(keep: npt.NDArray[np.bool_], token: Int32, next_same: Int32) -> None:
    """Take the ids that are not kept out of the chains that start at each node, in place."""
    _filter_chains(keep, token, next_same)
