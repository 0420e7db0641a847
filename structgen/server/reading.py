"""From the bytes of a request to its fields: JSON, types, limits; what is wrong is told with its place."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from json import scanner
from typing import Any, TypeVar

import pydantic

from structgen.core.json_text import named_once
from structgen.errors import TooComplexError
from structgen.options import near_name
from structgen.server.compiler import CompileLimits, check_size
from structgen.server.errors import Place, RequestError, as_request_error, dotted
from structgen.server.openai_types import NESTED_SUCCESSORS, NEUTRAL, SUCCESSORS, RequestPart, names_of

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
READ_AT_ONCE = 32 << 10
"""Bytes of a body that are read on the event loop: within a millisecond or two."""
LONGEST_NAME = 100
"""Characters of names for which near ones are looked for: no field is as long."""
SHOWN = 200
"""Characters of a wrong value that an error shows."""
FEW_VALUES, MOST_VALUES = 10_000, 120_000
"""Values of a body: up to the first, Python's own JSON parser holds up all other threads for some milliseconds only;
beyond the second nothing is read, since no constraint may have as many (``CompileLimits.whole``)."""
_STRING_OR_COMMA = re.compile(r'"(?:[^"\\]|\\.)*+"|,', re.DOTALL)
_Request = TypeVar("_Request", bound=RequestPart)


def read_json(body: bytes) -> dict[str, Any]:
    """The object in a body.

    Raises:
        RequestError: it is no UTF-8, no JSON, or no object; an object in it has a name twice; it has too many values.
    """
    try:
        text = body.decode()
        decoder = _FAST if body.count(b",") <= FEW_VALUES or _count_values(text) <= FEW_VALUES else _YIELDING
        value = decoder.decode(text)
        if _SURROGATE.search(body):
            _check_characters(value)
    except UnicodeDecodeError as error:
        raise RequestError(f"The body is no UTF-8 (byte {error.start}).", code="invalid_json") from None
    except UnicodeEncodeError:
        raise RequestError(
            "The body holds half of a surrogate pair, which is not a character.", code="invalid_json"
        ) from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        start = error.pos - min(error.colno - 1, 39)
        shown = error.doc[start : start + 80].partition("\n")[0]
        caret = f"{shown}\n{' ' * (error.pos - start)}^"
        raise RequestError(f"The body is no JSON: {error.msg} ({where})\n{caret}", code="invalid_json") from None
    except (RecursionError, ValueError) as error:  # nested too deeply; a number of thousands of digits; NaN
        what = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise RequestError(f"The body cannot be read: {what}.", code="invalid_json") from None
    if not isinstance(value, dict):
        raise RequestError(f"The body is a JSON {type(value).__name__}; expected an object.", code="invalid_json")
    return value


def _count_values(text: str) -> int:
    """How many commas stand between values, about as many as there are values.

    Raises:
        RequestError: more than ``MOST_VALUES``.
    """
    count = 0
    for found in _STRING_OR_COMMA.finditer(text):
        count += found[0] == ","
        if count > MOST_VALUES:
            raise RequestError(f"The body has more than {MOST_VALUES:,} values; send less.", code="request_too_large")
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


def read_request(kind: type[_Request], fields: dict[str, Any]) -> _Request:
    """A request with its types checked.

    Raises:
        RequestError: the first thing that is wrong, with its place; a field that is not supported by its name.
    """
    known = names_of(kind)
    others = (name for name in fields if name not in known)
    unknown = next((name for name in others if not _is_neutral(name, fields[name])), None)
    if unknown is not None:
        raise _unsupported(unknown, sorted(known))
    given = {name: fields[name] for name in known if name in fields}
    try:
        return kind.model_validate(given)
    except pydantic.ValidationError as error:
        raise _worst(error, given) from None


def _is_neutral(name: str, value: Any) -> bool:
    return any(value == neutral and type(value) is type(neutral) for neutral in NEUTRAL.get(name, ()))


def _unsupported(name: str, known: list[str], place: Place = ()) -> RequestError:
    """The error for a field that is not supported."""
    successors = NESTED_SUCCESSORS if place else SUCCESSORS
    if name in successors:
        hint = f"use {successors[name]}"
    elif name.startswith("guided_"):
        hint = "see structured_outputs"
    elif name in NEUTRAL:
        hint = "leave it out"
    else:
        near = near_name(name, known) if len(name) <= LONGEST_NAME else None
        hint = f"did you mean {near!r}?" if near else "leave it out"
    return RequestError.at([*place, name], f"The field {name!r} is not supported; {hint}", "unsupported_parameter")


def _worst(error: pydantic.ValidationError, body: Any) -> RequestError:
    """The error deepest in the request: of alternatives, the one that fits best."""
    found = [
        (place_in(details["loc"], body, missing=details["type"] == "missing"), details)
        for details in error.errors(include_url=False, include_context=False)
    ]
    place, details = max(found, key=lambda pair: len(pair[0]))  # of equals, the first
    alternatives = dict.fromkeys(str(each["msg"]) for where, each in found if where == place)
    if details["type"] == "extra_forbidden":
        return _unsupported(str(place[-1]), [], place[:-1])
    kind = str(details["type"])
    if kind.startswith("union_tag"):
        code, message = "unsupported_value", details["msg"].replace("_kind()", "'type'")
    elif kind == "missing":
        code, message = "missing_required_parameter", "it is required"
    else:
        code, message = (
            "invalid_value",
            f"{'; or '.join(alternatives)}; not {_shown(details['input'])}",
        )
    return RequestError.at(place, f"{dotted(place) or 'the request'}: {message}", code)


def _shown(value: Any) -> str:
    """The beginning of a value's JSON; the rest is not written."""
    value = value[:SHOWN] if isinstance(value, str) else value
    text = ""
    for piece in json.JSONEncoder(default=str).iterencode(value):
        text += piece[:SHOWN]
        if len(text) >= SHOWN:
            break
    return text[:SHOWN]


def place_in(location: tuple[int | str, ...], body: Any, *, missing: bool = False) -> list[int | str]:
    """Where in a request an error is: its location without the names of types and alternatives that pydantic adds.

    Args:
        missing: whether its last part is a field that is not there.
    """
    place: list[int | str] = []
    for number, part in enumerate(location):
        here = (isinstance(body, Mapping) and part in body) or (
            isinstance(body, list) and isinstance(part, int) and part < len(body)
        )
        if here:
            body = body[part]
            place.append(part)
        elif missing and number == len(location) - 1:
            place.append(part)
    return place


def _yielding(decoder: json.JSONDecoder) -> json.JSONDecoder:
    """The decoder with the parts of Python's own that are written in Python: other threads go on beside it."""
    decoder.parse_object, decoder.parse_array = json.decoder.JSONObject, json.decoder.JSONArray  # type: ignore[attr-defined]
    decoder.scan_once = scanner.py_make_scanner(decoder)  # type: ignore[attr-defined]
    return decoder


_FAST = json.JSONDecoder(object_pairs_hook=named_once, parse_constant=_no_constant)
_YIELDING = _yielding(json.JSONDecoder(object_pairs_hook=named_once, parse_constant=_no_constant))


def check_limits(value: Any, place: Place, limits: CompileLimits) -> None:
    """Refuse schemas and grammars beyond the limits, before anything is made of them.

    Raises:
        RequestError: `grammar_too_complex`.
    """
    try:
        check_size(value, limits)
    except TooComplexError as error:
        raise as_request_error(error, place) from None
