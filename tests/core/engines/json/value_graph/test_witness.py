"""Guessed values satisfy the formula, as the plain evaluator has it; and most formulas that have values get one."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pytest

from structgen.core.engines.json.value_graph.witness import witness
from structgen.core.json_schema.formula.evaluate import evaluate
from structgen.core.json_schema.formula.language import (
    FALSE,
    All,
    Formula,
    Len,
    Pat,
    Type,
    and_,
    named,
    not_,
    one,
    or_,
    present,
    ref,
)
from structgen.core.json_schema.formula.values import ARRAY, BOOLEAN, NULL, NUMBER, OBJECT, STRING, type_of
from tests.core.engines.json.value_graph.object_formulas import OBJECTS, ObjectFormulas


@pytest.mark.parametrize("seed", range(60))
def test_what_is_found_satisfies_the_formula(seed: int) -> None:
    make = ObjectFormulas(seed)
    for _ in range(20):
        first, second = (and_(*[make.literal() for _ in range(3)]) for _ in range(2))
        for formula in (first, and_(first, second), or_(first, second), and_(first, not_(second)), one(first, second)):
            found, _ = witness(formula, OBJECT, {})
            assert all(evaluate(formula, value) and type_of(value) == OBJECT for value in found)


@pytest.mark.full
def test_many_are_found() -> None:
    make, some, hits = ObjectFormulas(0), 0, 0
    for _ in range(300):
        formula = and_(make.literal(), make.literal())
        if any(evaluate(formula, value) for value in OBJECTS):
            some += 1
            hits += bool(witness(formula, OBJECT, {})[0])
    assert hits > some // 2


@pytest.mark.parametrize(("kind", "value"), [(STRING, "a"), (NUMBER, 1), (ARRAY, []), (BOOLEAN, True), (NULL, None)])
def test_samples(kind: int, value: Any) -> None:
    assert witness(Type(kind), kind, {})[0] == (value,)
    assert witness(not_(Type(kind)), kind, {})[0] == ()


@pytest.mark.parametrize("formula", [Pat("("), Pat("(?=a)" * 3 + "(a)\\1"), Len(2), FALSE])
def test_nothing_is_said_where_the_guess_fails(formula: Formula) -> None:
    assert witness(formula, STRING, {})[0] == ()


def test_references() -> None:
    refs: dict[Hashable, Formula] = {
        "list": or_(Type(NULL), and_(Type(OBJECT), present("next"), All(named("next"), ref("list")))),
        "self": ref("self"),
    }
    found, _ = witness(refs["list"], OBJECT, refs)
    assert all(evaluate(refs["list"], value, refs) for value in found)
    assert witness(ref("self"), OBJECT, refs)[0] == ()
    deep: dict[Hashable, Formula] = {0: Type(OBJECT)}
    for level in range(1, 60):  # each twice in the next: looked at once
        deep[level] = and_(or_(ref(level - 1), present(f"k{level}")), or_(ref(level - 1), present(f"l{level}")))
    found, steps = witness(deep[59], OBJECT, deep)
    assert len(found) == 1 and steps < 1_000
