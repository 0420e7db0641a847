"""Prediction within a component of the left-corner graph: its continuations, from what predicts them."""

from structgen.core.kernels.cfg.buffers import intern, push, sort_unique
from structgen.core.kernels.cfg.continuations import plain_continuation, predict, push_item
from structgen.core.kernels.cfg.layout import *
from structgen.core.kernels.cfg.scc_continuations import make_group, member_of, reusable_group
from structgen.core.kernels.cfg.tables import *
from structgen.core.kernels.interning import lacks_room, set_word, word
from structgen.core.kernels.jit import internal


@internal
def _open_segment(h, y):
    """Content of a member of a recursive component, references to members left open; kept on C."""
    node = head_of(h, y)
    start = word(h, H_CTOP)
    while node >= 0:
        suffix, k = a_at(h, node) >> K_BITS, a_at(h, node) & K_MASK
        if k & LOCAL == 0:
            push_item(h, suffix, k)
        elif suffix != 0:
            push(h, H_C, a_at(h, node))
        node = a_at(h, node + 1)
    sort_unique(h, H_C, start)
    set_segment_at(h, 2 * y, start)
    set_segment_at(h, 2 * y + 1, word(h, H_CTOP) - start)


@internal
def _close_segments(h, lo, hi):
    """Add the content of members behind nullable suffixes to the members that refer to them."""
    changed = True
    while changed and not lacks_room(h):
        changed = False
        for m in range(lo, hi):
            y = member_at(h, m)
            node = head_of(h, y)
            while node >= 0:
                suffix, k = a_at(h, node) >> K_BITS, a_at(h, node) & K_MASK
                if k & LOCAL and is_nullable(h, suffix) and k & ~LOCAL != y:
                    start = word(h, H_CTOP)
                    for part in (y, k & ~LOCAL):
                        first = segment_at(h, 2 * part)
                        for i in range(first, first + segment_at(h, 2 * part + 1)):
                            push(h, H_C, c_at(h, i))
                    sort_unique(h, H_C, start)
                    n = word(h, H_CTOP) - start
                    if n > segment_at(h, 2 * y + 1):
                        set_segment_at(h, 2 * y, start)
                        set_segment_at(h, 2 * y + 1, n)
                        changed = True
                    else:
                        set_word(h, H_CTOP, start)
                node = a_at(h, node + 1)


@internal
def _has_local(h, lo, hi):
    """Whether some segment of a component refers to a member of it."""
    for m in range(lo, hi):
        y = member_at(h, m)
        if head_of(h, y) >= 0:
            first = segment_at(h, 2 * y)
            for i in range(first, first + segment_at(h, 2 * y + 1)):
                if c_at(h, i) & LOCAL:
                    return True
    return False


@internal
def _push_segment(h, y):
    """Append the segment of a member to C."""
    first = segment_at(h, 2 * y)
    for i in range(first, first + segment_at(h, 2 * y + 1)):
        push(h, H_C, c_at(h, i))


@internal
def _settle_members(h, scc, lo, hi):
    """Continuations of the members of a recursive component from their segments, into ``cont``."""
    g = 0
    if _has_local(h, lo, hi):
        g = reusable_group(h, scc, lo, hi)
        if g == 0:
            g = make_group(h, scc, lo, hi)
    for m in range(lo, hi):
        y = member_at(h, m)
        if head_of(h, y) < 0 or lacks_room(h):
            continue
        if g != 0:
            set_cont_of(h, y, member_of(h, g, y))
        else:
            start = word(h, H_CTOP)
            _push_segment(h, y)
            set_cont_of(h, y, intern(h, CONT, start, CONT_KEY - 2))


@internal
def find_continuations(h, scc, lo, hi):
    """Continuations of the predicted nonterminals of one component of the left-corner graph."""
    if is_recursive(h, scc) == 0:
        y = member_at(h, lo)
        set_cont_of(h, y, plain_continuation(h, y))
        return
    for m in range(lo, hi):
        set_cont_of(h, member_at(h, m), -1)
    changed = True
    while changed:  # predict within the component
        changed = False
        for m in range(lo, hi):
            y = member_at(h, m)
            if head_of(h, y) >= 0 and cont_of(h, y) == -1:
                set_cont_of(h, y, 0)
                changed = True
                for e in range(corners_from(h, y), corners_from(h, y + 1)):
                    z = corner_at(h, 2 * e)
                    if scc_of(h, z) == scc:
                        predict(h, z, corner_at(h, 2 * e + 1), LOCAL | y)
    start = word(h, H_CTOP)
    for m in range(lo, hi):
        y = member_at(h, m)
        if head_of(h, y) >= 0:
            _open_segment(h, y)
    _close_segments(h, lo, hi)
    if not lacks_room(h):
        _settle_members(h, scc, lo, hi)
    set_word(h, H_CTOP, start)
