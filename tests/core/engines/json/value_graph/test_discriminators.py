"""Cases by a member's value say what the formula says; the work of unions told apart by a tag is linear."""

from __future__ import annotations

from typing import Any

import pytest

from structgen import JsonOptions
from structgen.core.engines.json.value_graph.discriminators import Cases, discriminator
from structgen.core.engines.json.value_graph.graph import ValueGraph
from structgen.core.engines.json.value_graph.normal_form import NormalForm
from structgen.core.json_schema.budget import StepBudget
from structgen.core.json_schema.formula.evaluate import evaluate
from structgen.core.json_schema.formula.language import Formula, and_, or_
from structgen.core.json_schema.formula.values import OBJECT
from structgen.core.json_schema.lowering import lower
from structgen.errors import SchemaTooComplexError
from tests.core.engines.json.value_graph.object_formulas import NAMES, OBJECTS, ObjectFormulas


def normal_form(limit: int = 10_000) -> NormalForm:
    """A normal form that takes every two formulas to overlap, which is allowed and the harder case."""
    return NormalForm({}, limit, StepBudget(10_000_000), lambda formula, kind: True)


def same(found: Formula, expected: Formula) -> None:
    for value in OBJECTS:
        assert evaluate(found, value) == evaluate(expected, value), value


@pytest.mark.parametrize("seed", range(40))
def test_cases_are_exact(seed: int) -> None:
    formula = normal_form().restrict(ObjectFormulas(seed).root(), OBJECT)
    for name in NAMES:
        cases = Cases(formula, name, normal_form().restrict, StepBudget(10_000_000))
        same(or_(*[and_(*literals, residual) for literals, residual in cases]), formula)


@pytest.mark.parametrize("seed", range(20))
def test_cases_exclude_each_other_in_what_decides_them(seed: int) -> None:
    formula = normal_form().restrict(ObjectFormulas(seed).root(), OBJECT)
    cases = [and_(*literals) for literals, _ in Cases(formula, "k", normal_form().restrict, StepBudget(10_000_000))]
    for value in OBJECTS:
        assert sum(evaluate(case, value) for case in cases) <= 1, value


@pytest.mark.parametrize("seed", range(60))
def test_alternatives_are_exact(seed: int) -> None:
    formula = ObjectFormulas(1000 + seed).root()
    try:
        found = normal_form(100).alternatives(formula, OBJECT)
    except SchemaTooComplexError:  # as every two parts overlap here
        return
    same(or_(*[and_(*literals) for literals in found]), formula)


def test_the_member_that_tells_most_branches_apart_is_chosen() -> None:
    schema = {
        "oneOf": [
            {"properties": {"kind": {"const": name}, "a": {"enum": [1]}, "b": {"type": "string"}}} for name in "pqr"
        ]
    }
    restrict = normal_form().restrict
    branches = restrict(lower(schema).root, OBJECT).args  # type: ignore[attr-defined]
    assert discriminator(branches, (), frozenset(), restrict) in ("kind", "a")
    assert discriminator(branches, (), frozenset({"kind", "a"}), restrict) is None
    assert discriminator(branches[:1], (), frozenset(), restrict) is None


# --- tagged unions ---
def union(count: int, how: str = "oneOf", tag_last: bool = False, required: bool = True, **more: Any) -> dict[str, Any]:
    """Branches with a tag, members of their own and one that all have."""
    branches = []
    for i in range(count):
        tag = {"kind": {"const": f"kind {i}"}}
        own = {f"a{i}": {"type": "string"}, f"b{i}": {"type": "integer"}, "size": {"type": "number"}}
        properties = {**own, **tag} if tag_last else {**tag, **own}
        needed = ["kind", f"a{i}"] if required else [f"a{i}"]
        branches.append({"type": "object", "properties": properties, "required": needed, **more})
    return {how: branches}


UNIONS: dict[str, dict[str, Any]] = {
    "oneOf": {},
    "anyOf": {"how": "anyOf"},
    "tag last": {"tag_last": True},
    "closed": {"additionalProperties": False},
    "optional tag": {"required": False, "additionalProperties": False},
}


def compiled(schema: Any) -> tuple[int, int]:
    """Alternatives of a schema's root, and steps that compiling it took."""
    options = JsonOptions(max_alternatives=20_000)
    lowered = lower(schema, options)
    graph = ValueGraph(lowered, options)
    root = graph.compile(lowered.root)
    return len(root.objects), options.max_steps - graph.budget.left


@pytest.mark.full
@pytest.mark.parametrize("kind", UNIONS)
def test_the_work_of_a_tagged_union_is_linear(kind: str) -> None:
    few, many = compiled(union(500, **UNIONS[kind])), compiled(union(2500, **UNIONS[kind]))
    assert (few[0], many[0]) == (500, 2500)
    assert many[1] < 5.5 * few[1]


@pytest.mark.full
@pytest.mark.parametrize("count", [1000, 5000])
def test_thousands_of_tagged_branches_take_some_hundred_steps_each(count: int) -> None:
    alternatives, steps = compiled(union(count))
    assert alternatives == count
    assert steps < 600 * count


def test_conditions_on_a_tag_are_an_alternative_each() -> None:
    def condition(i: int) -> dict[str, Any]:
        tag = {"properties": {"kind": {"const": f"kind {i}"}}, "required": ["kind"]}
        return {"if": tag, "then": {"required": [f"a{i}"], "properties": {"size": {"maximum": i}}}}

    alternatives, steps = compiled({"type": "object", "allOf": [condition(i) for i in range(500)]})
    assert alternatives == 501  # each tag, and any other or none
    assert steps < 1000 * 500


def test_a_tag_that_two_branches_share_costs_these_only() -> None:
    schema = union(300)
    schema["oneOf"][1]["properties"]["kind"] = {"const": "kind 0"}
    alternatives, _ = compiled(schema)
    assert 300 <= alternatives <= 310


def test_a_tag_may_be_told_by_patterns_where_its_values_are_listed() -> None:
    kinds = {"type": "object", "properties": {"kind": {"enum": ["x-1", "x-2", "y-1"]}}, "required": ["kind"]}
    branches = [{"properties": {"kind": {"pattern": f"^{c}"}}, "required": [f"a{c}"]} for c in "xyz"]
    assert compiled({**kinds, "oneOf": branches})[0] == 2
