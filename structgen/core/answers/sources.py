"""What may be given where a question asks for a schema: schemas, texts, files, Python types, tool definitions."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from structgen.core.json_schema.plain import plain_json

_PARAMETERS = ("inputSchema", "input_schema", "parameters")


def is_text(source: Any) -> bool:
    """Whether a source is a constraint on plain text: a grammar, expression or choice. Loads nothing."""
    module = sys.modules.get("structgen.core.constraints.text")  # where there is one of its classes, it is loaded
    return module is not None and isinstance(source, module.TextConstraint)


def schema_of(source: Any) -> Any:
    """The plain JSON Schema that a source says; of a tool definition, that of its arguments.

    Raises:
        SchemaError: unreadable file, no JSON. ConstraintError: none of these.
    """
    if isinstance(source, (Mapping, bool)):
        return plain_json(_parameters(source) if isinstance(source, Mapping) else source)
    from structgen.core.constraints.json import json_schema  # which reads types, and compiles

    schema = json_schema(source).schema
    return _parameters(schema) if isinstance(schema, Mapping) else schema


def _parameters(definition: Mapping[str, Any]) -> Any:
    """What a tool takes; a schema as it is."""
    is_function = definition.get("type") == "function"  # which is no type of JSON Schema
    if is_function and isinstance(definition.get("function"), Mapping):
        definition = definition["function"]
    if isinstance(definition.get("name"), str):
        for name in _PARAMETERS:
            if isinstance(definition.get(name), Mapping):
                return definition[name]
        if is_function:  # without parameters it takes none
            from structgen.core.tool_calls.definitions import NO_PARAMETERS

            return NO_PARAMETERS
    return definition
