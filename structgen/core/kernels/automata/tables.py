"""Byte tables: UTF-8 expansion, products, word trees (`core.kernels.automata.subset` says what tables are)."""

import numpy as np

from structgen.core.kernels.automata.layout import *
from structgen.core.kernels.jit import internal
from structgen.core.kernels.memory import byte_array, hash_array, int_array, int_matrix, word_array

_FNV = np.uint64(1099511628211)


@internal
def _hash_part(pool, row, begin, width):
    h = np.uint64(14695981039346656037)
    for i in range(begin, begin + width):
        h = (h ^ np.uint64(np.uint32(pool[row, i]))) * _FNV
        h ^= h >> np.uint64(29)
    return h


@internal
def _equal_parts(pool, one, two, begin, width):
    for i in range(begin, begin + width):
        if pool[one, i] != pool[two, i]:
            return False
    return True


@internal
def _intern(pool, begin, width, slots, count):
    """The row that has the part of row ``count``, a candidate; ``count`` if it is new (then its slot is entered)."""
    slot = np.int64(_hash_part(pool, count, begin, width) % np.uint64(slots.shape[0]))
    while slots[slot] >= 0:
        if _equal_parts(pool, slots[slot], count, begin, width):
            return np.int64(slots[slot])
        slot = (slot + 1) % slots.shape[0]
    slots[slot] = count
    return count


@internal
def _enter(pool, begin, width, slots, first, count):
    """Fill the slots of a pool that has grown with the rows ``first..count``."""
    for s in range(first, count):
        slot = np.int64(_hash_part(pool, s, begin, width) % np.uint64(slots.shape[0]))
        while slots[slot] >= 0:
            slot = (slot + 1) % slots.shape[0]
        slots[slot] = s


@internal
def _middle(m, s, i, mid, count):
    """Write the continuation bytes of tree node ``i`` behind state ``s`` to row ``count``; whether there are any."""
    table, children, leaf, class_of, out = (
        int_matrix(m, 0),
        int_matrix(m, 2),
        byte_array(m, 3),
        int_array(m, 6),
        int_matrix(m, 8),
    )
    has_target = False
    for j in range(64):
        child = children[i, j]
        target = np.int64(-1)
        if child >= 0:
            target = np.int64(table[s, class_of[child]] if leaf[i] else mid[child])
        out[count, 128 + j] = target
        has_target = has_target or target >= 0
    return has_target


@internal
def expand_utf8(m):
    """Replace class transitions by UTF-8 byte transitions through shared mid-character states; how many states."""
    table, ascii_class, children, uniform = int_matrix(m, 0), int_array(m, 1), int_matrix(m, 2), int_array(m, 4)
    root, class_of, regs, out = int_array(m, 5), int_array(m, 6), word_array(m, 7), int_matrix(m, 8)
    slots, memo, mid = int_array(m, 9), int_matrix(m, 10), int_array(m, 11)
    n, nodes = table.shape[0], children.shape[0]
    count = regs[R_COUNT]
    _enter(out, 128, 64, slots, n, count)
    for s in range(regs[R_ROW], n):
        for b in range(128):
            out[s, b], out[s, 128 + b] = table[s, ascii_class[b]], -1
        for i in range(regs[R_COLUMN], nodes):
            target = np.int64(-1)
            if uniform[i] >= 0:
                target = np.int64(table[s, class_of[uniform[i]]])
                mid[i] = memo[i, target] if target >= 0 else -1
                if target < 0 or mid[i] >= 0:
                    continue
            if count == out.shape[0]:
                regs[R_COUNT], regs[R_ROW], regs[R_COLUMN] = count, s, i
                return TOO_MANY if count > regs[R_MAX_STATES] else FULL
            for b in range(128):
                out[count, b] = out[count, 128 + b] = -1
            mid[i] = _intern(out, 128, 64, slots, count) if _middle(m, s, i, mid, count) else -1
            if mid[i] == count:
                count += 1
            if uniform[i] >= 0 and mid[i] >= 0:
                memo[i, target] = mid[i]
        regs[R_COLUMN] = 0
        for b in range(128):
            if root[b] >= 0:
                out[s, 128 + b] = mid[root[b]]
    return TOO_MANY if count > regs[R_MAX_STATES] else count


@internal
def _start(first, pool, slots):
    """Enter the start state of a product; whether the domain has one."""
    parts = pool.shape[1]
    for i in range(parts):
        pool[0, i] = 0 if first[i + 1] > first[i] else -1
    if pool[0, parts - 1] < 0:
        return False
    _intern(pool, 0, parts, slots, 0)
    return True


@internal
def _label(accepting, first, pool, labels, count):
    """Bit i of a state's label: automaton i (not the domain) accepts."""
    for state in range(count):
        labels[state] = 0
        for i in range(pool.shape[1] - 1):
            s = pool[state, i]
            if s >= 0 and accepting[first[i] + s]:
                labels[state] |= np.uint64(1) << np.uint64(i)


@internal
def product(m):
    """The product of automata over common column classes; the number of states, or a verdict."""
    tables, accepting, first, columns, regs = (
        int_matrix(m, 0),
        byte_array(m, 1),
        int_array(m, 2),
        int_matrix(m, 3),
        word_array(m, 4),
    )
    pool, table, labels, slots = int_matrix(m, 5), int_matrix(m, 6), hash_array(m, 7), int_array(m, 8)
    parts, k = columns.shape
    if regs[R_COUNT] == 0:
        if not _start(first, pool, slots):
            return 0
        regs[R_COUNT] = 1
    else:
        _enter(pool, 0, parts, slots, 0, regs[R_COUNT])
    count = regs[R_COUNT]
    state = regs[R_ROW]
    while state < count:
        for c in range(regs[R_COLUMN], k):
            if count == pool.shape[0]:
                regs[R_COUNT], regs[R_ROW], regs[R_COLUMN] = count, state, c
                return FULL
            for i in range(parts):
                s = pool[state, i]
                pool[count, i] = tables[first[i] + s, columns[i, c]] if s >= 0 else -1
            if pool[count, parts - 1] < 0:
                continue
            target = _intern(pool, 0, parts, slots, count)
            table[state, c] = target
            if target == count:
                if count >= regs[R_MAX_STATES]:
                    return TOO_MANY
                count += 1
        regs[R_COLUMN] = 0
        state += 1
    _label(accepting, first, pool, labels, count)
    return count


@internal
def word_trie(m, max_states):
    """The tree of words: word i is ``text[ends[i - 1] : ends[i]]``; the number of states, or `TOO_MANY`."""
    text, ends, table, accepting = byte_array(m, 0), word_array(m, 1), int_matrix(m, 2), byte_array(m, 3)
    count, begin = 1, 0
    for word in range(ends.shape[0]):
        s = 0
        for position in range(begin, ends[word]):
            if table[s, text[position]] < 0:
                if count >= max_states:
                    return TOO_MANY
                table[s, text[position]] = count
                count += 1
            s = np.int64(table[s, text[position]])
        accepting[s] = 1
        begin = ends[word]
    return count
