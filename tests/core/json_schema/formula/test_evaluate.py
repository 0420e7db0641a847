"""Truth of every atom, on and off its type."""

from __future__ import annotations

from collections.abc import Hashable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from structgen.core.json_schema.formula.evaluate import evaluate
from structgen.core.json_schema.formula.language import (
    FALSE,
    INT,
    TRUE,
    UNIQ,
    All,
    Format,
    Formula,
    Ge,
    Gt,
    Idx,
    Items,
    Keys,
    Len,
    Mult,
    Pat,
    Type,
    and_,
    enum_of,
    named,
    not_,
    or_,
    ref,
)
from structgen.core.json_schema.formula.values import ARRAY, NULL, OBJECT

TABLE: list[tuple[Formula, list[Any], list[Any]]] = [  # formula, values that satisfy it, values that do not
    (Type(NULL | ARRAY), [None, []], [False, 0, "", {}]),
    (enum_of([1, [True], {"a": [], "b": 2}]), [1.0, [True], {"b": Decimal("2.0"), "a": []}], [True, [1], {"a": []}]),
    (Mult(Fraction(1, 10)), [0.3, Decimal("1e3"), "x"], [0.35]),
    (INT, [3, 10**30, "x"], [1.0, 1e2, 2.5, Decimal("1")]),
    (not_(INT), [1.0, 2.5], [3, "x"]),
    (enum_of([1]), [1, 1.0], [2.0]),
    (Ge(2), [2, None], [1.999]),
    (Gt(2), [Decimal("2.000000000000000000001"), None], [2.0]),
    (Len(2), ["ab", "\U0001f600\U0001f600", 1], ["\U0001f600", ""]),
    (Pat("^a|b$"), ["ac", "cb", 1], ["ca"]),
    (Format("date"), ["2024-02-29", 1], ["2023-02-29"]),
    (All(named("k"), FALSE), [{}, {"j": 1}, [1]], [{"k": 1}]),
    (All(not_(named("k")), Type(NULL)), [{"k": 1}, {"j": None}], [{"j": 1}]),
    (Keys(1), [{"a": 1}, []], [{}]),
    (Idx(1, 2, Type(NULL)), [[], [1], [1, None, 1], {}], [[1, 1]]),
    (Idx(1, None, Type(NULL)), [[1, None, None]], [[1, None, 1]]),
    (Items(Type(NULL), 2), [[None, 1, None], {}], [[None, 1]]),
    (UNIQ, [[1, True, "1"], {}], [[1, 1.0], [{"a": 1, "b": 2}, {"b": 2, "a": 1}]]),
]


@pytest.mark.parametrize(("formula", "satisfied", "violated"), TABLE, ids=lambda entry: str(entry)[:30])
def test_atoms(formula: Formula, satisfied: list[Any], violated: list[Any]) -> None:
    assert [value for value in satisfied if not evaluate(formula, value)] == []
    assert [value for value in violated if evaluate(formula, value)] == []


def test_references_resolve_through_the_table() -> None:
    refs: dict[Hashable, Formula] = {"list": and_(Type(OBJECT), All(named("next"), or_(Type(NULL), ref("list"))))}
    assert evaluate(ref("list"), {"next": {"next": None}}, refs)
    assert not evaluate(ref("list"), {"next": {"next": 1}}, refs)
    assert evaluate(TRUE, {}, refs)
