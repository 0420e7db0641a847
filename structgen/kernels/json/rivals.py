"""Distinct items: which finished items one that is being written may still become equal to.

Two texts that begin in different ways are told apart long before they end: mostly no finished item is left after a few
bytes, and then nothing about the item that is being written depends on others.
"""

from structgen.kernels.jit import internal
from structgen.kernels.json.frames import load, lookup
from structgen.kernels.json.layout import *
from structgen.kernels.json.strings import hash_byte
from structgen.kernels.json.tables import grammar, reg, search, set_search, text, written
from structgen.kernels.json.values_equal import written_point
from structgen.kernels.json.values_hash import STRING_TAG, mixed, skip_blank
from structgen.kernels.memory import size


@internal
def _begins_number(byte):
    return byte == 0x2D or 0x30 <= byte <= 0x39


@internal
def _may_equal(m, one, two, end):
    """Whether the value whose text is from ``two`` to ``end`` so far may become equal to the finished one at ``one``.

    Told of strings, up to the first escape, and of values of other kinds; of two objects, arrays or numbers it may.
    """
    one = skip_blank(m, one)
    while two < end and written(m, two) <= 0x20:
        two += 1
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

    At most: see `_may_equal`.
    """
    start = load(m, frame + F_START)
    found, depth = 0, 1
    set_search(m, 0, load(m, frame + F_OTHERS))
    while depth > 0:
        depth -= 1
        node = search(m, depth)
        if node < 0:
            continue
        if depth + 2 > size(m, C_SEARCH):
            return (load(m, frame) >> 32) - 1
        if _may_equal(m, load(m, node + K_START), start, end):
            found += 1
        set_search(m, depth, load(m, node + K_LEFT))
        set_search(m, depth + 1, load(m, node + K_LEFT + 1))
        depth += 2
    return found


@internal
def _text_point(m, at):
    """(code point of a table's text at a place, place behind it)."""
    byte = text(m, at)
    if byte < 0x80:
        return byte, at + 1
    tail = 1 if byte < 0xE0 else 2 if byte < 0xF0 else 3
    point = byte & (0x3F >> tail)
    for i in range(tail):
        point = (point << 6) | (text(m, at + 1 + i) & 0x3F)
    return point, at + 1 + tail


@internal
def _is_text(m, place, at, end):
    """Whether the finished value at a place is the string that a table's text spells from ``at`` to ``end``."""
    place = skip_blank(m, place)
    if written(m, place) != 0x22:
        return False
    place += 1
    while True:
        point, place = written_point(m, place)
        if point < 0 or at >= end:
            return point < 0 and at >= end
        other, at = _text_point(m, at)
        if point != other:
            return False


@internal
def _is_item(m, frame, entry):
    """Whether the string of a table's entry is a finished item of the frame."""
    root, hashed = load(m, frame + F_OTHERS), HASH_START
    first = grammar(m, entry + E_OFFSET)
    end = first + grammar(m, entry + E_LENGTH)
    for at in range(first, end):
        hashed = hash_byte(hashed, text(m, at))
    hashed = mixed(STRING_TAG, hashed)
    while True:
        node = lookup(m, root, hashed)
        if node < 0:
            return False
        if _is_text(m, load(m, node + K_START), first, end):
            return True
        hashed = mixed(hashed, 1)  # as items are added


@internal
def listed(m, frame):
    """How many strings that the configuration, which is in an enumeration, can become are items of the frame."""
    entries, found = grammar(m, (reg(m, A) & LOW32) + S_ENTRIES), 0
    for number in range(reg(m, B) & MASK20, (reg(m, B) >> 20) & MASK20):
        if _is_item(m, frame, entries + E_SIZE * number):
            found += 1
    return found


@internal
def is_listable(m, frame):
    """Whether `listed` tells of the frame's open item: it is an enumerated string, between two characters."""
    return reg(m, Q) == ENUM + BODY and reg(m, FRAME) == frame
