"""Numba kernels that make byte tables: UTF-8 expansion, products, word trees (conventions: ``subset_kernels``)."""

from __future__ import annotations

import numpy as np
from numba import njit

_FNV = np.uint64(1099511628211)


@njit("u8(i4[:])", cache=True, nogil=True)
def _hash_row(row):  # type: ignore[no-untyped-def]
    h = np.uint64(14695981039346656037)
    for value in row:
        h = (h ^ np.uint64(np.uint32(value))) * _FNV
        h ^= h >> np.uint64(29)
    return h


@njit("b1(i4[:], i4[:])", cache=True, nogil=True)
def _equal(a, b):  # type: ignore[no-untyped-def]
    for i in range(a.shape[0]):  # noqa: SIM110 (numba has no generators here)
        if a[i] != b[i]:
            return False
    return True


@njit("i4[:,::1](i4[:,::1])", cache=True, nogil=True)
def _doubled(table):  # type: ignore[no-untyped-def]
    """The table with as many rows of −1 added. (Loops: np.concatenate takes seconds to compile.)"""
    larger = np.full((2 * table.shape[0], table.shape[1]), -1, np.int32)
    for s in range(table.shape[0]):
        for c in range(table.shape[1]):
            larger[s, c] = table[s, c]
    return larger


@njit("i8(i4[:,:], i4[::1], i8, i4[::1])", cache=True, nogil=True)
def _intern(pool, slots, count, row):  # type: ignore[no-untyped-def]
    """The index of ``row`` among ``pool[:count]``; ``count`` if it is new (then only its slot is entered)."""
    at = np.int64(_hash_row(row) % np.uint64(slots.shape[0]))
    while slots[at] >= 0:
        if _equal(pool[slots[at]], row):
            return np.int64(slots[at])
        at = (at + 1) % slots.shape[0]
    slots[at] = count
    return count


@njit("i4[::1](i4[:,:], i8, i8)", cache=True, nogil=True)
def _slots(pool, first, count):  # type: ignore[no-untyped-def]
    """Hash slots for the rows ``first..count`` of ``pool``, a quarter full when the pool is."""
    slots = np.full(4 * pool.shape[0], -1, np.int32)
    for s in range(first, count):
        at = np.int64(_hash_row(pool[s]) % np.uint64(slots.shape[0]))
        while slots[at] >= 0:
            at = (at + 1) % slots.shape[0]
        slots[at] = s
    return slots


@njit(
    "Tuple((i4[:,::1], u1[::1], i8))(i4[:,::1], u1[::1], i4[::1], i4[:,::1], u1[::1], i4[::1], i4[::1], i4[::1], i8)",
    cache=True,
    nogil=True,
)
def expand_utf8(  # type: ignore[no-untyped-def]
    table, accepting, ascii_class, children, leaf, uniform, root, class_of, max_states
):
    """Replace class transitions by UTF-8 byte transitions through shared mid-character states.

    The tree is a ``Utf8Tree`` whose classes are mapped by ``class_of``. States 0..n-1 stay; a mid-character state is
    its row over the continuation bytes, so equal rows are one state and a minimal table gives a minimal result.
    Returns the byte table, the accepting flags and the number of states, −1 if it would exceed ``max_states``.
    """
    n, nodes = table.shape[0], children.shape[0]
    out = np.full((2 * n + 64, 256), -1, np.int32)
    slots = _slots(out[:, 128:192], n, n)
    known = np.full((nodes, n + 1), -1, np.int32)  # [node, target] of nodes that lead to one class only
    mid = np.full(nodes, -1, np.int32)  # of the current state
    row = np.zeros(64, np.int32)
    count = n
    for s in range(n):
        for b in range(128):
            out[s, b] = table[s, ascii_class[b]]
        for i in range(nodes):
            if uniform[i] >= 0:
                target = table[s, class_of[uniform[i]]]
                mid[i] = known[i, target] if target >= 0 else -1
                if target < 0 or mid[i] >= 0:
                    continue
            empty = True
            for j in range(64):
                child = children[i, j]
                row[j] = -1
                if child >= 0:
                    row[j] = table[s, class_of[child]] if leaf[i] else mid[child]
                empty = empty and row[j] < 0
            if empty:
                mid[i] = -1
                continue
            if count == out.shape[0]:
                if count > max_states:
                    return out[:0], np.zeros(0, np.uint8), np.int64(-1)
                out = _doubled(out)
                slots = _slots(out[:, 128:192], n, count)
            mid[i] = _intern(out[:, 128:192], slots, count, row)
            if mid[i] == count:
                for j in range(64):
                    out[count, 128 + j] = row[j]
                count += 1
            if uniform[i] >= 0:
                known[i, table[s, class_of[uniform[i]]]] = mid[i]
        for b in range(128):
            if root[b] >= 0:
                out[s, 128 + b] = mid[root[b]]
    if count > max_states:
        return out[:0], np.zeros(0, np.uint8), np.int64(-1)
    flags = np.zeros(count, np.uint8)
    for s in range(n):
        flags[s] = accepting[s]
    return out[:count], flags, np.int64(count)


@njit("Tuple((i4[:,::1], u8[::1], i8))(i4[:,::1], u1[::1], i4[::1], i4[:,::1], i8)", cache=True, nogil=True)
def product(tables, accepting, first, columns, max_states):  # type: ignore[no-untyped-def]
    """The product of automata over common column classes.

    ``tables`` are the automata below each other, automaton i from row ``first[i]`` to ``first[i + 1]``, and
    ``columns[i, class]`` is its column for a class. The last automaton is the domain: where it has no transition the
    product has none; the others go on dead. Bit i of a state's label is set if automaton i (not the domain) accepts.
    Returns table, labels and the number of states, −1 if it would exceed ``max_states``.
    """
    parts, k = columns.shape
    pool = np.full((64, parts), -1, np.int32)
    table = np.full((64, k), -1, np.int32)
    slots = _slots(pool, 0, 0)
    now = np.zeros(parts, np.int32)
    for i in range(parts):
        now[i] = 0 if first[i + 1] > first[i] else -1
    if now[parts - 1] < 0:
        return table[:0], np.zeros(0, np.uint64), np.int64(0)
    for i in range(parts):
        pool[0, i] = now[i]
    count, state = _intern(pool, slots, 0, now) + 1, 0
    while state < count:
        for c in range(k):
            for i in range(parts):
                s = pool[state, i]
                now[i] = tables[first[i] + s, columns[i, c]] if s >= 0 else -1
            if now[parts - 1] < 0:
                continue
            target = _intern(pool, slots, count, now)
            table[state, c] = target
            if target < count:
                continue
            if count >= max_states:
                return table[:0], np.zeros(0, np.uint64), np.int64(-1)
            for i in range(parts):
                pool[count, i] = now[i]
            count += 1
            if count == pool.shape[0]:
                pool = _doubled(pool)
                table = _doubled(table)
                slots = _slots(pool, 0, count)
        state += 1
    labels = np.zeros(count, np.uint64)
    for state in range(count):
        for i in range(parts - 1):
            s = pool[state, i]
            if s >= 0 and accepting[first[i] + s]:
                labels[state] |= np.uint64(1) << np.uint64(i)
    return table[:count], labels, np.int64(count)


@njit("Tuple((i4[:,::1], u1[::1], i8))(u1[::1], i8[::1], i8)", cache=True, nogil=True)
def word_trie(text, ends, max_states):  # type: ignore[no-untyped-def]
    """The tree of words: word i is ``text[ends[i - 1] : ends[i]]``. State count −1 if above ``max_states``."""
    rows = min(text.shape[0] + 1, max_states)
    table = np.full((rows, 256), -1, np.int32)
    accepting = np.zeros(rows, np.uint8)
    count, begin = 1, 0
    for end in ends:
        s = 0
        for at in range(begin, end):
            if table[s, text[at]] < 0:
                if count >= max_states:
                    return table[:0], accepting[:0], np.int64(-1)
                table[s, text[at]] = count
                count += 1
            s = table[s, text[at]]
        accepting[s] = 1
        begin = end
    return table[:count], accepting[:count], np.int64(count)
