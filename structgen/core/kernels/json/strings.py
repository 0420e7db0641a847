"""The decoded bytes of strings and keys, as they are read."""

from structgen.core.kernels.jit import internal
from structgen.core.kernels.json.existentials import class_alive, live_words
from structgen.core.kernels.json.frames import load, lookup
from structgen.core.kernels.json.layout import *
from structgen.core.kernels.json.objects import any_admissible, others_admissible, undeclared_count
from structgen.core.kernels.json.tables import *
from structgen.core.kernels.memory import size, wrapped_mul
from structgen.core.kernels.sorted.masks import step as sorted_step


@internal
def string_alive(m, record, state, length):
    """Whether a value string in pool state ``state`` with ``length`` code points can be completed."""
    if record == 0:
        return True
    most = grammar(m, record + S_MAX)
    if most >= 0 and length > most:
        return False
    table = grammar(m, record + S_DISTANCES)
    if table == 0:
        return True
    row = grammar(m, table + D_ROW)
    period = grammar(m, table + D_PERIOD)
    wanted = max(grammar(m, record + S_MIN) - length, 0)
    shift = max(0, wanted - (row - period)) // period * period
    least = grammar(m, table + D_TABLE + (state - grammar(m, table + D_BASE)) * row + wanted - shift)
    return least >= 0 and (most < 0 or length + least + shift <= most)


@internal
def feed_string(m, record, value, byte):
    """The register b after one decoded byte, or -1."""
    state = pool(m, (value & LOW32) * 256 + byte)
    if state < 0:
        return -1
    length = value >> 32
    if record != 0 and (byte & 0xC0) != 0x80:
        most = grammar(m, record + S_MAX)
        if most >= 0 or length < grammar(m, record + S_MIN):
            length += 1
    if not string_alive(m, record, state, length):
        return -1
    return state | (length << 32)


@internal
def narrow(m, entries, value, byte):
    """The range of table entries after one decoded byte, or -1: binary search at the current depth."""
    lo = value & MASK20
    hi = (value >> 20) & MASK20
    depth = value >> 40
    if lo < hi and grammar(m, entries + E_SIZE * lo + E_LENGTH) == depth:
        lo += 1
    start, end = lo, hi
    while start < end:
        middle = (start + end) >> 1
        if text(m, grammar(m, entries + E_SIZE * middle + E_OFFSET) + depth) < byte:
            start = middle + 1
        else:
            end = middle
    first = start
    end = hi
    while start < end:
        middle = (start + end) >> 1
        if text(m, grammar(m, entries + E_SIZE * middle + E_OFFSET) + depth) <= byte:
            start = middle + 1
        else:
            end = middle
    if first == start:
        return -1
    return first | (start << 20) | ((depth + 1) << 40)


@internal
def hash_byte(value, byte):
    """FNV-1a, one byte more."""
    return wrapped_mul(value ^ byte, HASH_PRIME)


@internal
def replay(m, record, value):
    """(pool state, hash) of an undeclared key that spells what the key range has matched so far; state -1: none."""
    entry = grammar(m, record + O_ENTRIES) + E_SIZE * (value & MASK20)
    offset = grammar(m, entry + E_OFFSET)
    state = grammar(m, record + O_START)
    hashed = HASH_START
    for i in range(value >> 40):
        byte = text(m, offset + i)
        state = pool(m, state * 256 + byte)
        if state < 0:
            return state, hashed
        hashed = hash_byte(hashed, byte)
    return state, hashed


@internal
def is_duplicate(m, frame, hashed):
    """Whether the undeclared key with this hash is in the object already."""
    return lookup(m, load(m, frame + F_OTHERS), hashed) >= 0


@internal
def unused_word(m, record, frame, state, hashed):
    """Whether an undeclared key not yet in the object starts with what was read.

    ``words_left[state]`` is the number of words from there (-1: no bound). Only where it is no more than the keys that
    the object has, the words are enumerated, depth first.
    """
    counted = grammar(m, record + O_COUNTS) != 0
    left = ENDLESS_WORDS
    if counted:
        left = live_words(m, record, frame, state)
    elif grammar(m, record + O_NARROW) and words_left(m, state) >= 0:
        left = words_left(m, state)
    if left == 0 or left == ENDLESS_WORDS:
        return left != 0
    if left > undeclared_count(m, record, frame):
        return True
    set_search(m, 0, state)
    set_search(m, 1, hashed)
    depth = 2
    while depth > 0:
        depth -= 2
        current = search(m, depth)
        value = search(m, depth + 1)
        if flags(m, current) & ACCEPTING and not is_duplicate(m, frame, value):
            if not counted or class_alive(m, record, frame, payload(m, current) - 1):
                return True
        for byte in range(256):
            following = pool(m, current * 256 + byte)
            if following >= 0 and not (counted and live_words(m, record, frame, following) == 0):
                if depth + 2 > size(m, search):
                    set_reg(m, TOO_DEEP, 1)
                    return False
                set_search(m, depth, following)
                set_search(m, depth + 1, hash_byte(value, byte))
                depth += 2
    return False


@internal
def _feed_key(m, byte):
    """One decoded byte of a key that so far is a prefix of declared ones; may turn into an undeclared key."""
    frame = reg(m, FRAME)
    record = load(m, frame) & LOW32
    value = narrow(m, grammar(m, record + O_ENTRIES), reg(m, B), byte)
    if value >= 0 and any_admissible(m, record, frame, value & MASK20, (value >> 20) & MASK20):
        set_reg(m, B, value)
        return True
    if not others_admissible(m, record, frame):
        return False
    state, hashed = replay(m, record, reg(m, B))
    if state < 0:
        return False
    state = pool(m, state * 256 + byte)
    hashed = hash_byte(hashed, byte)
    if state < 0 or not unused_word(m, record, frame, state, hashed):
        return False
    if value >= 0:  # still a prefix of a declared key, but only an undeclared one can come of it
        set_reg(m, B, value)
        return True
    set_reg(m, Q, OTHER_KEY + (reg(m, Q) - KEY))
    set_reg(m, A, state | (reg(m, A) >> 32 << 32))
    set_reg(m, B, hashed)
    return True


@internal
def texts_of(m):
    """The tables of the sorted texts that the string in ``regs`` is one of."""
    return sorted_texts(m, grammar(m, (reg(m, A) & LOW32) + S_ENTRIES))


@internal
def feed(m, byte):
    """Feed one decoded byte (of the UTF-8 of the string) to the string or key in ``regs``. False: dead."""
    mode = reg(m, Q) & ~15
    if mode == STRING:
        value = feed_string(m, reg(m, A) & LOW32, reg(m, B), byte)
        if value < 0:
            return False
        set_reg(m, B, value)
        return True
    if mode == ENUM:
        value = narrow(m, grammar(m, (reg(m, A) & LOW32) + S_ENTRIES), reg(m, B), byte)
        if value < 0:
            return False
        set_reg(m, B, value)
        return True
    if mode == SORTED:
        value = sorted_step(texts_of(m), reg(m, B), byte)
        if value == DEAD:
            return False
        set_reg(m, B, value)
        return True
    if mode == KEY:
        return _feed_key(m, byte)
    state = pool(m, (reg(m, A) & LOW32) * 256 + byte)
    if state < 0:
        return False
    hashed = hash_byte(reg(m, B), byte)
    record = load(m, reg(m, FRAME)) & LOW32
    if not unused_word(m, record, reg(m, FRAME), state, hashed):
        return False
    set_reg(m, A, state | (reg(m, A) >> 32 << 32))
    set_reg(m, B, hashed)
    return True


@internal
def feed_code_point(m, point):
    """Feed one code point as UTF-8 (RFC 3629). How many of its bytes are not taken, from the refused one on."""
    if point < 0x80:
        return 0 if feed(m, point) else 1
    if point < 0x800:
        lead, tail = 0xC0 | (point >> 6), 1
    elif point < 0x10000:
        lead, tail = 0xE0 | (point >> 12), 2
    else:
        lead, tail = 0xF0 | (point >> 18), 3
    if not feed(m, lead):
        return tail + 1
    for i in range(tail):
        byte = 0x80 | ((point >> (6 * (tail - 1 - i))) & 0x3F)
        if not feed(m, byte):
            return tail - i
    return 0
