"""What keyword functions ask of their values; each raises SchemaError with pointer, keyword and what was found."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any, NoReturn

from structgen.core.json_schema.formula.language import MAX_COUNT
from structgen.core.json_schema.formula.values import Canonical, canonical, exact_number
from structgen.core.json_schema.places import Place, pointer
from structgen.errors import SchemaError


def shown(value: Any) -> str:
    """A value as JSON, cut to a readable length."""
    try:
        text = json.dumps(value, default=str, ensure_ascii=False)
    except (ValueError, TypeError, RecursionError):
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


def refuse(place: Place, expected: str, found: Any, *, within: int = 0, hint: str | None = None) -> NoReturn:
    """Raise SchemaError at ``place``; the keyword is the token ``within`` levels above its end."""
    above = place
    for _ in range(within):
        above = above[0]
    keyword = above[1] if len(above) == 2 else None
    raise SchemaError(f"expected {expected}, found {shown(found)}", pointer=pointer(place), keyword=keyword, hint=hint)


def count(value: Any, place: Place) -> int:
    """A non-negative integer; integral floats and decimals such as 2.0 count (core, section 4.2.3).

    What exceeds all that is counted comes as some number beyond `MAX_COUNT`, however large it is.
    """
    if value.__class__ is int and value >= 0:
        return value
    if (isinstance(value, float) and math.isfinite(value)) or (isinstance(value, Decimal) and value.is_finite()):
        if value > MAX_COUNT and _is_integral(value):
            return MAX_COUNT + 1
        if value <= MAX_COUNT and value == int(value):
            return count(int(value), place)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        refuse(place, "a non-negative integer", value)
    return value


def _is_integral(value: float | Decimal) -> bool:
    """Whether a finite number has no fraction, in time linear in its digits."""
    if isinstance(value, float):
        return value.is_integer()
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    return exponent >= 0 or not any(digits[exponent:])


def number(value: Any, place: Place) -> int | Fraction:
    """A number, exactly."""
    if value.__class__ is int:
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        refuse(place, "a number", value)
    try:
        return exact_number(value)
    except ValueError as error:
        refuse(place, f"a number that can be held exactly ({error})", value)


def boolean(value: Any, place: Place) -> bool:
    """true or false."""
    if not isinstance(value, bool):
        refuse(place, "true or false", value)
    return value


def string(value: Any, place: Place) -> str:
    """A string."""
    if not isinstance(value, str):
        refuse(place, "a string", value)
    return value


def strings(value: Any, place: Place) -> list[str]:
    """An array of strings."""
    if not isinstance(value, list):
        refuse(place, "an array of strings", value)
    for index, item in enumerate(value):
        if not isinstance(item, str):
            refuse((place, index), "a string", item, within=1)
    return value


def array(value: Any, place: Place, *, nonempty: bool = False) -> list[Any]:
    """An array."""
    if not isinstance(value, list) or (nonempty and not value):
        refuse(place, "a non-empty array" if nonempty else "an array", value)
    return value


def mapping(value: Any, place: Place) -> dict[str, Any]:
    """An object."""
    if not isinstance(value, dict):
        refuse(place, "an object", value)
    return value


def json_value(value: Any, place: Place) -> Canonical:
    """Any JSON value, in canonical form."""
    try:
        return canonical(value)
    except (TypeError, ValueError) as error:
        refuse(place, f"a JSON value ({error})", value)
