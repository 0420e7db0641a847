"""What outlines say excludes each other does, and every pair that may overlap is among the candidates."""

from __future__ import annotations

import pytest

from structgen.core.engines.json.value_graph.disjointness import candidates, exclude, outline
from structgen.core.json_schema.budget import StepBudget
from structgen.core.json_schema.formula.evaluate import evaluate
from structgen.core.json_schema.formula.language import FALSE, All, Enum, Formula, and_, not_
from tests.core.engines.json.value_graph.object_formulas import NAMES, OBJECTS, ObjectFormulas


def branches(seed: int, count: int) -> list[Formula]:
    """Conjunctions of literals, of which some allow only some keys."""
    make = ObjectFormulas(seed)
    found = []
    for _ in range(count):
        parts = [make.literal() for _ in range(3)]
        if make.random.random() < 0.5:
            parts.append(All(not_(Enum(make.random.sample(NAMES, 2))), FALSE))
        found.append(and_(*parts))
    return found


@pytest.mark.parametrize("seed", range(40))
def test_what_excludes_each_other_has_no_common_value(seed: int) -> None:
    parts = branches(seed, 8)
    holds = [{place for place, value in enumerate(OBJECTS) if evaluate(part, value)} for part in parts]
    for i, one in enumerate(parts):
        for j, two in enumerate(parts):
            if exclude(outline(one), outline(two)):
                assert not holds[i] & holds[j], (one, two)


@pytest.mark.parametrize("seed", range(40))
def test_candidates_are_the_pairs_that_are_not_told_apart(seed: int) -> None:
    parts = branches(seed, 12)
    outlines = [outline(part) for part in parts]
    found = list(candidates(parts, StepBudget(10_000)))
    assert len(set(found)) == len(found)
    expected = {(i, j) for i in range(len(parts)) for j in range(i) if not exclude(outlines[i], outlines[j])}
    assert set(found) == expected


def test_some_pairs_are_told_apart() -> None:
    def keys(*names: str) -> Formula:
        return and_(not_(All(Enum(names[:1]), FALSE)), All(not_(Enum(names)), FALSE))

    def tag(*values: object) -> Formula:
        return All(Enum(["k"]), Enum(values))

    needed = not_(All(Enum(["k"]), FALSE))
    assert exclude(outline(keys("a", "c")), outline(keys("b", "c")))
    assert not exclude(outline(keys("a", "b")), outline(keys("b", "a")))
    assert exclude(outline(and_(needed, tag(1, 2))), outline(tag(3)))
    assert not exclude(outline(tag(1)), outline(tag(2)))  # both are true of {}


def test_closed_branches_with_keys_of_their_own_are_never_compared() -> None:
    parts = [
        and_(not_(All(Enum([f"a{i}"]), FALSE)), All(not_(Enum([f"a{i}", "c"])), FALSE)) for i in range(2000)
    ]  # fmt: skip
    budget = StepBudget(1 << 20)
    assert not list(candidates(parts, budget))
    assert budget.limit - budget.left < 5 * len(parts)
