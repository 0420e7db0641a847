"""How many bytes a text still needs at least: numbers of configurations and continuations, found once each.

They stand in the records, one more than they are (0: not known yet). The shortest words of suffixes and from positions
of the terminals' automata are the engine's (``least_of``, ``to_go_from``).
"""

from structgen.core.kernels.cfg.buffers import push
from structgen.core.kernels.cfg.item_sets import first_scan
from structgen.core.kernels.cfg.layout import *
from structgen.core.kernels.cfg.tables import *
from structgen.core.kernels.interning import lacks_room, length, set_word, word
from structgen.core.kernels.jit import internal
from structgen.core.kernels.memory import address


@internal
def _item_bytes(h, item):
    """Bytes of an item's suffix and what comes after it; FAR while the latter is not known."""
    if item <= OPEN_ITEM:
        return 0
    cached = word(h, (item & K_MASK) + CONT_REMAINING)
    return min(least_of(h, item >> K_BITS) + cached - 1, FAR) if cached != 0 else FAR


@internal
def _is_missing(h, k, item):
    """Whether the continuation of an item of ``k`` is to be known before ``k``; those of one group are one question."""
    if item <= OPEN_ITEM or word(h, (item & K_MASK) + CONT_REMAINING) != 0:
        return False
    g = word(h, k + CONT_GROUP)
    return g == 0 or word(h, (item & K_MASK) + CONT_GROUP) != g


@internal
def _push_missing(h, k):
    """Push on A what is to be known before a continuation."""
    for i in range(length(h, k)):
        item = word(h, k + CONT_KEY + i)
        if _is_missing(h, k, item):
            push(h, H_A, item & K_MASK)


@internal
def _lower(h, k):
    """Set a continuation's number to the least of its items', if that is less than it was; whether it was set."""
    best, cached = FAR, word(h, k + CONT_REMAINING)
    for i in range(length(h, k)):
        best = min(best, _item_bytes(h, word(h, k + CONT_KEY + i)))
    if cached != 0 and best >= cached - 1:
        return False
    set_word(h, k + CONT_REMAINING, best + 1)
    return True


@internal
def _settle_group(h, members):
    """The numbers of a group's members, which refer to each other: as often as one gets less (Bellman and Ford)."""
    changed = True
    while changed:
        changed = False
        for j in range(word(h, members)):
            if _lower(h, word(h, members + 2 + 2 * j)):
                changed = True


@internal
def _settle(h, k):
    """Find the number of a continuation, and before it of what it needs. (Groups apart, none needs itself.)"""
    first = word(h, H_ATOP)
    push(h, H_A, k)
    while word(h, H_ATOP) > first and not lacks_room(h):
        top = word(h, H_ATOP)
        k = a_at(h, top - 1)
        if word(h, k + CONT_REMAINING) != 0:
            set_word(h, H_ATOP, top - 1)
            continue
        g = word(h, k + CONT_GROUP)
        if g == 0:
            _push_missing(h, k)
        else:
            members = word(h, g + GROUP_MEMBERS)
            for j in range(word(h, members)):
                _push_missing(h, word(h, members + 2 + 2 * j))
        if word(h, H_ATOP) == top and not lacks_room(h):  # nothing is missing
            if g == 0:
                _lower(h, k)
            else:
                _settle_group(h, word(h, g + GROUP_MEMBERS))
    set_word(h, H_ATOP, first)


@internal
def _item_remaining(h, item):
    """Bytes that an item needs to the end of the text."""
    if item > OPEN_ITEM and word(h, (item & K_MASK) + CONT_REMAINING) == 0 and not lacks_room(h):
        _settle(h, item & K_MASK)
    return _item_bytes(h, item)


@internal
def _items_remaining(h, r):
    """Bytes that an item set needs."""
    best = FAR
    for i in range(length(h, r)):
        best = min(best, _item_remaining(h, word(h, r + ITEMS_KEY + i)))
    return best


@internal
def _remaining_after(h, r, kind):
    """Bytes that the item set after a terminal of one class needs."""
    best, i, end = FAR, first_scan(h, r, kind), word(h, r + ITEMS_SCAN) + word(h, r + ITEMS_SCANS)
    while i < end and word(h, i) >> 48 == kind:
        best = min(best, _item_remaining(h, word(h, i) & ITEM_MASK))
        i += 1
    return best


@internal
def _config_remaining(h, r, d):
    """Bytes that a configuration needs: what remains of a lexeme, and what its item set needs after it."""
    best, last, following = FAR, -2, FAR
    pseudo = word(h, H_PSEUDO)
    for i in range(1, length(h, d)):
        p = word(h, d + LEX_KEY + i)
        kind = class_of(h, p)
        kind = -1 if kind >= pseudo else kind  # of no text of its own: back to the item set, as after ignored text
        if kind != last:
            following = _items_remaining(h, r) if kind < 0 else _remaining_after(h, r, kind)
            last = kind
        best = min(best, to_go_from(h, p) + following)
    return best


@internal
def bound_of(h, configs):
    """Bytes of a shortest completion of configurations; UNMEASURED as long as the tables of lengths are missing."""
    cached = word(h, configs + CONFIGS_REMAINING)
    if cached != 0:
        return cached - 1
    if address(h, to_go_from) == 0:
        return UNMEASURED
    best = FAR
    for i in range(length(h, configs)):
        config = word(h, configs + CONFIGS_KEY + i)
        best = min(best, _config_remaining(h, config >> K_BITS, config & K_MASK))
    if lacks_room(h):
        return RETRY
    set_word(h, configs + CONFIGS_REMAINING, best + 1)
    return best
