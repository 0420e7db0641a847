"""JSON text as Python values."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pydantic_core

from structgen.errors import GenerationError


def loads_exact(text: str) -> Any:
    """JSON text as Python values without losing digits: a number that float would change is a ``Decimal``.

    Raises:
        GenerationError: no JSON, or nested deeper than Python's parser goes.
    """
    try:
        return json.loads(text, parse_float=_exact_float, parse_int=_exact_int)
    except json.JSONDecodeError as error:
        raise GenerationError(f"The output is no JSON: {error}. The output: {text[:200]}") from error
    except RecursionError:
        raise GenerationError("The output is nested too deeply for Python's JSON parser; read .text instead.") from None


def _exact_float(text: str) -> float | Decimal:
    number = float(text)
    exact = Decimal(text)
    return number if Decimal(repr(number)) == exact else exact


def _exact_int(text: str) -> int:
    # Decimal has no limit of digits (CPython refuses int() beyond 4,300).
    return int(text) if len(text) < 4000 else int(Decimal(text))


def loads_partial(text: str) -> Any:
    """Python values of unfinished JSON text: strings as far as they go, other unfinished scalars left out; None where
    there is none yet."""
    try:
        return pydantic_core.from_json(text, allow_partial="trailing-strings")
    except ValueError:
        return None
