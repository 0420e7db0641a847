"""JSON of strangers: no name twice, no half of a surrogate pair, not too many values, and no long hold on the lock of
Python's interpreter, so that other threads go on beside it."""

from __future__ import annotations

import json
import re
from json import scanner
from typing import Any

from structgen.core.json_text import named_once
from structgen.errors import SpecificationError

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
FEW_VALUES, MOST_VALUES = 10_000, 120_000
"""Values of a text: up to the first, Python's own JSON parser holds up all other threads for some milliseconds only;
beyond the second nothing is read, since no constraint may have as many (``CompileLimits.whole``)."""
_STRING_OR_COMMA = re.compile(r'"(?:[^"\\]|\\.)*+"|,', re.DOTALL)


def read_object(data: bytes, name: str) -> dict[str, Any]:
    """The object in a JSON text in UTF-8; errors call it by this name, such as "The body".

    Raises:
        SpecificationError: it is no UTF-8, no JSON, or no object; an object in it has a name twice (`invalid_json`); it
            has too many values (`request_too_large`).
    """
    try:
        text = data.decode()
        decoder = _FAST if data.count(b",") <= FEW_VALUES or _count_values(text, name) <= FEW_VALUES else _YIELDING
        value = decoder.decode(text)
        if _SURROGATE.search(data):
            _check_characters(value)
    except UnicodeDecodeError as error:
        raise _unreadable(f"{name} is no UTF-8 (byte {error.start}).") from None
    except UnicodeEncodeError:
        raise _unreadable(f"{name} holds half of a surrogate pair, which is not a character.") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        start = error.pos - min(error.colno - 1, 39)
        shown = error.doc[start : start + 80].partition("\n")[0]
        caret = f"{shown}\n{' ' * (error.pos - start)}^"
        raise _unreadable(f"{name} is no JSON: {error.msg} ({where})\n{caret}") from None
    except (RecursionError, ValueError) as error:  # nested too deeply; a number of thousands of digits; NaN
        what = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise _unreadable(f"{name} cannot be read: {what}.") from None
    if not isinstance(value, dict):
        raise _unreadable(f"{name} is a JSON {type(value).__name__}; expected an object.")
    return value


def _unreadable(message: str) -> SpecificationError:
    return SpecificationError(message, code="invalid_json")


def _count_values(text: str, name: str) -> int:
    """How many commas stand between values, about as many as there are values.

    Raises:
        SpecificationError: more than ``MOST_VALUES``.
    """
    count = 0
    for match in _STRING_OR_COMMA.finditer(text):
        count += match[0] == ","
        if count > MOST_VALUES:
            message = f"{name} has more than {MOST_VALUES:,} values; send less."
            raise SpecificationError(message, code="request_too_large")
    return count


def _check_characters(value: Any) -> None:
    """Raise UnicodeEncodeError where a text in a value holds half of a surrogate pair."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            value.encode()
        elif isinstance(value, dict):
            waiting += value
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _yielding(decoder: json.JSONDecoder) -> json.JSONDecoder:
    """The decoder with the parts of Python's own that are written in Python: other threads go on beside it."""
    decoder.parse_object, decoder.parse_array = json.decoder.JSONObject, json.decoder.JSONArray  # type: ignore[attr-defined]
    decoder.scan_once = scanner.py_make_scanner(decoder)  # type: ignore[attr-defined]
    return decoder


_FAST = json.JSONDecoder(object_pairs_hook=named_once, parse_constant=_no_constant)
_YIELDING = _yielding(json.JSONDecoder(object_pairs_hook=named_once, parse_constant=_no_constant))
