"""Checks of the JSON machine's tables before anything reads them: ranges, order, and that whatever is entered can end.

`structgen.machine.verify` says what records look like: this file knows no layout, since numba's cache would not see it
change. It gets fields' places by ``p`` (see `PARAMETERS`) and descriptions as ``layout`` rows (record kind, field,
what it holds, three arguments), sorted by kind; ``first[kind]`` is a kind's first row, ``sizes[kind]`` its length;
``dispatch`` rows (kind, field, value or `OTHERWISE`, kind) tell apart records that share a beginning;
``choose[kind]`` is a kind's first row there, or -1.
"""

import numpy as np
from numba import njit, types

# --- what a field holds ---
INT, REF, LIST, POOL, WORDS, TEXT = range(6)
# INT: least, most. REF: kind, the value that stands for none. LIST: kind of the elements, field of their number, how
# far behind the value they begin. POOL: one of the next line. WORDS, TEXT: field of the length.
STRING_START, NUMBER_START, CLASSES_START = range(3)
HERE = -1  # in place of a field: the record itself is where the elements of a list are
NOTHING = -(1 << 31)  # in place of "the value that stands for none": there is no such value
OTHERWISE = -1
# --- kinds of records that have a meaning here; `structgen.machine.verify` adds others ---
NODE, OBJECT, ARRAY, COUNTED, DFA_STRING, ENUM_STRING, MEANINGS = range(7)
# --- meaning of a parameter: fields, unless the name says otherwise ---
PARAMETERS = (
    "NODE_FLAGS", "NODE_STRINGS", "NODE_NUMBERS", "NODE_OBJECTS", "NODE_ARRAYS",
    "S_START", "S_MIN", "S_MAX", "S_DISTANCES", "S_ENTRIES", "S_COUNT",
    "D_BASE", "D_ROW", "D_PERIOD", "D_TABLE",
    "E_OFFSET", "E_LENGTH", "E_CHILD", "E_BIT", "E_SIZE",
    "O_ENTRIES", "O_COUNT", "O_WORDS", "O_REQUIRED", "O_MIN", "O_MAX", "O_OTHERS", "O_START", "O_CHILD",
    "O_DEPENDENT", "O_DEPENDENTS", "O_NARROW", "O_DUTIES", "O_CLASSES", "O_COUNTS",
    "A_PREFIX", "A_PREFIXES", "A_REST", "A_MIN", "A_MAX", "A_UNIQUE", "T_CLOSES", "T_COUNT", "T_CHOICES",
    "H_UNIQUE", "D_SLACK", "SEEN_BITS", "CLASSES", "NO_OTHERS", "PAIRED", "UNIVERSAL", "ENDLESS_WORDS",
)  # fmt: skip
(
    NODE_FLAGS, NODE_STRINGS, NODE_NUMBERS, NODE_OBJECTS, NODE_ARRAYS,
    S_START, S_MIN, S_MAX, S_DISTANCES, S_ENTRIES, S_COUNT,
    D_BASE, D_ROW, D_PERIOD, D_TABLE,
    E_OFFSET, E_LENGTH, E_CHILD, E_BIT, E_SIZE,
    O_ENTRIES, O_COUNT, O_WORDS, O_REQUIRED, O_MIN, O_MAX, O_OTHERS, O_START, O_CHILD,
    O_DEPENDENT, O_DEPENDENTS, O_NARROW, O_DUTIES, O_CLASSES, O_COUNTS,
    A_PREFIX, A_PREFIXES, A_REST, A_MIN, A_MAX, A_UNIQUE, T_CLOSES, T_COUNT, T_CHOICES,
    H_UNIQUE, D_SLACK, SEEN_BITS, CLASSES, NO_OTHERS, PAIRED, UNIVERSAL, ENDLESS_WORDS,
) = range(len(PARAMETERS))  # fmt: skip
# --- verdicts ---
(
    FINE, OUT_OF_RANGE, WRONG_KIND, NOT_IN_ORDER, TWO_KINDS, BAD_KEY_SET, BAD_LIMITS, BAD_LENGTHS, BAD_CLASSES,
    BAD_OBLIGATIONS, BAD_DISTINCT, NO_VALUE,
) = range(12)  # fmt: skip
MAX_DUTY_SETS = 64

_internal = njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy")
# A call hands over each array in seven parts: for what is called for each field that takes longer than the work.
_inlined = njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy", inline="always")


# --- what is reached, and whether it is where it should be ---
@_inlined
def _kind_at(g, choose, dispatch, kind, place):
    """The kind of the record at a place, as its own fields tell it; -1: none that it may be."""
    row = choose[kind]
    while row >= 0:
        if place + dispatch[row, 1] >= len(g):
            return -1
        value = g[place + dispatch[row, 1]]
        while dispatch[row, 2] != value and dispatch[row, 2] != OTHERWISE:
            row += 1
            if row == len(dispatch) or dispatch[row, 0] != kind:
                return -1
        kind = dispatch[row, 3]
        row = choose[kind]
    return kind


@_inlined
def _reach(g, sizes, choose, dispatch, seen, order, count, kind, place):
    """Take note of a record; (verdict, records so far)."""
    if place < 0 or place >= len(g):
        return OUT_OF_RANGE, count
    kind = _kind_at(g, choose, dispatch, kind, place)
    if kind < 0:
        return WRONG_KIND, count
    if place + sizes[kind] > len(g):
        return OUT_OF_RANGE, count
    if seen[place] == kind + 1:
        return FINE, count
    if seen[place] != 0:
        return TWO_KINDS, count
    seen[place] = kind + 1
    order[count] = place
    return FINE, count + 1


@_internal
def _is_start(labels, value, what):
    """Whether a pool state is where automata of a kind begin."""
    if value < 0 or value >= len(labels):
        return False
    if what == CLASSES_START:
        return labels[value] > CLASSES_START
    return labels[value] == what + 1


@_inlined
def _follow(g, words, texts, labels, layout, sizes, choose, dispatch, seen, order, count, place, row):
    """Check one field of a record and take note of what it leads to; (verdict, records so far)."""
    what = layout[row, 2]
    value = place if layout[row, 1] == HERE else np.int64(g[place + layout[row, 1]])
    if what == INT:
        return FINE if layout[row, 3] <= value <= layout[row, 4] else OUT_OF_RANGE, count
    if what == REF:
        if value == layout[row, 4]:
            return FINE, count
        return _reach(g, sizes, choose, dispatch, seen, order, count, layout[row, 3], value)
    if what == POOL:
        return FINE if _is_start(labels, value, layout[row, 3]) else WRONG_KIND, count
    number = np.int64(g[place + layout[row, 3 if what != LIST else 4]])
    if number < 0 or value < 0:
        return OUT_OF_RANGE, count
    if what == WORDS:
        return FINE if value + number <= len(words) else OUT_OF_RANGE, count
    if what == TEXT:
        return FINE if value + number <= len(texts) else OUT_OF_RANGE, count
    size, begin = sizes[layout[row, 3]], value + layout[row, 5]
    if begin + number * size > len(g):
        return OUT_OF_RANGE, count
    for element in range(number):
        verdict, count = _reach(g, sizes, choose, dispatch, seen, order, count, layout[row, 3], begin + element * size)
        if verdict != FINE:
            return verdict, count
    return FINE, count


# --- records by themselves ---
@_internal
def _is_sorted(g, texts, p, entries, count):
    """Whether the texts of a table ascend strictly; all of them lie in ``texts``."""
    for e in range(1, count):
        one, two = entries + (e - 1) * p[E_SIZE], entries + e * p[E_SIZE]
        first, second = g[one + p[E_LENGTH]], g[two + p[E_LENGTH]]
        same = 0
        while same < first and same < second:
            if texts[g[one + p[E_OFFSET]] + same] != texts[g[two + p[E_OFFSET]] + same]:
                break
            same += 1
        if same == second:
            return False
        if same < first and texts[g[one + p[E_OFFSET]] + same] > texts[g[two + p[E_OFFSET]] + same]:
            return False
    return True


@_internal
def _length_from(g, begin, row, period, k):
    """What a state's row of the table (at ``begin``) says of lengths from ``k`` on, at most ``row``."""
    if k < row:
        return np.int64(g[begin + k])
    known = np.int64(g[begin + k - period])
    return known + period if known >= 0 else known


@_internal
def _least_length(g, pool, begin, row, period, start, state, k):
    """The least length from ``k`` on of the texts that begin with one more byte; -1: there is none."""
    found = np.int64(-1)
    before, taken = np.int64(-1), -1
    for byte in range(256):
        after = np.int64(pool[state * 256 + byte])
        more = 1 if byte & 0xC0 != 0x80 else 0
        if after < 0 or (after == before and more == taken):
            continue
        before, taken = after, more
        length = _length_from(g, begin + (after - start) * row, row, period, max(k - more, 0))
        if length >= 0 and (found < 0 or length + more < found):
            found = length + more
    return found


@_internal
def _lengths_agree(g, pool, accepting, p, number, table):
    """Whether a table of lengths says of each state what it says of those that follow, and of its slack."""
    start, row, period = np.int64(g[table + p[D_BASE]]), np.int64(g[table + p[D_ROW]]), np.int64(g[table + p[D_PERIOD]])
    begin, slack = table + p[D_TABLE], np.int64(0) if number > 1 else np.int64(-1)
    for state in range(number):
        for k in range(row + 1):  # the last stands for all that follow, period by period
            known = _length_from(g, begin + state * row, row, period, k)
            least = _least_length(g, pool, begin, row, period, start, start + state, k)
            if k == 0 and accepting[start + state] & 1:
                least = np.int64(0)
            if least != known:
                return False
            if state > 0 and k < row:
                slack = max(slack, known - k) if known >= 0 and slack >= 0 else np.int64(-1)
    return g[table + p[D_SLACK]] == slack


@_internal
def _check_lengths(g, pool, accepting, p, states, record):
    """A string's limits, and its table of lengths, if there is one."""
    start, least, most = g[record + p[S_START]], g[record + p[S_MIN]], g[record + p[S_MAX]]
    if 0 <= most < least:
        return BAD_LENGTHS
    table = g[record + p[S_DISTANCES]]
    if table == 0:
        return FINE if start == p[UNIVERSAL] or (least == 0 and most < 0) else BAD_LENGTHS
    if table < 0 or table + p[D_TABLE] > len(g):
        return OUT_OF_RANGE
    row, period = np.int64(g[table + p[D_ROW]]), np.int64(g[table + p[D_PERIOD]])
    if g[table + p[D_BASE]] != start or period < 1 or row < period:
        return BAD_LENGTHS
    begin = table + p[D_TABLE]
    if begin + row * states[start] > len(g):
        return OUT_OF_RANGE
    shift = max(np.int64(0), least - (row - period)) // period * period
    if not _lengths_agree(g, pool, accepting, p, states[start], table):
        return BAD_LENGTHS
    found = g[begin + least - shift]
    return FINE if found >= 0 and (most < 0 or found + shift <= most) else BAD_LENGTHS


@_internal
def _bits(word):
    count = 0
    while word:
        word &= word - 1
        count += 1
    return count


@_internal
def _has(mask, first, bit, width):
    return (mask[first + bit // width] >> (bit % width)) & 1


@_internal
def _within(one, first, two, second, number):
    """Whether a set of bits is part of another."""
    for w in range(number):
        if one[first + w] & ~two[second + w]:
            return False
    return True


@_internal
def _check_keys(g, words, texts, p, allowed, record):
    """A record's declared keys: in order, a bit each; ``allowed`` becomes the set of those with values."""
    width, number = p[SEEN_BITS], np.int64(g[record + p[O_WORDS]])
    keys = number - (1 if g[record + p[O_DUTIES]] else 0)
    entries, count = g[record + p[O_ENTRIES]], g[record + p[O_COUNT]]
    if entries >= len(g):  # the machine reads the first entry before it knows that there is one
        return OUT_OF_RANGE
    if keys < 1 or not _is_sorted(g, texts, p, entries, count):
        return NOT_IN_ORDER if keys >= 1 else BAD_KEY_SET
    allowed[:number] = 0
    for live in range(2):  # first all of them, so that no bit is there twice
        if live:
            allowed[:number] = 0
        for e in range(count):
            entry = entries + e * p[E_SIZE]
            bit = g[entry + p[E_BIT]]
            if bit < 0 or bit >= keys * width or _has(allowed, 0, bit, width):
                return BAD_KEY_SET
            if not live or g[entry + p[E_CHILD]] >= 0:
                allowed[bit // width] |= np.int64(1) << (bit % width)
    return FINE if _within(words, g[record + p[O_REQUIRED]], allowed, 0, number) else BAD_KEY_SET


@_internal
def _check_dependents(g, words, p, allowed, record):
    """Keys that require others: whatever may be there leaves room for what it requires, directly or not."""
    width, number, most = p[SEEN_BITS], np.int64(g[record + p[O_WORDS]]), g[record + p[O_MAX]]
    first, rows, required = g[record + p[O_DEPENDENT]], g[record + p[O_DEPENDENTS]], g[record + p[O_REQUIRED]]
    for d in range(rows):
        bit, mask = g[first + 2 * d], np.int64(g[first + 2 * d + 1])
        if bit < 0 or bit >= number * width or mask < 0 or mask + number > len(words):
            return OUT_OF_RANGE
    for d in range(rows):
        bit, mask = g[first + 2 * d], g[first + 2 * d + 1]
        if not _has(allowed, 0, bit, width):
            continue
        total = 0
        for w in range(number):
            word = words[mask + w] | words[required + w]
            if w == bit // width:
                word |= np.int64(1) << (bit % width)
            total += _bits(word)
        if not _within(words, mask, allowed, 0, number) or 0 <= most < total:
            return BAD_KEY_SET
        for other in range(rows if most >= 0 else 0):
            if _has(words, mask, g[first + 2 * other], width):
                for w in range(number):
                    if (
                        words[g[first + 2 * other + 1] + w]
                        & ~words[mask + w]
                        & ~((np.int64(1) << (bit % width)) if w == bit // width else np.int64(0))
                    ):
                        return BAD_KEY_SET
    return FINE


@_internal
def _reads_name(g, texts, pool, p, entry, state):
    """The state in which an automaton reads the text of an entry, or -1."""
    for i in range(g[entry + p[E_LENGTH]]):
        if state < 0:
            return state
        state = np.int64(pool[state * 256 + texts[g[entry + p[E_OFFSET]] + i]])
    return state


@_internal
def _check_classes(g, texts, pool, payload, labels, narrow, states, p, record):
    """Classes of undeclared keys: as many as the automaton has, and no declared key where they may run out."""
    start, classes, counts = g[record + p[O_START]], g[record + p[O_CLASSES]], np.int64(g[record + p[O_COUNTS]])
    if classes != labels[start] - CLASSES_START or narrow[start] > g[record + p[O_NARROW]]:
        return BAD_CLASSES
    if narrow[start]:
        for e in range(g[record + p[O_COUNT]]):
            state = _reads_name(g, texts, pool, p, g[record + p[O_ENTRIES]] + e * p[E_SIZE], start)
            if state >= 0 and payload[state] > 0:
                return BAD_CLASSES
    if g[record + p[O_DUTIES]] == 0:
        return FINE if counts == 0 else BAD_CLASSES
    if counts <= 0 or counts + np.int64(states[start]) * classes > len(g):
        return OUT_OF_RANGE
    for state in range(np.int64(states[start])):
        for c in range(classes):
            total = np.int64(payload[start + state] == c + 1)
            for byte in range(256):
                following = np.int64(pool[(start + state) * 256 + byte])
                if following >= 0:
                    total += g[counts + (following - start) * classes + c]
            if g[counts + state * classes + c] != min(total, np.int64(p[ENDLESS_WORDS])):
                return BAD_CLASSES
    return FINE


@_internal
def _check_object(g, words, texts, pool, payload, labels, narrow, states, p, allowed, record):
    """All of an object that does not depend on what its members' values are."""
    number, least, most = np.int64(g[record + p[O_WORDS]]), g[record + p[O_MIN]], g[record + p[O_MAX]]
    verdict = _check_keys(g, words, texts, p, allowed, record)
    if verdict != FINE:
        return verdict
    duties = g[record + p[O_DUTIES]]
    if duties & (duties + 1):
        return BAD_OBLIGATIONS
    required = 0
    for w in range(number):
        required += _bits(words[g[record + p[O_REQUIRED]] + w])
    if 0 <= most < max(np.int64(least), required):
        return BAD_LIMITS
    verdict = _check_dependents(g, words, p, allowed, record)
    if verdict == FINE and g[record + p[O_OTHERS]] == p[CLASSES]:
        verdict = _check_classes(g, texts, pool, payload, labels, narrow, states, p, record)
    return verdict


# --- what has a value ---
@_internal
def _member_live(g, live, child, duties):
    """Whether a member's plain value exists; ``child``: its node, or its choices."""
    return live[g[child + 1] if duties else child] != 0


@_internal
def _add_ways(g, live, child, cost, spare, cheapest, once):
    """Let a member meet obligations by one of its choices: update the least room that each set of them takes.

    ``once``: there is one such member, else there are as many as one likes.
    """
    for met in range(MAX_DUTY_SETS):
        spare[met] = cheapest[met]
    changed = True
    while changed:
        changed = False
        for c in range(g[child]):
            node, bits = g[child + 1 + 2 * c], g[child + 2 + 2 * c]
            if live[node] == 0:
                continue
            for met in range(MAX_DUTY_SETS):
                source = spare[met] if once else cheapest[met]
                if source + cost < cheapest[(met | bits) & (MAX_DUTY_SETS - 1)]:
                    cheapest[(met | bits) & (MAX_DUTY_SETS - 1)] = source + cost
                    changed = not once


@_internal
def _covers(g, words, p, live, record, room, spare, cheapest):
    """Whether members can meet all obligations of an object, with ``room`` for those that are not required."""
    width = p[SEEN_BITS]
    cheapest[:] = 1 << 30
    cheapest[0] = 0
    for e in range(g[record + p[O_COUNT]]):
        entry = g[record + p[O_ENTRIES]] + e * p[E_SIZE]
        if g[entry + p[E_CHILD]] >= 0:
            cost = 1 - _has(words, g[record + p[O_REQUIRED]], g[entry + p[E_BIT]], width)
            _add_ways(g, live, g[entry + p[E_CHILD]], cost, spare, cheapest, True)
    child = g[record + p[O_CHILD]]
    if g[record + p[O_OTHERS]] == p[CLASSES]:
        for c in range(g[record + p[O_CLASSES]]):
            _add_ways(g, live, g[child + 1 + c], 1, spare, cheapest, False)
    elif g[record + p[O_OTHERS]] != p[NO_OTHERS]:
        _add_ways(g, live, child, 1, spare, cheapest, False)
    return cheapest[g[record + p[O_DUTIES]]] <= room


@_internal
def _undeclared_words(g, p, live, class_words, record):
    """How many undeclared keys with values an object can have at most."""
    others, child, duties = g[record + p[O_OTHERS]], g[record + p[O_CHILD]], g[record + p[O_DUTIES]]
    if others == p[NO_OTHERS]:
        return np.int64(0)
    if others != p[CLASSES]:
        return np.int64(p[ENDLESS_WORDS]) if _member_live(g, live, child, duties) else np.int64(0)
    total = np.int64(0)
    for c in range(g[record + p[O_CLASSES]]):
        if _member_live(g, live, g[child + 1 + c], duties):
            total += class_words[g[record + p[O_START]] + c]
    return total


@_internal
def _object_live(g, words, p, live, class_words, record, spare, cheapest):
    """Whether an object has a value, as far as is known which nodes have."""
    width, duties, most = p[SEEN_BITS], g[record + p[O_DUTIES]], g[record + p[O_MAX]]
    members, required = np.int64(0), 0
    for e in range(g[record + p[O_COUNT]]):
        entry = g[record + p[O_ENTRIES]] + e * p[E_SIZE]
        child = g[entry + p[E_CHILD]]
        alive = child >= 0 and _member_live(g, live, child, duties)
        members += alive
        if _has(words, g[record + p[O_REQUIRED]], g[entry + p[E_BIT]], width):
            required += 1
            if not alive:
                return False
    if duties:
        room = (1 << 30) if most < 0 else most - required
        if not _covers(g, words, p, live, record, room, spare, cheapest):
            return False
    undeclared = _undeclared_words(g, p, live, class_words, record)
    return undeclared >= p[ENDLESS_WORDS] or members + undeclared >= g[record + p[O_MIN]]


@_internal
def _array_live(g, p, live, record):
    """Whether an array can have as many items as it must (two, if two must be equal)."""
    least, most = np.int64(g[record + p[A_MIN]]), g[record + p[A_MAX]]
    if g[record + p[A_UNIQUE]] == p[PAIRED]:
        least = max(least, np.int64(2))
    if 0 <= most < least:
        return False
    prefixes = g[record + p[A_PREFIXES]]
    for index in range(min(least, np.int64(prefixes))):
        node = g[g[record + p[A_PREFIX]] + index]
        if node < 0 or live[node] == 0:
            return False
    rest = g[record + p[A_REST]]
    return least <= prefixes or (rest >= 0 and live[rest] != 0)


@_internal
def _counted_live(g, p, live, record):
    """Whether an array whose items are counted may close, or an item leads to where it can be closed."""
    if g[record + p[T_CLOSES]]:
        return True
    for c in range(g[record + p[T_COUNT]]):
        choice = g[record + p[T_CHOICES]] + 2 * c
        if live[g[choice]] and live[g[choice + 1]]:
            return True
    return False


@_internal
def _any_live(g, live, list_, number):
    for i in range(number):
        if live[g[list_ + i]]:
            return True
    return False


@_internal
def _node_live(g, p, live, node):
    if g[node + p[NODE_FLAGS]] & 7 or g[node + p[NODE_STRINGS] + 1] or g[node + p[NODE_NUMBERS] + 1]:
        return True
    if _any_live(g, live, g[node + p[NODE_OBJECTS]], g[node + p[NODE_OBJECTS] + 1]):
        return True
    return _any_live(g, live, g[node + p[NODE_ARRAYS]], g[node + p[NODE_ARRAYS] + 1])


@_internal
def _spread(g, words, p, meanings, class_words, seen, order, count, live, spare, cheapest):
    """The least fixpoint, last found first (mostly children): the place of a record without a value, or -1."""
    changed = True
    dead = 0
    while changed:
        changed, dead = False, -1
        for number in range(count - 1, -1, -1):
            place = order[number]
            kind = meanings[seen[place] - 1]
            if live[place] or kind < 0:
                continue
            if kind == NODE:
                alive = _node_live(g, p, live, place)
            elif kind == OBJECT:
                alive = _object_live(g, words, p, live, class_words, place, spare, cheapest)
            elif kind == ARRAY:
                alive = _array_live(g, p, live, place)
            elif kind == COUNTED:
                alive = _counted_live(g, p, live, place)
            else:
                alive = True
            if alive:
                live[place] = 1
                changed = True
            else:
                dead = place
    return dead


_I32, _I64, _U8, _I32S = types.int32[::1], types.int64[::1], types.uint8[::1], types.int32[:, ::1]


_FROM_TABLES = (_I32, _I64, _U8)
_FROM_POOL = (_I32,) * 7
_RECORDS = (_I32S, _I32, _I32, _I32, _I32, _I32S)


@njit(
    types.int64(*_FROM_TABLES, *_FROM_POOL, *_RECORDS, _I64, types.int64, _I64),
    cache=True,
    nogil=True,
    error_model="numpy",
)
def check_tables(
    g, words, texts, pool, accepting, payload, class_words, labels, narrow, states, layout, first, sizes, meanings,
    choose, dispatch, p, root_kinds, where,
):  # fmt: skip
    """Check tables from their roots on; a verdict, FINE or what is wrong at place ``where[0]``, field ``where[1]``.

    ``where`` holds the roots on entry: ``root_kinds`` pairs (place, kind). ``meanings[kind]`` is what a kind is here,
    or -1. ``labels[state]``: 0, or, where an automaton starts, STRING_START + 1, NUMBER_START + 1, CLASSES_START + the
    number of classes; ``narrow`` and ``states`` of it: whether it has beginnings of finitely many words; its size;
    ``class_words[state + c]``: how many words its class ``c`` has.
    Linear in the tables, for each round of the fixpoint.
    """
    seen, order = np.zeros(len(g), np.int32), np.zeros(len(g), np.int32)
    allowed = np.zeros(len(words), np.int64)
    count = 0
    for r in range(root_kinds):
        place, kind = where[2 * r], where[2 * r + 1]
        verdict, count = _reach(g, sizes, choose, dispatch, seen, order, count, kind, place)
        if verdict != FINE:
            where[0], where[1] = place, 0
            return verdict
    done = 0
    while done < count:
        place = np.int64(order[done])
        kind = seen[place] - 1
        done += 1
        where[0], where[1] = place, 0
        for row in range(first[kind], first[kind + 1]):
            where[1] = layout[row, 1]
            verdict, count = _follow(
                g, words, texts, labels, layout, sizes, choose, dispatch, seen, order, count, place, row
            )
            if verdict != FINE:
                return verdict
    for number in range(count):
        place = np.int64(order[number])
        meaning = meanings[seen[place] - 1]
        where[0], where[1] = place, 0
        verdict = FINE
        if meaning == OBJECT:
            verdict = _check_object(g, words, texts, pool, payload, labels, narrow, states, p, allowed, place)
        elif meaning == ARRAY or meaning == COUNTED:
            verdict = BAD_DISTINCT if g[place + p[A_UNIQUE]] and g[p[H_UNIQUE]] == 0 else FINE
        elif meaning == DFA_STRING:
            verdict = _check_lengths(g, pool, accepting, p, states, place)
        elif meaning == ENUM_STRING and not _is_sorted(g, texts, p, g[place + p[S_ENTRIES]], g[place + p[S_COUNT]]):
            verdict = NOT_IN_ORDER
        if verdict != FINE:
            return verdict
    live = np.zeros(len(g), np.int8)
    spare, cheapest = np.zeros(MAX_DUTY_SETS, np.int64), np.zeros(MAX_DUTY_SETS, np.int64)
    where[0] = _spread(g, words, p, meanings, class_words, seen, order, count, live, spare, cheapest)
    where[1] = 0
    return FINE if where[0] < 0 else NO_VALUE


@njit(types.int64(types.int32[:, ::1], types.uint8[::1]), cache=True, nogil=True, error_model="numpy")
def check_automaton(transitions, accepting):
    """-1, or a state (start 0) that leads out of the table or to no accepting state. Linear, a round for each layer
    of states that are not numbered in breadth-first order."""
    count = len(accepting)
    live = np.zeros(count, np.uint8)
    for state in range(count):
        live[state] = accepting[state]
        for byte in range(256):
            if transitions[state, byte] < -1 or transitions[state, byte] >= count:
                return state
    changed = True
    dead = -1
    while changed:
        changed, dead = False, -1
        for state in range(count - 1, -1, -1):
            if live[state]:
                continue
            for byte in range(256):
                after = transitions[state, byte]
                if after >= 0 and live[after]:
                    live[state] = 1
                    changed = True
                    break
            if not live[state]:
                dead = state
    return dead if count else 0
