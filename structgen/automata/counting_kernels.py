"""Numba kernels that count words and lengths over byte automata (see ``kernels`` for the table conventions)."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit("i8[::1](i4[:,::1], u1[::1], i8)", cache=True, nogil=True)
def count_words(table, accepting, cap):  # type: ignore[no-untyped-def]
    """Accepted words from each state of a trim automaton, at most ``cap`` (endless languages: ``cap``). O(256 n)."""
    n = table.shape[0]
    counts = np.zeros(n, np.int64)
    colour = np.zeros(n, np.uint8)  # 0 new, 1 open, 2 done
    stack, byte = np.zeros(n + 1, np.int32), np.zeros(n + 1, np.int32)
    for origin in range(n):
        if colour[origin] != 0:
            continue
        top = 0
        stack[0], byte[0] = origin, 0
        colour[origin] = 1
        counts[origin] = min(accepting[origin], cap)
        while top >= 0:
            s = stack[top]
            if byte[top] == 256:
                colour[s] = 2
                top -= 1
                if top >= 0:
                    counts[stack[top]] = min(cap, counts[stack[top]] + counts[s])
                continue
            t = table[s, byte[top]]
            byte[top] += 1
            if t < 0:
                continue
            if colour[t] == 1:  # a cycle, and every state leads to acceptance
                counts[s] = cap
            elif colour[t] == 2:
                counts[s] = min(cap, counts[s] + counts[t])
            else:
                colour[t] = 1
                counts[t] = min(accepting[t], cap)
                top += 1
                stack[top], byte[top] = t, 0
    return counts


@njit("Tuple((i4[:,::1], i4[:,::1]))(i4[:,::1])", cache=True, nogil=True)
def _edges(table):  # type: ignore[no-untyped-def]
    """Distinct successors of each state, by lead (row 0) and continuation bytes (row 1): CSR (first, target)."""
    n = table.shape[0]
    first = np.zeros((2, n + 1), np.int32)
    total = 0
    for s in range(n):
        for b in range(256):
            total += table[s, b] >= 0
    targets = np.zeros((2, total), np.int32)
    seen = np.full(n, -1, np.int32)
    used = np.zeros(2, np.int64)
    for s in range(n):
        for b in range(256):
            t = table[s, b]
            if t >= 0 and seen[t] != s:  # no state has both lead and continuation edges: s is mid-character or not
                seen[t] = s
                kind = 1 if 0x80 <= b < 0xC0 else 0
                targets[kind, used[kind]] = t
                used[kind] += 1
        first[0, s + 1], first[1, s + 1] = used[0], used[1]
    return first, targets


@njit("b1(u1[::1], u1[::1])", cache=True, nogil=True)
def _equal(a, b):  # type: ignore[no-untyped-def]
    for i in range(a.shape[0]):  # noqa: SIM110 (numba has no generators here)
        if a[i] != b[i]:
            return False
    return True


@njit("Tuple((u1[:,::1], u8[::1]))(u1[:,::1], u8[::1])", cache=True, nogil=True)
def _doubled(rows, hashes):  # type: ignore[no-untyped-def]
    larger_rows, larger_hashes = (
        np.zeros((2 * rows.shape[0], rows.shape[1]), np.uint8),
        np.zeros(2 * rows.shape[0], np.uint64),
    )
    for k in range(rows.shape[0]):
        larger_hashes[k] = hashes[k]
        for s in range(rows.shape[1]):
            larger_rows[k, s] = rows[k, s]
    return larger_rows, larger_hashes


@njit("Tuple((i4[:,::1], i8, i8))(i4[:,::1], u1[::1], i8)", cache=True, nogil=True)
def distances(table, accepting, cap):  # type: ignore[no-untyped-def]
    """Accepted lengths in code points: ``nxt[s, k]`` as in ``lengths.Distances``, pre-period and period.

    Row k of the working bit matrix says which states accept some word with exactly k lead bytes. Row k + 1 is a
    function of row k, so the first repeated row closes the period. The pre-period is −1 if the table would have more
    than ``cap`` entries.
    """
    n = table.shape[0]
    first, targets = _edges(table)
    capacity = 16
    rows = np.zeros((capacity, n), np.uint8)
    hashes = np.zeros(capacity, np.uint64)
    length, repeat = 0, -1
    while repeat < 0:
        if (length + 1) * n > cap:
            return np.zeros((0, 0), np.int32), np.int64(-1), np.int64(0)
        if length + 1 >= capacity:
            capacity *= 2
            rows, hashes = _doubled(rows, hashes)
        row = rows[length]
        for s in range(n):
            row[s] = accepting[s] if length == 0 else 0
            if length > 0:
                for j in range(first[0, s], first[0, s + 1]):
                    row[s] |= rows[length - 1, targets[0, j]]
        for _ in range(3):  # a mid-character state has at most three continuation bytes before it
            for s in range(n):
                for j in range(first[1, s], first[1, s + 1]):
                    row[s] |= row[targets[1, j]]
        h = np.uint64(14695981039346656037)
        for s in range(n):
            h = (h ^ np.uint64(row[s])) * np.uint64(1099511628211)
            h ^= h >> np.uint64(29)
        hashes[length] = h
        for k in range(length):
            if hashes[k] == h and _equal(rows[k], row):
                repeat = k
                break
        length += repeat < 0
    nxt = np.full((n, length), -1, np.int32)
    for s in range(n):
        following = -1
        for k in range(repeat, length):  # the first accepted length of the next period
            if rows[k, s]:
                following = length + k - repeat
                break
        for k in range(length - 1, -1, -1):
            if rows[k, s]:
                following = k
            nxt[s, k] = following
    return nxt, np.int64(repeat), np.int64(length - repeat)
