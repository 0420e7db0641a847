"""Parameters of rules: what ``name::set_bit(1)`` hands on, and what ``%if`` asks of it.

A parameter is a number of 64 bits; ``[a:b]`` are its bits from a up to b, without b. (llguidance, docs/parametric.md.)
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import NamedTuple

from structgen.core.grammars.dialects.llguidance.tokens import Cursor

BITS = 64
_ALL = 2**BITS - 1
_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


class Parameter(NamedTuple):
    """What a rule gets: a function of the own parameter; ``of_own`` says whether it looks at that."""

    value: Callable[[int], int]
    of_own: bool


class Condition(NamedTuple):
    """When an option may be taken; ``of_own`` as for `Parameter`."""

    holds: Callable[[int], bool]
    of_own: bool


class Field(NamedTuple):
    """Bits of a parameter: ``width`` of them from ``low`` on."""

    low: int
    width: int

    def of(self, value: int) -> int:
        """Their number."""
        return value >> self.low & self.full

    @property
    def full(self) -> int:
        """Their largest number."""
        return (1 << self.width) - 1


def read_parameter(cursor: Cursor) -> Parameter:
    """What stands after ``name::``.

    Raises:
        GrammarError: no number and no function.
    """
    if cursor.has("number"):
        number = cursor.whole_number("a parameter", _ALL)
        return Parameter(lambda _: number, False)
    if cursor.take("_"):
        return Parameter(lambda value: value, True)
    name = cursor.expect("rule", "a number, _ or a function such as set_bit(0)")
    if name.text in ("set_bit", "clear_bit"):
        bit = 1 << _arguments(cursor, _bit)[0]
        return Parameter((lambda v: v | bit) if name.text == "set_bit" else (lambda v: v & ~bit), True)
    if name.text in ("bit_and", "bit_or"):
        (mask,) = _arguments(cursor, _number)
        return Parameter((lambda v: v & mask) if name.text == "bit_and" else (lambda v: v | mask), True)
    if name.text in ("incr", "decr"):
        (field,) = _arguments(cursor, _field)
        step = 1 << field.low
        if name.text == "incr":
            return Parameter(lambda v: v if field.of(v) == field.full else v + step, True)
        return Parameter(lambda v: v if field.of(v) == 0 else v - step, True)
    functions = "set_bit, clear_bit, bit_and, bit_or, incr, decr"
    cursor.source.fail(name.offset, f"there is no function {name.text!r} for parameters", f"There are {functions}.")


def read_condition(cursor: Cursor) -> Condition:
    """What stands after ``%if``.

    Raises:
        GrammarError: no condition.
    """
    token = cursor.expect("rule", "a condition such as bit_clear(0)")
    name = token.text
    if name == "true":
        if cursor.take("("):
            cursor.expect(")", "a closing parenthesis")
        return Condition(lambda _: True, False)
    if name in ("bit_clear", "bit_set"):
        (bit,), wanted = _arguments(cursor, _bit), name == "bit_set"
        return Condition(lambda v: bool(v >> bit & 1) is wanted, True)
    if name in ("is_ones", "is_zeros"):
        (field,) = _arguments(cursor, _field)
        bits = field.full if name == "is_ones" else 0
        return Condition(lambda v: field.of(v) == bits, True)
    if name in ("and", "or"):
        a, b = _arguments(cursor, read_condition, read_condition)
        both = name == "and"
        return Condition(
            lambda v: (a.holds(v) and b.holds(v)) if both else (a.holds(v) or b.holds(v)), a.of_own or b.of_own
        )
    if name == "not":
        (a,) = _arguments(cursor, read_condition)
        return Condition(lambda v: not a.holds(v), a.of_own)
    compare = _COMPARISONS.get(name.removeprefix("bit_count_"))
    if compare is None:
        conditions = (
            f"true, and, or, not, bit_set, bit_clear, is_ones, is_zeros, {', '.join(_COMPARISONS)}, bit_count_eq, ..."
        )
        cursor.source.fail(token.offset, f"there is no condition {name!r}", f"There are {conditions}.")
    field, number = _arguments(cursor, _field, _number)
    if name.startswith("bit_count_"):
        return Condition(lambda v: compare(field.of(v).bit_count(), number), True)
    return Condition(lambda v: compare(field.of(v), number), True)


def _arguments(cursor: Cursor, *kinds: Callable[[Cursor], object]) -> list:  # type: ignore[type-arg]
    """The arguments in parentheses, each read by its own reader."""
    cursor.expect("(", "an opening parenthesis")
    values = []
    for i, kind in enumerate(kinds):
        if i:
            cursor.expect(",", "a comma and another argument")
        values.append(kind(cursor))
    cursor.expect(")", "a closing parenthesis")
    return values


def _number(cursor: Cursor) -> int:
    return cursor.whole_number("a number of 64 bits", _ALL)


def _bit(cursor: Cursor) -> int:
    return cursor.whole_number("a bit", BITS - 1)


def _field(cursor: Cursor) -> Field:
    if cursor.take("_"):
        return Field(0, BITS)
    start = cursor.expect("[", "_ or bits as [0:3]")
    low = _bit(cursor)
    cursor.expect(":", "a colon between the first bit and the end")
    past = cursor.whole_number("the end of bits", BITS)
    cursor.expect("]", "a closing bracket")
    if past <= low:
        cursor.source.fail(start.offset, f"the bits [{low}:{past}] must go up")
    return Field(low, past - low)
