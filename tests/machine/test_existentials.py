"""Witnesses of ``contains``, of negations and of ``uniqueItems``, against python-jsonschema on many small values."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from structgen import JsonOptions, Vocabulary, compile_json_schema
from structgen.errors import UnsatisfiableSchemaError, UnsupportedSchemaError

BYTES = Vocabulary([bytes([b]) for b in range(256)] + [b""], eos_token_ids=[256], special_token_ids=[256])
SCALARS: list[Any] = [1, 7, "a", "bb", True, None]
ARRAYS = [list(items) for length in range(4) for items in itertools.product(SCALARS[:4], repeat=length)]
OBJECTS = [
    dict(zip(keys, values, strict=True))
    for size in range(3)
    for keys in itertools.combinations(("a", "b", "x1", "zz"), size)
    for values in itertools.product([1, "s", []], repeat=size)
]

STRINGS = {"type": "array", "items": {"type": "string"}}
SCHEMAS: list[Any] = [
    {"contains": {"type": "string"}, "maxItems": 4},
    {"contains": {"const": 1}, "maxItems": 2},
    {"contains": {"type": "integer"}, "items": {"type": "integer"}},
    {"contains": {"type": "integer"}, "items": {"type": "string"}, "type": "array"},
    {"contains": {"type": "string"}, "minContains": 2, "maxItems": 4},
    {"contains": {"type": "string"}, "minContains": 2, "items": {"type": ["string", "null"]}, "maxItems": 4},
    {"contains": {"type": "string"}, "minContains": 0, "maxContains": 1, "maxItems": 4},
    {"contains": {"type": "string"}, "maxContains": 1, "maxItems": 4},
    {"contains": {"type": "integer"}, "maxContains": 2, "minContains": 2, "maxItems": 4},
    {"prefixItems": [{"const": 1}], "contains": {"const": 1}},
    {"prefixItems": [{"const": 7}], "items": {"const": 1}, "contains": {"const": 1}, "minContains": 2},
    {"not": {"contains": {"type": "string"}}},
    {"not": STRINGS, "maxItems": 3},
    {"type": "array", "not": STRINGS, "maxItems": 3},
    {"oneOf": [STRINGS, {"type": "array", "items": {"type": "integer"}}]},
    {"oneOf": [STRINGS, {"type": "array", "items": {"maxLength": 1}}], "maxItems": 3},
    {"anyOf": [{"not": STRINGS}, {"maxItems": 1}], "type": "array", "maxItems": 3},
    {"type": "array", "uniqueItems": True, "maxItems": 1},
    {"type": "array", "uniqueItems": True, "items": {"enum": [1, "a", "bb"]}},
    {"type": "array", "uniqueItems": True, "items": {"enum": [1, 7, "a", "bb"]}, "minItems": 1, "maxItems": 2},
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "not": {"properties": {"a": {}}, "additionalProperties": False},
    },
    {
        "type": "object",
        "additionalProperties": {"type": "integer"},
        "not": {"additionalProperties": {"type": "string"}},
    },
    {
        "oneOf": [
            {"type": "object", "additionalProperties": {"type": "string"}},
            {"type": "object", "additionalProperties": {"type": "integer"}},
        ]
    },
    {
        "type": "object",
        "not": {"patternProperties": {"^x": {"type": "string"}}},
        "additionalProperties": {"type": "string"},
    },
]


def accepts(grammar: Any, value: Any) -> bool:
    matcher = grammar.matcher()
    return bool(matcher.accept_bytes(json.dumps(value).encode()) and matcher.is_accepting())


@pytest.mark.parametrize("schema", SCHEMAS, ids=json.dumps)
def test_agrees_with_jsonschema(schema: Any) -> None:
    oracle = Draft202012Validator(schema)
    values = [*ARRAYS, *OBJECTS, *SCALARS]
    try:
        grammar = compile_json_schema(schema, BYTES, JsonOptions.exact())
    except UnsatisfiableSchemaError:
        assert not any(map(oracle.is_valid, values))
        return
    assert [v for v in values if accepts(grammar, v) != oracle.is_valid(v)] == []


@pytest.mark.parametrize(
    ("schema", "keyword"),
    [
        ({"type": "array", "uniqueItems": True}, "uniqueItems"),
        ({"contains": {"const": 1}}, "contains"),
        ({"type": "object", "not": {"patternProperties": {"^x": False}}}, "not"),
        ({"type": "object", "not": {"additionalProperties": {"type": "integer"}}}, "not"),
    ],
)
def test_what_cannot_be_said_is_refused_by_name(schema: Any, keyword: str) -> None:
    with pytest.raises(UnsupportedSchemaError) as raised:
        compile_json_schema(schema, BYTES)
    assert raised.value.keyword == keyword
