"""Which objects have a value: random combinations of limits, required, forbidden and patterned members, by brute force.

The universe holds a witness for whatever is satisfiable: limits are at most 3, classes of keys hold two keys of it or
are open, and of open ones it has three keys that no schema names. The oracle is the formula's plain evaluator.
"""

from __future__ import annotations

import itertools
import json
from functools import cache
from random import Random
from typing import Any

import pytest

from structgen import JsonOptions, Vocabulary, compile_json_schema
from structgen.core.json_schema.formula.evaluate import evaluate
from structgen.core.json_schema.lowering import Lowered, lower
from structgen.errors import UnsatisfiableSchemaError, UnsupportedSchemaError
from tests.many import cases

BYTES = Vocabulary([bytes([b]) for b in range(256)] + [b""], eos_token_ids=[256], special_token_ids=[256])
OPTIONS = {order: JsonOptions.exact(key_order=order, whitespace="compact") for order in ("any", "declared")}
NAMED, KEYS = ["a", "b", "x"], ["a", "b", "x", "x1", "z", "z1", "z2"]
PATTERNS = ["^x1?$", "^[ab]$", "^z", "", "^[^x]*$", "^[a-z]$"]
# Nothing satisfies these, the second and third only by their recursion.
DEAD: list[Any] = [False, {"$ref": "#/$defs/dead"}, {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/dead"}}]
DEFS = {"dead": {"type": "object", "required": ["s"], "properties": {"s": {"$ref": "#/$defs/dead"}}}}
SEEDS = cases(12, 4)  # of 40 schemas each


def random_object(random: Random) -> dict[str, Any]:
    """A schema of objects in which several of the keywords that limit members meet."""

    def value() -> Any:
        return random.choice([True, {"type": "null"}, {"const": 1}, *DEAD[: random.randint(1, 3)]])

    def names() -> list[str]:
        return random.sample([*NAMED, "z"], random.randint(0, 3))

    makers = {
        "properties": lambda: {name: value() for name in names()},
        "required": names,
        "minProperties": lambda: random.randint(0, 3),
        "maxProperties": lambda: random.randint(0, 3),
        "patternProperties": lambda: {pattern: value() for pattern in random.sample(PATTERNS, random.randint(1, 2))},
        "additionalProperties": value,
        "propertyNames": lambda: random.choice([{"pattern": random.choice(PATTERNS)}, {"enum": names() or ["a"]}]),
        "dependentRequired": lambda: {random.choice(NAMED): names()},
        "dependentSchemas": lambda: {random.choice(NAMED): random.choice([False, {"required": names()}])},
        "not": lambda: {
            random.choice(["additionalProperties", "propertyNames", "patternProperties"]): {"type": "null"}
        },
    }
    chosen = random.sample(list(makers), random.randint(2, 6))
    schema: dict[str, Any] = {word: makers[word]() for word in chosen}
    if "patternProperties" in schema.get("not", {}):
        schema["not"] = {"patternProperties": {random.choice(PATTERNS): value()}}
    return {"type": "object", **schema, "$defs": DEFS}


@cache
def universe() -> list[tuple[Any, bytes]]:
    """Objects of up to four members, each null or 1."""
    return [
        (found := dict(zip(names, values, strict=True)), json.dumps(found, separators=(",", ":")).encode())
        for size in range(5)
        for names in itertools.combinations(KEYS, size)
        for values in itertools.product([None, 1], repeat=size)
    ]


def is_valid(lowered: Lowered, value: Any) -> bool:
    return evaluate(lowered.root, value, lowered.refs)


def texts_in_order(grammar: Any, value: Any) -> bool:
    """Whether some order of the members is accepted."""
    return any(
        matcher.accept_bytes(json.dumps(dict(members), separators=(",", ":")).encode()) and matcher.is_accepting()
        for members in itertools.permutations(value.items())
        for matcher in [grammar.matcher()]
    )


def check_no_dead_end(grammar: Any, lowered: Lowered, random: Random) -> None:
    """Walks: whatever is begun can be completed, and the machine takes the completion."""
    for value, text in random.sample(universe(), 12):
        matcher, alive = grammar.matcher(), 0
        while alive < len(text) and matcher.accept_bytes(text[alive : alive + 1]):
            alive += 1
            rest = matcher.fork().shortest_completion()
            assert is_valid(lowered, json.loads(text[:alive] + rest)), (value, text[:alive], rest)
            fork = matcher.fork()
            assert fork.accept_bytes(rest) and fork.is_accepting(), (text[:alive], rest)


@pytest.mark.full
@pytest.mark.parametrize("order", OPTIONS)
@pytest.mark.parametrize("seed", SEEDS)
def test_objects(seed: int, order: str) -> None:
    random = Random(seed)
    checked = 0
    for _ in range(40):
        schema = random_object(random)
        lowered = lower(schema, OPTIONS[order])
        valid = [is_valid(lowered, value) for value, _ in universe()]
        try:
            grammar = compile_json_schema(schema, BYTES, OPTIONS[order])
        except UnsatisfiableSchemaError:
            assert not any(valid), schema
            continue
        except UnsupportedSchemaError:
            continue
        assert any(valid), schema
        checked += 1
        for (value, text), is_good in zip(universe(), valid, strict=True):
            matcher = grammar.matcher()
            accepted = matcher.accept_bytes(text) and matcher.is_accepting()
            if order == "declared" and not accepted and is_good:
                accepted = texts_in_order(grammar, value)
            assert accepted == is_good, (schema, text)
        check_no_dead_end(grammar, lowered, random)
    assert checked > 5


X = {"type": "array", "items": {"$ref": "#/$defs/x"}, "minItems": 1}
SELF = {"type": "object", "properties": {"self": {"$ref": "#/patternProperties/.*"}}, "required": ["self"]}
CLASSES: list[tuple[Any, list[str], list[str]]] = [
    # the only class of keys has no value
    ({"patternProperties": {".*": SELF}}, ["{}", "1"], ['{"a": null}', '{"a": {}}']),
    ({"patternProperties": {"": {"type": "array", "not": {"$ref": "#"}}}}, ["{}", "[]"], ['{"a": null}', '{"a": []}']),
    # what is left are keys of one character but for a forbidden one
    (
        {
            "patternProperties": {"^.$": {}},
            "additionalProperties": {"$ref": "#/$defs/x"},
            "dependentSchemas": {"~": False},
            "$defs": {"x": X},
        },
        ["{}", '{"e": 1, "c": 2}'],
        ['{"~": 1}', '{"ee": 1}'],
    ),
    # one of two classes is live only by the other, and there must be a member
    ({"type": "object", "patternProperties": {"^a": {"$ref": "#"}}, "minProperties": 1}, ['{"b": 1}'], ["{}"]),
    # keys of a small class can meet one existential each
    (
        {
            "type": "object",
            "patternProperties": {"^x$": {"enum": [1, "s"]}},
            "allOf": [{"not": {"patternProperties": {"^x$": {"const": value}}}} for value in (1, "t")],
        },
        ['{"x": "s"}'],
        ['{"x": 1}', "{}", '{"y": "s"}'],
    ),
]


@pytest.mark.parametrize("order", OPTIONS)
@pytest.mark.parametrize("case", CLASSES, ids=lambda case: json.dumps(case[0]))
def test_classes_of_keys_without_values(case: tuple[Any, list[str], list[str]], order: str) -> None:
    schema, good, bad = case
    options = JsonOptions.exact(key_order=order)
    grammar, lowered = compile_json_schema(schema, BYTES, options), lower(schema, options)
    for text in [*good, *bad]:
        matcher, alive = grammar.matcher(), 0
        while alive < len(text) and matcher.accept_bytes(text[alive : alive + 1].encode()):
            alive += 1
            whole = text[:alive] + matcher.fork().shortest_completion().decode()
            assert is_valid(lowered, json.loads(whole)), whole
        assert (alive == len(text) and matcher.is_accepting()) == (text in good), text


def test_no_member_can_meet_two_existentials() -> None:
    schema = {
        "type": "object",
        "patternProperties": {"^x$": {"enum": [1, "s"]}},
        "allOf": [{"not": {"patternProperties": {"^x$": {"const": value}}}} for value in (1, "s")],
    }
    with pytest.raises(UnsatisfiableSchemaError):
        compile_json_schema(schema, BYTES, OPTIONS["any"])


def test_recursion_with_counts() -> None:
    """Limits that leave nothing open cost no configurations, however deep the nesting."""
    none = {"contains": {"enum": [["a"]]}, "minContains": 3, "maxContains": 1}
    schema = {"contains": {"oneOf": [{"$ref": "#"}, {}, none]}, "minContains": 2, "maxContains": 2}
    matcher = compile_json_schema(schema, BYTES, JsonOptions.exact()).matcher()
    assert matcher.accept_bytes(b"[[[0],[0],[0]],[0,0,[0,0,0]]]") and matcher.is_accepting()
    assert not any(matcher.stats.values())


@pytest.mark.parametrize("forbidden", [0, 1, 2])
@pytest.mark.parametrize("required", [0, 1, 2, 3])
def test_limits_required_and_forbidden_members(required: int, forbidden: int) -> None:
    """All small limits on three keys of which some are required and the last ones have no value."""
    names = ["a", "b", "x"]
    values = {name: DEAD[1] if place >= 3 - forbidden else {"const": 1} for place, name in enumerate(names)}
    for least, most in itertools.product(range(4), range(4)):
        schema = {"type": "object", "properties": values, "required": names[:required], "additionalProperties": False}
        schema |= {"minProperties": least, "maxProperties": most, "$defs": DEFS}
        free = 3 - forbidden
        satisfiable = required <= min(most, free) and least <= min(most, free)
        try:
            compile_json_schema(schema, BYTES, OPTIONS["any"])
            assert satisfiable, schema
        except UnsatisfiableSchemaError:
            assert not satisfiable, schema
