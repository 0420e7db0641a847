"""Loops of references in place mean their least fixpoint; the work of this and of other lowering is counted."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from structgen.core.json_schema.formula.evaluate import evaluate
from structgen.core.json_schema.formula.language import And, Or, Order
from structgen.core.json_schema.lowering import Lowered, lower
from structgen.errors import SchemaTooComplexError, UnresolvableReferenceError
from structgen.options import JsonOptions

Schema = dict[str, Any]


def to(number: int) -> Schema:
    return {"$ref": f"#/$defs/d{number}"}


def definitions(schemas: list[Schema], root: Schema | None = None) -> Schema:
    return {"$defs": {f"d{number}": schema for number, schema in enumerate(schemas)}, **(root or to(0))}


def unions(size: int) -> Schema:
    """Definitions each of which is a union of a constant and all others."""
    return definitions([{"anyOf": [to(j) for j in range(size) if j != i] + [{"const": i}]} for i in range(size)])


# --- the oracle: whether a value is valid under each definition, as truth values ---
def least(definitions: Schema, value: int) -> dict[str, bool]:
    """Which definitions hold of a value: the least solution, by rounds."""
    truth = dict.fromkeys(definitions, False)
    while True:
        new = {name: holds(schema, value, truth) for name, schema in definitions.items()}
        if new == truth:
            return truth
        truth = new


def holds(schema: Any, value: int, truth: dict[str, bool]) -> bool:
    """Whether the keywords of these tests hold of a number."""
    if isinstance(schema, bool):
        return schema
    tests: dict[str, Callable[[Any], bool]] = {
        "$ref": lambda name: truth[name.rpartition("/")[2]],
        "const": lambda constant: bool(value == constant),
        "minimum": lambda bound: value >= bound,
        "maximum": lambda bound: value <= bound,
        "anyOf": lambda parts: any(holds(part, value, truth) for part in parts),
        "allOf": lambda parts: all(holds(part, value, truth) for part in parts),
        "oneOf": lambda parts: sum(holds(part, value, truth) for part in parts) == 1,
        "not": lambda part: not holds(part, value, truth),
    }
    return all(tests[keyword](content) for keyword, content in schema.items() if keyword != "$defs")


def random_schema(chance: random.Random, names: int, depth: int = 3) -> Schema:
    kind = chance.choice(["$ref", "$ref", "const", "minimum", "maximum", "anyOf", "anyOf", "allOf", "allOf"])
    if kind == "$ref" or not depth:
        return to(chance.randrange(names))
    if kind in ("const", "minimum", "maximum"):
        return {kind: chance.randrange(6)}
    return {kind: [random_schema(chance, names, depth - 1) for _ in range(chance.randint(1, 3))]}


def test_random_loops_mean_their_least_fixpoint() -> None:
    compared = 0
    for seed in range(600):
        chance = random.Random(seed)
        names = chance.randint(1, 6)
        schema = definitions([random_schema(chance, names) for _ in range(names)])
        try:
            lowered = lower(schema)
        except UnresolvableReferenceError:
            continue
        for value in range(-1, 7):
            assert evaluate(lowered.root, value, lowered.refs) == least(schema["$defs"], value)["d0"], (seed, value)
        compared += 1
    assert compared > 250


def test_what_is_refused_says_nothing_but_itself() -> None:
    for seed in range(600):
        chance = random.Random(seed)
        names = chance.randint(1, 6)
        schema = definitions([random_schema(chance, names) for _ in range(names)])
        try:
            lower(schema)
        except UnresolvableReferenceError as error:
            name = error.pointer.split("/")[2]
            assert not any(least(schema["$defs"], value)[name] for value in range(-1, 7)), seed


@pytest.mark.parametrize("size", [1, 2, 9, 40])
def test_unions_of_unions(size: int) -> None:
    lowered = lower(unions(size), JsonOptions(max_steps=100_000))
    assert [evaluate(lowered.root, value, lowered.refs) for value in (0, size - 1, size)] == [True, True, False]


def test_a_loop_may_refer_to_another_under_oneof_and_not() -> None:
    other = {"anyOf": [to(1), {"const": 1}, {"const": 2}]}
    first = {"anyOf": [to(0), {"oneOf": [to(1), {"minimum": 2}]}, {"not": {"anyOf": [to(1), {"minimum": 0}]}}]}
    lowered = lower(definitions([first, other]))
    valid = [value for value in range(-2, 5) if evaluate(lowered.root, value, lowered.refs)]
    assert valid == [-2, -1, 1, 3, 4]  # the second is true of 1 and 2


def test_a_reference_that_orders_nothing_stays_so() -> None:
    """The condition under which members count as evaluated is read without the order in which members are written."""
    schema = definitions(
        [{"anyOf": [to(1), {"properties": {"b": {}, "a": {}}, "required": ["a"]}]}, {"anyOf": [to(0)]}],
        {**to(0), "unevaluatedProperties": False},
    )

    def orders(lowered: Lowered) -> int:
        todo, found = [lowered.root, *lowered.refs.values()], 0
        for formula in todo:
            found += isinstance(formula, Order)
            todo += formula.args if isinstance(formula, (And, Or)) else ()
        return found

    assert orders(lower(schema)) > 0
    assert orders(lower(schema, JsonOptions(key_order="any"))) == 0


# --- budgets ---
def ways(size: int, **more: Any) -> Schema:
    """Definitions each of which refers to the next twice: 2 to the ``size`` ways from the first to the last."""
    twice = [[{**to(i + 1), **more, "required": [name]} for name in (f"a{i}", f"b{i}")] for i in range(size)]
    return definitions([*({"anyOf": parts} for parts in twice), {"properties": {"x": {}}}])


def scopes(size: int) -> Schema:
    """Resources of which each fixes a dynamic anchor, in two ways: 2 to the ``size`` dynamic scopes."""
    found: Schema = {f"s{size}a": {"$id": f"s{size}a"}, f"s{size}b": {"$id": f"s{size}b"}}
    for i in range(size):
        both = {"x": {"$ref": f"s{i + 1}a"}, "y": {"$ref": f"s{i + 1}b"}}
        found |= {f"s{i}{v}": {"$id": f"s{i}{v}", "$dynamicAnchor": f"n{i}", "properties": both} for v in "ab"}
    return {"$id": "http://a.b/root", "$ref": "s0a", "$defs": found}


GROWING: dict[str, tuple[Schema, JsonOptions]] = {
    "conjunctions that refer to each other": (
        definitions([{"anyOf": [{"const": i}, {"allOf": [to(j) for j in range(30) if j != i]}]} for i in range(30)]),
        JsonOptions(max_steps=20_000),
    ),
    "unevaluatedProperties over ways": (
        {**ways(30), "unevaluatedProperties": False},
        JsonOptions(max_steps=20_000),
    ),
    "unevaluatedItems over ways": (
        {**ways(30, contains={"const": 1}), "unevaluatedItems": False},
        JsonOptions(max_steps=20_000),
    ),
    "unevaluatedProperties over a loop": (
        {**unions(20), "unevaluatedProperties": False},
        JsonOptions(max_steps=20_000),
    ),
    "dynamic scopes": (scopes(40), JsonOptions(max_steps=20_000)),
    "closed unions": (
        definitions(
            [{"anyOf": [*(to(j) for j in range(12) if j != i), {"properties": {f"p{i}": {}}}]} for i in range(12)]
        ),
        JsonOptions(max_steps=20_000, additional_members="closed"),
    ),
}


@pytest.mark.parametrize("name", GROWING)
def test_what_grows_exponentially_is_stopped_by_max_steps(name: str) -> None:
    schema, options = GROWING[name]
    with pytest.raises(SchemaTooComplexError) as caught:
        lower(schema, options)
    assert (caught.value.budget, caught.value.limit) == ("max_steps", options.max_steps)


def test_clauses_beyond_all_numbers_are_refused_with_the_limit() -> None:
    """The error does not spell how many there are: Python prints numbers of 4,300 digits, at most."""
    contains = [{"contains": {"const": i}} for i in range(15_000)]
    schema = {"anyOf": contains, "unevaluatedItems": False}
    with pytest.raises(SchemaTooComplexError, match="more than 4096 clauses"):
        lower(schema)
