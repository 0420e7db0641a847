"""Steps and masks over intervals of entries."""

from structgen.core.kernels.bits import set_bit
from structgen.core.kernels.jit import internal
from structgen.core.kernels.memory import clear_words, element_reader, size
from structgen.core.kernels.sorted.ends import ends_from, is_inside, is_live, may_stop, points_of
from structgen.core.kernels.sorted.intervals import byte_of, first_from, interval_end, narrowed
from structgen.core.kernels.sorted.layout import *
from structgen.core.kernels.sorted.tables import *

_byte = element_reader(8, signed=False)


@internal
def entry_of(state):
    """The first entry of a state's interval."""
    return (state - START) >> DEPTH_BITS


@internal
def depth_of(state):
    """The bytes written so far."""
    return (state - START) & DEPTH_MASK


@internal
def stepped(m, entry, last, depth, points, byte):
    """(first entry, end, code points) behind one byte more; equal: it leads nowhere."""
    if depth >= DEPTH_MASK:
        return entry, entry, points
    first, end = narrowed(m, entry, last, depth, byte)
    if first >= end:
        return first, first, points
    if setting(m, S_LIMITED):
        points += not is_inside(byte)
        if not is_live(m, first, end, depth + 1, points):
            return first, first, points
    return first, end, points


@internal
def advance(m, state, data, count):
    """The state behind ``count`` bytes at address ``data``, or DEAD."""
    entry, depth = entry_of(state), depth_of(state)
    last, points = interval_end(m, entry, depth), points_of(m, entry, depth)
    for i in range(count):
        entry, last, points = stepped(m, entry, last, depth, points, _byte(data, i))
        if entry >= last:
            return DEAD
        depth += 1
    return (entry << DEPTH_BITS | depth) + START


@internal
def step(m, state, byte):
    """The state behind one byte more, or DEAD."""
    entry, depth = entry_of(state), depth_of(state)
    last, points = interval_end(m, entry, depth), points_of(m, entry, depth)
    entry, last, _ = stepped(m, entry, last, depth, points, byte)
    return (entry << DEPTH_BITS | (depth + 1)) + START if entry < last else DEAD


@internal
def is_within_character(m, state):
    """Whether a state stands between the bytes of one character."""
    depth = depth_of(state)
    return depth > 0 and is_inside(max(byte_of(m, entry_of(state), depth), 0))


@internal
def values_from(m, state, most):
    """How many texts a state can still become, at least; at most ``most``."""
    entry, depth = entry_of(state), depth_of(state)
    last = interval_end(m, entry, depth)
    if setting(m, S_KIND) == NAMES:
        return min(last - entry, most)
    return max(ends_from(m, entry, depth, points_of(m, entry, depth), most), 1)


@internal
def stops(m, state):
    """Whether the text may stop in a state."""
    entry, depth = entry_of(state), depth_of(state)
    return may_stop(m, entry, interval_end(m, entry, depth), depth, points_of(m, entry, depth))


@internal
def next_bytes(m, state, out):
    """Set the bits of the bytes that may come next, of int32[8] at address ``out``."""
    entry, depth = entry_of(state), depth_of(state)
    last, points = interval_end(m, entry, depth), points_of(m, entry, depth)
    entry = first_from(m, entry, last, depth, 0)
    while entry < last and depth < DEPTH_MASK:
        byte = byte_of(m, entry, depth)
        if byte == END:
            return
        end = first_from(m, entry, last, depth, byte + 1)
        after = points + (not is_inside(byte))
        if is_live(m, entry, end, depth + 1, after):
            set_bit(out, 8, byte)
        entry = end


@internal
def _enter(m, number, entry, last, depth, points, end):
    """Write a level of the walk: where the search for the next child goes on, its end, code points, and where in the
    trie the children end."""
    set_level(m, LEVEL_WORDS * number + L_LAST, last)
    set_level(m, LEVEL_WORDS * number + L_POINTS, points)
    set_level(m, LEVEL_WORDS * number + L_NODE_END, end)
    _go_on(m, number, entry, depth)


@internal
def _go_on(m, number, entry, depth):
    """Move the search of a level to an entry, and note the byte that this goes on with."""
    set_level(m, LEVEL_WORDS * number + L_ENTRY, entry)
    more = entry < level(m, LEVEL_WORDS * number + L_LAST)
    set_level(m, LEVEL_WORDS * number + L_BYTE, byte_of(m, entry, depth) if more else END)


@internal
def fill(m, state, out):
    """The mask of a state into the row at address ``out``. How many nodes of the trie were looked at.

    The children of a node come in the order of their bytes, so each search goes on where the last one ended, and those
    below the byte that the entries go on with are passed over.
    """
    width, nodes = setting(m, S_WIDTH), size(m, node_byte)
    clear_words(out, width)
    entry, depth = entry_of(state), depth_of(state)
    last, points = interval_end(m, entry, depth), points_of(m, entry, depth)
    if may_stop(m, entry, last, depth, points):
        for i in range(size(m, end_token)):
            set_bit(out, width, end_token(m, i))
    _enter(m, 0, entry, last, depth, points, nodes)
    node, seen = 0, 0
    while node < nodes:
        seen += 1
        number = node_depth(m, node)
        begin = LEVEL_WORDS * number
        byte, following = node_byte(m, node), level(m, begin + L_BYTE)
        if following == END:
            node = level(m, begin + L_NODE_END)
            continue
        if byte < following:
            node = root_node(m, following) if number == 0 else node_end(m, node)
            continue
        first, end, after = stepped(
            m, level(m, begin + L_ENTRY), level(m, begin + L_LAST), depth + number, level(m, begin + L_POINTS), byte
        )
        _go_on(m, number, max(first, end), depth + number)
        if first >= end:
            node = node_end(m, node)
            continue
        _enter(m, number + 1, first, end, depth + number + 1, after, node_end(m, node))
        token = node_token(m, node)
        while token >= 0:
            set_bit(out, width, token)
            token = next_same(m, token)
        node += 1
    return seen
