"""Containment against brute force, by judges that share nothing with the engine; laws; and known cases."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from pydantic import BaseModel

import structgen
from structgen import JsonOptions
from structgen.core.answers.deciding import Questions, answering
from structgen.core.answers.joint import Joint
from structgen.core.json_schema.lowering import Lowered
from structgen.errors import SchemaTooComplexError, UndecidedError, UnresolvableReferenceError
from tests.core.answers.random_pairs import Pair
from tests.fuzz import answers

EACH = 60


@pytest.mark.parametrize("seed", range(20))
def test_random_pairs_are_judged_as_brute_force_does(seed: int) -> None:
    for number in range(seed * EACH, (seed + 1) * EACH):
        assert answers.unit(number, Counter()) == []


@pytest.mark.parametrize("seed", range(4))
def test_simulation_proves_nothing_that_the_graph_refutes(seed: int) -> None:
    options = answering(None)
    for number in range(10_000 + seed * EACH, 10_000 + (seed + 1) * EACH):
        pair = Pair(number)
        try:
            joint = Joint([Lowered(schema, answering(pair.options()), None) for schema in pair.schemas], options)
        except (UnresolvableReferenceError, SchemaTooComplexError):
            continue
        questions = Questions(joint, options)
        proved = questions.simulation.implies(*joint.roots)
        questions.simulation.implies = lambda *_: False  # type: ignore[method-assign]
        assert not proved or questions.is_contained(*joint.roots).contained is not False, pair.schemas


@pytest.mark.full
def test_exactly_one_of_many_alternatives_that_are_apart_is_some_of_them() -> None:
    """Without a graph of the difference of forty records, which would be too large."""

    def records(choice: Any, count: int) -> dict[str, Any]:
        properties = [{f"p{i}": {"type": "integer"}, f"q{i}": choice} for i in range(count)]
        closed = [{"type": "object", "properties": each, "additionalProperties": False} for each in properties]
        return {"anyOf": closed, "minProperties": 1}

    apart = {"oneOf": [{"type": "string"}, {"type": "null"}]}
    assert structgen.compare(records(apart, 40), records({"type": ["string", "null"]}, 40)).verdict == "equal"
    joined = [{"minLength": 2}, {"maxLength": 2}]
    answer = structgen.compare(records({"oneOf": joined}, 2), records({"anyOf": joined}, 2))
    assert answer.verdict == "wider"  # texts of two code points, and whatever is no text, are in both


@pytest.mark.parametrize("seed", range(2))
def test_laws(seed: int) -> None:
    """A ∧ B ⊆ A ⊆ A ∨ B; the reverse question has the reverse answer."""
    for number in range(20_000 + seed * EACH // 2, 20_000 + (seed + 1) * EACH // 2):
        pair = Pair(number)
        if "$ref" in json.dumps(pair.schemas) or pair.drafts[0] == "draft3":  # they would lead elsewhere
            continue
        options, (a, b) = pair.options(), pair.schemas
        for narrow, wide in (({"allOf": [a, b]}, a), (a, {"anyOf": [a, b]})):
            answer = structgen.compare(narrow, wide, options=options)
            assert answer.old_in_new is not False, (narrow, wide, answer)
        one, other = structgen.compare(a, b, options=options), structgen.compare(b, a, options=options)
        assert (one.old_in_new, one.new_in_old) == (other.new_in_old, other.old_in_new)


INTEGER = {"type": "integer"}
CASES: list[tuple[Any, Any, str]] = [
    (INTEGER, {"type": "number"}, "wider"),
    ({"enum": [1, 2]}, {"type": "integer", "minimum": 1, "maximum": 2}, "equal"),
    ({"anyOf": [{"minimum": 0}, {"maximum": 10}]}, {}, "equal"),
    ({"type": "object", "required": ["a"]}, {"type": "object", "minProperties": 1}, "wider"),
    ({"minLength": 3}, {"pattern": "^..."}, "narrower"),  # a dot is no line feed
    ({"minLength": 3}, {"pattern": "^[^]{3}"}, "equal"),
    ({"type": "string", "pattern": "^a+$"}, {"type": "string", "pattern": "^a*$"}, "wider"),
    ({"oneOf": [INTEGER, {"type": "string"}]}, {"anyOf": [INTEGER, {"type": "string"}]}, "equal"),
    ({"type": "array", "uniqueItems": True, "maxItems": 3}, {"type": "array", "maxItems": 3}, "wider"),
    ({"prefixItems": [INTEGER, INTEGER], "items": False, "uniqueItems": True}, {"maxItems": 2}, "wider"),
    ({"properties": {"a": INTEGER}}, {"properties": {"a": {"type": "number"}}}, "wider"),
    ({"const": 1}, {"not": {"not": {"enum": [1.0]}}}, "equal"),
    ({"$id": "http://x.test/a", "$defs": {"n": INTEGER}, "$ref": "#/$defs/n"},
     {"$id": "http://x.test/a", "$defs": {"n": {"type": "string"}}, "$ref": "#/$defs/n"}, "incomparable"),
    ({"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 0, "exclusiveMinimum": True},
     {"exclusiveMinimum": 0}, "equal"),
    ({"$schema": "http://json-schema.org/draft-03/schema#", "properties": {"a": {"required": True}}},
     {"if": {"type": "object"}, "then": {"required": ["a"]}}, "equal"),
    (False, INTEGER, "wider"),
    ({"prefixItems": [{}, {"type": "number"}]}, {"uniqueItems": True, "items": {"type": "null"}}, "unknown"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "verdict"), CASES)
def test_known_cases(old: Any, new: Any, verdict: str) -> None:
    assert structgen.compare(old, new).verdict == verdict


def test_recursive_schemas_are_compared_quickly() -> None:
    def tree(kind: str) -> dict[str, Any]:
        leaf = {"type": "object", "properties": {f"k{i}": {"$ref": "#/$defs/t"} for i in range(40)}}
        return {"$defs": {"t": {"oneOf": [leaf, {"type": kind}]}}, "$ref": "#/$defs/t"}

    assert structgen.compare(tree("integer"), tree("integer")).verdict == "equal"
    assert structgen.compare(tree("integer"), tree("number")).verdict == "wider"


def test_the_keyword_that_refuses_is_named() -> None:
    old = {"properties": {"a": {"items": {"maxLength": 9}}}}
    new = {"properties": {"a": {"items": {"maxLength": 5}}}, "required": ["b"]}
    answer = structgen.compare(old, new)
    assert answer.old_only is not None and answer.old_only.text == "{}"
    assert [one.pointer for one in answer.old_only.keywords] == ["/required"]
    answer = structgen.compare(old, {**new, "required": []})
    assert answer.old_only is not None
    (change,) = answer.old_only.keywords
    assert (change.pointer, change.keyword, change.value, change.other, change.is_new) == (
        "/properties/a/items/maxLength", "maxLength", 5, 9, False,
    )  # fmt: skip


def test_types_and_tools_are_compared() -> None:
    class Old(BaseModel):
        name: str

    class New(BaseModel):
        name: str
        age: int = 0

    assert structgen.compare(Old, New).verdict == "wider"  # objects of types are closed
    schema = {"type": "object", "properties": {"q": {"type": "string"}}}
    tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
    assert structgen.compare(tool, {"name": "f", "inputSchema": schema}).verdict == "equal"
    assert structgen.is_subset(tool, schema)


def test_what_is_not_decided_is_said() -> None:
    old = {"type": "string", "pattern": r"^(a+)\1$"}
    answer = structgen.compare(old, {"type": "string", "minLength": 2})
    assert answer.verdict == "unknown" and answer.old_in_new is None and answer.unknown
    with pytest.raises(UndecidedError, match="regular"):
        structgen.is_subset(old, {"type": "string", "minLength": 2})
    assert structgen.is_subset(old, {"type": "string"})  # whatever the pattern says


def test_what_the_graph_leaves_open_may_be_refused_by_a_drawn_document() -> None:
    old = {"type": "array", "items": {"enum": [1, 2, 3]}, "contains": {"const": 1}}
    answer = structgen.compare(old, {"uniqueItems": True})
    assert answer.old_in_new is False and answer.methods[0] == "sample" and answer.old_only is not None
    value = answer.old_only.value
    assert 1 in value and len(value) > len(set(value))


def test_remarks() -> None:
    assert structgen.compare(False, {"type": "null"}).remarks == ("no document satisfies the old schema",)
    (remark,) = structgen.compare({"format": "hostname"}, {}).remarks
    assert "hostname" in remark
    assert not structgen.compare({"format": "hostname"}, {}, options=JsonOptions(assert_formats=False)).remarks


@pytest.mark.parametrize("tool", [{"type": "function", "function": {"name": "f"}}, {"type": "function", "name": "f"}])
def test_a_tool_without_parameters_takes_none(tool: dict[str, Any]) -> None:
    parameters = {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False}
    answer = structgen.compare(tool, {"name": "f", "parameters": parameters})
    assert answer.verdict == "wider" and answer.new_only is not None and answer.new_only.text == '{"a":0}'
