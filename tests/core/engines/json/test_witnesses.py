"""``contains``, ``uniqueItems``, negations: against python-jsonschema on many small values, and never a dead end."""

from __future__ import annotations

import itertools
import json
from random import Random
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from structgen import JsonOptions, Vocabulary, allocate_token_bitmask, compile_json_schema
from structgen.errors import UnsatisfiableSchemaError

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
    {"contains": {"const": 1}},
    {"contains": {"type": "string"}, "minContains": 2},
    {"contains": {"type": "integer"}, "minContains": 1, "maxContains": 2},
    {"contains": {"type": "integer"}, "minContains": 0, "maxContains": 1, "minItems": 2},
    {"allOf": [{"contains": {"type": "string"}}, {"contains": {"const": 7}}], "type": "array"},
    {"contains": {"const": 1}, "uniqueItems": True, "minItems": 2},
    {"contains": {"enum": [1, 7]}, "maxContains": 1, "uniqueItems": True},
    {"not": STRINGS},
    {"type": "array", "uniqueItems": True},
    {"type": "array", "uniqueItems": True, "minItems": 2, "items": {"type": ["string", "integer"]}},
    {"type": "array", "uniqueItems": True, "items": {"type": "boolean"}},
    {"type": "array", "uniqueItems": True, "items": {"type": "integer", "minimum": 1, "maximum": 3}, "minItems": 3},
    {"type": "array", "uniqueItems": True, "items": {"pattern": "^(a|b.*)$"}},
    {"type": "array", "uniqueItems": True, "prefixItems": [{"const": 1}, {"enum": [1, 7]}], "items": False},
    {"type": "array", "uniqueItems": True, "items": {"uniqueItems": True, "type": "array", "items": {"enum": [1, 2]}}},
    {
        "type": "array",
        "uniqueItems": True,
        "items": {
            "type": "object",
            "properties": {"a": {"enum": ["x"]}, "b": {"type": "boolean"}},
            "required": ["a"],
            "additionalProperties": False,
        },
    },
    {"type": "array", "not": {"uniqueItems": True}},
    {"type": "array", "not": {"uniqueItems": True}, "items": {"type": "integer"}},
    {"type": "object", "not": {"patternProperties": {"^x": False}}},
    {"type": "object", "not": {"additionalProperties": {"type": "integer"}}},
    {"type": "object", "not": {"additionalProperties": {"type": "integer"}}, "maxProperties": 1},
    {"type": "object", "not": {"propertyNames": {"maxLength": 1}}, "propertyNames": {"maxLength": 2}},
    {"type": "object", "not": {"propertyNames": {"not": {"pattern": "^[ax]"}}}, "maxProperties": 2},
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "not": {"properties": {"a": {}}, "additionalProperties": False},
    },
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "required": ["a"],
        "maxProperties": 2,
        "not": {"additionalProperties": {"type": "integer"}},
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


def is_taken(matcher: Any, token: int) -> bool:
    """Whether a token is accepted; the matcher stays as it is."""
    if not matcher.accept_token(token):
        return False
    matcher.rollback()
    return True


@pytest.mark.first_case
@pytest.mark.parametrize("schema", SCHEMAS, ids=json.dumps)
@pytest.mark.parametrize(
    "options", [JsonOptions.exact(), JsonOptions(), JsonOptions(whitespace=2)], ids=["any", "plain", "2"]
)
def test_no_dead_end(schema: Any, options: JsonOptions) -> None:
    """Random walks by tokens of a byte: a mask is what is accepted, and every state has a completion that is valid."""
    oracle = Draft202012Validator(schema)
    try:
        grammar = compile_json_schema(schema, BYTES, options)
    except UnsatisfiableSchemaError:
        return
    random = Random(json.dumps(schema))
    bitmask = allocate_token_bitmask(1, BYTES.size)
    for _ in range(6):
        matcher, text = grammar.matcher(), b""
        for _ in range(random.randrange(2, 30)):
            matcher.fill_next_token_bitmask(bitmask)
            allowed = [t for t in range(257) if bitmask[0, t // 32] >> (t % 32) & 1]
            assert allowed == [t for t in range(257) if is_taken(matcher, t)]
            assert allowed, text
            likely = [t for t in allowed if t in set(b'"{}[],:123abx')]
            token = random.choice(likely or allowed)
            if token == 256:
                break
            assert matcher.accept_token(token)
            text += bytes([token])
            rest = matcher.shortest_completion()
            assert oracle.is_valid(json.loads(text + rest)), text + rest
            if len(text) > 120:
                break


def test_distinct_items_of_equal_value() -> None:
    """JSON equality: 1 is 1.0 and 10e-1, the order of members does not matter, true is not 1, "a" is "\\u0061"."""
    grammar = compile_json_schema({"uniqueItems": True}, BYTES, JsonOptions.exact())

    def whole(text: str) -> bool:
        matcher = grammar.matcher()
        return bool(matcher.accept_bytes(text.encode()) and matcher.is_accepting())

    for equal in ("1, 1.0", "1, 10e-1", "0, -0.0", "0, 0e7", "120, 1.2E+2", '"a", "\\u0061"', '"\\n", "\\u000a"'):
        assert not whole(f"[{equal}]")
    assert not whole('["😀", "\\ud83d\\ude00"]')
    assert not whole('[{"a": 1, "b": [2, {}]}, {"b": [2.0, {}], "\\u0061": 1}]')
    for different in (
        "1, true",
        "0, false",
        '"1", 1',
        "[], {}",
        "1, 10",
        "1, 0.1",
        "1, -1",
        "[1], [[1]]",
        "null, [null]",
    ):
        assert whole(f"[{different}]"), different
    assert whole('[[1, 2], [2, 1], {"a": 1, "b": 2}, {"a": 2, "b": 1}, ["a", "b"], "ab"]')


def test_distinct_items_survive_rollback_and_forks() -> None:
    grammar = compile_json_schema({"uniqueItems": True, "items": {"enum": ["a", "b"]}}, BYTES, JsonOptions.exact())
    matcher = grammar.matcher()
    assert matcher.accept_bytes(b'["a","')
    fork = matcher.fork()
    assert not matcher.accept_bytes(b'a"') and matcher.accept_bytes(b'b"]')
    matcher.rollback(1)
    assert not fork.accept_bytes(b"a") and fork.accept_bytes(b'b"]') and matcher.accept_bytes(b'b"')
    matcher.rollback(2)
    assert matcher.accept_bytes(b'["b","a"]') and matcher.is_accepting()


def test_a_long_array_of_distinct_items() -> None:
    """The buffer of the text grows with it."""
    grammar = compile_json_schema({"uniqueItems": True, "items": {"type": "integer"}}, BYTES)
    matcher = grammar.matcher()
    assert matcher.accept_bytes(json.dumps(list(range(500))).encode()) and matcher.is_accepting()
    assert not grammar.matcher().accept_bytes(json.dumps([*range(500), 17]).encode())
