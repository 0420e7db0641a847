"""The arguments of the checks as functions ``(m, index)``, and sets of bits."""

from structgen.core.kernels.checks.layout import *
from structgen.core.kernels.jit import internal
from structgen.core.kernels.json.layout import SEEN_BITS
from structgen.core.kernels.memory import reader, writer

grammar = reader(A_GRAMMAR, 32)
words = reader(A_WORDS, 64)
texts = reader(A_TEXTS, 8, signed=False)
pool = reader(A_POOL, 32)
accepting = reader(A_ACCEPTING, 32)
payload = reader(A_PAYLOAD, 32)
class_words = reader(A_CLASS_WORDS, 32)
labels = reader(A_LABELS, 32)
narrow = reader(A_NARROW, 32)
states = reader(A_STATES, 32)
_layout = reader(A_LAYOUT, 32)
first_row = reader(A_FIRST, 32)
sizes = reader(A_SIZES, 32)
meanings = reader(A_MEANINGS, 32)
choose = reader(A_CHOOSE, 32)
_dispatch = reader(A_DISPATCH, 32)
where, set_where = reader(A_WHERE, 64), writer(A_WHERE)
seen, set_seen = reader(A_SEEN, 32), writer(A_SEEN, 32)
order, set_order = reader(A_ORDER, 32), writer(A_ORDER, 32)
allowed, set_allowed = reader(A_ALLOWED, 64), writer(A_ALLOWED)
live, set_live = reader(A_LIVE, 8, signed=False), writer(A_LIVE, 8)
spare, set_spare = reader(A_SPARE, 64), writer(A_SPARE)
cheapest, set_cheapest = reader(A_CHEAPEST, 64), writer(A_CHEAPEST)


@internal
def layout(m, row, column):
    """A description of a field: record kind, field, what it holds, three arguments."""
    return _layout(m, 6 * row + column)


@internal
def dispatch(m, row, column):
    """What tells records apart: kind, field, value or `OTHERWISE`, kind."""
    return _dispatch(m, 4 * row + column)


@internal
def has_bit(m, first, bit):
    """Whether a set of bits in ``words``, from ``first`` on, has a bit."""
    return (words(m, first + bit // SEEN_BITS) >> (bit % SEEN_BITS)) & 1


@internal
def is_allowed(m, bit):
    """Whether a key of the object that is being checked may be there."""
    return (allowed(m, bit // SEEN_BITS) >> (bit % SEEN_BITS)) & 1


@internal
def are_allowed(m, first, number):
    """Whether all keys of a set in ``words``, from ``first`` on, may be there."""
    for w in range(number):
        if words(m, first + w) & ~allowed(m, w):
            return False
    return True
