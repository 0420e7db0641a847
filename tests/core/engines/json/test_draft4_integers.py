"""In drafts 3 and 4 an integer has neither fraction nor exponent: a matter of spelling, not of value."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from structgen import JsonOptions, UnsatisfiableSchemaError, Vocabulary, compile_json_schema
from structgen.options import Dialect

BYTES = Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=256)
VALIDATORS: dict[Dialect, Any] = {
    "draft3": jsonschema.Draft3Validator,
    "draft4": jsonschema.Draft4Validator,
    "draft6": jsonschema.Draft6Validator,
}
SCHEMAS: list[Any] = [
    {"type": "integer"},
    {"type": "integer", "minimum": -5, "maximum": 12},
    {"type": "integer", "enum": [1, 2.5, 30]},
    {"type": ["integer", "string"]},
    {"type": ["integer", "number"]},
    {"enum": [1, 30, 0]},
    {"enum": [[1], {"a": 1}], "type": "array"},
    {"type": "array", "items": {"type": "integer"}, "enum": [[1], [1.5]]},
    {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
    {"type": "object", "additionalProperties": {"type": "integer"}},
]
FROM_4: list[Any] = [
    {"not": {"type": "integer"}},
    {"not": {"type": "integer"}, "enum": [1, 1.5, "a"]},
    {"not": {"type": "integer"}, "type": "number", "minimum": 0, "maximum": 30},
    {"type": "integer", "multipleOf": 5},
    {"type": "integer", "multipleOf": 0.5},
    {"type": "number", "multipleOf": 1},
    {"type": "number", "multipleOf": 5, "not": {"type": "integer"}},
    {"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 2}]},
    {"anyOf": [{"type": "integer", "maximum": 2}, {"not": {"type": "integer"}, "minimum": 10}]},
    {"allOf": [{"type": "integer"}, {"not": {"enum": [1]}}]},
]
NUMBERS = [
    "0",
    "-0",
    "1",
    "1.0",
    "1e0",
    "10E-1",
    "-1",
    "-1.0",
    "2.5",
    "25e-1",
    "30",
    "30.0",
    "3e1",
    "1e2",
    "100",
    "0.0",
]
TEXTS = [*NUMBERS, '"a"', "[]", "null", *(f"[{one}]" for one in NUMBERS), *(f'{{"a":{one}}}' for one in NUMBERS)]
TEXTS += ["[1,1.0]", "[1,2]", "[1,1]"]


def accepted(schema: Any, dialect: Dialect) -> list[str]:
    """The texts that the machine takes from end to end."""
    try:
        grammar = compile_json_schema(schema, BYTES, JsonOptions.exact(dialect=dialect))
    except UnsatisfiableSchemaError:
        return []
    found = []
    for text in TEXTS:
        matcher = grammar.matcher()
        if matcher.accept_bytes(text.encode()) and matcher.is_accepting():
            found.append(text)
    return found


@pytest.mark.parametrize("dialect", VALIDATORS)
@pytest.mark.parametrize("schema", [*SCHEMAS, *FROM_4], ids=json.dumps)
def test_what_is_accepted_is_what_an_independent_validator_accepts(schema: Any, dialect: Dialect) -> None:
    if dialect == "draft3" and schema in FROM_4:
        schema = {"divisibleBy" if word == "multipleOf" else word: value for word, value in schema.items()}
        if not {"not", "anyOf", "oneOf", "allOf"}.isdisjoint(schema):
            return
    validator = VALIDATORS[dialect](schema)
    assert accepted(schema, dialect) == [text for text in TEXTS if validator.is_valid(json.loads(text))]


def test_disallow_of_draft_3() -> None:
    schema = {"disallow": ["integer", "array", "object", "string", "null"]}
    validator = jsonschema.Draft3Validator(schema)
    assert accepted(schema, "draft3") == [text for text in TEXTS if validator.is_valid(json.loads(text))]


def test_plain_spelling_writes_each_value_in_one_way() -> None:
    """Then what is no integer has a fraction that says so."""
    options = JsonOptions(dialect="draft4")
    grammar = compile_json_schema({"type": "number", "not": {"type": "integer"}}, BYTES, options)
    for text, whole in (("1.5", True), ("1.0", False), ("1", False), ("0.25", True), ("0.250", False)):
        matcher = grammar.matcher()
        assert (matcher.accept_bytes(text.encode()) and matcher.is_accepting()) == whole, text
    with pytest.raises(UnsatisfiableSchemaError):
        compile_json_schema({"type": "number", "not": {"type": "integer"}, "enum": [1, 2]}, BYTES, options)
