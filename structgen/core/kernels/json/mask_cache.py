"""Memory of masks: what was found once of a configuration is copied when it comes again.

The mask of a configuration is a function of its grammar, its lexical state and registers, and of the containers around
that its tokens look at: the innermost one, and one more for each that a token can close. A walk says how far that was
(register SHALLOWEST), so the key of a mask ends there: under the keys of fewer containers a slot says to look at one
more. Of a container the key has what can matter of it: its record, its items or members as far as they are counted,
keys seen, whether undeclared ones were, and the empty one among them (there are tokens that hold it whole). What
depends on more is not kept: on which undeclared keys there are, or on the text, as distinct items do (register ASKED).

Entries are the rows and tokens that a mask was made of. They lie in a ring; the gap that new ones are written to goes
round, and carries over those that were used since it last came by. All threads share a memory; where its lock is taken
a mask is made as if there was none.
"""

from structgen.core.kernels.bits import set_bits
from structgen.core.kernels.jit import internal
from structgen.core.kernels.json.emit import row_address
from structgen.core.kernels.json.frames import depth, frame_size, load, lookup
from structgen.core.kernels.json.layout import *
from structgen.core.kernels.json.plans import among_distinct
from structgen.core.kernels.json.tables import *
from structgen.core.kernels.memory import (
    address,
    clear_words,
    copy_words,
    element_writer,
    mask_word,
    or_words,
    size,
    try_lock,
    unlock,
    within,
    wrapped_mul,
)

_set_int = element_writer(32)
_MORE = -(1 << 63)


@internal
def _mixed(value, word):
    """A hash of one more word."""
    value = wrapped_mul(value ^ word, HASH_PRIME)
    return value ^ ((value >> 29) & ((1 << 35) - 1))


@internal
def _counted(m, record, count):
    """How many items or members there are, as far as that can matter from here on."""
    kind = grammar(m, record + R_KIND)
    if kind == R_OBJECT:
        endless = grammar(m, record + O_MAX) < 0 and grammar(m, record + O_NARROW) == 0
        if endless and grammar(m, record + O_COUNTS) == 0:
            return min(count, grammar(m, record + O_MIN))
    elif kind == R_ARRAY and grammar(m, record + A_MAX) < 0:
        return min(count, max(grammar(m, record + A_MIN), grammar(m, record + A_PREFIXES)))
    return count


@internal
def _key_start(m):
    """Write what a key begins with. Its words."""
    q, b = reg(m, Q), reg(m, B)
    set_key(m, 0, reg(m, REMEMBERS))
    set_key(m, 1, q)
    set_key(m, 2, reg(m, A))
    # The hash of an undeclared key matters only where it is looked for among others.
    set_key(m, 3, 0 if q >= STRING and q & ~15 == OTHER_KEY else b)
    indent = grammar(m, H_WHITESPACE) == INDENT and reg(m, FRAME) >= 0
    set_key(m, 4, depth(m, reg(m, FRAME)) if indent else 0)
    return 5


@internal
def _key_frame(m, words, frame):
    """Write what a key says of one more container, or (frame below 0) that there is none. Its words; -1: no room."""
    if words + 1 > KEY_WORDS:
        return -1
    if frame < 0:
        set_key(m, words, -1)
        return words + 1
    head = load(m, frame)
    record = head & LOW32
    set_key(m, words, record | (_counted(m, record, head >> 32) << 32))
    words += 1
    if grammar(m, record + R_KIND) == R_OBJECT:
        last = frame_size(m, record)
        if words + 1 + last - F_SEEN > KEY_WORDS:
            return -1
        others = load(m, frame + F_OTHERS)
        set_key(m, words, 0 if others < 0 else 2 if lookup(m, others, HASH_START) >= 0 else 1)
        words += 1
        for w in range(F_SEEN, last):
            set_key(m, words, load(m, frame + w))
            words += 1
    return words


@internal
def _hashed(m, value, first, last):
    """The hash of a key with the words first..last more."""
    for i in range(first, last):
        value = _mixed(value, key(m, i))
    return value


@internal
def _slot(hashed):
    """Where the slot of a hash lies."""
    return M_SLOTS + (hashed & (SLOTS - 1))


@internal
def _find(m):
    """The entry of the configuration in the registers, or 0."""
    words = _key_start(m)
    hashed, done, frame = HASH_START, 0, reg(m, FRAME)
    while True:
        words = _key_frame(m, words, frame)
        if words < 0:
            return 0
        hashed = _hashed(m, hashed, done, words)
        done = words
        entry = memory(m, _slot(hashed))
        if entry >= 0:
            break
        if entry != (hashed | _MORE) or frame < 0:
            return 0
        frame = load(m, frame + F_PARENT)
    if entry == 0 or memory(m, entry + N_HASH) != hashed or memory(m, entry + N_KEY) != words:
        return 0
    for i in range(words):
        if memory(m, entry + N_FIELDS + i) != key(m, i):
            return 0
    return entry


@internal
def _has_rows(m, entry):
    """Whether the context knows the blocks of an entry's rows: another thread may just have added them."""
    begin, row_count = entry + N_FIELDS + memory(m, entry + N_KEY), size(m, block)
    for i in range(memory(m, entry + N_ROWS)):
        if memory(m, begin + i) // BLOCK_ROWS >= row_count:
            return False
    return True


@internal
def _row_into(source, out, width, joined):
    """A row into the mask: over it, or (``joined``) to what is there."""
    if joined:
        or_words(source, out, width)
    else:
        copy_words(source, out, width)


@internal
def _is_new(m, row):
    """Whether a row is not known to be in the mask already; from now on it is. (Configurations share most rows.)"""
    count = reg(m, JOINED)
    for i in range(count):
        if joined_row(m, i) == row:
            return False
    if count < JOINED_ROWS:
        set_joined_row(m, count, row)
        set_reg(m, JOINED, count + 1)
    return True


@internal
def _replay(m, entry, out, joined):
    """The mask of an entry into the row at ``out``, or (``joined``) to what is there."""
    width = limit(m, L_WIDTH)
    rows, tokens = memory(m, entry + N_ROWS), memory(m, entry + N_TOKENS)
    begin = entry + N_FIELDS + memory(m, entry + N_KEY)
    within(entry, memory(m, entry + N_SIZE), size(m, memory))
    if tokens < 0:
        _row_into(address(m, memory) + 8 * begin, out, width, joined)
        return
    if rows == 0 and not joined:
        clear_words(out, width)
    for i in range(rows):
        row = memory(m, begin + i)
        if _is_new(m, row):
            _row_into(row_address(m, row), out, width, joined or i > 0)
    set_bits(out, width, address(m, memory) + 8 * (begin + rows), tokens)


@internal
def recall(m, out, joined):
    """Whether the mask of the configuration in the registers is known: then it is in the row at ``out``.

    Else what a walk notes is made ready.
    """
    set_reg(m, LOGGED_ROWS, 0)
    if reg(m, REMEMBERS) == 0:
        return False
    set_reg(m, LOGGED, LOG_ROWS)
    set_reg(m, ASKED, 0)
    frame = reg(m, FRAME)
    set_reg(m, SHALLOWEST, depth(m, frame) if frame >= 0 else 0)
    if grammar(m, H_UNIQUE):  # whether items can become new may be asked of all containers
        set_reg(m, SHALLOWEST, 0)
        if among_distinct(m):
            set_reg(m, ASKED, 1)
            return False
    lock = address(m, memory) + 8 * M_LOCK
    if not try_lock(lock):
        return False
    entry = _find(m)
    if entry and not _has_rows(m, entry):
        entry = 0
    if entry:
        _replay(m, entry, out, joined)
        set_memory(m, entry + N_USED, 1)
    unlock(lock)
    return entry != 0


@internal
def _move(m, entry, target):
    """Move an entry down in the ring. Its words."""
    words = memory(m, entry + N_SIZE)
    for i in range(words):
        set_memory(m, target + i, memory(m, entry + i))
    set_memory(m, target + N_USED, 0)
    return words


@internal
def _room(m, words):
    """The place of so many free words in the ring. Entries that were not used since the last time here go."""
    end, chances = size(m, memory), CHANCES
    while True:
        head, tail = memory(m, M_HEAD), memory(m, M_TAIL)
        if tail - head >= words:
            return head
        if tail >= memory(m, M_LAST):  # behind the gap there is nothing
            if end - head >= words:
                set_memory(m, M_TAIL, end)
                return head
            set_memory(m, M_LAST, head)
            set_memory(m, M_HEAD, M_RING)
            set_memory(m, M_TAIL, M_RING)
            continue
        taken = memory(m, tail + N_SIZE)
        slot = _slot(memory(m, tail + N_HASH))
        if memory(m, slot) == tail:
            if memory(m, tail + N_USED) and chances > 0:
                chances -= 1
                set_memory(m, slot, head)
                set_memory(m, M_HEAD, head + _move(m, tail, head))
            else:
                set_memory(m, slot, 0)
        set_memory(m, M_TAIL, tail + taken)


@internal
def _write_key(m):
    """Write the key of the configuration in the registers as far as its mask looked, and that in the slots on the way.

    (Its words, its hash); words -1: it is too long.
    """
    words = _key_start(m)
    hashed, done, frame = HASH_START, 0, reg(m, FRAME)
    level = depth(m, frame) if frame >= 0 else 0
    while True:
        words = _key_frame(m, words, frame)
        if words < 0:
            return -1, hashed
        hashed = _hashed(m, hashed, done, words)
        done = words
        if level <= reg(m, SHALLOWEST):
            return words, hashed
        set_memory(m, _slot(hashed), hashed | _MORE)
        frame = load(m, frame + F_PARENT)
        level -= 1


@internal
def _write(m, row, words, hashed):
    """Write an entry: the log of its mask, or the mask."""
    width = limit(m, L_WIDTH)
    rows, tokens = reg(m, LOGGED_ROWS), reg(m, LOGGED) - LOG_ROWS
    whole = rows > LOG_ROWS or tokens > LOG_TOKENS
    content = (width + 1) // 2 if whole else rows + (tokens + 1) // 2
    need = N_FIELDS + words + content
    if need > (size(m, memory) - M_RING) // 4:
        return
    entry = _room(m, need)
    begin = entry + N_FIELDS + words
    if whole:
        rows, tokens = 0, -1
        within(begin, content, size(m, memory))
        copy_words(row, address(m, memory) + 8 * begin, width)
    else:
        for i in range(rows):
            set_memory(m, begin + i, logged(m, i))
        ids, count = address(m, memory) + 8 * (begin + rows), 0
        for i in range(tokens):
            token = logged(m, LOG_ROWS + i)
            if (mask_word(row, token >> 5) >> (token & 31)) & 1:  # else it was taken back
                _set_int(ids, count, token)
                count += 1
        tokens = count
    for i in range(words):
        set_memory(m, entry + N_FIELDS + i, key(m, i))
    set_memory(m, entry + N_SIZE, need)
    set_memory(m, entry + N_HASH, hashed)
    set_memory(m, entry + N_USED, 0)
    set_memory(m, entry + N_KEY, words)
    set_memory(m, entry + N_ROWS, rows)
    set_memory(m, entry + N_TOKENS, tokens)
    set_memory(m, M_HEAD, entry + need)
    set_memory(m, _slot(hashed), entry)


@internal
def keep(m, row):
    """Keep the mask of the configuration in the registers, made in the row at ``row`` since `recall` missed it."""
    if reg(m, REMEMBERS) == 0 or reg(m, ASKED) or reg(m, GIVEN_UP):
        return
    lock = address(m, memory) + 8 * M_LOCK
    if not try_lock(lock):
        return
    words, hashed = _write_key(m)
    if words > 0:
        _write(m, row, words, hashed)
    unlock(lock)
