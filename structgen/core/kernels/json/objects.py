"""Objects: which keys may still come."""

from structgen.core.kernels.jit import internal
from structgen.core.kernels.json.existentials import entry_alive, others_alive
from structgen.core.kernels.json.frames import load
from structgen.core.kernels.json.keys import (
    count_missing,
    has_missing_below,
    is_ordered,
    key_words,
    last_key_bit,
    needs_skipped,
    seen,
)
from structgen.core.kernels.json.layout import *
from structgen.core.kernels.json.tables import *


@internal
def admissible(m, record, frame, entry):
    """Whether the declared key of ``entry`` may be added to the object now, so that it can still be completed."""
    bit = grammar(m, entry + E_BIT)
    if grammar(m, entry + E_CHILD) < 0 or seen(m, frame, bit) or not entry_alive(m, record, frame, entry):
        return False
    count = load(m, frame) >> 32
    most = grammar(m, record + O_MAX)
    if most >= 0 and count + 1 + count_missing(m, record, frame, bit) > most:
        return False
    if not is_ordered(m):
        return True
    if last_key_bit(m, record, frame) >= bit:
        return False
    if has_missing_below(m, record, frame, bit):
        return False
    least = grammar(m, record + O_MIN)
    if least > count + 1 and grammar(m, record + O_OTHERS) == NO_OTHERS:
        later = 0
        for e in range(grammar(m, record + O_COUNT)):
            other = grammar(m, record + O_ENTRIES) + E_SIZE * e
            if grammar(m, other + E_CHILD) >= 0 and grammar(m, other + E_BIT) > bit:
                if not needs_skipped(m, record, frame, grammar(m, other + E_BIT), bit):
                    later += 1
        return count + 1 + later >= least
    return True


@internal
def undeclared_count(m, record, frame):
    """How many undeclared keys the object has."""
    count = load(m, frame) >> 32
    for w in range(key_words(m, record)):
        have = load(m, frame + F_SEEN + w)
        while have:
            have &= have - 1
            count -= 1
    return count


@internal
def _words_remain(m, record, frame):
    """Whether the object does not yet have every undeclared key there is."""
    left = words_left(m, grammar(m, record + O_START))
    return left < 0 or left > undeclared_count(m, record, frame)


@internal
def others_admissible(m, record, frame):
    """Whether one more undeclared key may be added to the object now."""
    if grammar(m, record + O_OTHERS) == NO_OTHERS:
        return False
    if grammar(m, record + O_NARROW) and not _words_remain(m, record, frame):
        return False
    if not others_alive(m, record, frame):
        return False
    most = grammar(m, record + O_MAX)
    ordered = is_ordered(m)
    if most < 0 and not ordered:
        return True
    missing = count_missing(m, record, frame, -1)
    if ordered and missing > 0:
        return False
    return most < 0 or (load(m, frame) >> 32) + 1 + missing <= most


@internal
def any_admissible(m, record, frame, lo, hi):
    """Whether one of the declared keys lo..hi may be added now."""
    for e in range(lo, hi):
        if admissible(m, record, frame, grammar(m, record + O_ENTRIES) + E_SIZE * e):
            return True
    return False


@internal
def can_add(m, record, frame):
    """Whether the object can take one more member."""
    if others_admissible(m, record, frame):
        return True
    return any_admissible(m, record, frame, 0, grammar(m, record + O_COUNT))
