"""Item sets, what can be scanned from there, and where that leads."""

from structgen.core.kernels.cfg.buffers import intern, pair, push, sort_unique
from structgen.core.kernels.cfg.components import find_continuations
from structgen.core.kernels.cfg.continuations import predict, push_item
from structgen.core.kernels.cfg.layout import *
from structgen.core.kernels.cfg.lexer import first_lex
from structgen.core.kernels.cfg.tables import *
from structgen.core.kernels.interning import allocate, lacks_room, length, set_word, word
from structgen.core.kernels.jit import internal


@internal
def _expand_item(h, suffix, k):
    """What an item scans (buffer B) and predicts."""
    while suffix != 0:
        symbol, after = first_of(h, suffix), next_of(h, suffix)
        if symbol < 0:
            push(h, H_B, (~symbol << 48) | (after << K_BITS) | k)
            return
        predict(h, symbol, after, k)
        if not can_be_empty(h, symbol):
            return
        suffix = after


@internal
def _expand_component(h, scc):
    """What the predicted nonterminals of a component scan and predict, now that their continuations are known."""
    for m in range(members_from(h, scc), members_from(h, scc + 1)):
        y = member_at(h, m)
        if head_of(h, y) < 0:
            continue
        k = cont_of(h, y)
        for e in range(scans_from(h, y), scans_from(h, y + 1)):
            push(h, H_B, (scan_at(h, 2 * e) << 48) | (scan_at(h, 2 * e + 1) << K_BITS) | k)
        for e in range(corners_from(h, y), corners_from(h, y + 1)):
            if scc_of(h, corner_at(h, 2 * e)) != scc:
                predict(h, corner_at(h, 2 * e), corner_at(h, 2 * e + 1), k)


@internal
def _close(h, r):
    """Prediction from a new item set: its scan list and first lexer state."""
    a, b, n = word(h, H_ATOP), word(h, H_BTOP), length(h, r)
    ends, is_open = 0, 0
    for i in range(n):
        item = word(h, r + ITEMS_KEY + i)
        if item == END_ITEM:
            ends = 1
        elif item == OPEN_ITEM:
            is_open = 1
        else:
            _expand_item(h, item >> K_BITS, item & K_MASK)
    for scc in range(word(h, H_COMPONENTS)):
        if is_pending(h, scc) == 0:
            continue
        lo, hi = members_from(h, scc), members_from(h, scc + 1)
        if not lacks_room(h):
            find_continuations(h, scc, lo, hi)
            _expand_component(h, scc)
        set_is_pending(h, scc, 0)
        for m in range(lo, hi):
            set_head_of(h, member_at(h, m), -1)
    set_word(h, H_ATOP, a)
    sort_unique(h, H_B, b)
    if not lacks_room(h):
        _store(h, r, b, ends, is_open)
    set_word(h, H_BTOP, b)


@internal
def _store(h, r, b, ends, is_open):
    """Store what a new item set scans (on B from ``b`` on), and its first lexer state."""
    count, start = word(h, H_BTOP) - b, word(h, H_CTOP)
    last = -1
    for i in range(b, b + count):
        if b_at(h, i) >> 48 != last:
            last = b_at(h, i) >> 48
            push(h, H_C, last)
    if ends:
        push(h, H_C, word(h, H_TERMINALS))  # the end of the text as a terminal
    lex = first_lex(h, intern(h, CLASSES, start, 0))
    stored = allocate(h, count)
    if lacks_room(h):
        return
    for i in range(count):
        set_word(h, stored + i, b_at(h, b + i))
    set_word(h, r + ITEMS_SCAN, stored)
    set_word(h, r + ITEMS_SCANS, count)
    set_word(h, r + ITEMS_LEX, lex)
    set_word(h, r + ITEMS_OPEN, is_open)
    set_word(h, r + ITEMS_BUILT, 1)


@internal
def item_set_of(h, start):
    """The item set of the items on C from ``start`` on."""
    sort_unique(h, H_C, start)
    r = intern(h, ITEMS, start, ITEMS_KEY - 2)
    if not lacks_room(h) and word(h, r + ITEMS_BUILT) == 0:
        _close(h, r)
    return r


@internal
def first_scan(h, r, wanted):
    """Where what an item set scans of one class begins, or would; up to the next class, or the end of its scans."""
    lo = word(h, r + ITEMS_SCAN)
    hi = lo + word(h, r + ITEMS_SCANS)
    while lo < hi:
        middle = (lo + hi) >> 1
        if word(h, middle) >> 48 < wanted:
            lo = middle + 1
        else:
            hi = middle
    return lo


@internal
def goto(h, r, classes):
    """The item set after one of a set of terminals was read."""
    if r == word(h, H_ANY):
        return r
    memo = pair(h, GOTO, r, classes, 1)
    value = word(h, memo + GOTO_VALUE)
    if value != 0 and not lacks_room(h):
        return value
    start, end = word(h, H_CTOP), word(h, r + ITEMS_SCAN) + word(h, r + ITEMS_SCANS)
    for i in range(length(h, classes)):
        wanted = word(h, classes + CLASSES_KEY + i)
        lo = first_scan(h, r, wanted)
        while lo < end and word(h, lo) >> 48 == wanted:
            push_item(h, (word(h, lo) & ITEM_MASK) >> K_BITS, word(h, lo) & K_MASK)
            lo += 1
    value = item_set_of(h, start)
    if not lacks_room(h):
        set_word(h, memo + GOTO_VALUE, value)
    return value


@internal
def union(h, a, b):
    """The item set of the items of two sets."""
    if a == b:
        return a
    if a > b:
        a, b = b, a
    memo = pair(h, GOTO, -a, b, 1)
    value = word(h, memo + GOTO_VALUE)
    if value != 0 and not lacks_room(h):
        return value
    start = word(h, H_CTOP)
    for r in (a, b):
        for i in range(length(h, r)):
            push(h, H_C, word(h, r + ITEMS_KEY + i))
    value = item_set_of(h, start)
    if not lacks_room(h):
        set_word(h, memo + GOTO_VALUE, value)
    return value
