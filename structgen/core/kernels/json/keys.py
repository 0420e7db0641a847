"""Objects: which keys were seen, which are missing, and in which order they may come."""

from structgen.core.kernels.jit import internal
from structgen.core.kernels.json.frames import load
from structgen.core.kernels.json.layout import *
from structgen.core.kernels.json.tables import *


@internal
def seen(m, frame, bit):
    """Whether the key of a bit was seen: 0 or 1."""
    return (load(m, frame + F_SEEN + bit // SEEN_BITS) >> (bit % SEEN_BITS)) & 1


@internal
def missing_word(m, record, frame, extra, w):
    """Word w of the required keys (dependents included) that are not seen, if key ``extra`` (-1: none) were added."""
    need = word(m, grammar(m, record + O_REQUIRED) + w)
    first = grammar(m, record + O_DEPENDENT)
    for d in range(grammar(m, record + O_DEPENDENTS)):
        bit = grammar(m, first + 2 * d)
        if bit == extra or seen(m, frame, bit):
            need |= word(m, grammar(m, first + 2 * d + 1) + w)
    have = load(m, frame + F_SEEN + w)
    if extra >= 0 and extra // SEEN_BITS == w:
        have |= 1 << (extra % SEEN_BITS)
    return need & ~have


@internal
def key_words(m, record):
    """Seen words of keys; one for the existentials, if there are any, follows."""
    return grammar(m, record + O_WORDS) - (1 if grammar(m, record + O_EXISTENTIALS) else 0)


@internal
def count_missing(m, record, frame, extra):
    """How many required keys are not seen, if key ``extra`` were added."""
    count = 0
    for w in range(key_words(m, record)):
        left = missing_word(m, record, frame, extra, w)
        while left:
            left &= left - 1
            count += 1
    return count


@internal
def has_missing_below(m, record, frame, bit):
    """Whether a required key earlier than ``bit`` (itself counted as present) is not seen."""
    for w in range(bit // SEEN_BITS + 1):
        left = missing_word(m, record, frame, bit, w)
        if w == bit // SEEN_BITS:
            left &= (1 << (bit % SEEN_BITS)) - 1
        if left:
            return True
    return False


@internal
def is_ordered(m):
    """Whether members may be added in one order only: by the options, or because a search tries each set once."""
    return grammar(m, H_ORDER) != 0 or reg(m, SEARCHING) != 0


@internal
def last_key_bit(m, record, frame):
    """Where members come in one order: the key bit that the next declared key must be behind."""
    last = -1
    if grammar(m, H_ORDER) != 0:
        last = ALL_DECLARED if load(m, frame + F_OTHERS) >= 0 else _last_seen(m, record, frame)
    return max(last, (load(m, frame + F_DEPTH) >> 32) - 1)


@internal
def _last_seen(m, record, frame):
    """The highest key bit seen, or -1."""
    for back in range(key_words(m, record)):
        w = key_words(m, record) - 1 - back
        have = load(m, frame + F_SEEN + w)
        if have:
            bit = -1
            while have:
                have >>= 1
                bit += 1
            return w * SEEN_BITS + bit
    return -1


@internal
def needs_skipped(m, record, frame, key, bit):
    """Whether key ``key`` requires one that is earlier than ``bit`` and not seen (declared order)."""
    first = grammar(m, record + O_DEPENDENT)
    for d in range(grammar(m, record + O_DEPENDENTS)):
        if grammar(m, first + 2 * d) == key:
            for w in range(bit // SEEN_BITS + 1):
                skipped = word(m, grammar(m, first + 2 * d + 1) + w) & ~load(m, frame + F_SEEN + w)
                if w == bit // SEEN_BITS:
                    skipped &= (1 << (bit % SEEN_BITS)) - 1
                if skipped:
                    return True
    return False


@internal
def spare_room(m, record, frame, extra, count):
    """How many members more may come than have to, if the object had ``count`` members and the key ``extra``."""
    most = grammar(m, record + O_MAX)
    return 1 << 30 if most < 0 else most - count - count_missing(m, record, frame, extra)
