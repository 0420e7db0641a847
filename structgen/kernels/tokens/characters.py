"""Array code about characters: their kinds, which of them leave a pool state as it is, and what tokens hold.

Kinds of characters let masks treat whole subtrees of tokens at once (`stay` in `structgen.kernels.json.rows`).
The plain-Python oracles are in tests/kernels/test_characters.py.
"""

import numpy as np

from structgen.kernels.jit import internal
from structgen.kernels.memory import byte_array, int_array, int_matrix, word_array, word_matrix
from structgen.kernels.tokens.layout import *
from structgen.kernels.utf8 import next_expected


@internal
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


@internal
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


@internal
def _loops_non_ascii(table, state):
    """Whether every character beyond ASCII leaves the state as it is (RFC 3629, section 4, for the ranges)."""
    for lead in range(0xC2, 0xF5):
        following = np.int64(table[state, lead])
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


@internal
def add_rows(m, base):
    """Copy an automaton's rows to ``pool`` (256 entries a state) from state ``base`` on.

    ``table`` int32[n, 256]: next state or -1. Ors PARTIAL_FLAG into ``flags`` of the states inside a UTF-8 sequence and
    sets ``loops``, the kinds of characters that leave a state as it is.
    """
    table, pool, flags, loops = int_matrix(m, 0), int_array(m, 1), int_array(m, 2), int_array(m, 3)
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


@internal
def _is_blank(byte):
    return byte == 0x20 or byte == 0x0A or byte == 0x0D or byte == 0x09


@internal
def _is_number_byte(byte):
    return 0x30 <= byte <= 0x39 or byte == 0x2D or byte == 0x2B or byte == 0x2E or byte | 0x20 == 0x65


@internal
def _is_structural(byte):
    """Whether the byte can stand outside strings: punctuation, digits, letters of true, false, null."""
    if _is_blank(byte) or _is_number_byte(byte) or byte == 0x22 or byte == 0x2C or byte == 0x3A:
        return True
    if byte == 0x5B or byte == 0x5D or byte == 0x7B or byte == 0x7D:
        return True
    return byte in (0x61, 0x66, 0x6C, 0x6E, 0x72, 0x73, 0x74, 0x75)


@internal
def _structure(data, start, end):
    """Whether the bytes may begin outside a string: a superset, by an automaton without a stack."""
    inside, escaped = False, False
    for i in range(start, end):
        byte = np.int64(data[i])
        if not inside:
            if not _is_structural(byte):
                return False
            inside = byte == 0x22
        elif byte < 0x20:
            return False
        elif escaped:
            escaped = False
        elif byte == 0x5C:
            escaped = True
        elif byte == 0x22:
            inside = False
    return True


@internal
def token_kinds(m):
    """Flags of each token, and how many code points begin in it.

    ``data`` uint8, ``offsets`` int32[V + 1]: the tokens. Writes ``kinds`` int32[V], ``points`` int32[V].
    """
    data, offsets, kinds, points = byte_array(m, 0), int_array(m, 1), int_array(m, 2), int_array(m, 3)
    for token in range(len(kinds)):
        start, end = offsets[token], offsets[token + 1]
        flags, begun, blank, digits, exponents = 0, 0, True, True, True
        for i in range(start, end):
            byte = np.int64(data[i])
            if byte == 0x22:
                flags |= QUOTE
            elif byte == 0x5C:
                flags |= BACKSLASH
            if byte & 0xC0 != 0x80:
                begun += 1
            blank = blank and _is_blank(byte)
            digits = digits and _is_number_byte(byte)
            exponents = exponents and byte | 0x20 == 0x65
        if end > start:
            if data[start] < 0x20:
                flags |= CONTROL_FIRST
            if blank:
                flags |= BLANK
            if digits and not exponents:
                flags |= DIGITS
            if _structure(data, start, end):
                flags |= STRUCTURE
        kinds[token] = flags
        points[token] = begun


@internal
def subtree_kinds(m):
    """Kinds of the characters below each node of a trie (bits of `kind_of`).

    ``nodes`` int32[N, 4] in depth-first order (byte, depth, subtree end, token); ``path`` int32[depth + 1] is scratch.
    Text that is not UTF-8 from the token's first byte on counts as NEVER.
    """
    nodes, path, kinds = int_matrix(m, 0), int_array(m, 1), int_array(m, 2)
    path[0] = 0
    for i in range(nodes.shape[0]):
        level = nodes[i, 1]
        before = path[level]
        path[level + 1] = next_expected(np.int64(before), np.int64(nodes[i, 0]))
        kinds[i] = 0
        if path[level + 1] < 0:
            kinds[i] = 1 << NEVER
    for back in range(nodes.shape[0]):
        i = nodes.shape[0] - 1 - back
        level = nodes[i, 1]
        own = kinds[i] | (1 << kind_of(np.int64(nodes[i, 0])))
        if level > 0:
            j = i - 1
            while nodes[j, 1] >= level:
                j -= 1
            kinds[j] |= own


@internal
def path_kinds(m):
    """Kinds of all characters of each token of a trie (int64[V], in place), NEVER where it is not UTF-8.

    ``path`` int64[depth + 2, 2] is scratch: decoder state and kinds up to each level.
    """
    nodes, next_same, path, kinds = int_matrix(m, 0), int_array(m, 1), word_matrix(m, 2), word_array(m, 3)
    path[0, 0], path[0, 1] = 0, 0
    for i in range(nodes.shape[0]):
        level = nodes[i, 1]
        before = path[level, 0]
        state = next_expected(np.int64(before), np.int64(nodes[i, 0]))
        path[level + 1, 0] = state
        path[level + 1, 1] = path[level, 1] | (1 << kind_of(np.int64(nodes[i, 0])))
        token = nodes[i, 3]
        while token >= 0:
            kinds[token] = path[level + 1, 1] if state >= 0 else 1 << NEVER
            token = next_same[token]
