"""Schemas that would take forever are refused after a number of steps, wherever the work is."""

from __future__ import annotations

from typing import Any

import pytest

from structgen import JsonOptions
from structgen.core.engines.json.value_graph.graph import ValueGraph
from structgen.core.json_schema.budget import StepBudget
from structgen.core.json_schema.lowering import lower
from structgen.errors import SchemaTooComplexError

STEPS = 300_000


def needs(*names: str) -> dict[str, Any]:
    return {"type": "object", "required": list(names)}


def overlapping(count: int) -> list[dict[str, Any]]:
    kinds = ["string", "integer", "array"]
    return [
        {"type": "object", "properties": {f"p{j}": {"type": kinds[(i >> j % 6) % 3]} for j in range(count)}}
        for i in range(count)
    ]


HOSTILE: dict[str, Any] = {
    "branches that all overlap": {"oneOf": [needs(f"a{i}") for i in range(1000)]},
    "their negation": {"not": {"oneOf": [needs(f"a{i}") for i in range(300)]}},
    "large objects": {"oneOf": overlapping(40)},
    "large objects, negated": {"not": {"oneOf": overlapping(20)}},
    "a thousand choices": {"allOf": [{"anyOf": [needs(f"a{i}"), needs(f"b{i}")]} for i in range(1000)]},
    "excluded objects": {"not": {"enum": [{"a": i, "b": [i]} for i in range(500)]}},
    "tuples": {
        "oneOf": [
            {"type": "array", "prefixItems": [{"type": ["string", "integer", "null"][(i >> j) % 3]} for j in range(20)]}
            for i in range(300)
        ]
    },
    "patterns": {"oneOf": [{"type": "string", "pattern": f"a{i}.*b"} for i in range(300)]},
    "numbers": {"oneOf": [{"type": "integer", "multipleOf": i + 2} for i in range(300)]},
    "keys by patterns": {
        "oneOf": [
            {"type": "object", "minProperties": 1 + i, "patternProperties": {f"^x{i}.*y{j}": {"type": j}}}
            for i in range(40)
            for j in ("string", "null")
        ]
    },
}


@pytest.mark.full
@pytest.mark.parametrize("name", HOSTILE)
def test_the_work_is_bounded(name: str) -> None:
    options = JsonOptions(max_steps=STEPS, max_alternatives=1_000_000)
    lowered = lower(HOSTILE[name], options)
    graph = ValueGraph(lowered, options)
    with pytest.raises(SchemaTooComplexError) as caught:
        graph.compile(lowered.root)
    assert (caught.value.budget, caught.value.limit) == ("max_steps", STEPS)
    assert graph.budget.left > -STEPS // 10  # no single piece of work is large


def test_a_budget_counts_down() -> None:
    budget = StepBudget(3)
    budget.spend(2)
    budget.spend()
    with pytest.raises(SchemaTooComplexError, match="max_steps"):
        budget.spend()


def chain(size: int, leaf: Any) -> dict[str, Any]:
    """Definitions each of which refers to the next twice: 2 to the ``size`` ways to the last."""
    found: dict[str, Any] = {f"d{size}": leaf}
    for i in range(size):
        next_one = {"$ref": f"#/$defs/d{i + 1}"}
        found[f"d{i}"] = {
            "anyOf": [{"allOf": [next_one, {"maxLength": i + 9}]}, {"allOf": [next_one, {"minLength": i}]}]
        }
    return {"$defs": found}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "dependentRequired": {f"k{i}": [f"k{i + 1}"] for i in range(900)}},
        {"type": "object", "propertyNames": {"$ref": "#/$defs/d0"}, **chain(40, {"pattern": "z"})},
        {
            "type": "object",
            "oneOf": [{"properties": {"t": {"const": "x"}}}, {"properties": {"t": {"$ref": "#/$defs/d0"}}}],
            **chain(40, {"enum": ["x", "y"]}),
        },
    ],
)
def test_work_that_was_not_counted(schema: dict[str, Any]) -> None:
    """Closures of dependencies, and parts of conditions that are shared: it ends, one way or the other."""
    options = JsonOptions(max_steps=50_000)
    try:
        lowered = lower(schema, options)
        ValueGraph(lowered, options).compile(lowered.root)
    except SchemaTooComplexError as error:
        assert error.budget == "max_steps"
