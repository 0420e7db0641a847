"""Cutting contexts off: item sets with no or one level of their continuations."""

from structgen.core.kernels.cfg.buffers import intern, push, sort_unique
from structgen.core.kernels.cfg.item_sets import item_set_of
from structgen.core.kernels.cfg.layout import *
from structgen.core.kernels.cfg.scc_continuations import make_group, member_of
from structgen.core.kernels.cfg.tables import *
from structgen.core.kernels.interning import lacks_room, length, set_word, word
from structgen.core.kernels.jit import internal


@internal
def _cut_item(h, item, g):
    """An item of a continuation of group ``g`` with what lies outside replaced by the open continuation."""
    if item >> K_BITS == 0:
        return item
    k = item & K_MASK
    if g != 0 and word(h, k + CONT_GROUP) == g:
        return (item & ~K_MASK) | LOCAL | word(h, k + CONT_MEMBER)
    return (item & ~K_MASK) | word(h, H_OPEN)


@internal
def _cut_continuation(h, k):
    """The continuation with one level kept."""
    if k == word(h, H_OPEN) or k == word(h, H_END):
        return k
    if word(h, k + CONT_CUT) != 0:
        return word(h, k + CONT_CUT)
    g = word(h, k + CONT_GROUP)
    if g == 0:
        start = word(h, H_CTOP)
        for i in range(length(h, k)):
            push(h, H_C, _cut_item(h, word(h, k + CONT_KEY + i), 0))
        sort_unique(h, H_C, start)
        cut = intern(h, CONT, start, CONT_KEY - 2)
        if not lacks_room(h):
            set_word(h, k + CONT_CUT, cut)
        return cut
    _cut_group(h, g)
    return word(h, k + CONT_CUT)


@internal
def _cut_group(h, g):
    """Cut all members of a group together. The working arrays of prediction are free here."""
    scc, members = word(h, g + GROUP_KEY), word(h, g + GROUP_MEMBERS)
    lo, hi = members_from(h, scc), members_from(h, scc + 1)
    top, count = word(h, H_CTOP), word(h, members)
    for j in range(count):
        y, k, start = word(h, members + 1 + 2 * j), word(h, members + 2 + 2 * j), word(h, H_CTOP)
        for i in range(length(h, k)):
            push(h, H_C, _cut_item(h, word(h, k + CONT_KEY + i), g))
        sort_unique(h, H_C, start)
        set_segment_at(h, 2 * y, start)
        set_segment_at(h, 2 * y + 1, word(h, H_CTOP) - start)
        set_head_of(h, y, 0)
    if not lacks_room(h):
        cut = make_group(h, scc, lo, hi)
        if not lacks_room(h):
            for j in range(count):
                y, k = word(h, members + 1 + 2 * j), word(h, members + 2 + 2 * j)
                set_word(h, k + CONT_CUT, member_of(h, cut, y))
    for j in range(count):
        set_head_of(h, word(h, members + 1 + 2 * j), -1)
    set_word(h, H_CTOP, top)


@internal
def cut_item_set(h, r, depth):
    """The item set with ``depth`` levels of its continuations kept: ITEMS_CUT one, ITEMS_BARE none."""
    if r == word(h, H_ANY):
        return r
    if word(h, r + depth) != 0:
        return word(h, r + depth)
    start = word(h, H_CTOP)
    for i in range(length(h, r)):
        item = word(h, r + ITEMS_KEY + i)
        if item >> K_BITS != 0:
            k = word(h, H_OPEN) if depth == ITEMS_BARE else _cut_continuation(h, item & K_MASK)
            item = (item & ~K_MASK) | k
        push(h, H_C, item)
    cut = item_set_of(h, start)
    if not lacks_room(h):
        set_word(h, r + depth, cut)
    return cut
