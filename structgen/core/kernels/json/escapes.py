"""Escapes in strings and keys (RFC 8259, section 7), and whether one that was begun can be finished."""

from structgen.core.kernels.jit import internal
from structgen.core.kernels.json.frames import load
from structgen.core.kernels.json.layout import *
from structgen.core.kernels.json.objects import admissible, others_admissible
from structgen.core.kernels.json.registers import set_string
from structgen.core.kernels.json.strings import feed, feed_code_point, texts_of
from structgen.core.kernels.json.tables import *
from structgen.core.kernels.sorted.masks import is_within_character


@internal
def _inside_sequence(m):
    """Whether the string is between the bytes of one UTF-8 sequence, where no escape may stand."""
    mode = reg(m, Q) & ~15
    if mode == STRING:
        return (flags(m, reg(m, B) & LOW32) & PARTIAL) != 0
    if mode == OTHER_KEY:
        return (flags(m, reg(m, A) & LOW32) & PARTIAL) != 0
    if mode == SORTED:
        return is_within_character(texts_of(m), reg(m, B))
    return False  # tables: checked by the caller, who knows the entries


@internal
def table_inside_sequence(m, entries, value):
    """The same for a table range: the next byte of its entries (all alike in this) is a continuation byte."""
    hi = (value >> 20) & MASK20
    depth = value >> 40
    if hi == 0 or depth == 0:
        return False
    entry = entries + E_SIZE * (hi - 1)
    if grammar(m, entry + E_LENGTH) <= depth:
        return False
    return (text(m, grammar(m, entry + E_OFFSET) + depth) & 0xC0) == 0x80


@internal
def _points_alive(m, first, last):
    """Whether some code point in first..last may come next. Leaves ``regs`` as they were.

    Where a byte is refused, so are all code points whose UTF-8 begins alike.
    """
    q, a, b = reg(m, Q), reg(m, A), reg(m, B)
    point = first
    while point <= last:
        if 0xD800 <= point <= 0xDFFF:
            point = 0xE000
            continue
        left = feed_code_point(m, point)
        set_string(m, q, a, b)
        if left == 0:
            return True
        shift = 6 * (left - 1)  # bits of the bytes behind the one that was refused
        point = ((point >> shift) + 1) << shift
    return False


@internal
def _decode(m, position):
    """The code point whose UTF-8 starts at ``position``."""
    byte = text(m, position)
    if byte < 0x80:
        return byte
    if byte < 0xE0:
        return ((byte & 0x1F) << 6) | (text(m, position + 1) & 0x3F)
    if byte < 0xF0:
        return ((byte & 0x0F) << 12) | ((text(m, position + 1) & 0x3F) << 6) | (text(m, position + 2) & 0x3F)
    return (
        ((byte & 0x07) << 18)
        | ((text(m, position + 1) & 0x3F) << 12)
        | ((text(m, position + 2) & 0x3F) << 6)
        | (text(m, position + 3) & 0x3F)
    )


@internal
def _table_points_alive(m, record, entries, first, last):
    """Whether a live entry of the range continues with a code point in first..last."""
    value = reg(m, B)
    depth = value >> 40
    for e in range(value & MASK20, (value >> 20) & MASK20):
        entry = entries + E_SIZE * e
        if grammar(m, entry + E_LENGTH) > depth:
            point = _decode(m, grammar(m, entry + E_OFFSET) + depth)
            if first <= point <= last and (record < 0 or admissible(m, record, reg(m, FRAME), entry)):
                return True
    return False


@internal
def _range_alive(m, first, last):
    """`_points_alive` by the cheapest route of each mode."""
    mode = reg(m, Q) & ~15
    if mode == ENUM:
        entries = grammar(m, (reg(m, A) & LOW32) + S_ENTRIES)
        return _table_points_alive(m, -1, entries, first, last)
    if mode == KEY:
        record = load(m, reg(m, FRAME)) & LOW32
        if _table_points_alive(m, record, grammar(m, record + O_ENTRIES), first, last):
            return True
        if not others_admissible(m, record, reg(m, FRAME)):
            return False
        if grammar(m, record + O_OTHERS) == ONE_CLASS and grammar(m, record + O_NARROW) == 0:
            return not (first >= 0xD800 and last <= 0xDFFF)
    return _points_alive(m, first, last)


@internal
def escape_alive(m):
    """Whether a backslash may come: outside a UTF-8 sequence, with a live character that an escape may spell."""
    mode = reg(m, Q) & ~15
    if mode == STRING or mode == OTHER_KEY or mode == SORTED:
        if _inside_sequence(m):
            return False
    else:
        record = load(m, reg(m, FRAME)) & LOW32 if mode == KEY else reg(m, A) & LOW32
        entries = grammar(m, record + O_ENTRIES) if mode == KEY else grammar(m, record + S_ENTRIES)
        if table_inside_sequence(m, entries, reg(m, B)):
            return False
    if grammar(m, H_ESCAPES) == 0:
        return _must_escape_alive(m, 0, 0x5C)
    q, a, b = reg(m, Q), reg(m, A), reg(m, B)
    alive = False
    for byte in range(0xF5):  # first bytes of UTF-8 sequences; each live one leads to a live code point
        if byte < 0x80 or byte >= 0xC2:
            alive = feed(m, byte)
            set_string(m, q, a, b)
            if alive:
                break
    return alive


@internal
def _must_escape_alive(m, first, last):
    """Whether a character in first..last that must be escaped (control, quote, backslash) may come next."""
    if first <= 0x1F and _range_alive(m, first, min(last, 0x1F)):
        return True
    for point in (0x22, 0x5C):
        if first <= point <= last and _range_alive(m, point, point):
            return True
    return False


@internal
def hex_value(byte):
    """The value of a hexadecimal digit, or -1."""
    if 0x30 <= byte <= 0x39:
        return byte - 0x30
    lower = byte | 0x20
    if 0x61 <= lower <= 0x66:
        return lower - 0x57
    return -1


@internal
def _units_alive(m, first, last):
    """Whether some UTF-16 unit in first..last (a whole character or a high surrogate) may be spelled next."""
    if grammar(m, H_ESCAPES) == 0:
        return _must_escape_alive(m, first, last)
    if _range_alive(m, first, last):
        return True
    high_first, high_last = max(first, 0xD800), min(last, 0xDBFF)
    if high_first > high_last:
        return False
    low_point = 0x10000 + ((high_first - 0xD800) << 10)
    high_point = 0x10000 + ((high_last - 0xD800) << 10) + 0x3FF
    return _range_alive(m, low_point, high_point)


@internal
def hex_step(m, byte):
    """A hexadecimal digit of ``\\uXXXX`` (first or only unit)."""
    digit = hex_value(byte)
    if digit < 0:
        return DEAD
    read = (reg(m, Q) & 15) - HEX + 1
    unit = ((reg(m, A) >> 32) << 4) | digit
    base = reg(m, Q) & ~15
    register = reg(m, A) & LOW32
    set_reg(m, Q, base)
    set_reg(m, A, register)
    if read < 4:
        first = unit << (4 * (4 - read))
        last = first + (1 << (4 * (4 - read))) - 1
        if not _units_alive(m, first, last):
            return DEAD
        set_reg(m, Q, base + HEX + read)
        set_reg(m, A, register | (unit << 32))
        return ALIVE
    if not _units_alive(m, unit, unit):
        return DEAD
    if 0xD800 <= unit <= 0xDBFF:
        set_reg(m, Q, base + LOW_BACKSLASH)
        set_reg(m, A, register | ((unit - 0xD800) << 48))
        return ALIVE
    feed_code_point(m, unit)
    return ALIVE


@internal
def low_hex_step(m, byte):
    """A hexadecimal digit of the low surrogate that must follow a high one."""
    digit = hex_value(byte)
    if digit < 0:
        return DEAD
    read = (reg(m, Q) & 15) - LOW_HEX + 1
    high = reg(m, A) >> 48
    unit = (((reg(m, A) >> 32) & 0xFFFF) << 4) | digit
    base = reg(m, Q) & ~15
    register = reg(m, A) & LOW32
    first = unit << (4 * (4 - read))
    last = first + (1 << (4 * (4 - read))) - 1
    first, last = max(first, 0xDC00), min(last, 0xDFFF)
    if first > last:
        return DEAD
    set_reg(m, Q, base)
    set_reg(m, A, register)
    plane = 0x10000 + (high << 10) - 0xDC00
    if not _range_alive(m, plane + first, plane + last):
        return DEAD
    if read < 4:
        set_reg(m, Q, base + LOW_HEX + read)
        set_reg(m, A, register | (unit << 32) | (high << 48))
        return ALIVE
    feed_code_point(m, plane + unit)
    return ALIVE


@internal
def simple_escape(m, byte):
    """The character that backslash and ``byte`` stand for, or -1 (RFC 8259, section 7)."""
    if byte == 0x22 or byte == 0x5C:
        return byte
    if byte == 0x2F and grammar(m, H_ESCAPES):
        return byte
    if byte == 0x6E:
        return 0x0A
    if byte == 0x74:
        return 0x09
    if byte == 0x72:
        return 0x0D
    if byte == 0x62:
        return 0x08
    if byte == 0x66:
        return 0x0C
    return -1
