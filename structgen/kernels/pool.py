"""Array code that brings an automaton into the pool: renumbered rows, flags, and what loops where.

The plain-Python oracles are in tests/kernels/test_pool.py.
"""

from numba import njit, types

PARTIAL_FLAG = 4
# Kinds of characters, one bit each, for `_stay` in `json_machine`: a state that a whole kind leaves as it is lets
# whole subtrees of tokens be taken unseen. Kinds beyond the first 26 never loop.
NON_ASCII, NEVER = 26, 27


@njit(types.int64(types.int64), cache=True, nogil=True)
def kind_of(byte):
    """Kind of a byte of text inside a string (0..27)."""
    if byte >= 0x80:
        return NON_ASCII
    if byte < 0x20 or byte == 0x22 or byte == 0x5C or byte == 0x7F:
        return NEVER
    if 0x30 <= byte <= 0x39:
        return 0
    if 0x61 <= byte <= 0x7A:
        return 1 if byte <= 0x66 else 2
    if 0x41 <= byte <= 0x5A:
        return 3 if byte <= 0x46 else 4
    if byte == 0x5F:
        return 5
    if byte == 0x2D:
        return 6
    if byte == 0x2E:
        return 7
    if byte == 0x2F:
        return 8
    if byte == 0x3A:
        return 9
    if byte == 0x20:
        return 10
    if byte == 0x40:
        return 11
    if byte == 0x2B:
        return 12
    if byte == 0x2C:
        return 13
    if byte == 0x25 or byte == 0x23:
        return 14
    if byte == 0x3F or byte == 0x26 or byte == 0x3D:
        return 15
    if byte == 0x28 or byte == 0x29:
        return 16
    if byte == 0x5B or byte == 0x5D:
        return 17
    if byte == 0x7B or byte == 0x7D:
        return 18
    if byte == 0x3C or byte == 0x3E:
        return 19
    if byte == 0x27:
        return 20
    if byte == 0x21 or byte == 0x3B:
        return 21
    if byte == 0x24:
        return 22
    if byte == 0x2A:
        return 23
    if byte == 0x5E or byte == 0x7C:
        return 24
    return 25  # ` and ~


@njit(nogil=True)
def _leads_back(table, state, following, low, high, depth, home):
    """Whether bytes low..high, then ``depth`` continuation bytes, all lead from ``following`` to ``home``."""
    for byte in range(low, high + 1):
        place = table[following, byte]
        if depth == 0:
            if place != home:
                return False
        else:
            if place < 0:
                return False
            for second in range(0x80, 0xC0):
                after = table[place, second]
                if depth == 1:
                    if after != home:
                        return False
                elif after < 0:
                    return False
                else:
                    for third in range(0x80, 0xC0):
                        if table[after, third] != home:
                            return False
    return True


@njit(nogil=True)
def _loops_non_ascii(table, state):
    """Whether every character beyond ASCII leaves the state as it is (RFC 3629, section 4, for the ranges)."""
    for lead in range(0xC2, 0xF5):
        following = table[state, lead]
        if following < 0:
            return False
        low, high, depth = 0x80, 0xBF, 0
        if lead >= 0xF0:
            depth = 2
            if lead == 0xF0:
                low = 0x90
            elif lead == 0xF4:
                high = 0x8F
        elif lead >= 0xE0:
            depth = 1
            if lead == 0xE0:
                low = 0xA0
            elif lead == 0xED:
                high = 0x9F
        if not _leads_back(table, state, following, low, high, depth, state):
            return False
    return True


@njit(
    types.void(types.int32[:, ::1], types.int64, types.int32[::1], types.int32[::1], types.int32[::1]),
    cache=True,
    nogil=True,
)
def add_rows(table, base, pool, flags, loops):
    """Copy an automaton's rows to ``pool`` (256 entries a state) from state ``base`` on.

    ``table`` int32[n, 256]: next state or -1. Ors PARTIAL_FLAG into ``flags`` of the states inside a UTF-8 sequence and
    sets ``loops``, the kinds of characters that leave a state as it is.
    """
    for state in range(table.shape[0]):
        place = base + state
        looping = (1 << NEVER) - 1
        for byte in range(256):
            following = table[state, byte]
            pool[place * 256 + byte] = following + base if following >= 0 else -1
            if following != state and byte < 0x80:
                looping &= ~(1 << kind_of(byte))
            if following >= 0 and 0x80 <= byte < 0xC0:
                flags[place] |= PARTIAL_FLAG
        if table[state, 0xC2] < 0 or not _loops_non_ascii(table, state):
            looping &= ~(1 << NON_ASCII)
        loops[place] = looping
