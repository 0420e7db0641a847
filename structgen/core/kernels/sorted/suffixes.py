"""The suffix array of letters by induced sorting (Nong, Zhang, Chan: Linear Suffix Array Construction, 2009).

The recursion is its caller's. A suffix *rises* if it is below the one after it; a place *begins a rise* if its suffix
rises and the one before it does not.
"""

from structgen.core.kernels.jit import internal
from structgen.core.kernels.memory import size
from structgen.core.kernels.sorted.tables import *


@internal
def suffix_kinds(m, upper):
    """Tell rising suffixes from others, and where those of each letter (0 to ``upper``) go. How many begin a rise."""
    count = size(m, letter)
    set_rising(m, count - 1, 0)
    for i in range(count - 2, -1, -1):
        one, next_one = letter(m, i), letter(m, i + 1)
        set_rising(m, i, one < next_one or (one == next_one and rising(m, i + 1) != 0))
    for c in range(upper + 1):
        set_first_falling(m, c, 0)
        set_first_rising(m, c, 0)
    for i in range(count):
        c = letter(m, i)
        if rising(m, i):
            set_first_falling(m, c + 1, first_falling(m, c + 1) + 1)
        else:
            set_first_rising(m, c, first_rising(m, c) + 1)
    for c in range(upper + 1):
        set_first_rising(m, c, first_rising(m, c) + first_falling(m, c))
        if c < upper:
            set_first_falling(m, c + 1, first_falling(m, c + 1) + first_rising(m, c))
    begins = 0
    for i in range(count):
        set_number_of(m, i, -1)
        if i > 0 and rising(m, i) and not rising(m, i - 1):
            set_number_of(m, i, begins)
            set_begin(m, begins, i)
            begins += 1
    return begins


@internal
def _push(m, position):
    """Append a suffix to those of its letter."""
    c = letter(m, position)
    slot = spare(m, c)
    set_suffix(m, slot, position)
    set_spare(m, c, slot + 1)


@internal
def suffix_induce(m, upper, begins):
    """The order of all suffixes from that of the first ``begins`` of ``given``."""
    count = size(m, letter)
    for i in range(count):
        set_suffix(m, i, -1)
    for c in range(upper + 1):
        set_spare(m, c, first_rising(m, c))
    for i in range(begins):
        _push(m, given(m, i))
    for c in range(upper + 1):
        set_spare(m, c, first_falling(m, c))
    _push(m, count - 1)
    for i in range(count):
        position = suffix(m, i)
        if position >= 1 and not rising(m, position - 1):
            _push(m, position - 1)
    for c in range(upper + 1):
        set_spare(m, c, first_falling(m, c))
    for i in range(count - 1, -1, -1):
        position = suffix(m, i)
        if position >= 1 and rising(m, position - 1):
            c = letter(m, position - 1) + 1
            slot = spare(m, c) - 1
            set_spare(m, c, slot)
            set_suffix(m, slot, position - 1)


@internal
def _alike(m, one, other, begins):
    """Whether what lies from two places that begin a rise up to the next such places is the same."""
    count = size(m, letter)
    one_number, other_number = number_of(m, one), number_of(m, other)
    one_end = begin(m, one_number + 1) if one_number + 1 < begins else count
    other_end = begin(m, other_number + 1) if other_number + 1 < begins else count
    if one_end - one != other_end - other:
        return False
    while one < one_end:
        if letter(m, one) != letter(m, other):
            return False
        one += 1
        other += 1
    return one < count and other < count and letter(m, one) == letter(m, other)


@internal
def suffix_names(m, begins):
    """Rank the places that begin a rise, which are in order up to the next such places. The highest rank."""
    count, seen = size(m, letter), 0
    for i in range(count):
        position = suffix(m, i)
        if position >= 0 and number_of(m, position) >= 0:
            set_sorted_begin(m, seen, position)
            seen += 1
    highest = 0
    set_rank(m, number_of(m, sorted_begin(m, 0)), 0)
    for i in range(1, begins):
        if not _alike(m, sorted_begin(m, i - 1), sorted_begin(m, i), begins):
            highest += 1
        set_rank(m, number_of(m, sorted_begin(m, i)), highest)
    return highest
