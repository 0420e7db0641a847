"""JSON text as Python values; of whole texts no digit is lost: a number that float would change is a ``Decimal``."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from structgen.errors import GenerationError


def loads_exact(text: str) -> Any:
    """The value of a JSON text.

    Raises:
        GenerationError: no JSON, or nested deeper than Python's parser goes.
    """
    try:
        return json.loads(text, parse_float=_exact_float, parse_int=_exact_int)
    except json.JSONDecodeError as error:
        raise GenerationError(f"The output is no JSON: {error}. The output: {text[:200]}", text=text) from error
    except RecursionError:
        raise GenerationError(
            "The output is nested too deeply for Python's JSON parser; read .text instead.", text=text
        ) from None


def decode_exact(text: str, at: int) -> tuple[Any, int] | None:
    """The JSON value that begins at a place of a text, and the place behind it; None: there is none."""
    try:
        return _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None


def _exact_float(text: str) -> float | Decimal:
    number = float(text)
    exact = Decimal(text)
    return number if Decimal(repr(number)) == exact else exact


def _exact_int(text: str) -> int:
    # Decimal has no limit of digits (CPython refuses int() beyond 4,300).
    return int(text) if len(text) < 4000 else int(Decimal(text))


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")


_DECODER = json.JSONDecoder(parse_float=_exact_float, parse_int=_exact_int, parse_constant=_no_constant)
