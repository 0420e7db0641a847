"""Values in schemas that pydantic derives: it walks a schema as if all of it were schemas, and takes 1 for true."""

from __future__ import annotations

import json
from typing import Any

from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

JsonDict = dict[str, Any]


class _Value:
    """A value that a schema lists or has by default, wrapped: a member of it called ``$ref`` is no reference."""

    __slots__ = ("_text", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self._text = _spelled(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Value) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)


def _spelled(value: Any) -> str:
    """One text for a schema, another for another: 1, 1.0 and true are three."""
    return json.dumps(value, sort_keys=True, default=lambda other: (type(other).__name__, repr(unwrapped(other))))


def wrapped(value: Any) -> Any:
    """A listed value as pydantic lets it stand: objects, arrays, and the Booleans, which equal numbers in Python."""
    return _Value(value) if isinstance(value, (dict, list, bool)) else value


def unwrapped(value: Any) -> Any:
    """What was wrapped."""
    return value.value if isinstance(value, _Value) else value


class WrappedValues(GenerateJsonSchema):
    """Schemas whose values are wrapped until all of them is derived."""

    def encode_default(self, dft: Any) -> Any:
        """A default."""
        value = super().encode_default(dft)
        return value if isinstance(value, bool) else wrapped(value)

    def literal_schema(self, schema: core_schema.LiteralSchema) -> JsonDict:
        """Listed values."""
        return _listed(super().literal_schema(schema))

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonDict:
        """The values of the members."""
        return _listed(super().enum_schema(schema))

    def get_flattened_anyof(self, schemas: list[JsonDict]) -> JsonDict:
        """Any of the schemas, each once."""
        flat = [one for schema in schemas for one in (schema["anyOf"] if schema.keys() == {"anyOf"} else [schema])]
        distinct = list({_spelled(one): one for one in reversed(flat)}.values())[::-1]
        return distinct[0] if len(distinct) == 1 else {"anyOf": distinct}


def _listed(derived: JsonDict) -> JsonDict:
    if "enum" in derived:
        derived["enum"] = [wrapped(value) for value in derived["enum"]]
    if "const" in derived:
        derived["const"] = wrapped(derived["const"])
    return derived
