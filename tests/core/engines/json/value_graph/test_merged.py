"""Merging of alternatives against the definition: pairs that differ in one key, looked for among all."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st

from structgen.core.engines.json.value_graph.object_choices import Conjunction, about_key, merged
from structgen.core.json_schema.budget import StepBudget
from structgen.core.json_schema.formula.evaluate import evaluate
from structgen.core.json_schema.formula.language import FALSE, All, Enum, Formula, Keys, and_, named, not_, or_, present

NAMES = "abc"
ABOUT = [
    literal
    for name in NAMES
    for literal in (present(name), *(All(named(name), value) for value in (FALSE, Enum(["x"]), Enum(["y"]))))
]
LITERALS = [*ABOUT, Keys(2), not_(Keys(3))]
VALUES = ["x", "y", 1]
OBJECTS = [
    {name: value for name, value in zip(NAMES, values, strict=True) if value is not None}
    for values in ((a, b, c) for a in (None, *VALUES) for b in (None, *VALUES) for c in (None, *VALUES))
]
alternatives = st.lists(st.lists(st.sampled_from(LITERALS), max_size=5, unique=True).map(tuple), max_size=8)


@settings(max_examples=150, deadline=None)
@given(alternatives)
def test_the_same_objects_and_nothing_left_to_merge(found: list[Conjunction]):
    distinct = list({frozenset(literals): literals for literals in found}.values())
    result = merged(distinct, StepBudget(1_000_000))
    before, after = _any(distinct), _any(result)
    for value in OBJECTS:
        assert evaluate(before, value) == evaluate(after, value), value
    for name in NAMES:
        rests = [frozenset(literal for literal in literals if about_key(literal)[0] != name) for literals in result]
        speaks = [any(about_key(literal)[0] == name for literal in literals) for literals in result]
        assert all(rests.count(rest) == 1 for rest, speaking in zip(rests, speaks, strict=True) if speaking)


def _any(alternatives: Iterable[Conjunction]) -> Formula:
    return or_(*[and_(*literals) for literals in alternatives])
