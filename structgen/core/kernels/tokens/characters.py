"""Array code about characters: their kinds, and what tokens and the nodes of tries hold.

Kinds of characters let masks treat whole subtrees of tokens at once (`stay` in `kernels.json.bitmask_rows`).
The plain-Python oracles are in tests/core/kernels/tokens/test_characters.py.
"""

import numpy as np

from structgen.core.kernels.jit import internal
from structgen.core.kernels.memory import byte_array, int_array, int_matrix, word_array, word_matrix
from structgen.core.kernels.tokens.layout import *
from structgen.core.kernels.utf8 import begun, next_expected


@internal
def kind_of(byte):
    """Kind of a byte of text inside a string (0..28); of one beyond ASCII NON_ASCII, see `node_kinds`."""
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
def has_wide_spaces(prefix):
    """Whether some code point with this part above its low six bits is a `is_wide_space`."""
    return (
        prefix == 0xA0 >> 6
        or prefix == 0x1680 >> 6
        or prefix == 0x2000 >> 6
        or prefix == 0x205F >> 6
        or prefix == 0x3000 >> 6
        or prefix == 0xFEFF >> 6
    )


@internal
def is_wide_space(point):
    """Whether a code point beyond ASCII is white space or ends a line (ECMA-262, 12.2 and 12.3): patterns' ``\\s``."""
    if point == 0xA0 or point == 0x1680 or 0x2000 <= point <= 0x200A:
        return True
    return point in (0x2028, 0x2029, 0x202F, 0x205F, 0x3000, 0xFEFF)


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
def node_kinds(m):
    """Kind of the character that ends at each node of a trie, into ``kinds`` uint8[N].

    NON_ASCII where one beyond ASCII is not whole yet (every such beginning is one of a character of that kind), BROKEN
    where the text is not UTF-8 from the token's first byte on. ``nodes`` int32[N, 4] in depth-first order (byte, depth,
    subtree end, token); ``path`` int64[depth + 2, 2] is scratch: what is expected, and the code point so far.
    """
    nodes, path, kinds = int_matrix(m, 0), word_matrix(m, 1), byte_array(m, 2)
    path[0, 0], path[0, 1] = 0, 0
    for i in range(nodes.shape[0]):
        level, byte = nodes[i, 1], np.int64(nodes[i, 0])
        before = path[level, 0]
        expected = next_expected(before, byte)
        point = path[level, 1] << 6 | byte & 63 if before > 0 else begun(byte)
        path[level + 1, 0], path[level + 1, 1] = expected, point
        if expected < 0:
            kinds[i] = BROKEN
        elif expected == 0 and byte >= 0x80 and is_wide_space(point):
            kinds[i] = WIDE_SPACE
        else:
            kinds[i] = kind_of(byte)


@internal
def subtree_kinds(m):
    """Kinds of the characters below each node of a trie, as bits; that of the node itself only where it is BROKEN.

    ``own_kinds`` uint8[N]: see `node_kinds`. BROKEN counts as NEVER.
    """
    nodes, own_kinds, kinds = int_matrix(m, 0), byte_array(m, 1), int_array(m, 2)
    for i in range(nodes.shape[0]):
        kinds[i] = 1 << NEVER if own_kinds[i] == BROKEN else 0
    for back in range(nodes.shape[0]):
        i = nodes.shape[0] - 1 - back
        level = nodes[i, 1]
        if level > 0:
            j = i - 1
            while nodes[j, 1] >= level:
                j -= 1
            kinds[j] |= kinds[i] | 1 << min(own_kinds[i], NEVER)


@internal
def subtree_rises(m):
    """How many code points begin below each node of a trie, at most on one path (int32[N]); its own does not count.

    ``nodes`` as in `node_kinds`; ``best`` int32[depth + 2] is scratch.
    """
    nodes, best, rises = int_matrix(m, 0), int_array(m, 1), int_array(m, 2)
    for level in range(len(best)):
        best[level] = 0
    for back in range(nodes.shape[0]):
        i = nodes.shape[0] - 1 - back
        level = nodes[i, 1]
        rises[i] = best[level + 1]
        best[level + 1] = 0
        best[level] = max(best[level], rises[i] + (1 if nodes[i, 0] & 0xC0 != 0x80 else 0))


@internal
def path_kinds(m):
    """Kinds of all characters of each token of a trie (int64[V], in place), NEVER where it is not UTF-8.

    ``own_kinds`` uint8[N]: see `node_kinds`. ``path`` int64[depth + 2] is scratch: the kinds up to each level.
    """
    nodes, next_same, own_kinds, path = int_matrix(m, 0), int_array(m, 1), byte_array(m, 2), word_array(m, 3)
    kinds = word_array(m, 4)
    path[0] = 0
    for i in range(nodes.shape[0]):
        level = nodes[i, 1]
        path[level + 1] = path[level] | 1 << min(own_kinds[i], NEVER)
        token = nodes[i, 3]
        while token >= 0:
            kinds[token] = path[level + 1] if own_kinds[i] != BROKEN else 1 << NEVER
            token = next_same[token]
