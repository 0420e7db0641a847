"""Lexer states split: wide units, whose tokens are a row of bits each, and a narrow remainder."""

from structgen.core.kernels.bits import set_bit, set_bits
from structgen.core.kernels.cfg.automata import lasts, next_position, stays
from structgen.core.kernels.cfg.buffers import allocate_mask, intern, push, row_address
from structgen.core.kernels.cfg.layout import *
from structgen.core.kernels.cfg.lexer import join, lex_of, loops, step
from structgen.core.kernels.cfg.tables import *
from structgen.core.kernels.cfg.walks import keep, store_trie
from structgen.core.kernels.interning import lacks_room, length, set_word, word
from structgen.core.kernels.jit import internal
from structgen.core.kernels.memory import address, clear_words, copy_words, element, or_words, within
from structgen.core.kernels.memory import size as table_size


@internal
def _count_live(h, p, i, limit):
    """Nodes of the vocabulary's trie that a terminal survives, below and with node ``i``, where it is at ``p``."""
    live = 1
    end = i + ((trie_at(h, i) >> 19) & SIZE_MASK)
    set_level_at(h, 0, p)
    i += 1
    while i < end and live <= limit:
        node = trie_at(h, i)
        depth, size = (node >> 8) & DEPTH_MASK, (node >> 19) & SIZE_MASK
        q = next_position(h, level_at(h, depth - 1), node & 255)
        if q < 0:
            i += size
            continue
        if kinds_at(h, i) & ~lasts(h, q) == 0:  # all below survives
            live += size
            i += size
            continue
        set_level_at(h, depth, q)
        live += 1
        i += 1
    return live


@internal
def _is_wide(h, p):
    """Whether many tokens follow from a position of a terminal."""
    if known_wide(h, p) != 0:
        return known_wide(h, p) == 2
    live = most = 0
    for e in range(edges_from(h, p), edges_from(h, p + 1)):
        for byte in range(edge_at(h, 3 * e), edge_at(h, 3 * e + 1) + 1):
            if root_of(h, byte) >= 0:
                most += (trie_at(h, root_of(h, byte)) >> 19) & SIZE_MASK
    for e in range(edges_from(h, p), edges_from(h, p + 1) if most > WIDE_NODES else 0):
        for byte in range(edge_at(h, 3 * e), edge_at(h, 3 * e + 1) + 1):
            if live <= WIDE_NODES and root_of(h, byte) >= 0:
                live += _count_live(h, edge_at(h, 3 * e + 2), root_of(h, byte), WIDE_NODES - live)
    set_known_wide(h, p, 2 if live > WIDE_NODES else 1)
    return live > WIDE_NODES


@internal
def _is_wide_class(h, t):
    """Whether many tokens follow from the start of a terminal of a class."""
    for j in range(starts_from(h, t), starts_from(h, t + 1)):
        if _is_wide(h, start_at(h, j)):
            return True
    return False


@internal
def _push_ignored(h, d):
    """Append to C the positions of a lexer state in ignored terminals."""
    for i in range(1, length(h, d)):
        p = word(h, d + LEX_KEY + i)
        if class_of(h, p) < 0:
            push(h, H_C, p)


@internal
def _push_units(h, d):
    """Split a lexer state: wide units of it to buffer A; returns the narrow remainder."""
    classes, remaining = word(h, d + LEX_KEY), 0
    if classes != 0:
        remaining = word(h, H_CTOP)
        for i in range(length(h, classes)):
            t = word(h, classes + CLASSES_KEY + i)
            if _is_wide_class(h, t):
                start = word(h, H_CTOP)
                push(h, H_C, t)
                single = intern(h, CLASSES, start, 0)
                push(h, H_C, single)
                _push_ignored(h, d)
                push(h, H_A, lex_of(h, start))
            else:
                push(h, H_C, t)
        remaining = intern(h, CLASSES, remaining, 0)
    first = word(h, H_CTOP)
    push(h, H_C, remaining)
    for i in range(1, length(h, d)):
        p = word(h, d + LEX_KEY + i)
        if class_of(h, p) >= 0 and _is_wide(h, p):
            start = word(h, H_CTOP)
            push(h, H_C, 0)
            push(h, H_C, p)
            push(h, H_A, lex_of(h, start))
        else:
            push(h, H_C, p)
    return lex_of(h, first)


@internal
def _any_upto(h, computed, depth):
    """After each byte of the path up to ``depth``: the state of any terminals that follow one that ended on it."""
    first = word(h, word(h, H_ANY) + ITEMS_LEX)
    for level in range(computed + 1, depth + 1):
        d = near_at(h, level - 1)
        if d >= 0:
            d = step(h, d, path_at(h, level - 1))
        own_state = level_at(h, level)
        if own_state >= 0 and word(h, own_state + LEX_ACCEPTS) != 0:
            d = first if d < 0 else join(h, d, first)
        set_near_at(h, level, d)


@internal
def _start_unit(h, d, bits):
    """Write the row at address ``bits``: the largest slice whose tokens all stay within lexer state ``d``, or none.

    Returns the table with the trie of the other tokens, and where in it that lies. Where text of the slice leaves ``d``
    as it is, and nothing ends there, that is a trie of what tokens have behind such text.
    """
    width, kinds = word(h, H_WIDTH), loops(h, d)
    same = length(h, d) == 2 and word(h, d + LEX_KEY) == 0 and word(h, d + LEX_ACCEPTS) == 0
    back = stays(h, word(h, d + LEX_KEY + 1)) if same else 0
    for number in range(table_size(h, slice_kinds)):  # the largest first
        if slice_kinds(h, number) & ~kinds == 0:
            within(number * width, width, table_size(h, slice_row))
            copy_words(address(h, slice_row) + 4 * number * width, bits, width)
            if same and slice_kinds(h, number) & ~back == 0 and remainder_end(h, number) < remainder_end(h, number + 1):
                return H_REMAINDERS, remainder_end(h, number), remainder_end(h, number + 1)
            return H_RESIDUES, slice_end(h, number), slice_end(h, number + 1)
    clear_words(bits, width)
    return H_TRIE, 0, word(h, H_NODES)


@internal
def _set_tokens(h, bits, token):
    """Set the bits of a token and those with the same bytes, or of the tokens of a group; -1: none."""
    width, group = word(h, H_WIDTH), token - table_size(h, next_same)
    if group >= 0:
        for i in range(group_from(h, group), group_from(h, group + 1)):
            set_bit(bits, width, group_at(h, i))
        return
    while token >= 0:
        set_bit(bits, width, token)
        token = next_same(h, token)


@internal
def _walk_unit(h, d, bits):
    """Tokens within lexer state ``d`` to the row at address ``bits``; those that may leave it to the trie in E.

    level_at has the state after each byte of the path, near_at that of any terminals that follow; -1: none.
    """
    width = word(h, H_WIDTH)
    set_level_at(h, 0, d)
    set_near_at(h, 0, -1)
    table, i, end = _start_unit(h, d, bits)
    computed, whole = 0, table == H_TRIE
    while i < end and not lacks_room(h):
        node = element(h, table, i)
        byte, depth, token = node & 255, (node >> 8) & DEPTH_MASK, node >> 43
        size = (node >> 19) & SIZE_MASK
        set_word(h, H_BUILT, min(word(h, H_BUILT), depth))
        set_path_at(h, depth, byte)
        computed = min(computed, depth)
        own_state = level_at(h, depth)
        if own_state >= 0:
            own_state = step(h, own_state, byte)
        set_level_at(h, depth + 1, own_state)
        if own_state >= 0:
            if whole and size > 1 and kinds_at(h, i) & ~loops(h, own_state) == 0:
                first = tokens_before(h, i)
                count = tokens_before(h, i + size) - first
                within(first, count, table_size(h, token_at))
                set_bits(bits, width, address(h, token_at) + 4 * first, count)
                i += size
                continue
            _set_tokens(h, bits, token - 1)
            i += 1
            continue
        _any_upto(h, computed, depth)
        computed = depth
        following = near_at(h, depth)
        if following >= 0:
            following = step(h, following, byte)
        if following < 0:
            i += size
            continue
        set_near_at(h, depth + 1, following)
        computed = depth + 1
        if token != 0:
            keep(h, depth, token)
        i += 1


@internal
def _unit_of(h, d):
    """Tokens within a wide lexer state as a row of bits, and the trie of those that leave it; in the mask heap."""
    if word(h, d + LEX_UNIT_EPOCH) == word(h, H_EPOCH):
        return word(h, d + LEX_UNIT)
    e, width = word(h, H_ETOP), word(h, H_WIDTH)
    unit, bits = allocate_mask(h, UNIT_SIZE), allocate_mask(h, (width + 1) >> 1)
    if lacks_room(h):
        return 0
    set_word(h, H_BUILT, 0)
    _walk_unit(h, d, row_address(h, bits))
    nodes = word(h, H_ETOP) - e
    trie = store_trie(h, e)
    if not lacks_room(h):
        set_mask_at(h, unit + UNIT_BITS, bits)
        set_mask_at(h, unit + UNIT_TRIE, trie)
        set_mask_at(h, unit + UNIT_NODES, nodes)
        set_word(h, d + LEX_UNIT, unit)
        set_word(h, d + LEX_UNIT_EPOCH, word(h, H_EPOCH))
    return unit


@internal
def split_of(h, d):
    """The wide units of a lexer state with their joint row of bits, and its narrow remainder; in the mask heap."""
    if word(h, d + LEX_EPOCH) == word(h, H_EPOCH):
        return word(h, d + LEX_SPLIT)
    a = word(h, H_ATOP)
    remaining = _push_units(h, d)
    count, width = word(h, H_ATOP) - a, word(h, H_WIDTH)
    split = allocate_mask(h, SPLIT_UNITS + 2 * count)
    bits = -1
    for i in range(count):
        d_unit = a_at(h, a + i)
        unit = _unit_of(h, d_unit) if not lacks_room(h) else 0
        if not lacks_room(h):
            set_mask_at(h, split + SPLIT_UNITS + 2 * i, d_unit)
            set_mask_at(h, split + SPLIT_UNITS + 2 * i + 1, unit)
            unit_bits = mask_at(h, unit + UNIT_BITS)
            if i == 0:
                bits = unit_bits
            else:
                if i == 1:
                    bits = allocate_mask(h, (width + 1) >> 1)
                    if not lacks_room(h):
                        first = mask_at(h, mask_at(h, split + SPLIT_UNITS + 1) + UNIT_BITS)
                        copy_words(row_address(h, first), row_address(h, bits), width)
                if not lacks_room(h):
                    or_words(row_address(h, unit_bits), row_address(h, bits), width)
    set_word(h, H_ATOP, a)
    if not lacks_room(h):
        set_mask_at(h, split + SPLIT_BITS, bits)
        set_mask_at(h, split + SPLIT_REMAINING, remaining)
        set_mask_at(h, split + SPLIT_COUNT, count)
        set_word(h, d + LEX_SPLIT, split)
        set_word(h, d + LEX_EPOCH, word(h, H_EPOCH))
    return split
