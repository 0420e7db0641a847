"""Rows of descriptions, and sets of bits; the arguments of the checks come along."""

from structgen.core.kernels.checks.tables import *
from structgen.core.kernels.jit import internal
from structgen.core.kernels.json.layout import SEEN_BITS


@internal
def layout(m, row, column):
    """A description of a field: record kind, field, what it holds, three arguments."""
    return field_part(m, 6 * row + column)


@internal
def dispatch(m, row, column):
    """What tells records apart: kind, field, value or `OTHERWISE`, kind."""
    return choice_part(m, 4 * row + column)


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
