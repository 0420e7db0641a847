"""From the bytes of a request to its fields: JSON, types, limits; what is wrong is told with its place."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, TypeVar

import pydantic

from structgen.errors import TooComplexError
from structgen.options import near_name
from structgen.serving.compiler import CompileLimits, check_size
from structgen.serving.errors import Place, RequestError, as_request_error, dotted
from structgen.serving.openai_types import NESTED_SUCCESSORS, NEUTRAL, SUCCESSORS, RequestPart

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_Request = TypeVar("_Request", bound=RequestPart)


def read_json(body: bytes) -> dict[str, Any]:
    """The object in a body.

    Raises:
        RequestError: it is no UTF-8, no JSON, or no object.
    """
    try:
        text = body.decode()
        value = json.loads(text, parse_constant=_no_constant)
        if _SURROGATE.search(body):
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeDecodeError as error:
        raise RequestError(f"The body is no UTF-8 (byte {error.start}).", code="invalid_json") from None
    except UnicodeEncodeError:
        raise RequestError(
            "The body holds half of a surrogate pair, which is no character.", code="invalid_json"
        ) from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        line = error.doc.splitlines()[error.lineno - 1 : error.lineno] or [""]
        start = max(0, error.colno - 40)
        caret = f"{line[0][start : start + 80]}\n{' ' * (error.colno - 1 - start)}^"
        raise RequestError(f"The body is no JSON: {error.msg} ({where})\n{caret}", code="invalid_json") from None
    except (RecursionError, ValueError) as error:  # nested too deeply; a number of thousands of digits; NaN
        what = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise RequestError(f"The body cannot be read: {what}.", code="invalid_json") from None
    if not isinstance(value, dict):
        raise RequestError(f"The body is a JSON {type(value).__name__}; expected an object.", code="invalid_json")
    return value


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def read_request(kind: type[_Request], fields: dict[str, Any]) -> _Request:
    """A request with its types checked.

    Raises:
        RequestError: the first thing that is wrong, with its place; a field that is not supported by its name.
    """
    known = _fields_of(kind)
    given = {name: value for name, value in fields.items() if name in known or not _is_neutral(name, value)}
    unknown = next((name for name in given if name not in known), None)
    if unknown is not None:
        raise _unsupported(unknown, sorted(known))
    try:
        return kind.model_validate(given)
    except pydantic.ValidationError as error:
        raise _worst(error, given) from None


def _fields_of(kind: type[RequestPart]) -> set[str]:
    return {field.alias or name for name, field in kind.model_fields.items()}


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
        near = near_name(name, known)
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
            f"{'; or '.join(alternatives)}; not {json.dumps(details['input'], default=str)[:200]}",
        )
    return RequestError.at(place, f"{dotted(place) or 'the request'}: {message}", code)


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


def check_limits(value: Any, place: Place, limits: CompileLimits) -> None:
    """Refuse schemas and grammars beyond the limits, before anything is made of them.

    Raises:
        RequestError: `grammar_too_complex`.
    """
    try:
        check_size(value, limits)
    except TooComplexError as error:
        raise as_request_error(error, place) from None
