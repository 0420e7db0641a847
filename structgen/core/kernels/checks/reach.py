"""What is reached from a record, and whether it is where it should be."""

from structgen.core.kernels.checks.descriptions import dispatch, layout
from structgen.core.kernels.checks.layout import *
from structgen.core.kernels.checks.tables import *
from structgen.core.kernels.jit import internal
from structgen.core.kernels.memory import size


@internal
def _kind_at(m, kind, offset):
    """The kind of the record at a place, as its own fields tell it; -1: none that it may be."""
    row = choose(m, kind)
    while row >= 0:
        if offset + dispatch(m, row, 1) >= size(m, grammar):
            return -1
        value = grammar(m, offset + dispatch(m, row, 1))
        while dispatch(m, row, 2) != value and dispatch(m, row, 2) != OTHERWISE:
            row += 1
            if row == size(m, choice_part) // 4 or dispatch(m, row, 0) != kind:
                return -1
        kind = dispatch(m, row, 3)
        row = choose(m, kind)
    return kind


@internal
def reach(m, count, kind, offset):
    """Take note of a record; (verdict, records so far)."""
    if offset < 0 or offset >= size(m, grammar):
        return OUT_OF_RANGE, count
    kind = _kind_at(m, kind, offset)
    if kind < 0:
        return WRONG_KIND, count
    if offset + sizes(m, kind) > size(m, grammar):
        return OUT_OF_RANGE, count
    if seen(m, offset) == kind + 1:
        return FINE, count
    if seen(m, offset) != 0:
        return TWO_KINDS, count
    set_seen(m, offset, kind + 1)
    set_order(m, count, offset)
    return FINE, count + 1


@internal
def _is_start(m, value, what):
    """Whether a pool state is where automata of a kind begin."""
    if value < 0 or value >= size(m, labels):
        return False
    if what == CLASSES_START:
        return labels(m, value) > CLASSES_START
    return labels(m, value) == what + 1


@internal
def follow(m, count, offset, row):
    """Check one field of a record and take note of what it leads to; (verdict, records so far)."""
    what = layout(m, row, 2)
    value = offset if layout(m, row, 1) == HERE else grammar(m, offset + layout(m, row, 1))
    if what == INT:
        return FINE if layout(m, row, 3) <= value <= layout(m, row, 4) else OUT_OF_RANGE, count
    if what == REF:
        if value == layout(m, row, 4):
            return FINE, count
        return reach(m, count, layout(m, row, 3), value)
    if what == POOL:
        return FINE if _is_start(m, value, layout(m, row, 3)) else WRONG_KIND, count
    number = grammar(m, offset + layout(m, row, 3 if what != LIST else 4))
    if number < 0 or value < 0:
        return OUT_OF_RANGE, count
    if what == WORDS:
        return FINE if value + number <= size(m, words) else OUT_OF_RANGE, count
    if what == TEXT:
        return FINE if value + number <= size(m, texts) else OUT_OF_RANGE, count
    length, begin = sizes(m, layout(m, row, 3)), value + layout(m, row, 5)
    if begin + number * length > size(m, grammar):
        return OUT_OF_RANGE, count
    for element in range(number):
        verdict, count = reach(m, count, layout(m, row, 3), begin + element * length)
        if verdict != FINE:
            return verdict, count
    return FINE, count
