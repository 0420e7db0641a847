"""What others call of the automata's kernel: one function an operation. Arrays of other dtypes are a TypeError.

Tables are ``int32[n, k]`` with −1 for "no transition" and start state 0; flags of states are uint8. Where it is not
known how many states there will be, the kernel comes back when the room is used up, and goes on in twice as much.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from structgen.core.kernels.automata.layout import *
from structgen.core.kernels.calls import Function, grown
from structgen.core.kernels.loading import kernel

Table = npt.NDArray[np.int32]
Flags = npt.NDArray[np.uint8]
_I4, _I8, _U1, _U8 = np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.uint8), np.dtype(np.uint64)
_FIRST_ROWS = 64

run = kernel("automata")
_determinise = Function(run, DETERMINISE, [_I4, _U1], [_I8, _U8, _I4, _I4, _U1, _I4, _U8])
_minimise = Function(run, MINIMISE, [_I4, _U1], [_I4, _U1, _I4])
_renumber = Function(run, RENUMBER, [_I4, _U1], [_I4, _U1, _I4])
_column_classes = Function(run, COLUMN_CLASSES, [_I4], [_I4, _I4, _U8])
_count_words = Function(run, COUNT_WORDS, [_I4, _U1], [_I8, _I4])
_distances = Function(run, DISTANCES, [_I4, _U1], [_I8, _I4, _U1, _U8])
_next_lengths = Function(run, NEXT_LENGTHS, [_U1], [_I4])
_expand_utf8 = Function(run, EXPAND_UTF8, [_I4, _I4, _I4, _U1, _I4, _I4, _I4], [_I8, _I4, _I4, _I4, _I4])
_product = Function(run, PRODUCT, [_I4, _U1, _I4, _I4], [_I8, _I4, _I4, _U8, _I4])
_word_trie = Function(run, WORD_TRIE, [_U1, _I8], [_I4, _U1])


def _absent(*shape: int) -> Table:
    """A table of −1."""
    table = np.empty(shape, _I4)
    table.fill(-1)
    return table


def determinise(program: Table, start: int, member: Flags, max_states: int, max_steps: int) -> tuple[Table, Flags, int]:
    """Subset construction over character classes.

    ``program[i] = (op, x, y)`` int32; ``member[set, class]`` uint8. Returns the table, the accepting flags and the
    number of states, which is −1 if it would exceed ``max_states``, and −2 if it takes more than ``max_steps`` nodes
    looked at. A state that accepts everything is one state.
    """
    nodes, classes = len(program), member.shape[1]
    width = (nodes + 2 + 63) // 64
    regs = np.zeros(REGISTERS, _I8)
    regs[R_START], regs[R_MAX_STATES], regs[R_MAX_STEPS] = start, max_states, max_steps
    pool, table = np.zeros((_FIRST_ROWS, width), _U8), _absent(_FIRST_ROWS, classes)
    scratch, words = np.zeros(7 * nodes + 10, _I4), np.zeros(width, _U8)
    while True:
        slots, accepting = _absent(4 * len(pool)), np.zeros(len(pool), _U1)
        count = _determinise(program, member, regs, pool, table, slots, accepting, scratch, words)
        if count != FULL:
            break
        pool, table = grown(pool, 0), grown(table, -1)
    return table[: max(count, 0)], accepting[: max(count, 0)], count


def minimise(table: Table, accepting: Flags) -> tuple[Table, Flags]:
    """The trim minimal automaton, states numbered breadth first in column order; no states if it accepts nothing."""
    n, k = table.shape
    result, flags = np.empty((n, k), _I4), np.empty(n, _U1)
    scratch = np.empty(12 * (n + 1) + k + 1 + 9 * n * k + 3 + max(n, n * k) + 2, _I4)
    count = _minimise(table, accepting, result, flags, scratch)
    return result[:count], flags[:count]


def renumber(table: Table, accepting: Flags) -> tuple[Table, Flags]:
    """The states that can be reached, numbered breadth first in column order."""
    n = len(table)
    result, flags = np.empty(table.shape, _I4), np.empty(n, _U1)
    count = _renumber(table, accepting, result, flags, np.empty(2 * n, _I4))
    return result[:count], flags[:count]


def column_classes(table: Table) -> tuple[Table, int]:
    """Which columns are equal: the class of each column, numbered by first appearance, and how many there are."""
    k = table.shape[1]
    classes = np.empty(k, _I4)
    return classes, _column_classes(table, classes, np.empty(k, _I4), np.zeros(k, _U8))


def count_words(table: Table, accepting: Flags, cap: int) -> npt.NDArray[np.int64]:
    """Accepted words from each state of a trim automaton, at most ``cap`` (endless languages: ``cap``). O(256 n)."""
    n = len(table)
    counts = np.zeros(n, _I8)
    _count_words(table, accepting, counts, np.zeros(3 * n + 2, _I4), x=cap)
    return counts


def distances(table: Table, accepting: Flags, cap: int) -> tuple[Table, int, int]:
    """Accepted lengths in code points: ``nxt[s, k]`` as in ``lengths.Distances``, pre-period and period.

    The pre-period is −1 if the table would have more than ``cap`` entries.
    """
    n = len(table)
    regs, edges = np.zeros(REGISTERS, _I8), np.empty(3 * n + 2 + 2 * table.size, _I4)
    rows, hashes = np.zeros((16, n), _U1), np.zeros(16, _U8)
    while (length := _distances(table, accepting, regs, edges, rows, hashes, x=cap)) == FULL:
        rows, hashes = grown(rows, 0), grown(hashes, 0)
    if length == TOO_MANY:
        return np.zeros((0, 0), _I4), -1, 0
    nxt, repeat = np.empty((n, length), _I4), int(regs[R_REPEAT])
    _next_lengths(rows, nxt, x=repeat)
    return nxt, repeat, length - repeat


def expand_utf8(
    table: Table, accepting: Flags, ascii_class: Table, children: Table, leaf: Flags, uniform: Table, root: Table,
    class_of: Table, max_states: int,
) -> tuple[Table, Flags, int]:  # fmt: skip
    """Replace class transitions by UTF-8 byte transitions through shared mid-character states.

    The tree is a ``Utf8Tree`` whose classes are mapped by ``class_of``. States 0..n-1 stay; a mid-character state is
    its row over the continuation bytes, so equal rows are one state and a minimal table gives a minimal result.
    Returns the byte table, the accepting flags and the number of states, −1 if it would exceed ``max_states``.
    """
    n, nodes = len(table), len(children)
    regs = np.zeros(REGISTERS, _I8)
    regs[R_MAX_STATES], regs[R_COUNT] = max_states, n
    # Rows that are not written to take no memory, so there is room for all that there can be.
    out = np.empty((max(n, min(n * (nodes + 1), max_states)) + _FIRST_ROWS, 256), _I4)
    memo = _absent(nodes, n + 1)  # [node, target] of nodes that lead to one class only
    mid = _absent(nodes)  # of the current state
    while True:
        slots = _absent(4 * len(out))
        count = _expand_utf8(table, ascii_class, children, leaf, uniform, root, class_of, regs, out, slots, memo, mid)
        if count != FULL:
            break
        out = np.concatenate([out, np.empty(out.shape, _I4)])
    flags = np.zeros(max(count, 0), _U1)
    flags[:n] = accepting[: len(flags)]
    return out[: len(flags)], flags, count


def product(
    tables: Table, accepting: Flags, first: Table, columns: Table, max_states: int
) -> tuple[Table, npt.NDArray[np.uint64], int]:
    """The product of automata over common column classes.

    ``tables`` are the automata below each other, automaton i from row ``first[i]`` to ``first[i + 1]``, and
    ``columns[i, class]`` is its column for a class. The last automaton is the domain: where it has no transition the
    product has none; the others go on dead. Bit i of a state's label is set if automaton i (not the domain) accepts.
    Returns table, labels and the number of states, −1 if it would exceed ``max_states``.
    """
    parts, k = columns.shape
    regs = np.zeros(REGISTERS, _I8)
    regs[R_MAX_STATES] = max_states
    pool, table = _absent(_FIRST_ROWS, parts), _absent(_FIRST_ROWS, k)
    while True:
        labels, slots = np.zeros(len(pool), _U8), _absent(4 * len(pool))
        count = _product(tables, accepting, first, columns, regs, pool, table, labels, slots)
        if count != FULL:
            break
        pool, table = grown(pool, -1), grown(table, -1)
    return table[: max(count, 0)], labels[: max(count, 0)], count


def word_trie(text: Flags, ends: npt.NDArray[np.int64], max_states: int) -> tuple[Table, Flags, int]:
    """The tree of words: word i is ``text[ends[i - 1] : ends[i]]``. State count −1 if above ``max_states``."""
    rows = min(len(text) + 1, max_states)
    table: npt.NDArray[Any] = _absent(rows, 256)
    accepting = np.zeros(rows, _U1)
    count = _word_trie(text, ends, table, accepting, x=max_states)
    return table[: max(count, 0)], accepting[: max(count, 0)], count
