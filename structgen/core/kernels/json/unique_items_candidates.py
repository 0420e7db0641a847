"""Distinct items: which finished items one that is being written may still become equal to.

Two texts that begin in different ways are told apart long before they end: mostly no finished item is left after a few
bytes, and then nothing about the item that is being written depends on others.
"""

from structgen.core.kernels.jit import internal
from structgen.core.kernels.json.frames import depth, load, lookup
from structgen.core.kernels.json.items import is_distinct
from structgen.core.kernels.json.layout import *
from structgen.core.kernels.json.strings import hash_byte
from structgen.core.kernels.json.tables import *
from structgen.core.kernels.json.values_equal import equal_values, find_member, is_scalar_byte, written_point
from structgen.core.kernels.json.values_hash import STRING_TAG, mixed, skip_blank
from structgen.core.kernels.memory import size

FEW_ITEMS = 256  # that a walk compares at each node


@internal
def _begins_number(byte):
    return byte == 0x2D or 0x30 <= byte <= 0x39


@internal
def _skip_between(m, position, end):
    """The first place from one on, before ``end``, that is no whitespace, comma or colon; or ``end``."""
    while position < end and (
        written(m, position) <= 0x20 or written(m, position) == 0x2C or written(m, position) == 0x3A
    ):
        position += 1
    return position


@internal
def _closed(m, position, end):
    """The place behind the value or key at a place; -1: it is not known to be over before ``end``."""
    level = 0
    while position < end:
        byte = written(m, position)
        if byte == 0x22:
            position += 1
            while position < end and written(m, position) != 0x22:
                position += 2 if written(m, position) == BACKSLASH else 1
            position += 1
            if position > end:
                return -1
        elif is_scalar_byte(byte):
            while position < end and is_scalar_byte(written(m, position)):
                position += 1
            if position >= end:
                return -1
        else:
            if byte == 0x7B or byte == 0x5B:
                level += 1
            elif byte == 0x7D or byte == 0x5D:
                level -= 1
            position += 1
        if level == 0:
            return position
    return -1


@internal
def _may_equal(m, one, two, end):
    """Whether the value whose text is from ``two`` to ``end`` so far may become equal to the finished one at ``one``.

    Told of strings, up to the first escape, of objects by the members so far, and of values of different kinds; of two
    arrays or numbers it may.
    """
    one, two = skip_blank(m, one), _skip_between(m, two, end)
    if two >= end or written(m, two) != 0x7B or written(m, one) != 0x7B:
        return _may_equal_plainly(m, one, two, end)
    position = _skip_between(m, two + 1, end)
    while position < end and written(m, position) == 0x22:
        value = _closed(m, position, end)
        if value < 0:
            return True
        value = _skip_between(m, value, end)
        same = find_member(m, one + 1, position, end)
        if same < 0 or value >= end:
            return same >= 0
        position = _closed(m, value, end)
        if position < 0:
            return _may_equal_plainly(m, same, value, end)
        if not equal_values(m, same, value, end):
            return False
        position = _skip_between(m, position, end)
    return True


@internal
def _may_equal_plainly(m, one, two, end):
    """`_may_equal`, but that it may be of two objects. Both places are those of the values, or ``two`` is ``end``."""
    if two >= end:
        return True
    byte, other = written(m, two), written(m, one)
    if _begins_number(byte):
        return _begins_number(other)
    if byte != other or byte != 0x22:
        return byte == other
    while two + 1 < end:
        one, two = one + 1, two + 1
        byte, other = written(m, two), written(m, one)
        if byte == BACKSLASH or other == BACKSLASH:
            return True
        if byte != other:
            return False
        if byte == 0x22:
            return True
    return True


@internal
def rivals(m, frame, end):
    """How many finished items of an array's frame its open item, whose text ends before ``end``, may become equal to.

    At most: see `_may_equal`. (Where ``nesting`` is too small, ``regs[TOO_DEEP]`` is set.)
    """
    start = load(m, frame + F_START)
    count, level = 0, 1
    set_search(m, 0, load(m, frame + F_OTHERS))
    while level > 0:
        level -= 1
        node = search(m, level)
        if node < 0:
            continue
        if level + 2 > size(m, search):
            return (load(m, frame) >> 32) - 1
        if _may_equal(m, load(m, node + K_START), start, end):
            count += 1
        set_search(m, level, load(m, node + K_LEFT))
        set_search(m, level + 1, load(m, node + K_LEFT + 1))
        level += 2
    return count


@internal
def _text_point(m, position):
    """(code point of a table's text at a place, place behind it)."""
    byte = text(m, position)
    if byte < 0x80:
        return byte, position + 1
    tail = 1 if byte < 0xE0 else 2 if byte < 0xF0 else 3
    point = byte & (0x3F >> tail)
    for i in range(tail):
        point = (point << 6) | (text(m, position + 1 + i) & 0x3F)
    return point, position + 1 + tail


@internal
def _is_text(m, position, offset, end):
    """Whether the finished value at a place is the string that a table's text spells from ``offset`` to ``end``."""
    position = skip_blank(m, position)
    if written(m, position) != 0x22:
        return False
    position += 1
    while True:
        point, position = written_point(m, position)
        if point < 0 or offset >= end:
            return point < 0 and offset >= end
        other, offset = _text_point(m, offset)
        if point != other:
            return False


@internal
def _is_item(m, frame, entry):
    """Whether the string of a table's entry is a finished item of the frame."""
    root, hashed = load(m, frame + F_OTHERS), HASH_START
    first = grammar(m, entry + E_OFFSET)
    end = first + grammar(m, entry + E_LENGTH)
    for position in range(first, end):
        hashed = hash_byte(hashed, text(m, position))
    hashed = mixed(STRING_TAG, hashed)
    while True:
        node = lookup(m, root, hashed)
        if node < 0:
            return False
        if _is_text(m, load(m, node + K_START), first, end):
            return True
        hashed = mixed(hashed, 1)  # as items are added


@internal
def all_listed(m, frame):
    """Whether all strings that the configuration, which is in an enumeration, can become are items of the frame.

    From the last on: what is written in the order of the enumeration leaves the later ones.
    """
    entries, first = grammar(m, (reg(m, A) & LOW32) + S_ENTRIES), reg(m, B) & MASK20
    number = (reg(m, B) >> 20) & MASK20
    while number > first:
        number -= 1
        if not _is_item(m, frame, entries + E_SIZE * number):
            return False
    return True


@internal
def unrivalled(m):
    """Bits of the depths of the arrays whose open item, as far as it is written, can be no item before it any more.

    That stays so, whatever comes, until the item ends; and then it is a new one.
    """
    frame, levels = reg(m, FRAME), 0
    while frame >= 0:
        head = load(m, frame)
        level = depth(m, frame)
        if level < SEEN_BITS and is_distinct(m, head & LOW32):
            if head >> 32 <= 1 or rivals(m, frame, reg(m, WRITTEN)) == 0:
                levels |= 1 << level
        frame = load(m, frame + F_PARENT)
    return levels if reg(m, TOO_DEEP) == 0 else 0


@internal
def is_unrivalled(m, frame):
    """Whether `unrivalled` told so of an array's frame, when the mask was begun."""
    return frame < SCRATCH and depth(m, frame) < SEEN_BITS and (reg(m, UNRIVALLED) >> depth(m, frame)) & 1 != 0


@internal
def may_repeat_from(m, frame):
    """Whether the open item of an array, that of a frame or one around it, may still become one that is there."""
    while frame >= 0:
        head = load(m, frame)
        if head >> 32 > 1 and is_distinct(m, head & LOW32) and not is_unrivalled(m, frame):
            return True
        frame = load(m, frame + F_PARENT)
    return False


@internal
def is_only_rivalled(m):
    """Whether the open item is of an array that is the innermost container, and repeats none of another array."""
    frame = reg(m, FRAME)
    head = load(m, frame)
    if not is_distinct(m, head & LOW32) or head >> 32 > FEW_ITEMS or depth(m, frame) >= SEEN_BITS:
        return False
    return not may_repeat_from(m, load(m, frame + F_PARENT))


@internal
def is_listable(m, frame):
    """Whether `all_listed` tells of the frame's open item: it is an enumerated string, between two characters."""
    return reg(m, Q) == ENUM + BODY and reg(m, FRAME) == frame
