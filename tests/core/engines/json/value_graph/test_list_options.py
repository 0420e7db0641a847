"""``JsonOptions(max_items=..., distinct_items=...)``: what lists may be, by a walk over value and schema."""

from __future__ import annotations

import json
from typing import Any

import hypothesis.strategies as st
import jsonschema
import pytest
from hypothesis import given, settings

import structgen
from structgen.core.json_schema.lowering import lower
from structgen.options import JsonOptions
from tests.many import cases

VOCABULARY = structgen.Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=256)
VALUES: dict[str, list[Any]] = {"flag": [False, True], "digit": [0, 1, 2, 3], "word": ["", "a", "b", "aa"]}
SCALARS: dict[str, Any] = {
    "flag": {"type": "boolean"},
    "digit": {"type": "integer", "minimum": 0, "maximum": 3},
    "word": {"type": "string", "pattern": "^[ab]*$"},
}


@st.composite
def lists(draw: Any, depth: int = 2) -> dict[str, Any]:
    """Schemas of lists of scalars and of lists, some with limits of their own."""
    inner = st.sampled_from(sorted(SCALARS)).map(lambda name: SCALARS[name])
    schema: dict[str, Any] = {"type": "array", "items": draw(inner if depth == 0 else inner | lists(depth - 1))}
    for name, most in (("minItems", 3), ("maxItems", 3)):
        if draw(st.integers(0, 2)) == 0:
            schema[name] = draw(st.integers(0, most))
    if draw(st.integers(0, 4)) == 0:
        schema["uniqueItems"] = draw(st.booleans())
    return schema


def instance(draw: Any, schema: dict[str, Any]) -> Any:
    """A value of about this form."""
    if schema["type"] != "array":
        return draw(st.sampled_from([value for name in VALUES if SCALARS[name] == schema for value in VALUES[name]]))
    count = draw(st.integers(0, 4))
    return [instance(draw, schema["items"]) for _ in range(count)]


def is_allowed(value: Any, schema: dict[str, Any], options: JsonOptions) -> bool:
    """The oracle for lists without ``minItems`` above the number of their values."""
    if schema["type"] != "array":
        return True
    items, least = schema["items"], schema.get("minItems", 0)
    most = options.max_items
    if most is not None and "maxItems" not in schema and len(value) > max(most, least):
        return False
    is_text, is_plain = items["type"] == "string", items["type"] != "array"
    wished = options.distinct_items == "all" or (options.distinct_items == "strings" and is_text)
    enough = least < 2 or (is_plain and least <= {"boolean": 2, "integer": 4, "string": 1 << 20}[items["type"]])
    if wished and enough and not schema.get("uniqueItems"):
        texts = [json.dumps(item) for item in value]
        if len(set(texts)) < len(texts):
            return False
    return all(is_allowed(item, items, options) for item in value)


@settings(max_examples=len(cases(3_000, 150)), deadline=None)
@given(st.data())
def test_lists_are_those_that_the_options_leave(data: st.DataObject) -> None:
    schema = data.draw(lists())
    options = JsonOptions(
        max_items=data.draw(st.sampled_from([None, 0, 1, 2, 3])),
        distinct_items=data.draw(st.sampled_from(["schema", "strings", "all"])),
    )
    try:
        grammar = structgen.compile_json_schema(schema, VOCABULARY, options)
    except structgen.UnsatisfiableSchemaError:
        return
    except structgen.UnsupportedSchemaError:
        return
    for _ in range(4):
        value = instance(data.draw, schema)
        matcher = grammar.matcher()
        text = json.dumps(value)
        taken = matcher.accept_bytes(text.encode()) and matcher.is_accepting()
        is_valid = jsonschema.Draft202012Validator(schema).is_valid(value)
        assert taken == (is_valid and is_allowed(value, schema, options)), (schema, options, text)
        matcher = grammar.matcher()
        for byte in text.encode():
            whole = matcher.shortest_completion()
            other = matcher.fork()
            assert other.accept_bytes(whole) and other.is_accepting()
            if not matcher.accept_token(byte):
                break


COUNT = {"type": "integer"}
LIST: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
TABLE: list[tuple[Any, dict[str, Any], str, bool]] = [
    ({"type": "array", "prefixItems": [COUNT, COUNT, COUNT]}, {"max_items": 1}, "[1, 2, 3]", True),
    ({"type": "array", "prefixItems": [COUNT, COUNT, COUNT]}, {"max_items": 1}, "[1, 2, 3, 4]", False),
    ({"type": "array", "prefixItems": [COUNT, COUNT]}, {"distinct_items": "all"}, "[1, 1]", True),
    ({"contains": {"const": 7}, "minContains": 3, "type": "array"}, {"max_items": 1}, "[7, 7, 7]", True),
    ({"contains": {"const": 7}, "minContains": 3, "type": "array"}, {"max_items": 1}, "[7, 7, 7, 7]", False),
    ({}, {"distinct_items": "all"}, "[[1, 2], [2, 1], [1, 2]]", False),
    ({"type": "array"}, {"distinct_items": "all"}, "[[1, 2], [2, 1], [[]]]", True),
    ({"allOf": [LIST, {"maxItems": 3}]}, {"max_items": 1}, '["a", "b", "c"]', True),
    ({"const": [1, 2, 3]}, {"max_items": 1}, "[1, 2, 3]", True),
    ({}, {"max_items": 1}, '{"a": [[1, 2]]}', False),
    ({}, {"max_items": 1}, '{"a": [[1]]}', True),
    ({"anyOf": [LIST, {"type": "null"}]}, {"max_items": 0}, "[]", True),
    ({"anyOf": [LIST, {"type": "null"}]}, {"max_items": 0}, '["a"]', False),
    ({"type": "array", "items": {"type": ["string", "null"]}}, {"distinct_items": "strings"}, '["a", "a"]', True),
    (LIST, {"distinct_items": "strings"}, '["a", "\\u0061"]', False),
]


@pytest.mark.parametrize(("schema", "options", "text", "taken"), TABLE, ids=lambda each: str(each)[:40])
def test_places(schema: Any, options: dict[str, Any], text: str, taken: bool) -> None:
    asked = JsonOptions(string_escapes="any", key_order="any", **options)
    matcher = structgen.compile_json_schema(schema, VOCABULARY, asked).matcher()
    assert (matcher.accept_bytes(text.encode()) and matcher.is_accepting()) == taken


def test_the_report_lists_what_was_narrowed() -> None:
    options = JsonOptions(max_items=5, distinct_items="strings")
    schema = {"properties": {"a": LIST, "b": {**LIST, "maxItems": 2, "uniqueItems": True}, "c": {"type": "string"}}}
    narrowed = [entry.pointer for entry in lower(schema, options).report.entries if entry.status == "narrowed"]
    assert narrowed == ["/properties/a/maxItems", "/properties/a/uniqueItems"]
    assert not [entry for entry in lower(schema).report.entries if entry.status == "narrowed"]


def test_what_leaves_no_value_says_why() -> None:
    pair = {"type": "array", "items": {"type": "boolean"}, "maxItems": 2}
    schema = {"type": "array", "items": pair, "uniqueItems": True, "minItems": 6}
    structgen.compile_json_schema(schema, VOCABULARY)
    with pytest.raises(structgen.UnsatisfiableSchemaError, match='distinct_items="schema"'):
        structgen.compile_json_schema(schema, VOCABULARY, JsonOptions(distinct_items="all"))


@pytest.mark.parametrize("schema", [{"not": {"uniqueItems": True}}, {"oneOf": [{}, {"items": {"uniqueItems": True}}]}])
def test_lists_of_which_two_items_must_be_equal_are_not_limited(schema: Any) -> None:
    with pytest.raises(structgen.UnsupportedSchemaError, match="max_items"):
        structgen.compile_json_schema(schema, VOCABULARY, JsonOptions(max_items=3))
    structgen.compile_json_schema(schema, VOCABULARY, JsonOptions(max_items=3, unsupported="ignore"))
