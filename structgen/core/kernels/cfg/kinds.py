"""Kinds of bytes: sets of ASCII characters that automata seldom tell apart."""

from structgen.core.kernels.cfg.layout import *
from structgen.core.kernels.jit import internal
from structgen.core.kernels.memory import set_word, word
from structgen.core.kernels.utf8 import next_expected


@internal
def kind_of(byte):
    """Sets of ASCII characters that automata seldom tell apart, as numbers below NON_ASCII."""
    if byte >= 128:
        return NON_ASCII
    if 48 <= byte < 58:
        return 0
    if 97 <= byte < 123:
        return 1 if byte < 103 else 2
    if 65 <= byte < 91:
        return 3 if byte < 71 else 4
    if byte < 32:
        return 5 if byte == 9 else 6 if byte == 10 else 7 if byte == 13 else 8
    if byte < 48:
        return byte - 32 + 9
    if byte < 65:
        return byte - 58 + 25
    return byte - 91 + 32 if byte < 97 else byte - 123 + 38


@internal
def first_of_kind(kind):
    """The first byte of a kind below LETTERS."""
    return 48 if kind == 0 else 97 if kind == 1 else 103 if kind == 2 else 65 if kind == 3 else 71


@internal
def last_of_kind(kind):
    """The last byte of a kind below LETTERS; all between are of it."""
    return 57 if kind == 0 else 102 if kind == 1 else 122 if kind == 2 else 70 if kind == 3 else 90


@internal
def kinds_below(trie, size, out):
    """For each node of a trie the kinds of bytes below it, INVALID too if they or the node cut a character.

    Args:
        trie: address of int64[size], nodes as in H_TRIE.
        size: how many.
        out: address of int64[size + 2 * (DEPTH_MASK + 2)]; what is behind the first ``size`` is for this function.
    """
    states, below = out + 8 * size, out + 8 * (size + DEPTH_MASK + 2)  # by depth
    for depth in range(DEPTH_MASK + 2):
        set_word(states, depth, 0)
        set_word(below, depth, 0)
    for i in range(size):
        node = word(trie, i)
        depth, byte = (node >> 8) & DEPTH_MASK, node & 255
        expected = next_expected(word(states, depth), byte)
        set_word(states, depth + 1, expected)
        own_kinds = 1 << (INVALID if expected < 0 else kind_of(byte))
        set_word(out, i, own_kinds | (KNOWN if expected > 0 else 0))
    for i in range(size - 1, -1, -1):
        depth = (word(trie, i) >> 8) & DEPTH_MASK
        own_kinds, under = word(out, i), word(below, depth + 1)
        set_word(below, depth + 1, 0)
        set_word(below, depth, word(below, depth) | (own_kinds & ~KNOWN) | under)
        set_word(out, i, under | (1 << INVALID if own_kinds & (KNOWN | 1 << INVALID) else 0))
    return 1
