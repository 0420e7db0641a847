"""JSON text as Python values; of whole texts no digit is lost: a number that float would change is a ``Decimal``, as is
an integer of more digits than Python writes."""

from __future__ import annotations

import json
import re
from decimal import Decimal, InvalidOperation
from typing import Any

from structgen.errors import GenerationError

_STRING_OR_NUMBER = re.compile(r'"(?:[^"\\]|\\.)*"?|-?[0-9][0-9.eE+-]*', re.DOTALL)


class UnreadableNumberError(ValueError):
    """A number whose exponent no ``Decimal`` has."""


class NamedTwiceError(ValueError):
    """An object has a name twice: what it means depends on who reads it."""


def named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of these members: an ``object_pairs_hook`` for JSON that others write.

    Raises:
        NamedTwiceError: a name is there twice.
    """
    members = dict(pairs)
    if len(members) == len(pairs):
        return members
    seen = set[str]()
    for name, _ in pairs:
        if name in seen:
            raise NamedTwiceError(f"an object in it has the name {json.dumps(name[:200])} twice; leave one out")
        seen.add(name)
    raise AssertionError("unreachable: fewer names than members")


def loads_exact(text: str) -> Any:
    """The value of a JSON text.

    Raises:
        GenerationError: no JSON, nested deeper than Python's parser goes, or a number in it has an exponent that no
            ``Decimal`` has (from about 10**18 on).
    """
    try:
        return json.loads(text, parse_float=_exact_float, parse_int=exact_integer, parse_constant=_no_constant)
    except UnreadableNumberError:
        raise GenerationError(unreadable_number(text) or "", text=text) from None
    except ValueError as error:
        raise GenerationError(f"The output is no JSON: {error}. The output: {text[:200]}", text=text) from error
    except RecursionError:
        raise GenerationError(
            "The output is nested too deeply for Python's JSON parser; read .text instead.", text=text
        ) from None


def decode_exact(text: str, offset: int) -> tuple[Any, int] | None:
    """The JSON value that begins at a place of a text, and the place after it; None: there is none, or none that can
    be read."""
    try:
        return EXACT_DECODER.raw_decode(text, offset)
    except (ValueError, RecursionError):
        return None


def unreadable_number(text: str, start: int = 0) -> str | None:
    """What is to be said of the first number from a place on that cannot be read; None: there is none."""
    for match in _STRING_OR_NUMBER.finditer(text, start):
        try:
            if match[0][0] != '"':
                _exact_float(match[0])
        except UnreadableNumberError:
            return (
                f"The output has a number at character {match.start()} whose exponent is too large for Python: "
                f"{match[0][:60]}; read .text instead."
            )
        except ValueError:  # no number
            continue
    return None


def exact_decimal(text: str) -> Decimal:
    """A number of JSON as it is written; 0, whatever its exponent, is 0.

    Raises:
        UnreadableNumberError: its exponent is too large.
    """
    try:
        exact = Decimal(text)
    except InvalidOperation:
        exact = Decimal("nan")
    if not exact.is_nan():  # which it also is under a context that traps nothing
        return exact
    mantissa = text.lower().partition("e")[0]
    if mantissa.strip("-.0"):
        raise UnreadableNumberError(f"Python has no number with the exponent of {text[:60]}")
    return Decimal(mantissa)


def exact_integer(text: str) -> int | Decimal:
    """An integer of JSON: a ``Decimal`` where Python does not read as many digits (4,300 by default), and so would not
    write them either."""
    try:
        return int(text)
    except ValueError:
        return Decimal(text)


def _exact_float(text: str) -> float | Decimal:
    number, exact = float(text), exact_decimal(text)
    return number if Decimal(repr(number)) == exact else exact


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")


EXACT_DECODER = json.JSONDecoder(parse_float=_exact_float, parse_int=exact_integer, parse_constant=_no_constant)
"""Reads JSON with exact numbers; raises ``ValueError``s and ``RecursionError``."""


def utf8(text: str) -> bytes | None:
    """The UTF-8 of a string; None if it holds a lone surrogate, which no JSON text can spell in UTF-8."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return None
