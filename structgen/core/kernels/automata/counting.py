"""Counts of words and lengths over byte automata (`structgen.core.kernels.automata.subset` says what tables are)."""

import numpy as np

from structgen.core.kernels.automata.layout import *
from structgen.core.kernels.jit import internal
from structgen.core.kernels.memory import byte_array, byte_matrix, hash_array, int_array, int_matrix, word_array


@internal
def count_words(m, cap):
    """Accepted words from each state of a trim automaton, at most ``cap`` (endless languages: ``cap``). O(256 n)."""
    table, accepting, counts, scratch = int_matrix(m, 0), byte_array(m, 1), word_array(m, 2), int_array(m, 3)
    n = table.shape[0]
    colour = scratch[:n]  # 0 new, 1 open, 2 done
    stack, byte = scratch[n : 2 * n + 1], scratch[2 * n + 1 :]
    for origin in range(n):
        if colour[origin] != 0:
            continue
        top = 0
        stack[0], byte[0] = origin, 0
        colour[origin] = 1
        counts[origin] = min(np.int64(accepting[origin]), cap)
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
                counts[t] = min(np.int64(accepting[t]), cap)
                top += 1
                stack[top], byte[top] = t, 0


@internal
def _edges(table, first, seen, targets):
    """Distinct successors of each state, by lead (first half) and continuation bytes (second): CSR (first, target)."""
    n, half = table.shape[0], targets.shape[0] // 2
    leads, continuations = 0, 0
    first[0] = first[n + 1] = 0
    for s in range(n):
        seen[s] = -1
    for s in range(n):
        for b in range(256):
            t = table[s, b]
            if t >= 0 and seen[t] != s:  # no state has both lead and continuation edges: s is mid-character or not
                seen[t] = s
                if 0x80 <= b < 0xC0:
                    targets[half + continuations] = t
                    continuations += 1
                else:
                    targets[leads] = t
                    leads += 1
        first[s + 1], first[n + 1 + s + 1] = leads, continuations


@internal
def _equal(rows, one, two):
    for s in range(rows.shape[1]):
        if rows[one, s] != rows[two, s]:
            return False
    return True


@internal
def _lengths_row(accepting, first, targets, rows, length):
    """Which states accept some word with exactly ``length`` lead bytes, from the row before; a hash of it."""
    n, half = accepting.shape[0], targets.shape[0] // 2
    for s in range(n):
        rows[length, s] = accepting[s] if length == 0 else 0
        if length > 0:
            for j in range(first[s], first[s + 1]):
                rows[length, s] |= rows[length - 1, targets[j]]
    for _ in range(3):  # a mid-character state has at most three continuation bytes before it
        for s in range(n):
            for j in range(first[n + 1 + s], first[n + 1 + s + 1]):
                rows[length, s] |= rows[length, targets[half + j]]
    h = np.uint64(14695981039346656037)
    for s in range(n):
        h = (h ^ np.uint64(rows[length, s])) * np.uint64(1099511628211)
        h ^= h >> np.uint64(29)
    return h


@internal
def distances(m, cap):
    """Rows of the lengths that states accept until one repeats; how many they are, or a verdict.

    Row k + 1 is a function of row k, so the first repeated row closes the period. `TOO_MANY`: the rows would have more
    than ``cap`` entries.
    """
    table, accepting, regs, edges, rows, hashes = (
        int_matrix(m, 0),
        byte_array(m, 1),
        word_array(m, 2),
        int_array(m, 3),
        byte_matrix(m, 4),
        hash_array(m, 5),
    )
    n = table.shape[0]
    first, seen, targets = edges[: 2 * n + 2], edges[2 * n + 2 : 3 * n + 2], edges[3 * n + 2 :]
    length = regs[R_LENGTH]
    if length == 0:
        _edges(table, first, seen, targets)
    while True:
        if (length + 1) * n > cap:
            return TOO_MANY
        if length + 1 >= hashes.shape[0]:
            regs[R_LENGTH] = length
            return FULL
        hashes[length] = _lengths_row(accepting, first, targets, rows, length)
        for k in range(length):
            if hashes[k] == hashes[length] and _equal(rows, k, length):
                regs[R_REPEAT] = k
                return length
        length += 1


@internal
def next_lengths(m, repeat):
    """``nxt[s, k]`` from the rows of accepted lengths, of which ``repeat`` is the first that comes again."""
    rows, nxt = byte_matrix(m, 0), int_matrix(m, 1)
    n, length = nxt.shape
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
