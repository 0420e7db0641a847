"""Arrays of distinct items within arrays of distinct items: what is written to complete them, against the judge."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest

import structgen
from structgen.core.engines.json.compiled import compile_json_schema
from structgen.core.engines.json.completion.cheapest_values import Values
from structgen.core.engines.json.value_graph.graph import ValueGraph
from structgen.core.json_schema.lowering import lower
from structgen.errors import SchemaError
from structgen.options import JsonOptions
from tests.core.engines.json.completion.test_completions import BYTES
from tests.fuzz.judge import Judge, read

DRAFT = "draft2020-12"
ITEMS: list[Any] = [
    *({"enum": [0, 1]}, {"enum": [0, 1, "a"]}, {"type": "boolean"}, {"type": ["boolean", "null"]}, {"const": 0}),
    *({"type": "integer", "minimum": 0, "maximum": 2}, {"type": "string", "maxLength": 1}, {"not": {"const": 0}}, {}),
]
LOST = {  # no completion was written: items of another branch were taken for those of the nearest
    "items": {"type": "array", "uniqueItems": True, "minItems": 3, "maxItems": 4, "items": {"not": {"const": 0}}},
    "contains": {"type": "array", "uniqueItems": True, "maxItems": 2},
    "minContains": 0,
    "maxContains": 3,
}


def random_schema(rng: random.Random, depth: int) -> Any:
    """Arrays and objects with few values, or values that differ in one part only."""
    if depth == 0 or rng.random() < 0.3:
        return rng.choice(ITEMS)
    inner = [random_schema(rng, depth - 1) for _ in range(3)]
    if rng.random() < 0.2:
        names = rng.sample("abc", 2)
        members: dict[str, Any] = {
            "type": "object",
            "properties": dict(zip(names, inner, strict=False)),
            "required": names[:1],
        }
        closed = rng.choice(
            ({}, {"additionalProperties": False}, {"not": {"additionalProperties": {"type": "integer"}}})
        )
        return members | closed
    schema: dict[str, Any] = {"type": "array", "uniqueItems": rng.random() < 0.7}
    if rng.random() < 0.6:
        schema["minItems"] = rng.randint(1, 4)
    if rng.random() < 0.4:
        schema["maxItems"] = schema.get("minItems", 0) + rng.randint(0, 2)
    if rng.random() < 0.6:
        schema["items"] = inner[0]
    if rng.random() < 0.3:
        schema["prefixItems"] = [inner[1]]
    if rng.random() < 0.5:
        schema |= {"contains": inner[2], "minContains": rng.randint(0, 3)}
    return schema


def documents(schema: Any, rng: random.Random) -> Iterator[str]:
    """The shortest document, drawn ones without room, and completions of random beginnings."""
    for style, size in (("minimal", 300), ("typical", 10), ("boundary", 20)):
        yield from (one.text for one in structgen.examples(schema, 4, style=style, size=size))  # type: ignore[arg-type]
    grammar = compile_json_schema(schema, BYTES)
    for _ in range(2):
        matcher, text = grammar.matcher(), b""
        for _ in range(rng.randint(0, 12)):
            following = [byte for byte in matcher.next_bytes().nonzero()[0] if byte in b'[]{},:01an"bctrul']
            if following:
                text += bytes([rng.choice(following)])
                assert matcher.accept_bytes(text[-1:])
        yield (text + matcher.shortest_completion()).decode()


@pytest.mark.parametrize("seed", range(12))
def test_what_is_written_is_valid(seed: int) -> None:
    asked = 0
    for number in range(40 * seed, 40 * (seed + 1)):
        rng = random.Random(number)
        schema = random_schema(rng, 3)
        judge = Judge(schema, DRAFT)
        try:
            for text in documents(schema, rng):
                assert judge.valid(read(text)), (text, schema)
                asked += 1
        except SchemaError:  # no value, or counts of distinct items that are refused by name
            continue
    assert asked > 150


def test_a_list_of_lists_that_may_be_in_another_branch_is_completed() -> None:
    inner = {"type": "array", "uniqueItems": True, "minItems": 4, **LOST}
    schema = {"type": "array", "contains": inner, "minContains": 1, "maxContains": 1}
    text = compile_json_schema(schema, BYTES).matcher().shortest_completion().decode()
    assert Judge(schema, DRAFT).valid(read(text))


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "uniqueItems": True, "items": {"type": "boolean"}},
        {"type": "array", "maxItems": 2, "items": {"enum": [0, "a"]}},
        {"type": "array", "minItems": 1, "maxItems": 2, "items": {"enum": [0, 1]}, "contains": {"const": 1}},
        {"type": "object", "properties": {"a": {"enum": [0, 1]}, "b": {"const": 0}}, "additionalProperties": False},
        {"properties": {"a": {"const": 0}, "b": {"const": 0}}, "dependentRequired": {"a": ["b"]}, "type": "object",
         "additionalProperties": False},
    ],
)  # fmt: skip
def test_few_values_are_all_listed(schema: dict[str, Any]) -> None:
    options = JsonOptions(whitespace="compact")
    lowered = lower(schema, options)
    node = ValueGraph(lowered, options).compile(lowered.root)
    listed = list(islice(Values(options).distinct.of(node), 100))
    assert len(listed) == len(set(listed))
    judge = Judge(schema, DRAFT)
    expected = [json.dumps(value, separators=(",", ":")).encode() for value in small() if judge.valid(value)]
    assert sorted(listed) == sorted(expected)


def small() -> Iterator[Any]:
    """All arrays of up to two, and objects of two members, over few values."""
    values = [0, 1, "a", True, False]
    yield from ([], *([one] for one in values), *([one, other] for one in values for other in values))
    for one in (None, *values):
        for other in (None, *values):
            yield {key: value for key, value in (("a", one), ("b", other)) if value is not None}
