"""Array code that sorts tokens by how they can stand in JSON text, for `structgen.masks.lexicon`."""

from numba import njit, types

from structgen.kernels.pool import NEVER, kind_of

QUOTE, BACKSLASH, CONTROL_FIRST, BLANK, DIGITS, STRUCTURE, QUOTES_AFTER = 1, 2, 4, 8, 16, 32, 64


@njit(nogil=True)
def _is_blank(byte):
    return byte == 0x20 or byte == 0x0A or byte == 0x0D or byte == 0x09


@njit(nogil=True)
def _is_number_byte(byte):
    return 0x30 <= byte <= 0x39 or byte == 0x2D or byte == 0x2B or byte == 0x2E or byte | 0x20 == 0x65


@njit(nogil=True)
def _is_structural(byte):
    """Whether the byte can stand outside strings: punctuation, digits, letters of true, false, null."""
    if _is_blank(byte) or _is_number_byte(byte) or byte == 0x22 or byte == 0x2C or byte == 0x3A:
        return True
    if byte == 0x5B or byte == 0x5D or byte == 0x7B or byte == 0x7D:
        return True
    return byte in (0x61, 0x66, 0x6C, 0x6E, 0x72, 0x73, 0x74, 0x75)


@njit(nogil=True)
def _structure(data, start, end):
    """Whether the bytes may begin outside a string: a superset, by an automaton without a stack."""
    inside, escaped = False, False
    for i in range(start, end):
        byte = data[i]
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


@njit(types.void(types.uint8[::1], types.int32[::1], types.int32[::1], types.int32[::1]), cache=True, nogil=True)
def token_kinds(data, offsets, kinds, points):
    """Flags of each token, and how many code points begin in it.

    ``data`` uint8, ``offsets`` int32[V + 1]: the tokens. Writes ``kinds`` int32[V], ``points`` int32[V].
    """
    for token in range(len(kinds)):
        start, end = offsets[token], offsets[token + 1]
        flags, begun, blank, digits, exponents = 0, 0, True, True, True
        for i in range(start, end):
            byte = data[i]
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


@njit(nogil=True)
def _utf8_step(state, byte):
    """A decoder of UTF-8 that only tells whether the text is well formed (RFC 3629, section 4); -1: it is not.

    States: 0 between characters; 1, 2, 3 continuation bytes to come; 4 to 7 after E0, ED, F0, F4.
    """
    if state == 0:
        if byte < 0x80:
            return 0
        if 0xC2 <= byte <= 0xDF:
            return 1
        if byte == 0xE0:
            return 4
        if byte == 0xED:
            return 5
        if 0xE1 <= byte <= 0xEF:
            return 2
        if byte == 0xF0:
            return 6
        if byte == 0xF4:
            return 7
        return 3 if 0xF1 <= byte <= 0xF3 else -1
    if not 0x80 <= byte <= 0xBF:
        return -1
    if state == 4:
        return 1 if byte >= 0xA0 else -1
    if state == 5:
        return 1 if byte <= 0x9F else -1
    if state == 6:
        return 2 if byte >= 0x90 else -1
    if state == 7:
        return 2 if byte <= 0x8F else -1
    return state - 1


@njit(types.void(types.int32[:, ::1], types.int64, types.int32[::1], types.int32[::1]), cache=True, nogil=True)
def subtree_kinds(nodes, depth, path, kinds):
    """Kinds of the characters below each node of a trie (bits of `structgen.kernels.pool.kind_of`).

    ``nodes`` int32[N, 4] in depth-first order (byte, depth, subtree end, token); ``path`` int32[depth + 1] is scratch.
    Text that is not UTF-8 from the token's first byte on counts as NEVER.
    """
    path[0] = 0
    for i in range(nodes.shape[0]):
        level = nodes[i, 1]
        before = path[level]
        path[level + 1] = -1 if before < 0 else _utf8_step(before, nodes[i, 0])
        kinds[i] = 0
        if path[level + 1] < 0:
            kinds[i] = 1 << NEVER
    for back in range(nodes.shape[0]):
        i = nodes.shape[0] - 1 - back
        level = nodes[i, 1]
        own = kinds[i] | (1 << kind_of(nodes[i, 0]))
        if level > 0:
            j = i - 1
            while nodes[j, 1] >= level:
                j -= 1
            kinds[j] |= own


@njit(types.void(types.int32[:, ::1], types.int32[::1], types.int64[:, ::1], types.int64[::1]), cache=True, nogil=True)
def path_kinds(nodes, next_same, path, kinds):
    """Kinds of all characters of each token of a trie (int64[V], in place), NEVER where it is not UTF-8.

    ``path`` int64[depth + 2, 2] is scratch: decoder state and kinds up to each level.
    """
    path[0, 0], path[0, 1] = 0, 0
    for i in range(nodes.shape[0]):
        level = nodes[i, 1]
        before = path[level, 0]
        state = -1 if before < 0 else _utf8_step(before, nodes[i, 0])
        path[level + 1, 0] = state
        path[level + 1, 1] = path[level, 1] | (1 << kind_of(nodes[i, 0]))
        token = nodes[i, 3]
        while token >= 0:
            kinds[token] = path[level + 1, 1] if state >= 0 else 1 << NEVER
            token = next_same[token]
