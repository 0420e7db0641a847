"""Trimming, minimising and renumbering tables (`structgen.core.kernels.automata.subset` says what tables are)."""

import numpy as np

from structgen.core.kernels.jit import internal
from structgen.core.kernels.memory import byte_array, hash_array, int_array, int_matrix


@internal
def _mark(sets, blocks, element, touched):
    """Mark an element of a refinable partition; ``touched[0]`` counts the touched blocks listed after it.

    ``sets`` is elements | locations | block of each, ``blocks`` three each: first, past, marked.
    """
    n = sets.shape[0] // 3
    block = sets[2 * n + element]
    position = sets[n + element]
    to = blocks[3 * block] + blocks[3 * block + 2]
    other = sets[to]
    sets[position] = other
    sets[n + other] = position
    sets[to] = element
    sets[n + element] = to
    if blocks[3 * block + 2] == 0:
        touched[0] += 1
        touched[touched[0]] = block
    blocks[3 * block + 2] += 1


@internal
def _split(sets, blocks, count, touched):
    """Split every touched block into marked and unmarked, the smaller part new; returns the number of blocks."""
    n = sets.shape[0] // 3
    for t in range(touched[0], 0, -1):
        block = touched[t]
        middle = blocks[3 * block] + blocks[3 * block + 2]
        marked = blocks[3 * block + 2]
        blocks[3 * block + 2] = 0
        if middle == blocks[3 * block + 1]:
            continue
        if marked <= blocks[3 * block + 1] - middle:
            blocks[3 * count] = blocks[3 * block]
            blocks[3 * count + 1] = middle
            blocks[3 * block] = middle
        else:
            blocks[3 * count + 1] = blocks[3 * block + 1]
            blocks[3 * count] = middle
            blocks[3 * block + 1] = middle
        blocks[3 * count + 2] = 0
        for position in range(blocks[3 * count], blocks[3 * count + 1]):
            sets[2 * n + sets[position]] = count
        count += 1
    touched[0] = 0
    return count


@internal
def _transitions(table, live, tails, heads, begin):
    """The transitions between live states, column by column: tails, heads, where each column begins; their number."""
    n, k = table.shape
    m = 0
    begin[0] = 0
    for c in range(k):
        for s in range(n):
            t = table[s, c]
            if t >= 0 and live[s] and live[t]:
                tails[m], heads[m] = s, t
                m += 1
        begin[c + 1] = m
    return m


@internal
def _incoming(heads, count, first, fill, order):
    """The transitions into each state, as CSR (first, transition)."""
    n = first.shape[0] - 1
    for s in range(n + 1):
        first[s] = 0
    for t in range(count):
        first[heads[t] + 1] += 1
    for s in range(n):
        first[s + 1] += first[s]
        fill[s] = first[s]
    for t in range(count):
        order[fill[heads[t]]] = t
        fill[heads[t]] += 1


@internal
def _mark_live(accepting, tails, first, incoming, live, stack):
    """Set ``live`` to 1 for each state from which an accepting state can be reached, else 0."""
    top = 0
    for s in range(live.shape[0]):
        live[s] = 0
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


@internal
def _cords(begin, cords, blocks):
    """The transitions of each column as a block; how many there are."""
    m, count = cords.shape[0] // 3, 0
    for c in range(begin.shape[0] - 1):
        for t in range(begin[c], begin[c + 1]):
            cords[t] = cords[m + t] = t
            cords[2 * m + t] = count
        if begin[c + 1] > begin[c]:
            blocks[3 * count], blocks[3 * count + 1], blocks[3 * count + 2] = begin[c], begin[c + 1], 0
            count += 1
    return count


@internal
def _living_and_accepting(accepting, live, states, blocks, touched):
    """Blocks of dead, of accepting and of other states; how many there are."""
    n, count = live.shape[0], 1
    blocks[0], blocks[1], blocks[2] = 0, n, 0
    touched[0] = 0
    for s in range(n):
        states[s] = states[n + s] = s
        states[2 * n + s] = 0
    for value in range(2):  # split off the dead states, then the accepting ones
        for s in range(n):
            if (value == 0 and live[s] == 0) or (value == 1 and accepting[s]):
                _mark(states, blocks, s, touched)
        count = _split(states, blocks, count, touched)
    return count


@internal
def _refine(tails, first, incoming, cords, cord_blocks, cord_count, states, state_blocks, state_count, touched):
    """The coarsest partition of the live states: ``states`` then ends in the block of each.

    A. Valmari, Fast brief practical DFA minimization, Information Processing Letters 112 (2012): O(m log m) for m
    transitions. Blocks of states and blocks of transitions ("cords", at first one for each column) split each other.
    """
    cord, block = 0, 0
    while cord < cord_count or block < state_count:
        while block < state_count:
            for position in range(state_blocks[3 * block], state_blocks[3 * block + 1]):
                s = states[position]
                for j in range(first[s], first[s + 1]):
                    _mark(cords, cord_blocks, incoming[j], touched)
            cord_count = _split(cords, cord_blocks, cord_count, touched)
            block += 1
        if cord < cord_count:
            for position in range(cord_blocks[3 * cord], cord_blocks[3 * cord + 1]):
                _mark(states, state_blocks, tails[cords[position]], touched)
            state_count = _split(states, state_blocks, state_count, touched)
            cord += 1


@internal
def _number_blocks(table, accepting, live, block, number, member, result, flags):
    """Write the blocks that are reached as states, breadth first in column order; how many there are."""
    n, k = table.shape
    for b in range(n + 1):
        number[b] = -1
    number[block[0]] = 0
    member[0] = 0
    count, done = 1, 0
    while done < count:
        for c in range(k):
            t = table[member[done], c]
            result[done, c] = -1
            if t >= 0 and live[t]:
                if number[block[t]] < 0:
                    number[block[t]] = count
                    member[count] = t
                    count += 1
                result[done, c] = number[block[t]]
        flags[done] = accepting[member[done]]
        done += 1
    return count


@internal
def minimise(m):
    """The trim minimal automaton, states numbered breadth first in column order; 0 if it accepts nothing."""
    table, accepting, result, flags, scratch = (
        int_matrix(m, 0),
        byte_array(m, 1),
        int_matrix(m, 2),
        byte_array(m, 3),
        int_array(m, 4),
    )
    n, k = table.shape
    if n == 0:
        return 0
    offset = n + 1
    live, stack, first, fill = (
        scratch[:n],
        scratch[offset : 2 * offset],
        scratch[2 * offset : 3 * offset],
        scratch[3 * offset : 4 * offset],
    )
    number, member, states, state_blocks = (
        scratch[4 * offset : 5 * offset],
        scratch[5 * offset : 6 * offset],
        scratch[6 * offset : 6 * offset + 3 * n],
        scratch[9 * offset : 12 * offset],
    )
    offset = 12 * offset
    begin, offset = scratch[offset : offset + k + 1], offset + k + 1
    tails, heads, incoming = (
        scratch[offset : offset + n * k],
        scratch[offset + n * k : offset + 2 * n * k],
        scratch[offset + 2 * n * k : offset + 3 * n * k],
    )
    offset += 3 * n * k
    for s in range(n):
        live[s] = 1
    _incoming(heads, _transitions(table, live, tails, heads, begin), first, fill, incoming)
    _mark_live(accepting, tails, first, incoming, live, stack)
    if live[0] == 0:
        return 0
    count = _transitions(table, live, tails, heads, begin)
    _incoming(heads, count, first, fill, incoming)
    cords, cord_blocks, touched = (
        scratch[offset : offset + 3 * count],
        scratch[offset + 3 * n * k : offset + 6 * n * k + 3],
        scratch[offset + 6 * n * k + 3 :],
    )
    cord_count = _cords(begin, cords, cord_blocks)
    state_count = _living_and_accepting(accepting, live, states, state_blocks, touched)
    _refine(tails, first, incoming, cords, cord_blocks, cord_count, states, state_blocks, state_count, touched)
    return _number_blocks(table, accepting, live, states[2 * n :], number, member, result, flags)


@internal
def renumber(m):
    """The states that can be reached, numbered breadth first in column order; how many there are."""
    table, accepting, result, flags, scratch = (
        int_matrix(m, 0),
        byte_array(m, 1),
        int_matrix(m, 2),
        byte_array(m, 3),
        int_array(m, 4),
    )
    n, k = table.shape
    if n == 0:
        return 0
    number, order = scratch[:n], scratch[n:]
    for s in range(n):
        number[s] = -1
    number[0], order[0] = 0, 0
    count, done = 1, 0
    while done < count:
        s = order[done]
        flags[done] = accepting[s]
        for c in range(k):
            t = table[s, c]
            result[done, c] = -1
            if t >= 0:
                if number[t] < 0:
                    number[t] = count
                    order[count] = t
                    count += 1
                result[done, c] = number[t]
        done += 1
    return count


@internal
def _equal_columns(table, one, two):
    for s in range(table.shape[0]):
        if table[s, one] != table[s, two]:
            return False
    return True


@internal
def column_classes(m):
    """Which columns are equal: the class of each column, numbered by first appearance; how many there are."""
    table, classes, first, hashes = int_matrix(m, 0), int_array(m, 1), int_array(m, 2), hash_array(m, 3)
    n, k = table.shape
    for s in range(n):
        for c in range(k):
            # (No product: every processor does this for several columns at once. Columns are compared besides.)
            h = ((hashes[c] << np.uint64(5)) + hashes[c]) ^ np.uint64(np.uint32(table[s, c]))
            hashes[c] = h ^ (h >> np.uint64(31))
    count = 0
    for c in range(k):
        candidate = 0
        while candidate < count:
            lead = first[candidate]
            if hashes[lead] == hashes[c] and _equal_columns(table, lead, c):
                break
            candidate += 1
        if candidate == count:
            first[count] = c
            count += 1
        classes[c] = candidate
    return count
