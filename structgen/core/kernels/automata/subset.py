"""Subset construction: a nondeterministic program to a table over character classes.

Tables are ``int32[n, k]`` with −1 for "no transition" and start state 0. `core.kernels.automata.calls` describes
the arguments and makes room where a kernel comes back with `FULL`.
"""

import numpy as np

from structgen.core.kernels.automata.layout import *
from structgen.core.kernels.jit import internal
from structgen.core.kernels.memory import (
    byte_array,
    byte_matrix,
    hash_array,
    hash_matrix,
    int_array,
    int_matrix,
    word_array,
)

_FNV = np.uint64(1099511628211)


@internal
def _hash_words(words):
    h = np.uint64(14695981039346656037)
    for w in range(words.shape[0]):
        h = (h ^ words[w]) * _FNV
        h ^= h >> np.uint64(29)
    return h


@internal
def _set_bit(words, bit):
    words[bit >> 6] |= np.uint64(1) << np.uint64(bit & 63)


@internal
def _has_bit(words, bit):
    return (words[bit >> 6] >> np.uint64(bit & 63)) & np.uint64(1) != np.uint64(0)


@internal
def _closure(program, at_start, top, words, seen, stamp, stack, pending):
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
            if seen[mode * program.shape[0] + i] == stamp:
                continue
            seen[mode * program.shape[0] + i] = stamp
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


@internal
def _equal(a, b):
    for i in range(a.shape[0]):
        if a[i] != b[i]:
            return False
    return True


@internal
def _intern(pool, slots, count, words):
    """The index of ``words`` among ``pool[:count]``; ``count`` if it is new (then it is entered)."""
    mask = slots.shape[0] - 1
    slot = np.int64(_hash_words(words) & np.uint64(mask))
    while slots[slot] >= 0:
        if _equal(pool[slots[slot]], words):
            return np.int64(slots[slot])
        slot = (slot + 1) & mask
    slots[slot] = count
    for w in range(words.shape[0]):
        pool[count, w] = words[w]
    return count


@internal
def _close(program, at_start, top, words, seen, stamp, stack, pending):
    """``_closure`` into cleared ``words``, bit m + 1 alone for "accepts whatever follows"; False if nothing is set."""
    for w in range(words.shape[0]):
        words[w] = 0
    if _closure(program, at_start, top, words, seen, stamp, stack, pending):
        for w in range(words.shape[0]):
            words[w] = 0
        _set_bit(words, program.shape[0] + 1)
    for w in range(words.shape[0]):
        if words[w] != 0:
            return True
    return False


@internal
def _list_bits(words, limit, members):
    """Write the set bits below ``limit`` to ``members``; returns how many there are."""
    size = 0
    for w in range(words.shape[0]):
        if words[w] != 0:
            for b in range(min(64, limit - w * 64)):
                if (words[w] >> np.uint64(b)) & np.uint64(1) != 0:
                    members[size] = w * 64 + b
                    size += 1
    return size


@internal
def _enter(pool, slots, count):
    """Fill the slots of a table that has grown."""
    mask = slots.shape[0] - 1
    for s in range(count):
        slot = np.int64(_hash_words(pool[s]) & np.uint64(mask))
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = s


@internal
def _begin(program, regs, pool, slots, words, seen, stack, pending):
    """Enter the start state."""
    regs[R_STAMP] = 1
    stack[0] = regs[R_START]
    _close(program, True, 1, words, seen, 1, stack, pending)
    regs[R_COUNT] = _intern(pool, slots, 0, words) + 1


@internal
def _successors(m, regs, state):
    """The transitions of a state, from a class on; `FULL` or why there are none."""
    program, member, pool, table, slots = (
        int_matrix(m, 0),
        byte_matrix(m, 1),
        hash_matrix(m, 3),
        int_matrix(m, 4),
        int_array(m, 5),
    )
    scratch, words = int_array(m, 7), hash_array(m, 8)
    nodes, width = program.shape[0], words.shape[0]
    seen, stack, pending = (
        scratch[: 2 * nodes],
        scratch[2 * nodes : 5 * nodes + 8],
        scratch[5 * nodes + 8 : 6 * nodes + 10],
    )
    chars = scratch[6 * nodes + 10 :]
    size = _list_bits(pool[state], nodes, chars)
    for c in range(regs[R_COLUMN], member.shape[1]):
        if regs[R_COUNT] == table.shape[0]:
            regs[R_COLUMN] = c
            return FULL
        top = 0
        regs[R_STEPS] += size + (width if c == 0 else 0)
        if regs[R_STEPS] > regs[R_MAX_STEPS]:
            return TOO_LONG
        for j in range(size):
            i = chars[j]
            if member[program[i, 1], c]:
                stack[top] = program[i, 2]
                top += 1
        if top == 0:
            continue
        regs[R_STAMP] += 1
        alive = _close(program, False, top, words, seen, regs[R_STAMP], stack, pending)
        regs[R_STEPS] += pending[nodes + 1] + 2 * width
        if not alive:
            continue
        target = _intern(pool, slots, regs[R_COUNT], words)
        if target == regs[R_COUNT]:
            regs[R_COUNT] += 1
            if regs[R_COUNT] > regs[R_MAX_STATES]:
                return TOO_MANY
        table[state, c] = target
    regs[R_COLUMN] = 0
    return 0


@internal
def determinise(m):
    """Subset construction over character classes; the number of states, or a verdict."""
    program, member, regs, pool, table = (
        int_matrix(m, 0),
        byte_matrix(m, 1),
        word_array(m, 2),
        hash_matrix(m, 3),
        int_matrix(m, 4),
    )
    slots, accepting, scratch, words = int_array(m, 5), byte_array(m, 6), int_array(m, 7), hash_array(m, 8)
    nodes = program.shape[0]
    if regs[R_COUNT] == 0:
        seen, stack, pending = (
            scratch[: 2 * nodes],
            scratch[2 * nodes : 5 * nodes + 8],
            scratch[5 * nodes + 8 : 6 * nodes + 10],
        )
        _begin(program, regs, pool, slots, words, seen, stack, pending)
    else:
        _enter(pool, slots, regs[R_COUNT])
    while regs[R_ROW] < regs[R_COUNT]:
        state = regs[R_ROW]
        if _has_bit(pool[state], nodes + 1):
            for c in range(member.shape[1]):
                table[state, c] = state
        else:
            verdict = _successors(m, regs, state)
            if verdict < 0:
                return verdict
        regs[R_ROW] += 1
    for state in range(regs[R_COUNT]):
        accepting[state] = _has_bit(pool[state], nodes) or _has_bit(pool[state], nodes + 1)
    return regs[R_COUNT]
