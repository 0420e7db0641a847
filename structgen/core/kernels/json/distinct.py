"""Distinct items: whether one that was begun can become a new one; the step over a byte, which asks that."""

from structgen.core.kernels.jit import internal
from structgen.core.kernels.json.containers import item_node
from structgen.core.kernels.json.frames import load
from structgen.core.kernels.json.items import is_distinct, is_fresh
from structgen.core.kernels.json.keys import count_missing
from structgen.core.kernels.json.layout import *
from structgen.core.kernels.json.objects import admissible
from structgen.core.kernels.json.registers import restore_probe, save_probe
from structgen.core.kernels.json.strings import narrow, texts_of
from structgen.core.kernels.json.structure import literal_byte, plain_step
from structgen.core.kernels.json.tables import *
from structgen.core.kernels.json.unique_items_candidates import all_listed, is_listable, is_unrivalled, rivals
from structgen.core.kernels.memory import size
from structgen.core.kernels.sorted.masks import step as sorted_step
from structgen.core.kernels.sorted.masks import values_from

MAX_PROBES = 1 << 18  # steps of one search
COUNT_RIVALS = 16  # levels of a search behind which rivals are counted again; between them all items count
HEX_DIGITS = tuple(b"0123456789abcdef")
ESCAPES = tuple(b'"\\/bfnrtu')
MUST_ESCAPES = tuple(b'"\\u')
STRUCTURE_BYTES = tuple(b'}]:"tfn0123456789-[{,\n .e+')
FIRST_NUMBER_BYTE = 23  # of the bytes above: what only numbers hold


@internal
def count_values(m, state, kind):
    """How many values go on from a pool state; 0 if that is still to be computed, then ``regs[MISSING]`` names it."""
    count = count_of(m, 2 * state + kind)
    if count == 0:
        set_reg(m, MISSING, state)
    return count


@internal
def _strings_here(m, record, value):
    """How many values a string can still become, at least. 0: to be computed."""
    if record == 0:
        return MANY
    state, length = value & LOW32, value >> 32
    least, most = grammar(m, record + S_MIN), grammar(m, record + S_MAX)
    if grammar(m, record + S_DISTANCES) == 0 and state == limit(m, L_UNIVERSAL):
        return MANY if most < 0 or most > length else 1
    if most < 0 and length >= least:
        return count_values(m, state, 0)
    if length >= least and most - length >= SHORT_WORDS:
        return count_values(m, state, 1)
    return 1


@internal
def values_here(m):
    """How many values that which is being written can still become, at least. 0: to be computed (`MISS_COUNT`)."""
    q = reg(m, Q)
    if q == VALUE or q == COLON:
        return max(1, grammar(m, reg(m, A) + NODE_FLAGS) >> VALUES_SHIFT)
    if q == PAD or q == NEWLINE:
        node = reg(m, A) & ((1 << 40) - 1)
        return max(1, grammar(m, node + NODE_FLAGS) >> VALUES_SHIFT) if reg(m, A) >> 40 == VALUE else 1
    if q == NUMBER:
        return count_values(m, reg(m, B), 0)
    mode = q & ~15
    if mode == STRING and q & 15 == BODY:
        return _strings_here(m, reg(m, A) & LOW32, reg(m, B))
    if mode == ENUM and q & 15 == BODY:
        return ((reg(m, B) >> 20) & MASK20) - (reg(m, B) & MASK20)
    if mode == SORTED and q & 15 == BODY:
        return values_from(texts_of(m), reg(m, B), COUNTED_TEXTS)
    if mode == OTHER_KEY:
        record = load(m, reg(m, FRAME)) & LOW32
        return MANY if grammar(m, record + O_NARROW) == 0 and grammar(m, record + O_COUNTS) == 0 else 1
    return 1


@internal
def endless_frame(m, frame):
    """Whether an open container can go on in endlessly many ways, whatever value is being written in it."""
    head = load(m, frame)
    record, count = head & LOW32, head >> 32
    kind = grammar(m, record + R_KIND)
    if kind == R_COUNTED:
        return grammar(m, record + T_ENDLESS) != 0
    if kind == R_ARRAY:
        node = item_node(m, record, count, 0)
        if node < 0:
            return False
        if grammar(m, record + A_MAX) < 0 and not is_distinct(m, record) and grammar(m, record + A_ITEMS) >= 0:
            return True
        return (grammar(m, node + NODE_FLAGS) & ENDLESS_FLAG) != 0
    most = grammar(m, record + O_MAX)
    if most >= 0 and count + 2 + count_missing(m, record, frame, -1) > most:
        return False
    if grammar(m, record + O_OTHERS) != NO_OTHERS and grammar(m, record + O_NARROW) == 0:
        return most < 0 or grammar(m, record + O_EXISTENTIALS) == 0
    if grammar(m, record + O_EXISTENTIALS):
        return False
    for e in range(grammar(m, record + O_COUNT)):
        entry = grammar(m, record + O_ENTRIES) + E_SIZE * e
        child = grammar(m, entry + E_CHILD)
        if child >= 0 and grammar(m, child + NODE_FLAGS) & ENDLESS_FLAG and admissible(m, record, frame, entry):
            return True
    return False


@internal
def _outnumbered(m, last, end):
    """The outermost array of distinct items whose open item may have no more values left than there are items that it
    may still become equal to.

    Its frame, at most the frame ``last``; -1: none; -2: a count is to be computed. The text so far ends before ``end``;
    0: all items count, which costs less. Of an item in an item, the values that the inner array has already are taken
    off. What shows that the outermost item can become new shows it of those within.
    """
    frame, outermost, count = reg(m, FRAME), -1, 0
    closing = reg(m, Q) == CLOSE or (reg(m, Q) == PAD and reg(m, A) >> 40 == CLOSE)  # only the bracket may come
    is_open = reg(m, Q) != AFTER and not closing and reg(m, Q) != ARRAY_FIRST
    while frame >= 0:
        head = load(m, frame)
        used = (head >> 32) - 1
        if is_open and used > 0 and is_distinct(m, head & LOW32) and not is_unrivalled(m, frame):
            if count == 0:
                count = values_here(m)
                if count == 0:
                    return -2
            if count <= used and is_listable(m, frame):
                used = count if all_listed(m, frame) else count - 1
            elif count <= used and end > 0:
                used = rivals(m, frame, end)
            if count <= used:
                outermost, count = frame, 1
            elif count < MANY:
                count -= used
        if count < MANY and not closing and endless_frame(m, frame):
            count = MANY
        closing = False
        if frame == last:
            break
        is_open = True
        frame = load(m, frame + F_PARENT)
    return outermost


@internal
def _distinct_alive(m):
    """Whether, in every array of distinct items that is open, the item begun can become one that is not there yet."""
    if reg(m, FRAME) < 0:
        return ALIVE
    none = -1
    frame = _outnumbered(m, none, reg(m, POSITION) + 1)
    if frame == -2:
        return MISS_COUNT
    if frame == -1:
        return ALIVE
    return DEAD if is_listable(m, frame) else _finds_fresh(m, frame)


@internal
def _item_ended(m, frame):
    """Whether the configuration stands behind a finished, new item of an array's frame."""
    if reg(m, FRAME) != frame:
        return False
    q = reg(m, Q)
    if q == AFTER:
        return True
    if q != NUMBER or not flags(m, reg(m, B)) & ACCEPTING:
        return False
    return is_fresh(m, frame, reg(m, POSITION))


@internal
def _finds_fresh(m, frame):
    """List the values that the open item of an array's frame can become until one is new. Leaves ``regs`` as they were.

    ALIVE if there is one. Where the steps run out it is DEAD too, which narrows the mask and is counted.
    """
    position, alternatives = reg(m, POSITION), reg(m, ALTERNATIVES)
    save_probe(m, 0)
    outcome = _probe_items(m, frame, position)
    set_reg(m, SEARCHING, 0)
    if outcome < MISS:
        restore_probe(m, 0)
        set_reg(m, POSITION, position)
        set_reg(m, ALTERNATIVES, alternatives)
    return outcome


@internal
def _can_feed(m, byte):
    """Whether a raw byte may come in a string, enumeration or undeclared key; of declared keys the step tells."""
    mode = reg(m, Q) & ~15
    if mode == STRING:
        return pool(m, (reg(m, B) & LOW32) * 256 + byte) >= 0
    if mode == ENUM:
        return narrow(m, grammar(m, (reg(m, A) & LOW32) + S_ENTRIES), reg(m, B), byte) >= 0
    if mode == SORTED:
        return sorted_step(texts_of(m), reg(m, B), byte) != DEAD
    if mode == OTHER_KEY:
        return pool(m, (reg(m, A) & LOW32) * 256 + byte) >= 0
    return True


@internal
def _body_candidate(m, candidate):
    """(byte to try in a string or key outside escapes, number of the next) from the ``candidate``-th on; -1: none."""
    if candidate == 0:
        return 0x22, 1
    byte = max(candidate, 0x20)
    while byte < 256:
        if byte != 0x22 and (byte == BACKSLASH or _can_feed(m, byte)):
            return byte, byte + 1
        byte += 1
    return -1, candidate


@internal
def _escape_candidate(string_state, candidate, begun):
    """The same inside an escape: of what must be escaped, or any that was ``begun`` before."""
    if string_state == LOW_BACKSLASH or string_state == LOW_U:
        return -1 if candidate else (BACKSLASH if string_state == LOW_BACKSLASH else LETTER_U), 1
    if string_state == ESCAPE:
        if begun:
            return ESCAPES[candidate] if candidate < len(ESCAPES) else -1, candidate + 1
        return MUST_ESCAPES[candidate] if candidate < len(MUST_ESCAPES) else -1, candidate + 1
    most = 16
    if not begun and string_state < HEX + 3:
        most = 2 if string_state == HEX + 2 else 1
    return HEX_DIGITS[candidate] if candidate < most else -1, candidate + 1


@internal
def _structure_candidate(m, candidate):
    """The same outside strings. Blanks come only where options prescribe them, and a number goes on in one spelling."""
    q = reg(m, Q)
    if q == LITERAL:
        return -1 if candidate else literal_byte(reg(m, A), reg(m, B)), 1
    while candidate < len(STRUCTURE_BYTES):
        byte = STRUCTURE_BYTES[candidate]
        candidate += 1
        if byte == 0x20:
            fits = q == PAD
        elif byte == 0x0A:
            fits = grammar(m, H_WHITESPACE) == INDENT
        elif q == NUMBER and (candidate > FIRST_NUMBER_BYTE or byte == 0x2D or 0x30 <= byte <= 0x39):
            bit = (byte & 15) + (0 if 0x30 <= byte <= 0x39 else OTHER_SYMBOLS)
            fits = (symbols(m, reg(m, B)) >> bit) & 1 != 0
        else:
            fits = candidate <= FIRST_NUMBER_BYTE
        if fits:
            return byte, candidate
    return -1, candidate


@internal
def _candidate(m, candidate, begun):
    """(byte to try next, number of the one behind it) from the ``candidate``-th on; byte -1: none is left."""
    if reg(m, Q) < STRING:
        return _structure_candidate(m, candidate)
    string_state = reg(m, Q) & 15
    return (
        _body_candidate(m, candidate)
        if string_state == BODY
        else _escape_candidate(string_state, candidate, begun & IN_ESCAPE != 0)
    )


IN_KEY, IN_ESCAPE = 1, 2


@internal
def _still_begun(m, begun):
    """Which of the key (`IN_KEY`) and the escape (`IN_ESCAPE`) in which a search began it has not left yet."""
    mode = reg(m, Q) & ~15
    if mode != KEY and mode != OTHER_KEY:
        begun &= ~IN_KEY
    if reg(m, Q) < STRING or reg(m, Q) & 15 == BODY:
        begun &= ~IN_ESCAPE
    return begun


@internal
def _probe_items(m, frame, position):
    """Depth first over the values that the item can become: ALIVE, DEAD, or what a step asks for.

    A branch with more values than there are items holds a new one (`_outnumbered`), so that only such are followed that
    have few, and these have an end. Each value is met in few spellings: members in one order, no blanks, no escapes
    that need not be, one spelling of each number (`core.engines.json.goals.number_values`). A level of ``probe``
    is the configuration, the next candidate, its next alternative, and whether this is in what was begun before.
    """
    set_probe(m, 5, 0)
    set_probe(m, 6, 0)
    set_probe(m, 7, IN_KEY | IN_ESCAPE)
    steps, depth = 0, 0
    while depth >= 0:
        level = 8 * depth
        restore_probe(m, level)
        set_reg(m, POSITION, position + 1 + depth)
        candidate, alt = probe(m, level + 5), probe(m, level + 6)
        begun = _still_begun(m, probe(m, level + 7))
        set_reg(m, SEARCHING, 0 if begun & IN_KEY else 1)
        if reg(m, TOO_DEEP):
            return FULL
        if candidate == 0 and alt == 0 and depth > 0:
            if _item_ended(m, frame):
                return ALIVE
            few = _outnumbered(m, frame, 0 if depth % COUNT_RIVALS else position + 1 + depth)
            if few < 0:
                return ALIVE if few == -1 else MISS_COUNT
            if is_listable(m, frame):  # which was looked up whole
                depth -= 1
                continue
        byte, following = _candidate(m, candidate, begun)
        if byte < 0:
            depth -= 1
            continue
        steps += 1
        if steps > MAX_PROBES:
            set_reg(m, GIVEN_UP, reg(m, GIVEN_UP) + 1)
            return DEAD
        if position + depth + 3 > size(m, written) or level + 16 > size(m, probe):
            return FULL
        set_written(m, position + 1 + depth, byte)
        status = plain_step(m, byte, alt)
        if status >= MISS:
            return status
        more = alt + 1 < reg(m, ALTERNATIVES)
        set_probe(m, level + 5, candidate if more else following)
        set_probe(m, level + 6, alt + 1 if more else 0)
        if status == ALIVE:
            depth += 1
            save_probe(m, 8 * depth)
            set_probe(m, 8 * depth + 5, 0)
            set_probe(m, 8 * depth + 6, 0)
            set_probe(m, 8 * depth + 7, begun)
    return DEAD


@internal
def step(m, byte, alt):
    """One byte from the configuration in ``regs``, by alternative ``alt`` where it has several.

    Sets ``regs[ALTERNATIVES]`` (also when this one is dead). The result is DEAD, ALIVE, MISS (the pool row named in
    ``regs[MISSING]`` is to be filled) or FULL (scratch is too small).
    """
    if grammar(m, H_UNIQUE) == 0:
        status = plain_step(m, byte, alt)
    else:
        if reg(m, POSITION) + 2 > size(m, written):
            return FULL
        set_written(m, reg(m, POSITION), byte)
        status = plain_step(m, byte, alt)
        if status == ALIVE:
            status = _distinct_alive(m)
    if reg(m, TOO_DEEP):
        return FULL
    return status
