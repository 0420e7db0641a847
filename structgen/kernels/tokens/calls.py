"""What others call of the tokens' kernel: one function an operation. Arrays of other dtypes are a TypeError."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from structgen.kernels.calls import Function
from structgen.kernels.loading import kernel
from structgen.kernels.tokens.layout import *

Bytes = npt.NDArray[np.uint8]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]

run = kernel("tokens")
_add_rows = Function(run, ADD_ROWS, [np.int32], [np.int32] * 3)
_token_kinds = Function(run, TOKEN_KINDS, [np.uint8, np.int32], [np.int32] * 2)
_subtree_kinds = Function(run, SUBTREE_KINDS, [np.int32], [np.int32] * 2)
_path_kinds = Function(run, PATH_KINDS, [np.int32] * 2, [np.int64] * 2)
_common_prefixes = Function(run, COMMON_PREFIXES, [np.uint8, np.int32, np.int32], [np.int32])
_fill_nodes = Function(
    run, FILL_NODES, [np.uint8, *[np.int32] * 3], [np.int32, np.uint8, np.int32, np.int32, np.int32, np.int32]
)
_filter_chains = Function(run, FILTER_CHAINS, [np.bool_], [np.int32] * 2)


def kind_of(byte: int) -> int:
    """Kind of a byte of text inside a string (0..27)."""
    return run(0, KIND_OF, byte, 0, 0)


def add_rows(table: Int32, base: int, pool: Int32, flags: Int32, loops: Int32) -> None:
    """Copy an automaton's rows to ``pool`` (256 entries a state) from state ``base`` on.

    ``table`` int32[n, 256]: next state or -1. Ors PARTIAL_FLAG into ``flags`` of the states inside a UTF-8 sequence and
    sets ``loops``, the kinds of characters that leave a state as it is.
    """
    _add_rows(table, pool, flags, loops, x=base)


def token_kinds(data: Bytes, offsets: Int32, kinds: Int32, points: Int32) -> None:
    """Flags of each token, and how many code points begin in it.

    ``data`` uint8, ``offsets`` int32[V + 1]: the tokens. Writes ``kinds`` int32[V], ``points`` int32[V].
    """
    _token_kinds(data, offsets, kinds, points)


def subtree_kinds(nodes: Int32, path: Int32, kinds: Int32) -> None:
    """Kinds of the characters below each node of a trie (bits of `kind_of`).

    ``nodes`` int32[N, 4] in depth-first order (byte, depth, subtree end, token); ``path`` int32[depth + 1] is scratch.
    Text that is not UTF-8 from the token's first byte on counts as NEVER.
    """
    _subtree_kinds(nodes, path, kinds)


def path_kinds(nodes: Int32, next_same: Int32, path: Int64, kinds: Int64) -> None:
    """Kinds of all characters of each token of a trie (int64[V], in place), NEVER where it is not UTF-8.

    ``path`` int64[depth + 2, 2] is scratch: decoder state and kinds up to each level.
    """
    _path_kinds(nodes, next_same, path, kinds)


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
