"""Numba kernels on automata as integer tables: subset construction, minimisation, UTF-8 expansion, products.

Tables are ``int32[n, k]`` with −1 for "no transition" and start state 0. All kernels live in this one file, because
numba's on-disk cache does not notice edits of callees in other files. Signatures are explicit: another dtype is a
TypeError, never a silent second compilation.
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


@njit("u8(i4[:])", cache=True, nogil=True)
def _hash_row(row):  # type: ignore[no-untyped-def]
    h = np.uint64(14695981039346656037)
    for value in row:
        h = (h ^ np.uint64(np.uint32(value))) * _FNV
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
    unspecified, if MATCH is reached anywhere: whatever follows is accepted.
    """
    waiting = 0
    for mode in range(2):  # 0: anywhere; 1: beyond an EOL, so only at the end of the text
        while top > 0:
            top -= 1
            i = stack[top]
            if seen[mode, i] == stamp:
                continue
            seen[mode, i] = stamp
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
                    return True
                _set_bit(words, program.shape[0])
            elif op == EOL and mode == 0:
                pending[waiting] = program[i, 2]
                waiting += 1
            elif op == EOL or (op == BOL and at_start):
                stack[top] = program[i, 2]
                top += 1
        stack[:waiting] = pending[:waiting]
        top = waiting
    return False


@njit("i8(u8[:,::1], i4[::1], i8, u8[::1])", cache=True, nogil=True)
def _intern(pool, slots, count, words):  # type: ignore[no-untyped-def]
    """The index of ``words`` among ``pool[:count]``; ``count`` if it is new (then it is entered)."""
    mask = slots.shape[0] - 1
    at = np.int64(_hash_words(words) & np.uint64(mask))
    while slots[at] >= 0:
        if np.array_equal(pool[slots[at]], words):
            return np.int64(slots[at])
        at = (at + 1) & mask
    slots[at] = count
    pool[count] = words
    return count


@njit("Tuple((i4[:,::1], u1[::1], i8))(i4[:,::1], i8, u1[:,::1], i8)", cache=True, nogil=True)
def determinise(program, start, member, max_states):  # type: ignore[no-untyped-def]
    """Subset construction over character classes.

    ``program[i] = (op, x, y)``; ``member[set, class]``. Returns the table, the accepting flags and the number of
    states, which is −1 if it would exceed ``max_states``. A state that accepts everything is one state.
    """
    m, k = program.shape[0], member.shape[1]
    width = (m + 2 + 63) // 64
    capacity = 64
    pool = np.zeros((capacity, width), np.uint64)
    table = np.full((capacity, k), -1, np.int32)
    slots = np.full(4 * capacity, -1, np.int32)
    seen = np.zeros((2, m), np.int32)
    stack = np.zeros(3 * m + 8, np.int32)
    pending = np.zeros(m + 1, np.int32)
    chars = np.zeros(m, np.int32)
    words = np.zeros(width, np.uint64)
    stamp = 1
    stack[0] = start
    if _closure(program, True, 1, words, seen, stamp, stack, pending):
        words[:] = 0
        _set_bit(words, m + 1)
    count = _intern(pool, slots, 0, words) + 1
    state = 0
    while state < count:
        if _has_bit(pool[state], m + 1):
            table[state, :] = state
            state += 1
            continue
        size = 0
        for w in range(width):
            word = pool[state, w]
            if word != 0:
                for b in range(min(64, m - w * 64)):
                    if (word >> np.uint64(b)) & np.uint64(1) != 0:
                        chars[size] = w * 64 + b
                        size += 1
        for c in range(k):
            top = 0
            for j in range(size):
                i = chars[j]
                if member[program[i, 1], c]:
                    stack[top] = program[i, 2]
                    top += 1
            if top == 0:
                continue
            words[:] = 0
            stamp += 1
            if _closure(program, False, top, words, seen, stamp, stack, pending):
                words[:] = 0
                _set_bit(words, m + 1)
            if not words.any():
                continue
            if count == capacity:
                capacity *= 2
                pool = np.concatenate((pool, np.zeros_like(pool)))
                table = np.concatenate((table, np.full_like(table, -1)))
                slots = np.full(4 * capacity, -1, np.int32)
                for s in range(count):
                    _intern(pool, slots, s, pool[s].copy())
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
    return table[:count].copy(), accepting, np.int64(count)


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


@njit("i4[::1](i4[:,::1], u1[::1])", cache=True, nogil=True)
def _live(table, accepting):  # type: ignore[no-untyped-def]
    """1 for each state from which an accepting state can be reached."""
    n, k = table.shape
    first = np.zeros(n + 1, np.int32)
    for s in range(n):
        for c in range(k):
            if table[s, c] >= 0:
                first[table[s, c] + 1] += 1
    first = np.cumsum(first).astype(np.int32)
    sources = np.zeros(first[n], np.int32)
    fill = first.copy()
    for s in range(n):
        for c in range(k):
            t = table[s, c]
            if t >= 0:
                sources[fill[t]] = s
                fill[t] += 1
    live = np.zeros(n, np.int32)
    stack = np.zeros(n, np.int32)
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
            s = sources[j]
            if live[s] == 0:
                live[s] = 1
                stack[top] = s
                top += 1
    return live


@njit("i4[::1](i4[:,::1], u1[::1], i4[::1])", cache=True, nogil=True)
def _blocks(table, accepting, live):  # type: ignore[no-untyped-def]
    """The coarsest partition of the live states: block of each state (dead states: unspecified).

    A. Valmari, Fast brief practical DFA minimization, Information Processing Letters 112 (2012): O(m log m) for m
    transitions. Blocks of states and blocks of transitions ("cords") split each other.
    """
    n, k = table.shape
    m = 0
    for s in range(n):
        for c in range(k):
            if live[s] and table[s, c] >= 0 and live[table[s, c]]:
                m += 1
    tails, heads = np.zeros(m, np.int32), np.zeros(m, np.int32)
    cords = np.zeros(3 * m, np.int32)  # transitions by label: blocks are contiguous from the start
    cord_blocks = np.zeros((m + 1, 3), np.int32)
    cord_count = 0
    t = 0
    for c in range(k):
        begin = t
        for s in range(n):
            if live[s] and table[s, c] >= 0 and live[table[s, c]]:
                tails[t], heads[t] = s, table[s, c]
                cords[t] = cords[m + t] = t
                cords[2 * m + t] = cord_count
                t += 1
        if t > begin:
            cord_blocks[cord_count, 0], cord_blocks[cord_count, 1] = begin, t
            cord_count += 1
    first = np.zeros(n + 1, np.int32)
    for t in range(m):
        first[heads[t] + 1] += 1
    first = np.cumsum(first).astype(np.int32)
    incoming, fill = np.zeros(m, np.int32), first.copy()
    for t in range(m):
        incoming[fill[heads[t]]] = t
        fill[heads[t]] += 1
    states = np.zeros(3 * n, np.int32)
    state_blocks = np.zeros((n + 1, 3), np.int32)
    touched = np.zeros(max(n, m) + 2, np.int32)
    for s in range(n):
        states[s] = states[n + s] = s
    state_blocks[0, 1] = n
    state_count = np.int64(1)
    for s in range(n):
        if live[s] == 0:
            _mark(states, state_blocks, s, touched)
    state_count = _split(states, state_blocks, state_count, touched)
    for s in range(n):
        if accepting[s]:
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
    return states[2 * n :].copy()


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
    return result[:count].copy(), flags


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
    return result[:count].copy(), flags[:count].copy()


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
    capacity = 2 * n + 64
    out = np.full((capacity, 256), -1, np.int32)
    slots = np.full(4 * capacity, -1, np.int32)
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
            if count == capacity:
                if count > max_states:
                    return out[:0], np.zeros(0, np.uint8), np.int64(-1)
                capacity *= 2
                out = np.concatenate((out, np.full_like(out, -1)))
                slots = np.full(4 * capacity, -1, np.int32)
                for t in range(n, count):
                    at = np.int64(_hash_row(out[t, 128:192]) % np.uint64(slots.shape[0]))
                    while slots[at] >= 0:
                        at = (at + 1) % slots.shape[0]
                    slots[at] = t
            at = np.int64(_hash_row(row) % np.uint64(slots.shape[0]))
            while slots[at] >= 0 and not np.array_equal(out[slots[at], 128:192], row):
                at = (at + 1) % slots.shape[0]
            if slots[at] < 0:
                slots[at] = count
                out[count, 128:192] = row
                count += 1
            mid[i] = slots[at]
            if uniform[i] >= 0:
                known[i, table[s, class_of[uniform[i]]]] = mid[i]
        for b in range(128):
            if root[b] >= 0:
                out[s, 128 + b] = mid[root[b]]
    if count > max_states:
        return out[:0], np.zeros(0, np.uint8), np.int64(-1)
    flags = np.zeros(count, np.uint8)
    flags[:n] = accepting
    return out[:count].copy(), flags, np.int64(count)


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
            if hashes[lead] == hashes[c] and np.array_equal(table[:, lead], table[:, c]):
                break
            found += 1
        if found == count:
            first[count] = c
            count += 1
        classes[c] = found
    return classes, np.int64(count)


@njit("Tuple((i4[:,::1], u8[::1], i8))(i4[:,::1], u1[::1], i4[::1], i4[:,::1], i8)", cache=True, nogil=True)
def product(tables, accepting, first, columns, max_states):  # type: ignore[no-untyped-def]
    """The product of automata over common column classes.

    ``tables`` are the automata below each other, automaton i from row ``first[i]`` to ``first[i + 1]``, and
    ``columns[i, class]`` is its column for a class. The last automaton is the domain: where it has no transition the
    product has none; the others go on dead. Bit i of a state's label is set if automaton i (not the domain) accepts.
    Returns table, labels and the number of states, −1 if it would exceed ``max_states``.
    """
    parts, k = columns.shape
    capacity = 64
    pool = np.full((capacity, parts), -1, np.int32)
    table = np.full((capacity, k), -1, np.int32)
    slots = np.full(4 * capacity, -1, np.int32)
    now = np.zeros(parts, np.int32)
    for i in range(parts):
        now[i] = 0 if first[i + 1] > first[i] else -1
    if now[parts - 1] < 0:
        return table[:0], np.zeros(0, np.uint64), np.int64(0)
    pool[0] = now
    slots[np.int64(_hash_row(now) % np.uint64(slots.shape[0]))] = 0
    count, state = 1, 0
    while state < count:
        for c in range(k):
            for i in range(parts):
                s = pool[state, i]
                now[i] = tables[first[i] + s, columns[i, c]] if s >= 0 else -1
            if now[parts - 1] < 0:
                continue
            at = np.int64(_hash_row(now) % np.uint64(slots.shape[0]))
            while slots[at] >= 0 and not np.array_equal(pool[slots[at]], now):
                at = (at + 1) % slots.shape[0]
            if slots[at] >= 0:
                table[state, c] = slots[at]
                continue
            if count >= max_states:
                return table[:0], np.zeros(0, np.uint64), np.int64(-1)
            slots[at] = count
            pool[count] = now
            table[state, c] = count
            count += 1
            if count == capacity:
                capacity *= 2
                pool = np.concatenate((pool, np.full_like(pool, -1)))
                table = np.concatenate((table, np.full_like(table, -1)))
                slots = np.full(4 * capacity, -1, np.int32)
                for s in range(count):
                    at = np.int64(_hash_row(pool[s]) % np.uint64(slots.shape[0]))
                    while slots[at] >= 0:
                        at = (at + 1) % slots.shape[0]
                    slots[at] = s
        state += 1
    labels = np.zeros(count, np.uint64)
    for state in range(count):
        for i in range(parts - 1):
            s = pool[state, i]
            if s >= 0 and accepting[first[i] + s]:
                labels[state] |= np.uint64(1) << np.uint64(i)
    return table[:count].copy(), labels, np.int64(count)


@njit("Tuple((i4[:,::1], u1[::1], i8))(u1[::1], i8[::1], i8)", cache=True, nogil=True)
def word_trie(text, ends, max_states):  # type: ignore[no-untyped-def]
    """The tree of words: word i is ``text[ends[i - 1] : ends[i]]``. State count −1 if above ``max_states``."""
    table = np.full((text.shape[0] + 1, 256), -1, np.int32)
    accepting = np.zeros(text.shape[0] + 1, np.uint8)
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
    return table[:count].copy(), accepting[:count].copy(), np.int64(count)
