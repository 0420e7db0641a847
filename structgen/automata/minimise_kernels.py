"""Numba kernels that trim, minimise and renumber tables (see ``subset_kernels`` for the conventions)."""

from __future__ import annotations

import numpy as np
from numba import njit

_FNV = np.uint64(1099511628211)


@njit("void(i4[::1], i4[:,::1], i4, i4[::1])", cache=True, nogil=True)
def _mark(sets, blocks, element, touched):  # type: ignore[no-untyped-def]
    """Mark an element of a refinable partition; ``touched[0]`` counts the touched blocks listed after it.

    ``sets`` is elements | locations | block of each, ``blocks`` rows are (first, past, marked).
    """
    n = sets.shape[0] // 3
    block = sets[2 * n + element]
    at = sets[n + element]
    to = blocks[block, 0] + blocks[block, 2]
    other = sets[to]
    sets[at] = other
    sets[n + other] = at
    sets[to] = element
    sets[n + element] = to
    if blocks[block, 2] == 0:
        touched[0] += 1
        touched[touched[0]] = block
    blocks[block, 2] += 1


@njit("i8(i4[::1], i4[:,::1], i8, i4[::1])", cache=True, nogil=True)
def _split(sets, blocks, count, touched):  # type: ignore[no-untyped-def]
    """Split every touched block into marked and unmarked, the smaller part new; returns the number of blocks."""
    n = sets.shape[0] // 3
    for t in range(touched[0], 0, -1):
        block = touched[t]
        middle = blocks[block, 0] + blocks[block, 2]
        marked = blocks[block, 2]
        blocks[block, 2] = 0
        if middle == blocks[block, 1]:
            continue
        if marked <= blocks[block, 1] - middle:
            blocks[count, 0] = blocks[block, 0]
            blocks[count, 1] = middle
            blocks[block, 0] = middle
        else:
            blocks[count, 1] = blocks[block, 1]
            blocks[count, 0] = middle
            blocks[block, 1] = middle
        blocks[count, 2] = 0
        for at in range(blocks[count, 0], blocks[count, 1]):
            sets[2 * n + sets[at]] = count
        count += 1
    touched[0] = 0
    return count


@njit("Tuple((i4[::1], i4[::1], i4[::1]))(i4[:,::1], i4[::1])", cache=True, nogil=True)
def _transitions(table, live):  # type: ignore[no-untyped-def]
    """The transitions between live states, column by column: tails, heads, and where each column begins."""
    n, k = table.shape
    tails, heads = np.zeros(n * k, np.int32), np.zeros(n * k, np.int32)
    begin = np.zeros(k + 1, np.int32)
    m = 0
    for c in range(k):
        for s in range(n):
            t = table[s, c]
            if t >= 0 and live[s] and live[t]:
                tails[m], heads[m] = s, t
                m += 1
        begin[c + 1] = m
    return tails[:m], heads[:m], begin


@njit("Tuple((i4[::1], i4[::1]))(i4[::1], i8)", cache=True, nogil=True)
def _incoming(heads, n):  # type: ignore[no-untyped-def]
    """The transitions into each of ``n`` states, as CSR (first, transition)."""
    first, fill = np.zeros(n + 1, np.int32), np.zeros(n + 1, np.int32)
    for head in heads:
        first[head + 1] += 1
    for s in range(n):
        first[s + 1] += first[s]
        fill[s] = first[s]
    order = np.zeros(heads.shape[0], np.int32)
    for t in range(heads.shape[0]):
        order[fill[heads[t]]] = t
        fill[heads[t]] += 1
    return first, order


@njit("i4[::1](i4[:,::1], u1[::1])", cache=True, nogil=True)
def _live(table, accepting):  # type: ignore[no-untyped-def]
    """1 for each state from which an accepting state can be reached."""
    n = table.shape[0]
    tails, heads, _ = _transitions(table, np.full(n, 1, np.int32))
    first, incoming = _incoming(heads, n)
    live, stack = np.zeros(n, np.int32), np.zeros(n, np.int32)
    top = 0
    for s in range(n):
        if accepting[s]:
            live[s] = 1
            stack[top] = s
            top += 1
    while top > 0:
        top -= 1
        t = stack[top]
        for j in range(first[t], first[t + 1]):
            s = tails[incoming[j]]
            if live[s] == 0:
                live[s] = 1
                stack[top] = s
                top += 1
    return live


@njit("i4[::1](i4[:,::1], u1[::1], i4[::1])", cache=True, nogil=True)
def _blocks(table, accepting, live):  # type: ignore[no-untyped-def]
    """The coarsest partition of the live states: block of each state (dead states: unspecified).

    A. Valmari, Fast brief practical DFA minimization, Information Processing Letters 112 (2012): O(m log m) for m
    transitions. Blocks of states and blocks of transitions ("cords", at first one for each column) split each other.
    """
    n = table.shape[0]
    tails, heads, begin = _transitions(table, live)
    first, incoming = _incoming(heads, n)
    m = heads.shape[0]
    cords, cord_blocks, cord_count = np.zeros(3 * m, np.int32), np.zeros((m + 1, 3), np.int32), np.int64(0)
    for c in range(begin.shape[0] - 1):
        for t in range(begin[c], begin[c + 1]):
            cords[t] = cords[m + t] = t
            cords[2 * m + t] = cord_count
        if begin[c + 1] > begin[c]:
            cord_blocks[cord_count, 0], cord_blocks[cord_count, 1] = begin[c], begin[c + 1]
            cord_count += 1
    states, state_blocks, state_count = np.zeros(3 * n, np.int32), np.zeros((n + 1, 3), np.int32), np.int64(1)
    touched = np.zeros(max(n, m) + 2, np.int32)
    state_blocks[0, 1] = n
    for s in range(n):
        states[s] = states[n + s] = s
    for value in range(2):  # split off the dead states, then the accepting ones
        for s in range(n):
            if (value == 0 and live[s] == 0) or (value == 1 and accepting[s]):
                _mark(states, state_blocks, s, touched)
        state_count = _split(states, state_blocks, state_count, touched)
    cord, block = 0, 0
    while cord < cord_count or block < state_count:
        while block < state_count:
            for at in range(state_blocks[block, 0], state_blocks[block, 1]):
                s = states[at]
                for j in range(first[s], first[s + 1]):
                    _mark(cords, cord_blocks, incoming[j], touched)
            cord_count = _split(cords, cord_blocks, cord_count, touched)
            block += 1
        if cord < cord_count:
            for at in range(cord_blocks[cord, 0], cord_blocks[cord, 1]):
                _mark(states, state_blocks, tails[cords[at]], touched)
            state_count = _split(states, state_blocks, state_count, touched)
            cord += 1
    return states[2 * n :]


@njit("Tuple((i4[:,::1], u1[::1]))(i4[:,::1], u1[::1])", cache=True, nogil=True)
def minimise(table, accepting):  # type: ignore[no-untyped-def]
    """The trim minimal automaton, states numbered breadth first in column order; no states if it accepts nothing."""
    n, k = table.shape
    live = _live(table, accepting)
    if n == 0 or live[0] == 0:
        return np.zeros((0, k), np.int32), np.zeros(0, np.uint8)
    block = _blocks(table, accepting, live)
    number = np.full(n + 1, -1, np.int32)  # of a block
    member = np.zeros(n + 1, np.int32)  # a state of the block with that number
    number[block[0]] = 0
    count = 1
    result = np.full((n, k), -1, np.int32)
    done = 0
    while done < count:
        for c in range(k):
            t = table[member[done], c]
            if t >= 0 and live[t]:
                if number[block[t]] < 0:
                    number[block[t]] = count
                    member[count] = t
                    count += 1
                result[done, c] = number[block[t]]
        done += 1
    flags = np.zeros(count, np.uint8)
    for s in range(count):
        flags[s] = accepting[member[s]]
    return result[:count], flags


@njit("Tuple((i4[:,::1], u1[::1]))(i4[:,::1], u1[::1])", cache=True, nogil=True)
def renumber(table, accepting):  # type: ignore[no-untyped-def]
    """The states that can be reached, numbered breadth first in column order."""
    n, k = table.shape
    number, order = np.full(n, -1, np.int32), np.zeros(n, np.int32)
    result, flags = np.full((n, k), -1, np.int32), np.zeros(n, np.uint8)
    if n == 0:
        return result, flags
    number[0] = 0
    count, done = 1, 0
    while done < count:
        s = order[done]
        flags[done] = accepting[s]
        for c in range(k):
            t = table[s, c]
            if t >= 0:
                if number[t] < 0:
                    number[t] = count
                    order[count] = t
                    count += 1
                result[done, c] = number[t]
        done += 1
    return result[:count], flags[:count]


@njit("b1(i4[:], i4[:])", cache=True, nogil=True)
def _equal(a, b):  # type: ignore[no-untyped-def]
    for i in range(a.shape[0]):  # noqa: SIM110 (numba has no generators here)
        if a[i] != b[i]:
            return False
    return True


@njit("Tuple((i4[::1], i8))(i4[:,::1])", cache=True, nogil=True)
def column_classes(table):  # type: ignore[no-untyped-def]
    """Which columns are equal: the class of each column, numbered by first appearance, and how many there are."""
    n, k = table.shape
    hashes = np.zeros(k, np.uint64)
    for s in range(n):
        for c in range(k):
            h = (hashes[c] ^ np.uint64(np.uint32(table[s, c]))) * _FNV
            hashes[c] = h ^ (h >> np.uint64(31))
    classes, first = np.zeros(k, np.int32), np.zeros(k, np.int32)
    count = 0
    for c in range(k):
        found = 0
        while found < count:
            lead = first[found]
            if hashes[lead] == hashes[c] and _equal(table[:, lead], table[:, c]):
                break
            found += 1
        if found == count:
            first[count] = c
            count += 1
        classes[c] = found
    return classes, np.int64(count)
