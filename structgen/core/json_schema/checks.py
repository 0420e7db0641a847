"""Checks of keywords' values. Each raises SchemaError with the pointer, the keyword, and the value that it met."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any, NoReturn

from structgen.core.json_schema.formula.language import MAX_COUNT
from structgen.core.json_schema.formula.values import Canonical, canonical, exact_number
from structgen.core.json_schema.pointers import Pointer, pointer_text
from structgen.errors import SchemaError


def shown(value: Any) -> str:
    """A value as JSON, cut to a readable length."""
    try:
        text = json.dumps(value, default=str, ensure_ascii=False)
    except (ValueError, TypeError, RecursionError):
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


def refuse(pointer: Pointer, expected: str, value: Any, *, within: int = 0, hint: str | None = None) -> NoReturn:
    """Raise SchemaError at ``pointer``; the keyword is the token ``within`` levels above its end."""
    above = pointer
    for _ in range(within):
        above = above[0]
    keyword = above[1] if len(above) == 2 else None
    raise SchemaError(
        f"expected {expected}, found {shown(value)}", pointer=pointer_text(pointer), keyword=keyword, hint=hint
    )


def count(value: Any, pointer: Pointer) -> int:
    """A non-negative integer; integral floats and decimals such as 2.0 count (core, section 4.2.3).

    What exceeds all that is counted comes as some number beyond `MAX_COUNT`, however large it is.
    """
    if value.__class__ is int and value >= 0:
        return value
    if (isinstance(value, float) and math.isfinite(value)) or (isinstance(value, Decimal) and value.is_finite()):
        if value > MAX_COUNT and _is_integral(value):
            return MAX_COUNT + 1
        if value <= MAX_COUNT and value == int(value):
            return count(int(value), pointer)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        refuse(pointer, "a non-negative integer", value)
    return value


def _is_integral(value: float | Decimal) -> bool:
    """Whether a finite number has no fraction, in time linear in its digits."""
    if isinstance(value, float):
        return value.is_integer()
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    return exponent >= 0 or not any(digits[exponent:])


def number(value: Any, pointer: Pointer) -> int | Fraction:
    """A number, exactly."""
    if value.__class__ is int:
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        refuse(pointer, "a number", value)
    try:
        return exact_number(value)
    except ValueError as error:
        refuse(pointer, f"a number that can be held exactly ({error})", value)


def boolean(value: Any, pointer: Pointer) -> bool:
    """true or false."""
    if not isinstance(value, bool):
        refuse(pointer, "true or false", value)
    return value


def string(value: Any, pointer: Pointer) -> str:
    """A string."""
    if not isinstance(value, str):
        refuse(pointer, "a string", value)
    return value


def strings(value: Any, pointer: Pointer) -> list[str]:
    """An array of strings."""
    if not isinstance(value, list):
        refuse(pointer, "an array of strings", value)
    for index, item in enumerate(value):
        if not isinstance(item, str):
            refuse((pointer, index), "a string", item, within=1)
    return value


def array(value: Any, pointer: Pointer, *, nonempty: bool = False) -> list[Any]:
    """An array."""
    if not isinstance(value, list) or (nonempty and not value):
        refuse(pointer, "a non-empty array" if nonempty else "an array", value)
    return value


def mapping(value: Any, pointer: Pointer) -> dict[str, Any]:
    """An object."""
    if not isinstance(value, dict):
        refuse(pointer, "an object", value)
    return value


def json_value(value: Any, pointer: Pointer) -> Canonical:
    """Any JSON value, in canonical form."""
    try:
        return canonical(value)
    except (TypeError, ValueError) as error:
        refuse(pointer, f"a JSON value ({error})", value)
