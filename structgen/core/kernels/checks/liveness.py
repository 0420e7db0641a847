"""What has a value: the least fixpoint over all records."""

from structgen.core.kernels.checks.descriptions import has_bit
from structgen.core.kernels.checks.layout import *
from structgen.core.kernels.checks.tables import *
from structgen.core.kernels.jit import internal


@internal
def _member_live(m, child, existentials):
    """Whether a member's plain value exists; ``child``: its node, or its choices."""
    return live(m, grammar(m, child + 1) if existentials else child) != 0


@internal
def _add_completions(m, child, cost, once):
    """Let a member meet existentials by one of its choices: update the least room that each set of them takes.

    ``once``: there is one such member, else there are as many as one likes.
    """
    for met in range(MAX_EXISTENTIAL_SETS):
        set_spare(m, met, cheapest(m, met))
    changed = True
    while changed:
        changed = False
        for c in range(grammar(m, child)):
            node, bits = grammar(m, child + 1 + 2 * c), grammar(m, child + 2 + 2 * c)
            if live(m, node) == 0:
                continue
            for met in range(MAX_EXISTENTIAL_SETS):
                source = spare(m, met) if once else cheapest(m, met)
                if source + cost < cheapest(m, (met | bits) & (MAX_EXISTENTIAL_SETS - 1)):
                    set_cheapest(m, (met | bits) & (MAX_EXISTENTIAL_SETS - 1), source + cost)
                    changed = not once


@internal
def _covers(m, record, room):
    """Whether members can meet all existentials of an object, with ``room`` for those that are not required."""
    for met in range(MAX_EXISTENTIAL_SETS):
        set_cheapest(m, met, 1 << 30)
    set_cheapest(m, 0, 0)
    for e in range(grammar(m, record + O_COUNT)):
        entry = grammar(m, record + O_ENTRIES) + e * E_SIZE
        if grammar(m, entry + E_CHILD) >= 0:
            cost = 1 - has_bit(m, grammar(m, record + O_REQUIRED), grammar(m, entry + E_BIT))
            _add_completions(m, grammar(m, entry + E_CHILD), cost, True)
    child = grammar(m, record + O_CHILD)
    if grammar(m, record + O_OTHERS) == CLASSES:
        for c in range(grammar(m, record + O_CLASSES)):
            _add_completions(m, grammar(m, child + 1 + c), 1, False)
    elif grammar(m, record + O_OTHERS) != NO_OTHERS:
        _add_completions(m, child, 1, False)
    return cheapest(m, grammar(m, record + O_EXISTENTIALS)) <= room


@internal
def _undeclared_words(m, record):
    """How many undeclared keys with values an object can have at most."""
    others, child = grammar(m, record + O_OTHERS), grammar(m, record + O_CHILD)
    existentials = grammar(m, record + O_EXISTENTIALS)
    if others == NO_OTHERS:
        return 0
    if others != CLASSES:
        return ENDLESS_WORDS if _member_live(m, child, existentials) else 0
    total = 0
    for c in range(grammar(m, record + O_CLASSES)):
        if _member_live(m, grammar(m, child + 1 + c), existentials):
            total += class_words(m, grammar(m, record + O_START) + c)
    return total


@internal
def _object_live(m, record):
    """Whether an object has a value, as far as is known which nodes have."""
    existentials, most = grammar(m, record + O_EXISTENTIALS), grammar(m, record + O_MAX)
    members, required = 0, 0
    for e in range(grammar(m, record + O_COUNT)):
        entry = grammar(m, record + O_ENTRIES) + e * E_SIZE
        child = grammar(m, entry + E_CHILD)
        alive = child >= 0 and _member_live(m, child, existentials)
        members += alive
        if has_bit(m, grammar(m, record + O_REQUIRED), grammar(m, entry + E_BIT)):
            required += 1
            if not alive:
                return False
    if existentials:
        room = (1 << 30) if most < 0 else most - required
        if not _covers(m, record, room):
            return False
    undeclared = _undeclared_words(m, record)
    return undeclared >= ENDLESS_WORDS or members + undeclared >= grammar(m, record + O_MIN)


@internal
def _array_live(m, record):
    """Whether an array can have as many items as it must (two, if two must be equal)."""
    least, most = grammar(m, record + A_MIN), grammar(m, record + A_MAX)
    if grammar(m, record + A_UNIQUE) == PAIRED:
        least = max(least, 2)
    if 0 <= most < least:
        return False
    prefixes = grammar(m, record + A_PREFIXES)
    for index in range(min(least, prefixes)):
        node = grammar(m, grammar(m, record + A_PREFIX) + index)
        if node < 0 or live(m, node) == 0:
            return False
    items = grammar(m, record + A_ITEMS)
    return least <= prefixes or (items >= 0 and live(m, items) != 0)


@internal
def _counted_live(m, record):
    """Whether an array whose items are counted may close, or an item leads to where it can be closed."""
    if grammar(m, record + T_CLOSES):
        return True
    for c in range(grammar(m, record + T_COUNT)):
        choice = grammar(m, record + T_CHOICES) + 2 * c
        if live(m, grammar(m, choice)) and live(m, grammar(m, choice + 1)):
            return True
    return False


@internal
def _any_live(m, list_, number):
    for i in range(number):
        if live(m, grammar(m, list_ + i)):
            return True
    return False


@internal
def _node_live(m, node):
    if grammar(m, node + NODE_FLAGS) & 7 or grammar(m, node + NODE_STRINGS + 1) or grammar(m, node + NODE_NUMBERS + 1):
        return True
    if _any_live(m, grammar(m, node + NODE_OBJECTS), grammar(m, node + NODE_OBJECTS + 1)):
        return True
    return _any_live(m, grammar(m, node + NODE_ARRAYS), grammar(m, node + NODE_ARRAYS + 1))


@internal
def spread(m, count):
    """The least fixpoint, last found first (mostly children): the place of a record without a value, or -1."""
    changed = True
    dead = 0
    while changed:
        changed, dead = False, -1
        for number in range(count - 1, -1, -1):
            offset = order(m, number)
            kind = meanings(m, seen(m, offset) - 1)
            if live(m, offset) or kind < 0:
                continue
            if kind == NODE:
                alive = _node_live(m, offset)
            elif kind == OBJECT:
                alive = _object_live(m, offset)
            elif kind == ARRAY:
                alive = _array_live(m, offset)
            elif kind == COUNTED:
                alive = _counted_live(m, offset)
            else:
                alive = True
            if alive:
                set_live(m, offset, 1)
                changed = True
            else:
                dead = offset
    return dead
