"""Distinct items: the hash of a finished value's text. Equal values have equal hashes, however they are spelled."""

from structgen.core.kernels.jit import internal
from structgen.core.kernels.json.escapes import hex_value, simple_escape
from structgen.core.kernels.json.layout import *
from structgen.core.kernels.json.strings import hash_byte
from structgen.core.kernels.json.tables import *
from structgen.core.kernels.memory import size, wrapped_add, wrapped_mul

STRING_TAG, NUMBER_TAG, OBJECT_TAG, ARRAY_TAG, WORD_TAG = 3, 5, 7, 11, 13
MAX_SCALE = 1 << 60  # of exponents; larger ones are as good as each other
GOLDEN = -7046029254386353131


@internal
def _finalised(value):
    """The finaliser of SplitMix64: one to one, and each bit of the result depends on all of the value."""
    value = wrapped_mul(value ^ ((value >> 30) & 0x3FFFFFFFF), -4658895280553007687)
    value = wrapped_mul(value ^ ((value >> 27) & 0x1FFFFFFFFF), -7723592293110705685)
    return value ^ ((value >> 31) & 0x1FFFFFFFF)


@internal
def mixed(one, two):
    """A hash of two numbers, in their order."""
    return _finalised(wrapped_add(_finalised(wrapped_add(one, GOLDEN)), two))


@internal
def _hash_point(value, point):
    """Feed the UTF-8 of a code point to a hash."""
    if point < 0x80:
        return hash_byte(value, point)
    if point < 0x800:
        return hash_byte(hash_byte(value, 0xC0 | (point >> 6)), 0x80 | (point & 0x3F))
    if point < 0x10000:
        value = hash_byte(hash_byte(value, 0xE0 | (point >> 12)), 0x80 | ((point >> 6) & 0x3F))
        return hash_byte(value, 0x80 | (point & 0x3F))
    value = hash_byte(hash_byte(value, 0xF0 | (point >> 18)), 0x80 | ((point >> 12) & 0x3F))
    return hash_byte(hash_byte(value, 0x80 | ((point >> 6) & 0x3F)), 0x80 | (point & 0x3F))


@internal
def written_unit(m, position):
    """The UTF-16 unit of four hexadecimal digits in the text."""
    unit = 0
    for i in range(4):
        unit = (unit << 4) | hex_value(written(m, position + i))
    return unit


@internal
def _hash_string(m, position):
    """(hash of what a string stands for, place behind it); ``position`` is behind the opening quote."""
    value = HASH_START
    while True:
        byte = written(m, position)
        position += 1
        if byte == 0x22:
            return value, position
        if byte != 0x5C:
            value = hash_byte(value, byte)
            continue
        byte = written(m, position)
        position += 1
        if byte != 0x75:
            point = simple_escape(m, byte)
            value = hash_byte(value, 0x2F if point < 0 else point)
            continue
        point = written_unit(m, position)
        position += 4
        if 0xD800 <= point <= 0xDBFF:
            point = 0x10000 + ((point - 0xD800) << 10) + written_unit(m, position + 2) - 0xDC00
            position += 6
        value = _hash_point(value, point)


@internal
def number_parts(m, position, limit):
    """(sign, place of the first significant digit, how many there are, power of ten of the last, place behind)."""
    sign = 0
    if written(m, position) == 0x2D:
        sign = 1
        position += 1
    first, digits, zeros, scale, fraction = position, 0, 0, 0, False
    while position < limit:
        byte = written(m, position)
        if byte == 0x2E:
            fraction = True
        elif 0x30 <= byte <= 0x39:
            if fraction:
                scale -= 1
            if byte != 0x30:
                if digits == 0:
                    first = position
                    zeros = 0
                digits += zeros + 1
                zeros = 0
            else:
                zeros += 1
        else:
            break
        position += 1
    scale += zeros
    if position < limit and (written(m, position) | 0x20) == 0x65:
        position += 1
        negative = written(m, position) == 0x2D
        if negative or written(m, position) == 0x2B:
            position += 1
        exponent = 0
        while position < limit and 0x30 <= written(m, position) <= 0x39:
            exponent = min(exponent * 10 + written(m, position) - 0x30, MAX_SCALE)
            position += 1
        scale += -exponent if negative else exponent
    if digits == 0:
        return 0, first, 0, 0, position
    return sign, first, digits, scale, position


@internal
def _hash_number(m, position, limit):
    """(hash of a number's value, place behind it): its sign, significant digits and power of ten."""
    sign, position, digits, scale, after = number_parts(m, position, limit)
    value = mixed(mixed(NUMBER_TAG, sign), scale)
    while digits > 0:
        byte = written(m, position)
        if byte != 0x2E:
            value = hash_byte(value, byte)
            digits -= 1
        position += 1
    return _finalised(value), after


@internal
def skip_blank(m, position):
    """The first place from one on that is no whitespace."""
    while written(m, position) <= 0x20:
        position += 1
    return position


@internal
def _hash_scalar(m, position, limit):
    """(hash, place behind) of a string, number or literal."""
    byte = written(m, position)
    if byte == 0x22:
        value, position = _hash_string(m, position + 1)
        return mixed(STRING_TAG, value), position
    if byte == 0x2D or 0x30 <= byte <= 0x39:
        return _hash_number(m, position, limit)
    return mixed(WORD_TAG, byte), position + (5 if byte == 0x66 else 4)


@internal
def hash_value(m, position, limit):
    """The hash of the JSON value in the text from ``position``, which ends before ``limit``: equal for equal values.

    ``nesting`` holds (hash so far, hash of the key) of each open container. Objects add up their members, since their
    order does not matter. Where it is too small, ``regs[TOO_DEEP]`` is set.
    """
    depth = 0
    room = size(m, nesting) // 3
    while True:
        position = skip_blank(m, position)
        byte = written(m, position)
        if byte == 0x7B or byte == 0x5B:
            if depth == room:
                set_reg(m, TOO_DEEP, 1)
                return 0
            set_nesting(m, 3 * depth, OBJECT_TAG if byte == 0x7B else ARRAY_TAG)
            set_nesting(m, 3 * depth + 1, 0)
            set_nesting(m, 3 * depth + 2, byte)
            depth += 1
            position = skip_blank(m, position + 1)
            if written(m, position) != byte + 2:
                if byte == 0x7B:
                    key, position = _hash_string(m, position + 1)
                    set_nesting(m, 3 * depth - 2, key)
                    position = skip_blank(m, position) + 1
                continue
            depth -= 1
            value = mixed(byte, nesting(m, 3 * depth))
            position += 1
        else:
            value, position = _hash_scalar(m, position, limit)
        while depth > 0:
            opened = nesting(m, 3 * depth - 1)
            total = nesting(m, 3 * depth - 3)
            if opened == 0x7B:
                total = wrapped_add(total, mixed(nesting(m, 3 * depth - 2), value))
            else:
                total = mixed(total, value)
            set_nesting(m, 3 * depth - 3, total)
            position = skip_blank(m, position)
            byte = written(m, position)
            position += 1
            if byte == 0x2C:
                if opened == 0x7B:
                    position = skip_blank(m, position)
                    key, position = _hash_string(m, position + 1)
                    set_nesting(m, 3 * depth - 2, key)
                    position = skip_blank(m, position) + 1
                break
            depth -= 1
            value = mixed(opened, total)
        else:
            return value
