"""Response formats and structured outputs of requests as constraints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from structgen.core.constraints.base import Constraint
from structgen.core.constraints.json import json_schema
from structgen.core.constraints.text import TextConstraint, WrittenGrammar, choice, regex
from structgen.options import JsonOptions
from structgen.server.errors import Place, RequestError, as_request_error
from structgen.server.openai_types import (
    JsonObjectFormat,
    JsonSchemaFormat,
    JsonSchemaResponseFormat,
    StructuredOutputs,
    TextFormat,
)
from structgen.server.reading import check_limits, read_json
from structgen.server.settings import ServingSettings
from structgen.server.structural_tags import StructuralTags

ANY_OBJECT = {"type": "object"}
LENIENT = JsonOptions(unsupported="ignore")


class PlacedConstraint:
    """A constraint and where it stands in the request: errors of compiling it say so.

    Attributes:
        constraint: the constraint.
        place: where it stands.
        kind: what it is, for logs and metrics.
    """

    def __init__(self, constraint: Constraint, place: Place, kind: str) -> None:
        self.constraint, self.place, self.kind = constraint, place, kind


def format_constraint(
    given: TextFormat | JsonObjectFormat | JsonSchemaResponseFormat | None, settings: ServingSettings
) -> PlacedConstraint | None:
    """The constraint that ``response_format`` asks for.

    Raises:
        RequestError: it is too large, or no schema.
    """
    if given is None or isinstance(given, TextFormat):
        return None
    if isinstance(given, JsonObjectFormat) and given.schema_ is not None:
        return schema_constraint(JsonSchemaFormat(schema=given.schema_), ("response_format", "schema"), settings)
    if isinstance(given, JsonObjectFormat):
        return PlacedConstraint(json_schema(ANY_OBJECT), ("response_format",), "json_object")
    return schema_constraint(given.json_schema, ("response_format", "json_schema", "schema"), settings)


def schema_constraint(given: JsonSchemaFormat, place: Place, settings: ServingSettings) -> PlacedConstraint:
    """The constraint of a schema with ``strict``: what cannot be enforced is refused unless it is written as false."""
    check_limits(given.schema_, place, settings.compile_limits)
    options = LENIENT if given.strict is False else None
    return PlacedConstraint(_checked(lambda: json_schema(given.schema_, options), place), place, "json_schema")


def structured_constraint(
    given: StructuredOutputs | None,
    settings: ServingSettings,
    options: JsonOptions | None = None,
    special_tokens: Mapping[str, int] | None = None,
) -> PlacedConstraint | None:
    """The constraint that ``structured_outputs`` asks for; ``options`` say how its JSON may be spelled, and
    ``special_tokens`` which names in structural tags are no text.

    Raises:
        RequestError: not exactly one is asked for, it is too large, or it cannot be read.
    """
    if given is None:
        return None
    root: Place = ("structured_outputs",)
    fields = type(given).model_fields.items()
    asked = [(field.alias or name, getattr(given, name)) for name, field in fields]
    asked = [(name, value) for name, value in asked if value is not None and value is not False]
    asked += [("json", False)] if given.json_schema is False else []
    if len(asked) != 1:
        named = ", ".join(name for name, _ in asked) or "none"
        raise RequestError.at(root, f"structured_outputs needs exactly one of its fields; there are: {named}")
    name, value = asked[0]
    place = (*root, name)
    if isinstance(value, str) and name in ("json", "structural_tag"):
        value = _json_of(value, place) if value.lstrip().startswith("{") else value
    limits = settings.compile_limits.whole if name == "structural_tag" else settings.compile_limits
    check_limits({"pattern": value} if name == "regex" else value, place, limits)
    return PlacedConstraint(
        _checked(lambda: _constraint(name, value, place, options, special_tokens), place), place, name
    )


def grammar_constraint(text: str | None, settings: ServingSettings) -> PlacedConstraint | None:
    """The constraint that llama.cpp's field ``grammar`` asks for; "" asks for none.

    Raises:
        RequestError: it is too large, or cannot be read.
    """
    if not text:
        return None
    place: Place = ("grammar",)
    check_limits(text, place, settings.compile_limits)
    return PlacedConstraint(_checked(lambda: grammar_text(text), place), place, "grammar")


def _json_of(text: str, place: Place) -> Any:
    """The object that a field holds as JSON text."""
    try:
        return read_json(text.encode())
    except RequestError as error:
        raise RequestError.at(place, error.message.replace("The body", "The text"), "invalid_json") from None


def _constraint(
    name: str, value: Any, place: Place, options: JsonOptions | None, specials: Mapping[str, int] | None
) -> Constraint:
    if name == "json_object":
        return json_schema(ANY_OBJECT, options)
    if name == "json":
        if value in ("true", "false"):
            return json_schema(value == "true", options)
        if isinstance(value, str):
            raise RequestError.at(place, "a schema is an object, a boolean, or the JSON text of an object")
        return json_schema(value, options)
    if name == "regex":
        return regex(value)
    if name == "choice":
        return choice(value)
    if name == "grammar":
        return grammar_text(value)
    return StructuralTags(specials or {}, options, grammar_text).read(value, place)


def grammar_text(text: str) -> TextConstraint:
    """A grammar in the notation that it is written in, as vLLM and SGLang have it. It is read where it is compiled:
    reading one may take as long as compiling does.
    """
    return WrittenGrammar(text)


def _checked(make: Any, place: Place) -> Constraint:
    try:
        made: Constraint = make()
    except RequestError:
        raise
    except Exception as error:
        raise as_request_error(error, place) from error
    return made
