"""Numba kernel of the subset construction: a nondeterministic program to a table over character classes.

A kernel and its callees live in one file, because numba's on-disk cache does not notice edits of callees in others.
Signatures are explicit: another dtype is a TypeError, never a silent second compilation. Tables are ``int32[n, k]``
with −1 for "no transition" and start state 0.
"""

from __future__ import annotations

import numpy as np
from numba import njit

CHAR, SPLIT, BOL, EOL, MATCH, LOOK, BOUNDARY = range(7)
"""NFA operations: ``CHAR x=set y=next``, ``SPLIT x=next y=next``, ``BOL/EOL y=next``, ``MATCH``, and, for other passes
than the subset construction here, ``LOOK x=lookaround y=next``, ``BOUNDARY x=negative y=next``."""

_FNV = np.uint64(1099511628211)


@njit("u8(u8[::1])", cache=True, nogil=True)
def _hash_words(words):  # type: ignore[no-untyped-def]
    h = np.uint64(14695981039346656037)
    for word in words:
        h = (h ^ word) * _FNV
        h ^= h >> np.uint64(29)
    return h


@njit("void(u8[::1], i8)", cache=True, nogil=True)
def _set_bit(words, bit):  # type: ignore[no-untyped-def]
    words[bit >> 6] |= np.uint64(1) << np.uint64(bit & 63)


@njit("b1(u8[::1], i8)", cache=True, nogil=True)
def _has_bit(words, bit):  # type: ignore[no-untyped-def]
    return (words[bit >> 6] >> np.uint64(bit & 63)) & np.uint64(1) != np.uint64(0)


@njit("b1(i4[:,::1], b1, i8, u8[::1], i4[:,::1], i4, i4[::1], i4[::1])", cache=True, nogil=True)
def _closure(program, at_start, top, words, seen, stamp, stack, pending):  # type: ignore[no-untyped-def]
    """Fill the bit set ``words`` with the ε-closure of the nodes ``stack[:top]``.

    Bit i is CHAR node i, bit m (of m nodes) "accepts at the end of the text". Returns True, with ``words``
    unspecified, if MATCH is reached anywhere: whatever follows is accepted. The last word of ``pending`` counts nodes.
    """
    waiting = visited = 0
    count = pending.shape[0] - 1
    for mode in range(2):  # 0: anywhere; 1: beyond an EOL, so only at the end of the text
        while top > 0:
            top -= 1
            i = stack[top]
            if seen[mode, i] == stamp:
                continue
            seen[mode, i] = stamp
            visited += 1
            op = program[i, 0]
            if op == CHAR:
                if mode == 0:
                    _set_bit(words, i)
            elif op == SPLIT:
                stack[top] = program[i, 2]
                stack[top + 1] = program[i, 1]
                top += 2
            elif op == MATCH:
                if mode == 0:
                    pending[count] = visited
                    return True
                _set_bit(words, program.shape[0])
            elif op == EOL and mode == 0:
                pending[waiting] = program[i, 2]
                waiting += 1
            elif op == EOL or (op == BOL and at_start):
                stack[top] = program[i, 2]
                top += 1
        for j in range(waiting):
            stack[j] = pending[j]
        top = waiting
    pending[count] = visited
    return False


@njit("b1(u8[::1], u8[::1])", cache=True, nogil=True)
def _equal(a, b):  # type: ignore[no-untyped-def]
    for i in range(a.shape[0]):  # noqa: SIM110 (numba has no generators here)
        if a[i] != b[i]:
            return False
    return True


@njit("i8(u8[:,::1], i4[::1], i8, u8[::1])", cache=True, nogil=True)
def _intern(pool, slots, count, words):  # type: ignore[no-untyped-def]
    """The index of ``words`` among ``pool[:count]``; ``count`` if it is new (then it is entered)."""
    mask = slots.shape[0] - 1
    at = np.int64(_hash_words(words) & np.uint64(mask))
    while slots[at] >= 0:
        if _equal(pool[slots[at]], words):
            return np.int64(slots[at])
        at = (at + 1) & mask
    slots[at] = count
    for w in range(words.shape[0]):
        pool[count, w] = words[w]
    return count


@njit("b1(i4[:,::1], b1, i8, u8[::1], i4[:,::1], i4, i4[::1], i4[::1])", cache=True, nogil=True)
def _close(program, at_start, top, words, seen, stamp, stack, pending):  # type: ignore[no-untyped-def]
    """``_closure`` into cleared ``words``, bit m + 1 alone for "accepts whatever follows"; False if nothing is set."""
    for w in range(words.shape[0]):
        words[w] = 0
    if _closure(program, at_start, top, words, seen, stamp, stack, pending):
        for w in range(words.shape[0]):
            words[w] = 0
        _set_bit(words, program.shape[0] + 1)
    for word in words:  # noqa: SIM110
        if word != 0:
            return True
    return False


@njit("i8(u8[::1], i8, i4[::1])", cache=True, nogil=True)
def _list_bits(words, limit, members):  # type: ignore[no-untyped-def]
    """Write the set bits below ``limit`` to ``members``; returns how many there are."""
    size = 0
    for w in range(words.shape[0]):
        if words[w] != 0:
            for b in range(min(64, limit - w * 64)):
                if (words[w] >> np.uint64(b)) & np.uint64(1) != 0:
                    members[size] = w * 64 + b
                    size += 1
    return size


@njit("Tuple((u8[:,::1], i4[:,::1], i4[::1]))(u8[:,::1], i4[:,::1])", cache=True, nogil=True)
def _doubled(pool, table):  # type: ignore[no-untyped-def]
    """The full pool and table with twice the rows, and hash slots for them. (np.concatenate is slow to compile.)"""
    count, width, k = pool.shape[0], pool.shape[1], table.shape[1]
    larger_pool = np.zeros((2 * count, width), np.uint64)
    larger_table = np.full((2 * count, k), -1, np.int32)
    slots = np.full(8 * count, -1, np.int32)
    for s in range(count):
        _intern(larger_pool, slots, s, pool[s])
        for c in range(k):
            larger_table[s, c] = table[s, c]
    return larger_pool, larger_table, slots


@njit("Tuple((i4[:,::1], u1[::1], i8))(i4[:,::1], i8, u1[:,::1], i8, i8)", cache=True, nogil=True)
def determinise(program, start, member, max_states, max_steps):  # type: ignore[no-untyped-def]
    """Subset construction over character classes.

    ``program[i] = (op, x, y)``; ``member[set, class]``. Returns the table, the accepting flags and the number of
    states, which is −1 if it would exceed ``max_states``, and −2 if it takes more than ``max_steps`` nodes looked at.
    A state that accepts everything is one state.
    """
    m, k = program.shape[0], member.shape[1]
    width = (m + 2 + 63) // 64
    pool = np.zeros((64, width), np.uint64)
    table = np.full((64, k), -1, np.int32)
    slots = np.full(256, -1, np.int32)
    seen = np.zeros((2, m), np.int32)
    stack = np.zeros(3 * m + 8, np.int32)
    pending = np.zeros(m + 2, np.int32)
    steps = 0
    chars = np.zeros(m, np.int32)
    words = np.zeros(width, np.uint64)
    stamp = 1
    stack[0] = start
    _close(program, True, 1, words, seen, stamp, stack, pending)
    count = _intern(pool, slots, 0, words) + 1
    state = 0
    while state < count:
        if _has_bit(pool[state], m + 1):
            for c in range(k):
                table[state, c] = state
            state += 1
            continue
        size = _list_bits(pool[state], m, chars)
        steps += width
        for c in range(k):
            top = 0
            steps += size
            if steps > max_steps:
                return table[:0], np.zeros(0, np.uint8), np.int64(-2)
            for j in range(size):
                i = chars[j]
                if member[program[i, 1], c]:
                    stack[top] = program[i, 2]
                    top += 1
            if top == 0:
                continue
            stamp += 1
            alive = _close(program, False, top, words, seen, stamp, stack, pending)
            steps += pending[m + 1] + 2 * width
            if not alive:
                continue
            if count == table.shape[0]:
                pool, table, slots = _doubled(pool, table)
            target = _intern(pool, slots, count, words)
            if target == count:
                count += 1
                if count > max_states:
                    return table[:0], np.zeros(0, np.uint8), np.int64(-1)
            table[state, c] = target
        state += 1
    accepting = np.zeros(count, np.uint8)
    for state in range(count):
        accepting[state] = _has_bit(pool[state], m) or _has_bit(pool[state], m + 1)
    return table[:count], accepting, np.int64(count)
