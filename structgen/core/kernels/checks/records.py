"""Records by themselves: texts, lengths, sets of keys, classes of keys."""

import numpy as np

from structgen.core.kernels.bits import count_bits
from structgen.core.kernels.checks.descriptions import are_allowed, has_bit, is_allowed
from structgen.core.kernels.checks.layout import *
from structgen.core.kernels.checks.tables import *
from structgen.core.kernels.jit import internal
from structgen.core.kernels.json.layout import SEEN_BITS
from structgen.core.kernels.memory import size

MAX_LENGTH = 1 << 30  # of texts that tables of lengths speak of


@internal
def is_sorted(m, entries, count):
    """Whether the texts of a table ascend strictly; all of them lie in ``texts``."""
    for e in range(1, count):
        one, two = entries + (e - 1) * E_SIZE, entries + e * E_SIZE
        first, second = grammar(m, one + E_LENGTH), grammar(m, two + E_LENGTH)
        same = 0
        while same < first and same < second:
            if texts(m, grammar(m, one + E_OFFSET) + same) != texts(m, grammar(m, two + E_OFFSET) + same):
                break
            same += 1
        if same == second:
            return False
        if same < first and texts(m, grammar(m, one + E_OFFSET) + same) > texts(m, grammar(m, two + E_OFFSET) + same):
            return False
    return True


@internal
def _length_from(m, begin, row, period, k):
    """What a state's row of the table (at ``begin``) says of lengths from ``k`` on, at most ``row``."""
    if k < row:
        return grammar(m, begin + k)
    length = grammar(m, begin + k - period)
    return length + period if length >= 0 else length


@internal
def _least_lengths(m, begin, row, period, start, state, free):
    """The least length from ``k`` on of the texts that begin with one more byte, -1 where there is none, for k up to
    ``row``: into ``order`` from ``free`` on. Whether all fit there."""
    for k in range(row + 1):
        set_order(m, free + k, -1)
    before, taken = -1, -1
    for byte in range(256):
        after = pool(m, state * 256 + byte)
        more = 1 if byte & 0xC0 != 0x80 else 0
        if after < 0 or (after == before and more == taken):
            continue
        before, taken = after, more
        target = begin + (after - start) * row
        for k in range(row + 1):
            length, least = _length_from(m, target, row, period, max(k - more, 0)), order(m, free + k)
            if length > MAX_LENGTH:
                return False
            if length >= 0 and (least < 0 or length + more < least):
                set_order(m, free + k, length + more)
    return True


@internal
def _comes_back(m, start, number):
    """Whether a byte leads from one of the ``number`` states to the first."""
    for transition in range(start * 256, (start + number) * 256):
        if pool(m, transition) == start:
            return True
    return False


@internal
def _lengths_agree(m, number, table, free):
    """Whether a table of lengths says of each state what it says of those that follow, and of its slack. ``order`` may
    be written to from ``free`` on, for as many entries as the table has."""
    start, row, period = grammar(m, table + D_BASE), grammar(m, table + D_ROW), grammar(m, table + D_PERIOD)
    first = 0 if _comes_back(m, start, number) else 1
    begin, slack = table + D_TABLE, 0 if number > first else -1
    for state in range(number):
        if not _least_lengths(m, begin, row, period, start, start + state, free):
            return False
        if accepting(m, start + state) & 1:
            set_order(m, free, 0)
        for k in range(row + 1):  # the last stands for all that follow, period by period
            length = _length_from(m, begin + state * row, row, period, k)
            if order(m, free + k) != length:
                return False
            if state >= first and k < row:
                slack = max(slack, length - k) if length >= 0 and slack >= 0 else -1
    return grammar(m, table + D_SLACK) == slack


@internal
def check_lengths(m, record, universal, free):
    """A string's limits, and its table of lengths, if there is one; ``free``: records end there in ``order``."""
    start, least, most = grammar(m, record + S_START), grammar(m, record + S_MIN), grammar(m, record + S_MAX)
    if 0 <= most < least:
        return BAD_LENGTHS
    table = grammar(m, record + S_DISTANCES)
    if table == 0:
        return FINE if start == universal or (least == 0 and most < 0) else BAD_LENGTHS
    if table < 0 or table + D_TABLE > size(m, grammar):
        return OUT_OF_RANGE
    row, period = grammar(m, table + D_ROW), grammar(m, table + D_PERIOD)
    if grammar(m, table + D_BASE) != start or period < 1 or row < period:
        return BAD_LENGTHS
    begin = table + D_TABLE
    if begin + row * states(m, start) > size(m, grammar):
        return OUT_OF_RANGE
    shift = max(0, least - (row - period)) // period * period
    if free + row + 1 > size(m, order) or not _lengths_agree(m, states(m, start), table, free):
        return BAD_LENGTHS
    length = grammar(m, begin + least - shift)
    return FINE if length >= 0 and (most < 0 or length + shift <= most) else BAD_LENGTHS


@internal
def _clear_allowed(m, number):
    for w in range(number):
        set_allowed(m, w, 0)


@internal
def _check_keys(m, record):
    """A record's declared keys: in order, a bit each; ``allowed`` becomes the set of those with values."""
    number = grammar(m, record + O_WORDS)
    keys = number - (1 if grammar(m, record + O_EXISTENTIALS) else 0)
    entries, count = grammar(m, record + O_ENTRIES), grammar(m, record + O_COUNT)
    if entries >= size(m, grammar):  # the machine reads the first entry before it knows that there is one
        return OUT_OF_RANGE
    if keys < 1 or not is_sorted(m, entries, count):
        return NOT_IN_ORDER if keys >= 1 else BAD_KEY_SET
    _clear_allowed(m, number)
    for again in range(2):  # first all of them, so that no bit is there twice
        if again:
            _clear_allowed(m, number)
        for e in range(count):
            entry = entries + e * E_SIZE
            bit = grammar(m, entry + E_BIT)
            if bit < 0 or bit >= keys * SEEN_BITS or is_allowed(m, bit):
                return BAD_KEY_SET
            if not again or grammar(m, entry + E_CHILD) >= 0:
                set_allowed(m, bit // SEEN_BITS, allowed(m, bit // SEEN_BITS) | 1 << (bit % SEEN_BITS))
    return FINE if are_allowed(m, grammar(m, record + O_REQUIRED), number) else BAD_KEY_SET


@internal
def _check_dependents(m, record):
    """Keys that require others: whatever may be there leaves room for what it requires, directly or not."""
    number, most = grammar(m, record + O_WORDS), grammar(m, record + O_MAX)
    first, rows, required = (
        grammar(m, record + O_DEPENDENT),
        grammar(m, record + O_DEPENDENTS),
        grammar(m, record + O_REQUIRED),
    )
    for d in range(rows):
        bit, mask = grammar(m, first + 2 * d), grammar(m, first + 2 * d + 1)
        if bit < 0 or bit >= number * SEEN_BITS or mask < 0 or mask + number > size(m, words):
            return OUT_OF_RANGE
    for d in range(rows):
        bit, mask = grammar(m, first + 2 * d), grammar(m, first + 2 * d + 1)
        if not is_allowed(m, bit):
            continue
        total = 0
        for w in range(number):
            word = words(m, mask + w) | words(m, required + w)
            if w == bit // SEEN_BITS:
                word |= 1 << (bit % SEEN_BITS)
            total += count_bits(word)
        if not are_allowed(m, mask, number) or 0 <= most < total:
            return BAD_KEY_SET
        for other in range(rows if most >= 0 else 0):
            if has_bit(m, mask, grammar(m, first + 2 * other)):
                for w in range(number):
                    if (
                        words(m, grammar(m, first + 2 * other + 1) + w)
                        & ~words(m, mask + w)
                        & ~((1 << (bit % SEEN_BITS)) if w == bit // SEEN_BITS else 0)
                    ):
                        return BAD_KEY_SET
    return FINE


@internal
def _reads_name(m, entry, state):
    """The state in which an automaton reads the text of an entry, or -1."""
    for i in range(grammar(m, entry + E_LENGTH)):
        if state < 0:
            return state
        state = pool(m, state * 256 + texts(m, grammar(m, entry + E_OFFSET) + i))
    return state


@internal
def _check_classes(m, record):
    """Classes of undeclared keys: as many as the automaton has, and no declared key where they may run out."""
    start, classes, counts = grammar(m, record + O_START), grammar(m, record + O_CLASSES), grammar(m, record + O_COUNTS)
    if classes != labels(m, start) - CLASSES_START or narrow(m, start) > grammar(m, record + O_NARROW):
        return BAD_CLASSES
    if narrow(m, start):
        for e in range(grammar(m, record + O_COUNT)):
            state = _reads_name(m, grammar(m, record + O_ENTRIES) + e * E_SIZE, start)
            if state >= 0 and payload(m, state) > 0:
                return BAD_CLASSES
    if grammar(m, record + O_EXISTENTIALS) == 0:
        return FINE if counts == 0 else BAD_CLASSES
    if counts <= 0 or counts + states(m, start) * classes > size(m, grammar):
        return OUT_OF_RANGE
    for state in range(states(m, start)):
        for c in range(classes):
            total = np.int64(payload(m, start + state) == c + 1)
            for byte in range(256):
                following = pool(m, (start + state) * 256 + byte)
                if following >= 0:
                    total += grammar(m, counts + (following - start) * classes + c)
            if grammar(m, counts + state * classes + c) != min(total, ENDLESS_WORDS):
                return BAD_CLASSES
    return FINE


@internal
def check_object(m, record):
    """All of an object that does not depend on what its members' values are."""
    number, least, most = grammar(m, record + O_WORDS), grammar(m, record + O_MIN), grammar(m, record + O_MAX)
    verdict = _check_keys(m, record)
    if verdict != FINE:
        return verdict
    existentials = grammar(m, record + O_EXISTENTIALS)
    if existentials & (existentials + 1):
        return BAD_EXISTENTIALS
    required = 0
    for w in range(number):
        required += count_bits(words(m, grammar(m, record + O_REQUIRED) + w))
    if 0 <= most < max(least, required):
        return BAD_LIMITS
    verdict = _check_dependents(m, record)
    if verdict == FINE and grammar(m, record + O_OTHERS) == CLASSES:
        verdict = _check_classes(m, record)
    return verdict
