"""Distinct items: whether two finished values are equal, by their texts."""

from structgen.core.kernels.jit import internal
from structgen.core.kernels.json.escapes import simple_escape
from structgen.core.kernels.json.layout import *
from structgen.core.kernels.json.tables import *
from structgen.core.kernels.json.values_hash import number_parts, skip_blank, written_unit
from structgen.core.kernels.memory import size


@internal
def written_point(m, position):
    """(code point of a string's text at ``position``, place behind it); the point is -1 at the closing quote."""
    byte = written(m, position)
    if byte == 0x22:
        return -1, position + 1
    if byte < 0x80 and byte != 0x5C:
        return byte, position + 1
    if byte != 0x5C:
        tail = 1 if byte < 0xE0 else 2 if byte < 0xF0 else 3
        point = byte & (0x3F >> tail)
        for i in range(tail):
            point = (point << 6) | (written(m, position + 1 + i) & 0x3F)
        return point, position + 1 + tail
    byte = written(m, position + 1)
    if byte != 0x75:
        point = simple_escape(m, byte)
        return 0x2F if point < 0 else point, position + 2
    point = written_unit(m, position + 2)
    if 0xD800 <= point <= 0xDBFF:
        return 0x10000 + ((point - 0xD800) << 10) + written_unit(m, position + 8) - 0xDC00, position + 12
    return point, position + 6


@internal
def _equal_strings(m, one, two):
    """Whether two strings, from behind their opening quotes on, stand for the same."""
    while True:
        first, one = written_point(m, one)
        second, two = written_point(m, two)
        if first != second or first < 0:
            return first == second


@internal
def _equal_numbers(m, one, two, limit):
    """Whether two numbers have the same value, however they are spelled."""
    sign, one, digits, scale, _ = number_parts(m, one, limit)
    other_sign, two, other_digits, other_scale, _ = number_parts(m, two, limit)
    if sign != other_sign or digits != other_digits or scale != other_scale:
        return False
    while digits > 0:
        if written(m, one) == 0x2E:
            one += 1
        if written(m, two) == 0x2E:
            two += 1
        if written(m, one) != written(m, two):
            return False
        one, two, digits = one + 1, two + 1, digits - 1
    return True


@internal
def _equal_scalars(m, one, two, limit):
    """Whether two strings, numbers or literals are equal."""
    first, second = written(m, one), written(m, two)
    if first == 0x22 or second == 0x22:
        return first == second and _equal_strings(m, one + 1, two + 1)
    if first == 0x2D or 0x30 <= first <= 0x39:
        return (second == 0x2D or 0x30 <= second <= 0x39) and _equal_numbers(m, one, two, limit)
    return first == second


@internal
def _skip_string(m, position):
    """The place behind a string, from behind its opening quote on."""
    while written(m, position) != 0x22:
        position += 2 if written(m, position) == 0x5C else 1
    return position + 1


@internal
def is_scalar_byte(byte):
    """Whether a byte can stand in a number or literal."""
    return 0x30 <= byte <= 0x39 or 0x61 <= byte <= 0x7A or byte == 0x45 or byte == 0x2B or byte == 0x2D or byte == 0x2E


@internal
def _skip_value(m, position, limit):
    """The place behind the value that starts at ``position``."""
    depth = 0
    while True:
        byte = written(m, position)
        if byte == 0x22:
            position = _skip_string(m, position + 1)
        elif is_scalar_byte(byte):
            while position < limit and is_scalar_byte(written(m, position)):
                position += 1
        else:
            if byte == 0x7B or byte == 0x5B:
                depth += 1
            elif byte == 0x7D or byte == 0x5D:
                depth -= 1
            position += 1
        if depth == 0:
            return position


@internal
def _next_part(m, position):
    """The place of the next item or member, from behind the opening bracket or the part before on; -1: none."""
    position = skip_blank(m, position)
    byte = written(m, position)
    if byte == 0x7D or byte == 0x5D:
        return -1
    return skip_blank(m, position + 1) if byte == 0x2C else position


@internal
def _member_value(m, position):
    """The place of a member's value."""
    return skip_blank(m, skip_blank(m, _skip_string(m, position + 1)) + 1)


@internal
def find_member(m, position, key, limit):
    """The place of the value that an object, from behind its bracket on, has for the key at ``key``; -1: none."""
    position = _next_part(m, position)
    while position >= 0:
        value = _member_value(m, position)
        if _equal_strings(m, position + 1, key + 1):
            return value
        position = _next_part(m, _skip_value(m, value, limit))
    return -1


@internal
def _count_parts(m, position, limit):
    """How many members or items a container has, from behind its bracket on."""
    is_object = written(m, position - 1) == 0x7B
    count = 0
    position = _next_part(m, position)
    while position >= 0:
        count += 1
        position = _next_part(m, _skip_value(m, _member_value(m, position) if is_object else position, limit))
    return count


@internal
def equal_values(m, one, two, limit):
    """Whether two finished values in the text are equal: numbers by value, strings decoded, members in any order.

    ``nesting`` holds, of each open container, the places in it of both and how many parts are left. Where it is too
    small, ``regs[TOO_DEEP]`` is set.
    """
    depth = 0
    one, two = skip_blank(m, one), skip_blank(m, two)
    while True:
        byte = written(m, one)
        if byte == 0x7B or byte == 0x5B:
            if written(m, two) != byte:
                return False
            left = _count_parts(m, one + 1, limit)
            if left != _count_parts(m, two + 1, limit):
                return False
            if 4 * depth + 4 > size(m, nesting):
                set_reg(m, TOO_DEEP, 1)
                return False
            set_nesting(m, 4 * depth, one + 1)
            set_nesting(m, 4 * depth + 1, two + 1)
            set_nesting(m, 4 * depth + 2, left)
            set_nesting(m, 4 * depth + 3, byte)
            depth += 1
        elif not _equal_scalars(m, one, two, limit):
            return False
        while depth > 0 and nesting(m, 4 * depth - 2) == 0:
            depth -= 1
        if depth == 0:
            return True
        level = 4 * depth - 4
        set_nesting(m, level + 2, nesting(m, level + 2) - 1)
        one, two = _next_part(m, nesting(m, level)), nesting(m, level + 1)
        if nesting(m, level + 3) == 0x7B:
            two = find_member(m, two, one, limit)
            if two < 0:
                return False
            one = _member_value(m, one)
        else:
            two = _next_part(m, two)
            set_nesting(m, level + 1, _skip_value(m, two, limit))
        set_nesting(m, level, _skip_value(m, one, limit))
