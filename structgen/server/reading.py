"""From the bytes of a request to its fields: JSON, types, limits; what is wrong is reported with its position."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

import pydantic

from structgen.core.untrusted_json import read_object
from structgen.errors import Place, SpecificationError, dotted
from structgen.options import near_name
from structgen.server.errors import RequestError
from structgen.server.openai_types import (
    NESTED_SUCCESSORS,
    NEUTRAL,
    SUCCESSORS,
    RequestPart,
    StructgenExtension,
    names_at,
    names_of,
)

READ_AT_ONCE = 32 << 10
"""Bytes of a body that are read on the event loop: within a millisecond or two."""
LONGEST_NAME = 100
"""Characters of names for which near ones are looked for: no field is as long."""
SHOWN = 200
"""Characters of a wrong value that an error shows."""
_Request = TypeVar("_Request", bound=RequestPart)


def read_json(body: bytes) -> dict[str, Any]:
    """The object in a body.

    Raises:
        RequestError: see ``read_object``.
    """
    try:
        return read_object(body, "The body")
    except SpecificationError as error:
        raise RequestError(str(error), code=error.code) from None


def read_request(kind: type[_Request], fields: dict[str, Any]) -> _Request:
    """A request with its types checked.

    Raises:
        RequestError: the first thing that is wrong, with its place; a field that is not supported by its name.
    """
    names = names_of(kind)
    others = (name for name in fields if name not in names)
    unknown = next((name for name in others if not _is_neutral(name, fields[name])), None)
    if unknown is not None:
        raise _unsupported(unknown, kind)
    given = {name: fields[name] for name in names if name in fields}
    try:
        return kind.model_validate(given)
    except pydantic.ValidationError as error:
        raise _worst(error, given, kind) from None


def _is_neutral(name: str, value: Any) -> bool:
    return any(value == neutral and type(value) is type(neutral) for neutral in NEUTRAL.get(name, ()))


def _unsupported(name: str, kind: type[RequestPart], path: Place = ()) -> RequestError:
    """The error for a field that is not supported, at a place of a request of a kind."""
    successors = NESTED_SUCCESSORS if path else SUCCESSORS
    if name in successors:
        hint = f"use {successors[name]}"
    elif name.startswith("guided_"):
        hint = "see structured_outputs"
    elif not path and name in names_of(StructgenExtension):
        hint = f"use structgen.{name}"
    elif path and name in names_of(kind):
        hint = f"use the request's own {name!r}"
    elif name in NEUTRAL:
        hint = "leave it out"
    else:
        near = near_name(name, sorted(names_at(kind, path))) if len(name) <= LONGEST_NAME else None
        hint = f"did you mean {near!r}?" if near else "leave it out"
    return RequestError.at([*path, name], f"The field {name!r} is not supported; {hint}", "unsupported_parameter")


def _worst(error: pydantic.ValidationError, body: Any, kind: type[RequestPart]) -> RequestError:
    """The error deepest in a request of a kind: of alternatives, the one that fits best."""
    faults = [
        (place_in(details["loc"], body, missing=details["type"] == "missing"), details)
        for details in error.errors(include_url=False, include_context=False)
    ]
    # Of equals the first; what is missing may only be misspelled.
    path, details = max(faults, key=lambda pair: (len(pair[0]), pair[1]["type"] != "missing"))
    alternatives = dict.fromkeys(str(each["msg"]) for where, each in faults if where == path)
    wrong = str(details["type"])
    if wrong == "extra_forbidden":
        return _unsupported(str(path[-1]), kind, path[:-1])
    if wrong.startswith("union_tag"):
        code, message = "unsupported_value", details["msg"].replace("_kind()", "'type'")
    elif wrong == "missing":
        code, message = "missing_required_parameter", "it is required"
    else:
        code, message = (
            "invalid_value",
            f"{'; or '.join(alternatives)}; not {_shown(details['input'])}",
        )
    return RequestError.at(path, f"{dotted(path) or 'the request'}: {message}", code)


def _shown(value: Any) -> str:
    """The beginning of a value's JSON; what follows is not written."""
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
    path: list[int | str] = []
    for number, part in enumerate(location):
        here = (isinstance(body, Mapping) and part in body) or (
            isinstance(body, list) and isinstance(part, int) and part < len(body)
        )
        if here:
            body = body[part]
            path.append(part)
        elif missing and number == len(location) - 1:
            path.append(part)
    return path
