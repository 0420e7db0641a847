"""Masks inside strings that are one of sorted texts: their plain text is narrowed as intervals, the others are stepped.

Text stands in a string as it is, but for quotes, backslashes and control characters.
"""

from structgen.core.kernels.jit import internal
from structgen.core.kernels.json.emit import ready, set_tokens
from structgen.core.kernels.json.layout import *
from structgen.core.kernels.json.registers import restore_start
from structgen.core.kernels.json.strings import texts_of
from structgen.core.kernels.json.tables import *
from structgen.core.kernels.json.walks import exact
from structgen.core.kernels.memory import size
from structgen.core.kernels.sorted.ends import points_of
from structgen.core.kernels.sorted.intervals import interval_end
from structgen.core.kernels.sorted.layout import DEPTH_BITS, START
from structgen.core.kernels.sorted.masks import depth_of, entry_of, stepped


@internal
def _enter(m, level, entry, last, points):
    """Write a level of the walk: the interval, code points, where in it the search for the next child goes on."""
    set_level_state(m, 4 * level, entry)
    set_level_state(m, 4 * level + 1, last)
    set_level_state(m, 4 * level + 2, points)
    set_level_state(m, 4 * level + 3, entry)


@internal
def fill_sorted(m, out):
    """Or in the mask of the string in the registers, which stands between two characters or inside one, in its body.

    As `structgen.core.kernels.sorted.masks.fill`, but that a level keeps the first entry for subtrees that are stepped.
    """
    ready(m, out)
    texts, state = texts_of(m), reg(m, B)
    begin, depth = entry_of(state), depth_of(state)
    _enter(m, 0, begin, interval_end(texts, begin, depth), points_of(texts, begin, depth))
    i, hi = trie_field(m, 2 * TEXT), trie_field(m, 2 * TEXT + 1)
    while i < hi:
        packed = plain_node(m, i)
        level, end = packed >> PLAIN_DEPTH & DEPTH_MASK, packed >> PLAIN_END & END_MASK
        entry, last, points = level_state(m, 4 * level), level_state(m, 4 * level + 1), level_state(m, 4 * level + 2)
        if packed < 0:  # a quote, a backslash, what no string has
            restore_start(m, 0)
            set_reg(m, B, (entry << DEPTH_BITS | (depth + level)) + START)
            status = exact(m, i, end, out) if entry < last else ALIVE
            if status >= MISS:
                return status
            i = end
            continue
        first, after, points = stepped(texts, level_state(m, 4 * level + 3), last, depth + level, points, packed & 255)
        set_level_state(m, 4 * level + 3, max(first, after))
        if first >= after:
            i = end
            continue
        if 4 * level + 8 > size(m, level_state):
            return FULL
        _enter(m, level + 1, first, after, points)
        set_tokens(m, node_field(m, 4 * i + NODE_TOKEN), out)
        i += 1
    return ALIVE
