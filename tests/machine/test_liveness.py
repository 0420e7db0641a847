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
from structgen.errors import UnsatisfiableSchemaError, UnsupportedSchemaError
from structgen.formula.evaluate import evaluate
from structgen.json_schema.lowering import Lowered, lower

BYTES = Vocabulary([bytes([b]) for b in range(256)] + [b""], eos_token_ids=[256], special_token_ids=[256])
OPTIONS = {order: JsonOptions.exact(key_order=order, whitespace="compact") for order in ("any", "declared")}
NAMED, KEYS = ["a", "b", "x"], ["a", "b", "x", "x1", "z", "z1", "z2"]
PATTERNS = ["^x1?$", "^[ab]$", "^z", "", "^[^x]*$", "^[a-z]$"]
# Nothing satisfies these, the second and third only by their recursion.
DEAD: list[Any] = [False, {"$ref": "#/$defs/dead"}, {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/dead"}}]
DEFS = {"dead": {"type": "object", "required": ["s"], "properties": {"s": {"$ref": "#/$defs/dead"}}}}
SEEDS = range(12)  # of 40 schemas each


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


@pytest.mark.parametrize("order", OPTIONS)
@pytest.mark.parametrize("seed", SEEDS)
def test_objects(seed: int, order: str) -> None:
    random = Random(seed)
    checked = 0
    for _ in range(40):
        schema = random_object(random)
        lowered = lower(schema, OPTIONS[order])
        valid = [value for value, _ in universe() if is_valid(lowered, value)]
        try:
            grammar = compile_json_schema(schema, BYTES, OPTIONS[order])
        except UnsatisfiableSchemaError:
            assert valid == [], schema
            continue
        except UnsupportedSchemaError:
            continue
        assert valid, schema
        checked += 1
        for value, text in universe():
            matcher = grammar.matcher()
            accepted = matcher.accept_bytes(text) and matcher.is_accepting()
            if order == "declared" and not accepted and is_valid(lowered, value):
                accepted = texts_in_order(grammar, value)
            assert accepted == is_valid(lowered, value), (schema, text)
        check_no_dead_end(grammar, lowered, random)
    assert checked > 5
