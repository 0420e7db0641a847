"""Response formats and structured outputs of requests as constraints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from structgen.core.constraints.base import Constraint
from structgen.core.constraints.specs import DEFAULT_OPTIONS, ConstraintSpec
from structgen.errors import Place
from structgen.options import JsonOptions
from structgen.server.errors import RequestError, as_request_error
from structgen.server.openai_types import (
    JsonObjectFormat,
    JsonSchemaFormat,
    JsonSchemaResponseFormat,
    StructuredOutputs,
    TextFormat,
)
from structgen.server.settings import ServingSettings

Sources: TypeAlias = "Mapping[str, Any]"
NO_SOURCES: Sources = {}
LENIENT = JsonOptions(unsupported="ignore")


class PlacedConstraint:
    """A constraint and where it stands in the request: errors of compiling it say so.

    Attributes:
        constraint: the constraint.
        place: where it stands.
        kind: what it is, for logs and metrics.
    """

    def __init__(self, constraint: Constraint, path: Place, kind: str) -> None:
        self.constraint, self.place, self.kind = constraint, path, kind


def format_constraint(
    given: TextFormat | JsonObjectFormat | JsonSchemaResponseFormat | None,
    settings: ServingSettings,
    sources: Sources = NO_SOURCES,
) -> PlacedConstraint | None:
    """The constraint that ``response_format`` asks for.

    Raises:
        RequestError: it is too large, or no schema.
    """
    if given is None or isinstance(given, TextFormat):
        return None
    if isinstance(given, JsonObjectFormat) and given.schema_ is not None:
        return schema_constraint(
            JsonSchemaFormat(schema=given.schema_), ("response_format", "schema"), settings, sources
        )
    if isinstance(given, JsonObjectFormat):
        return placed(ConstraintSpec("json_object", True), ("response_format",), settings)
    return schema_constraint(given.json_schema, ("response_format", "json_schema", "schema"), settings, sources)


def schema_constraint(
    given: JsonSchemaFormat, path: Place, settings: ServingSettings, sources: Sources = NO_SOURCES
) -> PlacedConstraint:
    """The constraint of a schema with ``strict``: what cannot be enforced is refused unless it is written as false."""
    options = LENIENT if given.strict is False else DEFAULT_OPTIONS
    spec = ConstraintSpec("schema", given.schema_, options, sources=sources)
    return placed(spec, path, settings, "json_schema")


def structured_constraint(
    given: StructuredOutputs | None, settings: ServingSettings, sources: Sources = NO_SOURCES
) -> PlacedConstraint | None:
    """The constraint that ``structured_outputs`` asks for.

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
    return placed(ConstraintSpec(name, value, sources=sources), (*root, name), settings)


def grammar_constraint(text: str | None, settings: ServingSettings) -> PlacedConstraint | None:
    """The constraint that llama.cpp's field ``grammar`` asks for; "" asks for none.

    Raises:
        RequestError: it is too large, or cannot be read.
    """
    return placed(ConstraintSpec("grammar", text), ("grammar",), settings) if text else None


def placed(spec: ConstraintSpec, path: Place, settings: ServingSettings, kind: str = "") -> PlacedConstraint:
    """What a field says, of any kind; errors name the field.

    Raises:
        RequestError: it is too large, or cannot be read.
    """
    try:
        spec.check_size(settings.compile_limits)
        return PlacedConstraint(spec.constraint, path, kind or spec.kind)
    except Exception as error:
        raise as_request_error(error, path) from error
