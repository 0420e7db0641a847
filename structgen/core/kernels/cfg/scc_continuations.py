"""Groups: the continuations of one recursive component, which refer to each other."""

from structgen.core.kernels.cfg.buffers import intern, push, sort_unique, sort_words
from structgen.core.kernels.cfg.layout import *
from structgen.core.kernels.cfg.tables import *
from structgen.core.kernels.interning import allocate, lacks_room, length, publish, set_word, word
from structgen.core.kernels.jit import internal


@internal
def member_of(h, g, y):
    """The continuation of nonterminal ``y`` in a group, or 0."""
    members = word(h, g + GROUP_MEMBERS)
    for i in range(word(h, members)):
        if word(h, members + 1 + 2 * i) == y:
            return word(h, members + 2 + 2 * i)
    return 0


@internal
def _push_closed(h, g, first, n):
    """Append to C the items of a segment with its open references replaced by the members of a group."""
    for i in range(first, first + n):
        item = c_at(h, i)
        if item & LOCAL:
            item = (item & ~K_MASK) | member_of(h, g, item & K_MASK & ~LOCAL)
        push(h, H_C, item)


@internal
def _solves(h, g, lo, hi):
    """Whether a group solves the equations that the segments of the component's members are."""
    count = 0
    for m in range(lo, hi):
        y = member_at(h, m)
        if head_of(h, y) < 0:
            continue
        count += 1
        if member_of(h, g, y) == 0:
            return False
    if count != word(h, word(h, g + GROUP_MEMBERS)):
        return False
    for m in range(lo, hi):
        y = member_at(h, m)
        if head_of(h, y) < 0:
            continue
        k = member_of(h, g, y)
        start = word(h, H_CTOP)
        _push_closed(h, g, segment_at(h, 2 * y), segment_at(h, 2 * y + 1))
        sort_unique(h, H_C, start)
        n = word(h, H_CTOP) - start
        set_word(h, H_CTOP, start)
        if n != length(h, k):
            return False
        for i in range(n):
            if c_at(h, start + i) != word(h, k + CONT_KEY + i):
                return False
    return True


@internal
def reusable_group(h, scc, lo, hi):
    """A group that one of the members refers to and that is the same, or 0."""
    last = 0
    for m in range(lo, hi):
        y = member_at(h, m)
        if head_of(h, y) < 0:
            continue
        first = segment_at(h, 2 * y)
        for i in range(first, first + segment_at(h, 2 * y + 1)):
            item = c_at(h, i)
            if item & LOCAL or item >> K_BITS == 0:
                continue
            g = word(h, (item & K_MASK) + CONT_GROUP)
            if g != 0 and g != last and word(h, g + GROUP_KEY) == scc:
                last = g
                if _solves(h, g, lo, hi):
                    return g
    return 0


@internal
def make_group(h, scc, lo, hi):
    """The group of the component's predicted members, whose contents are their segments."""
    start, count, words = word(h, H_CTOP), 0, 0
    push(h, H_C, scc)
    for m in range(lo, hi):
        y = member_at(h, m)
        if head_of(h, y) < 0:
            continue
        first, n = segment_at(h, 2 * y), segment_at(h, 2 * y + 1)
        push(h, H_C, y)
        push(h, H_C, n)
        for i in range(first, first + n):
            push(h, H_C, c_at(h, i))
        count += 1
        words += CONT_KEY + n
    g = intern(h, GROUP, start, GROUP_KEY - 2)
    if lacks_room(h) or word(h, g + GROUP_MEMBERS) != 0:
        return g
    members = allocate(h, 1 + 2 * count + words)
    if lacks_room(h):
        return g
    set_word(h, members, count)
    k, j = members + 1 + 2 * count, 0
    for m in range(lo, hi):
        y = member_at(h, m)
        if head_of(h, y) < 0:
            continue
        n = segment_at(h, 2 * y + 1)
        set_word(h, members + 1 + 2 * j, y)
        set_word(h, members + 2 + 2 * j, k)
        set_word(h, k + R_HEAD, (CONT << LENGTH_BITS) | n)
        set_word(h, k + CONT_CUT, 0)
        set_word(h, k + CONT_GROUP, g)
        set_word(h, k + CONT_MEMBER, y)
        set_word(h, k + CONT_REMAINING, 0)
        k += CONT_KEY + n
        j += 1
    set_word(h, g + GROUP_MEMBERS, members)
    for m in range(lo, hi):
        y = member_at(h, m)
        if head_of(h, y) < 0:
            continue
        k, start, n = member_of(h, g, y), word(h, H_CTOP), segment_at(h, 2 * y + 1)
        _push_closed(h, g, segment_at(h, 2 * y), n)
        for i in range(n):
            set_word(h, k + CONT_KEY + i, c_at(h, start + i))
        set_word(h, H_CTOP, start)
        sort_words(h, H_HEAP, k + CONT_KEY, k + CONT_KEY + n)
        publish(h, CONT, k, k + CONT_KEY, n)
    return g
