"""JSON within strings (``Json[T]``): the compact JSON of a schema as a regular expression, where it is regular."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from structgen.core.python_types.ranges import integers
from structgen.core.python_types.values import JsonDict, unwrapped

MAX_LENGTH = 20_000
"""Characters of an expression."""
_FREE = r'[^"\\\0-\x1F]'
_STRING = f'"{_FREE}*"'
_NUMBER = r"-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,15})?"
_SCALAR = f"(?:{_STRING}|{_NUMBER}|true|false|null)"
_ANNOTATIONS = frozenset({"title", "description", "default", "examples", "deprecated", "writeOnly", "readOnly"})


class NotRegularError(Exception):
    """The schema asks for what has no expression here; the message names it."""


def json_text(schema: Any, resolve: Callable[[JsonDict], Any]) -> str:
    """An expression (ECMA-262) for texts that are JSON of the schema, each of them.

    Args:
        schema: the schema, as it is derived of types.
        resolve: gives what a reference leads to.

    Raises:
        NotRegularError: the schema refers to itself, or uses keywords that are not covered, or is too large.
    """
    text = _Writer(resolve).value(schema)
    if len(text) > MAX_LENGTH:
        raise NotRegularError(f"its expression has more than {MAX_LENGTH} characters")
    return text


class _Writer:
    def __init__(self, resolve: Callable[[JsonDict], Any]) -> None:
        self._resolve = resolve
        self._open: list[str] = []  # references on the way from the root

    def value(self, schema: Any) -> str:
        """The JSON of a schema."""
        if schema is True:
            return _SCALAR
        if "$ref" in schema:
            return self._reference(schema)
        keys = {key for key in schema if key not in _ANNOTATIONS and not key.startswith("x-")}
        if not keys:
            return _SCALAR
        if keys <= {"enum", "type"} and "enum" in keys:
            return _either(_spelled(unwrapped(value)) for value in schema["enum"])
        if keys == {"anyOf"}:
            return _either(map(self.value, schema["anyOf"]))
        kind = schema.get("type")
        writer = getattr(self, f"_{kind}", None) if isinstance(kind, str) else None
        if writer is None or keys - {"type"} - _KEYWORDS[str(kind)]:
            raise NotRegularError(f"the keywords {', '.join(sorted(keys))}")
        text: str = writer(schema)
        return text

    def _reference(self, schema: JsonDict) -> str:
        name = schema["$ref"]
        if name in self._open:
            raise NotRegularError("a type that holds itself")
        self._open.append(name)
        try:
            return self.value(self._resolve(schema))
        finally:
            self._open.pop()

    def _null(self, schema: JsonDict) -> str:
        return "null"

    def _boolean(self, schema: JsonDict) -> str:
        return "(?:true|false)"

    def _integer(self, schema: JsonDict) -> str:
        low, high = schema.get("minimum"), schema.get("maximum")
        if "exclusiveMinimum" in schema:
            low = schema["exclusiveMinimum"] + 1
        if "exclusiveMaximum" in schema:
            high = schema["exclusiveMaximum"] - 1
        return integers(-(10**15) if low is None else low, 10**15 if high is None else high)

    def _number(self, schema: JsonDict) -> str:
        return _NUMBER

    def _string(self, schema: JsonDict) -> str:
        if "minLength" in schema or "maxLength" in schema:
            return f'"{_FREE}{{{schema.get("minLength", 0)},{schema.get("maxLength", "")}}}"'
        return _STRING

    def _array(self, schema: JsonDict) -> str:
        row = [self.value(item) for item in schema.get("prefixItems", ())]
        least, most = schema.get("minItems", 0), schema.get("maxItems")
        if row:
            if not (least == most == len(row)):
                raise NotRegularError("arrays of several lengths whose first items differ")
            return rf"\[{','.join(row)}\]"
        if most == 0:
            return r"\[\]"
        item = self.value(schema.get("items", True))
        many = f"{item}(?:,{item}){{{max(0, least - 1)},{'' if most is None else most - 1}}}"
        return rf"\[{many if least else f'(?:{many})?'}\]"

    def _object(self, schema: JsonDict) -> str:
        others = schema.get("additionalProperties", True)
        if others is not False:
            if schema.get("properties") or "propertyNames" in schema:
                raise NotRegularError("objects with undeclared members")
            return r"\{\}"  # names may not be repeated, which is not regular
        required = set(schema.get("required", ()))
        members = []
        for name, child in schema.get("properties", {}).items():
            if name in required:
                members.append(f"{_spelled(name)}:{self.value(child)}")
        return rf"\{{{','.join(members)}\}}"


def _spelled(value: Any) -> str:
    """The JSON of a value as an expression."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return "".join(f"\\u{{{ord(c):X}}}" if c in "^$\\.*+?()[]{}|/-" else c for c in text)


def _either(options: Any) -> str:
    return f"(?:{'|'.join(options)})"


_KEYWORDS: dict[str, frozenset[str]] = {
    "null": frozenset(),
    "boolean": frozenset(),
    "integer": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}),
    "number": frozenset(),
    "string": frozenset({"minLength", "maxLength"}),
    "array": frozenset({"items", "prefixItems", "minItems", "maxItems"}),
    "object": frozenset({"properties", "required", "additionalProperties"}),
}
