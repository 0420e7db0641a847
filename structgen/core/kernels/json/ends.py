"""Ends of strings and keys."""

from structgen.core.kernels.jit import internal
from structgen.core.kernels.json.escapes import escape_alive, hex_step, low_hex_step, simple_escape
from structgen.core.kernels.json.existentials import declared_alive, other_alive
from structgen.core.kernels.json.frames import add_hash, depth, load, new_frame
from structgen.core.kernels.json.items import is_fresh
from structgen.core.kernels.json.layout import *
from structgen.core.kernels.json.objects import admissible, others_admissible
from structgen.core.kernels.json.strings import feed, is_duplicate, replay, texts_of
from structgen.core.kernels.json.tables import *
from structgen.core.kernels.sorted.masks import stops


@internal
def value_done(m):
    """A value ends: what is expected behind it, and whether it may be an item of its array."""
    if grammar(m, H_UNIQUE) and not is_fresh(m, reg(m, FRAME), reg(m, POSITION) + 1):
        return DEAD
    set_reg(m, Q, AFTER)
    set_reg(m, A, 0)
    set_reg(m, B, 0 if grammar(m, H_WHITESPACE) == ANY else 1)
    return ALIVE


@internal
def key_done(m, frame, child):
    """A key ends in a new frame: the member's node comes after the colon."""
    set_reg(m, Q, COLON)
    set_reg(m, A, child)
    set_reg(m, B, 0 if grammar(m, H_WHITESPACE) == ANY else 1)
    set_reg(m, FRAME, frame)
    return ALIVE


@internal
def _close_declared_key(m, record, entry, alt):
    """The quote that ends a declared key."""
    frame = reg(m, FRAME)
    child, bits = grammar(m, entry + E_CHILD), 0
    if grammar(m, record + O_EXISTENTIALS):
        choices = child
        set_reg(m, ALTERNATIVES, grammar(m, choices))
        if alt >= grammar(m, choices) or not declared_alive(m, record, frame, entry, alt):
            return DEAD
        child, bits = grammar(m, choices + 1 + 2 * alt), grammar(m, choices + 2 + 2 * alt)
    count = (load(m, frame) >> 32) + 1
    parent = load(m, frame + F_PARENT)
    new = new_frame(m, record, count, parent, frame)
    if new < 0:
        return FULL
    bit = grammar(m, entry + E_BIT)
    word = new - SCRATCH + F_SEEN + bit // SEEN_BITS
    set_scratch(m, word, scratch(m, word) | 1 << (bit % SEEN_BITS))
    _meet(m, record, new, bits)
    _note_order(m, new, bit)
    return key_done(m, new, child)


@internal
def _note_order(m, frame, bit):
    """In a search, note in a frame in scratch which key was added last."""
    if reg(m, SEARCHING):
        set_scratch(m, frame - SCRATCH + F_DEPTH, depth(m, frame) | ((bit + 1) << 32))


@internal
def _meet(m, record, frame, bits):
    """Note in a frame in scratch that existentials are met."""
    if bits:
        word = frame - SCRATCH + F_SEEN + grammar(m, record + O_WORDS) - 1
        set_scratch(m, word, scratch(m, word) | bits)


@internal
def _close_other_key(m, record, state, hashed, alt):
    """The quote that ends an undeclared key."""
    frame = reg(m, FRAME)
    if not flags(m, state) & ACCEPTING or is_duplicate(m, frame, hashed):
        return DEAD
    child, bits = grammar(m, record + O_CHILD), 0
    if grammar(m, record + O_OTHERS) == CLASSES:
        child = grammar(m, child + payload(m, state))
    if grammar(m, record + O_EXISTENTIALS):
        choices = child
        set_reg(m, ALTERNATIVES, grammar(m, choices))
        if alt >= grammar(m, choices):
            return DEAD
        child, bits = grammar(m, choices + 1 + 2 * alt), grammar(m, choices + 2 + 2 * alt)
        if not other_alive(m, record, frame, bits):
            return DEAD
    count = (load(m, frame) >> 32) + 1
    parent = load(m, frame + F_PARENT)
    new = new_frame(m, record, count, parent, frame)
    if new < 0 or not add_hash(m, new, hashed, 0):
        return FULL
    _meet(m, record, new, bits)
    _note_order(m, new, ALL_DECLARED)
    return key_done(m, new, child)


@internal
def _quote(m, alt):
    """The closing quote of a string or key, which may be met in several ways."""
    mode = reg(m, Q) & ~15
    if mode == STRING:
        record = reg(m, A) & LOW32
        if not flags(m, reg(m, B) & LOW32) & ACCEPTING:
            return DEAD
        if record != 0 and (reg(m, B) >> 32) < grammar(m, record + S_MIN):
            return DEAD
        return value_done(m)
    if mode == ENUM:
        entry = grammar(m, (reg(m, A) & LOW32) + S_ENTRIES) + E_SIZE * (reg(m, B) & MASK20)
        if grammar(m, entry + E_LENGTH) != reg(m, B) >> 40:
            return DEAD
        return value_done(m)
    if mode == SORTED:
        return value_done(m) if stops(texts_of(m), reg(m, B)) else DEAD
    record = load(m, reg(m, FRAME)) & LOW32
    if mode == OTHER_KEY:
        return _close_other_key(m, record, reg(m, A) & LOW32, reg(m, B), alt)
    lo = reg(m, B) & MASK20
    if lo < (reg(m, B) >> 20) & MASK20:
        entry = grammar(m, record + O_ENTRIES) + E_SIZE * lo
        if grammar(m, entry + E_LENGTH) == reg(m, B) >> 40:
            if not admissible(m, record, reg(m, FRAME), entry):
                return DEAD
            return _close_declared_key(m, record, entry, alt)
    if not others_admissible(m, record, reg(m, FRAME)):
        return DEAD
    state, hashed = replay(m, record, reg(m, B))
    if state < 0:
        return DEAD
    return _close_other_key(m, record, state, hashed, alt)


@internal
def string_step(m, byte, alt):
    """One byte inside a string or key."""
    string_state = reg(m, Q) & 15
    if string_state == BODY:
        if byte == 0x22:
            return _quote(m, alt)
        if byte == 0x5C:
            if not escape_alive(m):
                return DEAD
            set_reg(m, Q, reg(m, Q) + ESCAPE)
            return ALIVE
        if byte < 0x20:
            return DEAD
        return ALIVE if feed(m, byte) else DEAD
    if string_state == ESCAPE:
        if byte == 0x75:
            set_reg(m, Q, reg(m, Q) + HEX - ESCAPE)
            return ALIVE
        point = simple_escape(m, byte)
        set_reg(m, Q, reg(m, Q) - ESCAPE)
        if point < 0:
            return DEAD
        return ALIVE if feed(m, point) else DEAD
    if string_state < LOW_BACKSLASH:
        return hex_step(m, byte)
    if string_state == LOW_BACKSLASH:
        set_reg(m, Q, reg(m, Q) + 1)
        return ALIVE if byte == 0x5C else DEAD
    if string_state == LOW_U:
        set_reg(m, Q, reg(m, Q) + 1)
        return ALIVE if byte == 0x75 else DEAD
    return low_hex_step(m, byte)
