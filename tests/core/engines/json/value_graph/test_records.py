"""Objects by their members, as one formula: they mean, and become nodes as, the conjunction that they stand for."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from structgen.core.engines.json.value_graph.graph import ValueGraph
from structgen.core.engines.json.value_graph.objects import ObjectSpec
from structgen.core.json_schema.formula.evaluate import evaluate
from structgen.core.json_schema.formula.language import (
    FALSE,
    TRUE,
    And,
    Formula,
    Keys,
    MemberRecord,
    Type,
    and_,
    not_,
    one,
    or_,
    record,
    spelled,
    unordered,
)
from structgen.core.json_schema.formula.values import NULL, NUMBER, OBJECT, STRING
from structgen.core.json_schema.lowering import lower
from structgen.options import JsonOptions

NAMES = ("a", "b", "c", "é", "\ud800")
LEAVES: tuple[Formula, ...] = (TRUE, FALSE, Type(STRING), Type(NUMBER))
names = st.lists(st.sampled_from(NAMES), unique=True, max_size=4).map(tuple)


@st.composite
def records(draw: Any, inner: st.SearchStrategy[Formula]) -> Formula:
    known = draw(names)
    found = tuple(draw(inner) for _ in known)
    return record(known, found, draw(names), draw(inner), draw(st.booleans()))


values = st.recursive(st.sampled_from(LEAVES), records, max_leaves=6)


def documents() -> list[Any]:
    leaves = ["x", 1, None, {}, {"a": "x"}, {"b": 1, "c": {}}]
    return [*leaves, *({name: leaf} for name in NAMES for leaf in leaves), {"a": 1, "b": "x", "é": {"a": "x"}}]


def fits(formula: Formula, document: Any) -> bool:
    """What a record of this file says, by its definition."""
    if isinstance(formula, MemberRecord):
        known = dict(zip(formula.names, formula.values, strict=True))
        return (
            isinstance(document, dict)
            and all(name in document for name in formula.required)
            and all(fits(known.get(name, formula.others), value) for name, value in document.items())
        )
    return evaluate(formula, document)


@pytest.mark.full
@given(records(values))
def test_a_record_means_its_definition(formula: Formula) -> None:
    for document in documents():
        assert evaluate(formula, document) == fits(formula, document)
        assert evaluate(spelled(formula), document) == fits(formula, document)


@given(records(values), st.sampled_from([TRUE, FALSE, Type(NULL), Type(OBJECT), Keys(2)]))
def test_connectives_take_it_apart(formula: Formula, other: Formula) -> None:
    for document in documents():
        this, that = fits(formula, document), evaluate(other, document)
        assert evaluate(and_(formula, other), document) == (this and that)
        assert evaluate(or_(formula, other), document) == (this or that)
        assert evaluate(one(formula, other), document) == (this != that)
        assert evaluate(not_(formula), document) == (not this)
        assert evaluate(unordered(formula), document) == this
    assert not unordered(formula).ordered
    assert and_(formula, TRUE) is formula is or_(formula, FALSE)


@given(records(values))
def test_equal_records_are_one_object(formula: Formula) -> None:
    assert pickle.loads(pickle.dumps(formula)) is formula


def described(spec: ObjectSpec) -> Any:
    assert not spec.dependents
    assert not spec.existentials
    others = spec.others and spec.others.nodes[0].formula
    keys = {name: spelled(node.formula) for name, node in spec.keys.items()}
    return keys, spec.required, spec.least, spec.most, others and spelled(others)


@pytest.mark.parametrize("key_order", ["any", "declared"])
@given(formula=records(values))
def test_its_node_is_that_of_the_conjunction(key_order: Any, formula: Formula) -> None:
    whole = spelled(formula)
    if not isinstance(formula, MemberRecord) or not isinstance(
        whole, And
    ):  # the conjunction may contradict itself plainly
        return
    graph = ValueGraph(lower(True), JsonOptions(key_order=key_order))
    (found,), (expected,) = (_expanded(graph, each) for each in (formula, whole))
    assert described(found) == described(expected)
    if formula.declared:
        assert list(found.keys)[: len(formula.names)] == list(formula.names)


def _expanded(graph: ValueGraph, formula: Formula) -> list[ObjectSpec]:
    node = graph.node(formula)
    graph._drain()
    return list(node.objects)


def test_a_plain_object_is_a_record() -> None:
    schema = {
        "type": "object",
        "title": "t",
        "properties": {"a": {"type": "string"}, "b": True},
        "required": ["a", "c"],
        "additionalProperties": {"type": "number"},
    }
    lowered = lower(schema)
    assert lowered.root is record(("a", "b"), (Type(STRING), TRUE), ("a", "c"), Type(NUMBER), True)
    places = [lowered.origin(part) for part in spelled(lowered.root).args]  # type: ignore[attr-defined]
    assert sorted(place[1] for place in places if place) == [
        "additionalProperties", "properties", "properties", "required", "required", "type",
    ]  # fmt: skip
    assert not isinstance(lower({**schema, "minProperties": 1}).root, MemberRecord)
    assert lower({"type": "object", "properties": {}}).root is Type(OBJECT)
