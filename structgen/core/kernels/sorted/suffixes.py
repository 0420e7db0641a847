"""The suffix array of letters by induced sorting (Nong, Zhang, Chan: Linear Suffix Array Construction, 2009).

The recursion is its caller's. A suffix *rises* if it is below the one after it, else it falls; a place *begins a rise*
if its suffix rises and the one before it falls. Of the suffixes of one letter those that fall come first, so whether
one rises is known from where it stands in the order (Mori), and no letter but the one before it is read.
"""

from structgen.core.kernels.jit import internal
from structgen.core.kernels.memory import size
from structgen.core.kernels.sorted.tables import *


@internal
def _count(m):
    """How many letters there are: bytes, or ranks where these are none."""
    return max(size(m, byte_letter), size(m, rank_letter))


@internal
def _letter(m, position):
    return byte_letter(m, position) if size(m, byte_letter) > 0 else rank_letter(m, position)


@internal
def _begins_rise(m, position):
    return begins(m, position >> 3) >> (position & 7) & 1


@internal
def suffix_kinds(m, upper):
    """Mark where rises begin, and where the falling and the rising suffixes of each letter (0 to ``upper``) go.

    How many places begin a rise.
    """
    count, marked, rises = _count(m), 0, 0
    for c in range(upper + 2):
        set_first_falling(m, c, 0)
        set_first_rising(m, c, 0)
    after = _letter(m, count - 1)
    set_first_rising(m, after, 1)
    for i in range(count - 2, -1, -1):
        c = _letter(m, i)
        now = 1 if c < after else rises if c == after else 0
        if rises > now:
            byte = (i + 1) >> 3
            set_begins(m, byte, begins(m, byte) | 1 << (i + 1 & 7))
            marked += 1
        if now:
            set_first_falling(m, c + 1, first_falling(m, c + 1) + 1)
        else:
            set_first_rising(m, c, first_rising(m, c) + 1)
        rises, after = now, c
    for c in range(upper + 1):
        set_first_rising(m, c, first_falling(m, c) + first_rising(m, c))
        set_first_falling(m, c + 1, first_rising(m, c) + first_falling(m, c + 1))
    return marked


@internal
def _push(m, position, letter):
    """Append a suffix to those of its letter."""
    slot = spare(m, letter)
    set_suffix(m, slot, position)
    set_spare(m, letter, slot + 1)


@internal
def suffix_induce(m, upper):
    """The order of all suffixes from that of those in ``given``, which begin a rise."""
    count = _count(m)
    for i in range(count):
        set_suffix(m, i, -1)
    for c in range(upper + 1):
        set_spare(m, c, first_rising(m, c))
    for i in range(size(m, given)):
        _push(m, given(m, i), _letter(m, given(m, i)))
    for c in range(upper + 1):
        set_spare(m, c, first_falling(m, c))
    _push(m, count - 1, _letter(m, count - 1))
    for c in range(upper + 1):
        for i in range(first_falling(m, c), first_falling(m, c + 1)):
            before = suffix(m, i) - 1
            if before >= 0:
                letter = _letter(m, before)
                if letter >= c:
                    _push(m, before, letter)
    for c in range(upper + 1):
        set_spare(m, c, first_falling(m, c + 1))
    for c in range(upper, -1, -1):
        for i in range(first_falling(m, c + 1) - 1, first_falling(m, c) - 1, -1):
            before = suffix(m, i) - 1
            if before >= 0:
                letter = _letter(m, before)
                if letter < c or (letter == c and i >= spare(m, c)):
                    slot = spare(m, letter) - 1
                    set_spare(m, letter, slot)
                    set_suffix(m, slot, before)


@internal
def _alike(m, one, other, count):
    """Whether what lies from two places that begin a rise up to the next such places is the same."""
    step = 0
    while max(one, other) + step < count and _letter(m, one + step) == _letter(m, other + step):
        if step > 0:
            ended = _begins_rise(m, one + step)
            if ended or _begins_rise(m, other + step):
                return ended == _begins_rise(m, other + step)
        step += 1
    return False


@internal
def suffix_ranks(m):
    """Rank the places that begin a rise by what lies up to the next such places, and list them in this order.

    The highest rank. Two such places are never next to each other, so each has its own half of its position.
    """
    count, seen, highest = _count(m), 0, 0
    for i in range(count):
        position = suffix(m, i)
        if position > 0 and _begins_rise(m, position):
            set_in_order(m, seen, position)
            seen += 1
    for i in range(seen):
        position = in_order(m, i)
        if i > 0 and not _alike(m, in_order(m, i - 1), position, count):
            highest += 1
        set_rank_of_half(m, position >> 1, highest)
    return highest
