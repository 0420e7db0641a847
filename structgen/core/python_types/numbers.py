"""Numbers of Python as schemas: what their texts become after Python has rounded them is within the limits, too."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any

from pydantic_core import core_schema

from structgen.core.python_types.functions import Functions
from structgen.core.python_types.notes import checked, narrowed
from structgen.core.python_types.values import JsonDict

EXACT_DIGITS = 15
"""A decimal number of so many digits is known by the nearest float (IEEE 754 binary64)."""
_WHOLE = "(?:0|[1-9][0-9]*)"
_FLOAT = r"(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,15})?(?:e[+\-]?[0-9]{1,2})?"
_COMPLEX = rf"^[+\-]?{_FLOAT}(?:[+\-](?:{_FLOAT})?j|j)?$"


class Numbers(Functions):
    """Schemas of numbers."""

    def float_schema(self, schema: core_schema.FloatSchema) -> JsonDict:
        """A float: bounds that it must not reach are the next float before them, so that no text rounds to one."""
        derived: JsonDict = {"type": "number"}
        low, high = schema.get("ge"), schema.get("le")
        if schema.get("gt") is not None:
            low = _tighter(max, low, math.nextafter(schema["gt"], math.inf))
        if schema.get("lt") is not None:
            high = _tighter(min, high, math.nextafter(schema["lt"], -math.inf))
        step = schema.get("multiple_of")
        reach = math.inf if step is None else _reach(step)
        beyond = (low or 0) > reach or (high or 0) < -reach
        if beyond:
            reach = math.inf
        if schema.get("allow_inf_nan", self.setting("allow_inf_nan", True)) is False:
            reach = min(reach, sys.float_info.max)
        if not math.isinf(reach):
            low, high = _tighter(max, low, -reach), _tighter(min, high, reach)
        for keyword, bound in (("minimum", low), ("maximum", high)):
            if bound is not None and not math.isinf(bound):
                derived[keyword] = bound
        if step is None:
            return derived
        derived["multipleOf"] = step
        if beyond:
            return checked(derived, "float", f"that pydantic finds it a multiple of {step}, as it rounds")
        return narrowed(derived, "float", f"multiples up to {reach}, which floats tell from others")

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonDict:
        """A number of at most fifteen digits, since pydantic reads numbers with a fraction as floats; or a string."""
        number: JsonDict = {"type": "number", **_bounds(schema)}
        digits, places, step = schema.get("max_digits"), schema.get("decimal_places"), schema.get("multiple_of")
        shapes = list(_shapes(digits, places))
        if step is not None:  # Python divides 28 digits
            number |= {"multipleOf": Decimal(str(step)), "allOf": [_between(EXACT_DIGITS)]}
        number["anyOf"] = [_within(whole, fraction) for whole, fraction in shapes]
        if len(number) > 2:
            return narrowed(number, "decimal", "written as a number of at most 15 digits, not as a string")
        texts = [_decimal_text(whole, fraction) for whole, fraction in _string_shapes(digits, places)]
        if digits is None and places is None:
            texts = [texts[0] + "(?:E[+\\-][0-9]{1,3})?"]
        derived = {"anyOf": [number, {"type": "string", "pattern": f"^-?(?:{'|'.join(texts)})$"}]}
        if digits is None and places is None:
            return derived
        return narrowed(derived, "decimal", "a string has no exponent")

    def fraction_schema(self, schema: Any) -> JsonDict:
        """A number of at most fifteen digits, or without limits a quotient as a string."""
        number: JsonDict = {"type": "number", **_bounds(schema)}
        number["anyOf"] = [_within(whole, fraction) for whole, fraction in _shapes(None, None)]
        if schema.get("multiple_of") is not None:
            return checked(number, "fraction", f"whether it is a multiple of {schema['multiple_of']}")
        if len(number) > 2:
            return narrowed(number, "fraction", "written as a number of at most 15 digits, not as a quotient")
        quotient = {"type": "string", "pattern": f"^-?{_WHOLE}(?:/[1-9][0-9]*)?$"}
        return narrowed({"anyOf": [number, quotient]}, "fraction", "a number has at most 15 digits")

    def complex_schema(self, schema: core_schema.ComplexSchema) -> JsonDict:
        """A complex number as Python writes it, without parentheses."""
        return narrowed({"type": "string", "pattern": _COMPLEX}, "complex", "decimal numbers, no infinities")


def _reach(step: float) -> float:
    """Up to which number multiples of ``step`` are found to be such: pydantic allows remainders of 1e-9."""
    is_exact = Decimal(step) == Decimal(str(step))
    return step * 10.0**EXACT_DIGITS if is_exact else 1e6


def _tighter(choose: Any, bound: float | None, other: float) -> float:
    return other if bound is None else choose(bound, other)


def _bounds(schema: Any) -> JsonDict:
    """The limits of a decimal or a fraction, which may be no decimal numbers: then the next that is within them."""
    derived: JsonDict = {}
    for key, keyword, rounding in (
        ("ge", "minimum", ROUND_CEILING),
        ("gt", "exclusiveMinimum", ROUND_CEILING),
        ("le", "maximum", ROUND_FLOOR),
        ("lt", "exclusiveMaximum", ROUND_FLOOR),
    ):
        bound = schema.get(key)
        if bound is None or (isinstance(bound, (float, Decimal)) and not math.isfinite(bound)):
            continue
        if isinstance(bound, Fraction):
            context = Context(prec=40, rounding=rounding)
            bound = context.divide(Decimal(bound.numerator), Decimal(bound.denominator))
        derived[keyword] = bound if isinstance(bound, int) else Decimal(str(bound))
    return derived


def _shapes(digits: int | None, places: int | None) -> Iterator[tuple[int | None, int]]:
    """Digits before and after the point (None: any number) of numbers that a float keeps and the limits allow."""
    if digits is None and places is None:
        yield from ((None, 0), (9, 6), (0, EXACT_DIGITS))
    elif digits is None:
        assert places is not None
        yield None, 0
        if places > 0:
            yield max(0, EXACT_DIGITS - places), min(places, EXACT_DIGITS)
    else:
        for whole, fraction in _string_shapes(digits, places):
            if whole:
                yield whole, 0
            if fraction:
                kept = min(fraction, EXACT_DIGITS)
                yield min(whole or 0, EXACT_DIGITS - kept), kept


def _string_shapes(digits: int | None, places: int | None) -> Iterator[tuple[int | None, int | None]]:
    """The same of decimals that are read exactly."""
    if digits is None:
        yield None, places
    elif places is not None:
        yield max(0, digits - places), min(places, digits)
    else:
        for fraction in range(digits + 1):
            yield digits - fraction, fraction


def _within(whole: int | None, places: int) -> JsonDict:
    """Numbers of so many digits before and after the point."""
    step: JsonDict = {"multipleOf": _power(-places)}
    if whole == 0:  # pydantic counts a zero before the point where nothing follows it
        step["not"] = {"const": 0}
    return step if whole is None else {**step, **_between(whole)}


def _between(whole: int) -> JsonDict:
    return {"exclusiveMinimum": -_power(whole), "exclusiveMaximum": _power(whole)}


def _decimal_text(whole: int | None, places: int | None) -> str:
    if whole == 0:
        return rf"0\.[0-9]{{0,{(places or 1) - 1}}}[1-9]"
    before = _WHOLE if whole is None else f"(?:0|[1-9][0-9]{{0,{whole - 1}}})"
    return before if places == 0 else rf"{before}(?:\.[0-9]{'+' if places is None else f'{{1,{places}}}'})?"


def _power(exponent: int) -> int | Decimal:
    return 10**exponent if exponent >= 0 else Decimal(1).scaleb(exponent)
