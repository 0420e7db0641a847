"""Array code about automata over bytes: rows for the pool, and which characters lead a state where.

The plain-Python oracles are in tests/core/kernels/tokens/test_automata.py.
"""

import numpy as np

from structgen.core.kernels.jit import internal
from structgen.core.kernels.memory import int_array, int_matrix
from structgen.core.kernels.tokens.characters import has_wide_spaces, is_wide_space, kind_of
from structgen.core.kernels.tokens.layout import *
from structgen.core.kernels.utf8 import begun, count, highest, lowest, next_expected


@internal
def _merged(merged, one):
    """Where two ways lead: to one state, SOME of them, NOWHERE, or APART."""
    if merged == UNSEEN or merged == one:
        return one
    if merged == APART or one == APART:
        return APART
    first = merged if merged >= NOWHERE else SOME - merged
    second = one if one >= NOWHERE else SOME - one
    if first == second or second == NOWHERE:
        return SOME - first
    return SOME - second if first == NOWHERE else APART


@internal
def _last_byte(table, state, expected, point, spaces):
    """Where the last byte of characters leads that begin with ``point``: of those that are `is_wide_space`, or not."""
    merged = UNSEEN
    some = has_wide_spaces(point)
    if not some and spaces:
        return UNSEEN
    for byte in range(lowest(expected), highest(expected) + 1):
        if some and is_wide_space(point << 6 | byte & 63) != spaces:
            continue
        merged = _merged(merged, np.int64(table[state, byte]))
    return merged


@internal
def _after_two(table, state, expected, point, spaces):
    """The same for the last two bytes. (Neighbours mostly lead to one state, which is looked at once.)"""
    merged, last = UNSEEN, UNSEEN
    for byte in range(lowest(expected), highest(expected) + 1):
        after, prefix = np.int64(table[state, byte]), point << 6 | byte & 63
        some = has_wide_spaces(prefix)
        if after == last and not some:
            continue
        last = UNSEEN if some else after
        if after >= 0:
            reached = _last_byte(table, after, next_expected(expected, byte), prefix, spaces)
        else:
            reached = NOWHERE if some or not spaces else UNSEEN
        if reached != UNSEEN:
            merged = _merged(merged, reached)
    return merged


@internal
def _after_three(table, state, expected, point):
    """The same for the last three bytes, of characters that are no `is_wide_space` (none is so long)."""
    merged, last = UNSEEN, UNSEEN
    for byte in range(lowest(expected), highest(expected) + 1):
        after = np.int64(table[state, byte])
        if after == last:
            continue
        last, reached = after, NOWHERE
        if after >= 0:
            reached = _after_two(table, after, next_expected(expected, byte), point << 6 | byte & 63, False)
        merged = _merged(merged, reached)
    return merged


@internal
def _beyond_ascii(table, state, spaces):
    """The state that every character beyond ASCII leads to which is white space, or is not; or NOWHERE, or APART."""
    merged, last, last_expected = UNSEEN, UNSEEN, 0
    for lead in range(0xC2, 0xF5):
        expected = next_expected(np.int64(0), np.int64(lead))
        some = lead == 0xC2 or 0xE1 <= lead <= 0xE3 or lead == 0xEF  # of the characters in `is_wide_space`
        if spaces and not some:
            continue
        following, point = np.int64(table[state, lead]), begun(np.int64(lead))
        if following == last and expected == last_expected and not some:
            continue
        last, last_expected = UNSEEN if some else following, expected
        reached = NOWHERE
        if following >= 0:
            if count(expected) == 1:
                reached = _last_byte(table, following, expected, point, spaces)
            elif count(expected) == 2:
                reached = _after_two(table, following, expected, point, spaces)
            else:
                reached = _after_three(table, following, expected, point)
        merged = _merged(merged, reached)
        if merged == APART:
            break
    return merged


@internal
def add_rows(m, base):
    """Copy an automaton's rows to ``pool`` (256 entries a state) from state ``base`` on.

    ``table`` int32[n, 256]: next state or -1. Ors PARTIAL_FLAG into ``flags`` of the states inside a UTF-8 sequence and
    sets ``loops``, the kinds of characters that leave a state as it is, and ``wides`` (two a state), where every
    character beyond ASCII leads that is no white space, and those that are (NOWHERE: all are dead; SOME - n: those that
    are not to state n; APART: not to one).
    """
    table, pool, flags, loops = int_matrix(m, 0), int_array(m, 1), int_array(m, 2), int_array(m, 3)
    wides = int_array(m, 4)
    of_ascii = 0
    for byte in range(0x80):
        of_ascii |= 1 << kind_of(byte)
    for state in range(table.shape[0]):
        target = base + state
        for byte in range(256):
            following = table[state, byte]
            pool[target * 256 + byte] = following + base if following >= 0 else -1
        begins, staying, goes_on = 0, 0, 0
        for byte in range(0x80):
            begins += 1 if table[state, byte] >= 0 else 0
            staying += 1 if table[state, byte] == state else 0
        for byte in range(0x80, 0xC0):
            goes_on += 1 if table[state, byte] >= 0 else 0
        for byte in range(0xC0, 0x100):
            begins += 1 if table[state, byte] >= 0 else 0
        if goes_on > 0:
            flags[target] |= PARTIAL_FLAG
        looping = ((1 << NON_ASCII) - 1) & ~of_ascii
        if begins == 0:  # no character begins here: no need to ask where each leads
            loops[target] = looping
            wides[2 * target] = wides[2 * target + 1] = NOWHERE
            continue
        if staying > 0:
            looping = (1 << NON_ASCII) - 1
            for byte in range(0x80):
                if table[state, byte] != state:
                    looping &= ~(1 << kind_of(byte))
        for spaces in range(2):
            wide = _beyond_ascii(table, state, spaces == 1)
            wides[2 * target + spaces] = wide + base if wide >= 0 else wide - base if wide <= SOME else wide
            if wide == state:
                looping |= 1 << (NON_ASCII + spaces)
        loops[target] = looping
