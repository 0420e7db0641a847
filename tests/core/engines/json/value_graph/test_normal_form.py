"""Exactly one of overlapping objects, and products of choices: small in number, and right by python-jsonschema."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from structgen import JsonOptions, Vocabulary, compile_json_schema
from structgen.core.engines.json.value_graph.graph import ValueGraph
from structgen.core.json_schema.formula.values import OBJECT
from structgen.core.json_schema.lowering import lower
from structgen.errors import SchemaTooComplexError, UnsatisfiableSchemaError, UnsupportedSchemaError

BYTES = Vocabulary([bytes([b]) for b in range(256)] + [b""], eos_token_ids=[256], special_token_ids=[256])


def branch(name: str, **members: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"kind": {"enum": [name]}, **members}}


def alternatives(schema: Any) -> int:
    options = JsonOptions()
    lowered = lower(schema, options)
    graph = ValueGraph(lowered, options)
    graph.conjunctions()  # with which the normal form is made
    return len(graph.normal_form.alternatives(lowered.root, OBJECT))


TEXT, NUMBER = {"type": "string"}, {"type": "number"}
UNION = {"oneOf": [branch(name, a=TEXT, b=NUMBER) for name in ("p", "q", "r")]}
OVERLAP = {"oneOf": [branch("p", a=TEXT), branch("q", a=NUMBER), {"required": ["b"]}]}
CHOICES = {"anyOf": [{"required": ["a"]}, {"required": ["b"]}], "allOf": [{"anyOf": [{"required": ["b"]}, UNION]}]}
CONDITIONS = {
    "allOf": [
        {"if": {"properties": {"kind": {"const": name}}, "required": ["kind"]}, "then": {"required": [key]}}
        for name, key in (("p", "a"), ("q", "b"), ("r", "a"))
    ]
}
VALUES = [
    dict(zip(keys, values, strict=True))
    for size in range(4)
    for keys in itertools.combinations(("kind", "a", "b"), size)
    for values in itertools.product(["p", "q", "s", 1, []], repeat=size)
]


@pytest.mark.parametrize("schema", [UNION, OVERLAP, CHOICES, CONDITIONS, {"not": UNION}, {"not": OVERLAP}])
def test_agrees_with_jsonschema(schema: Any) -> None:
    oracle = Draft202012Validator(schema)
    grammar = compile_json_schema(schema, BYTES, JsonOptions.exact())
    for value in VALUES:
        matcher = grammar.matcher()
        accepted = bool(matcher.accept_bytes(json.dumps(value).encode()) and matcher.is_accepting())
        assert accepted == oracle.is_valid(value), value


def test_a_tagged_union_with_optional_tag_stays_small() -> None:
    # Naively each branch is multiplied by the negations of the others: three properties to the power of nine.
    union = {"oneOf": [branch(chr(97 + i), a={"enum": [f"{i}-{n}" for n in range(5)]}, b=NUMBER) for i in range(10)]}
    assert alternatives(union) <= 30


def test_conditions_by_a_required_tag_are_one_alternative_each() -> None:
    tagged = {"required": ["kind"], "properties": {"kind": {"enum": ["p", "q", "r"]}}, "type": "object"}
    assert alternatives({**tagged, **CONDITIONS}) <= 8


def test_one_alternative_absorbs_those_that_say_more() -> None:
    assert alternatives({"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["a", "b"]}]}) == 1


def test_what_differs_in_one_key_is_one_alternative() -> None:
    union = {"type": "object", "not": {"required": ["a"], "properties": {"a": TEXT}}}
    assert alternatives(union) == 1  # "a is absent, or no string" is "a, if present, is no string"
    assert alternatives({"type": "object", "oneOf": [branch("p"), branch("q")], "required": ["kind"]}) == 1


def test_the_budget_is_an_error() -> None:
    choices = [{"anyOf": [{"required": [f"a{i}"]}, {"required": [f"b{i}"]}]} for i in range(15)]
    with pytest.raises(SchemaTooComplexError, match="max_alternatives"):
        alternatives({"type": "object", "allOf": choices})


class Unions:
    """Random combinations of branches over the members of `VALUES`, most of them tagged by ``kind``."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def member(self) -> Any:
        choices: list[Any] = [{"const": "p"}, {"enum": ["q", "s"]}, {"enum": ["p", 1]}, TEXT, {"type": "array"}]
        return self.random.choice([*choices, {"not": {"const": "p"}}, {"type": "string", "pattern": "[pq]"}, True])

    def branch(self) -> dict[str, Any]:
        properties = {name: self.member() for name in self.random.sample(("kind", "a", "b"), self.random.randint(0, 2))}
        if self.random.random() < 0.7:
            properties["kind"] = {"enum": self.random.sample(["p", "q", "s", 1], self.random.randint(1, 2))}
        schema: dict[str, Any] = {"type": "object", "properties": properties}
        if self.random.random() < 0.7:
            schema["required"] = self.random.sample(("kind", "a", "b"), self.random.randint(1, 2))
        if self.random.random() < 0.3:
            schema["additionalProperties"] = False
        if self.random.random() < 0.15:
            schema["minProperties"] = 2
        return schema

    def schema(self, depth: int) -> dict[str, Any]:
        if depth == 0:
            return self.branch()
        parts = [self.schema(depth - 1) for _ in range(self.random.randint(2, 4))]
        kind = self.random.choice(("oneOf", "oneOf", "anyOf", "allOf", "if", "not"))
        if kind == "if":
            return {"if": parts[0], "then": parts[1], **({"else": parts[2]} if len(parts) > 2 else {})}
        return {"not": {"anyOf": parts}} if kind == "not" else {kind: parts}


@pytest.mark.parametrize("seed", range(40))
def test_random_unions_agree_with_jsonschema(seed: int) -> None:
    schema = {"type": "object", **Unions(seed).schema(2)}
    oracle = Draft202012Validator(schema)
    valid = [value for value in VALUES if oracle.is_valid(value)]
    try:
        grammar = compile_json_schema(schema, BYTES, JsonOptions.exact())
    except UnsatisfiableSchemaError:
        assert not valid
        return
    except UnsupportedSchemaError:  # combinations that the machine has no counters for
        return
    for value in VALUES:
        matcher = grammar.matcher()
        accepted = bool(matcher.accept_bytes(json.dumps(value).encode()) and matcher.is_accepting())
        assert accepted == (value in valid), value
