"""Random small schemas against every value of a small universe: no false "dead", no false "alive".

The oracle is the formula's plain evaluator, which `tests/core/json_schema` holds against `jsonschema`. All keywords of
2020-12 take part, those of negation, counting and annotation included.
"""

from __future__ import annotations

import itertools
import json
from functools import cache
from typing import Any

import pytest

from structgen import JsonOptions, Vocabulary, compile_json_schema
from structgen.core.json_schema.formula.evaluate import evaluate
from structgen.core.json_schema.lowering import lower
from structgen.errors import SchemaTooComplexError, UnsatisfiableSchemaError, UnsupportedSchemaError
from tests.core.json_schema.random_schemas import Schemas

BYTES = Vocabulary([bytes([b]) for b in range(256)] + [b""], eos_token_ids=[256], special_token_ids=[256])
OPTIONS = JsonOptions.exact(assert_formats=False)
LATE = [
    "not",
    "contains",
    "uniqueItems",
    "oneOf",
    "if",
    "additionalProperties",
    "items",
    "prefixItems",
    "propertyNames",
]
LATE += ["unevaluatedProperties", "unevaluatedItems", "dependentSchemas", "patternProperties", "enum", "const", "type"]
OBJECTS = ["properties", "required", "minProperties", "maxProperties", "dependentRequired", "patternProperties"]
OBJECTS += ["additionalProperties", "propertyNames", "not", "type"]
# Keywords of a schema, and how many of them meet.
GROUPS: dict[str, tuple[list[str], int]] = {
    "all keywords": ([], 3),
    "negation, counting, annotation": (LATE, 3),
    "members": (OBJECTS, 7),
}
SEEDS = range(12)  # of 25 schemas each


@cache
def universe() -> list[tuple[Any, bytes]]:
    """Values and their texts: scalars, arrays of up to three of some, objects of up to two members."""
    scalars: list[Any] = [None, True, False, 0, 1, 2, 1.5, -1, "", "a", "ab"]
    few: list[Any] = [None, 0, 1, "a", [], [1], {"a": 1}]
    arrays = [list(items) for size in range(3) for items in itertools.product(few, repeat=size)]
    arrays += [list(items) for items in itertools.product([0, 1, "a"], repeat=3)]
    objects: list[Any] = [{}]
    some: list[Any] = [None, 1, "a", []]
    for size in (1, 2):
        for names in itertools.permutations(["a", "b", "ab", "c"], size):
            objects += [dict(zip(names, values, strict=True)) for values in itertools.product(some, repeat=size)]
    return [(value, json.dumps(value).encode()) for value in [*scalars, *arrays, *objects]]


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("seed", SEEDS)
def test_every_value(group: str, seed: int) -> None:
    checked = 0
    for number in range(25):
        keywords, most = GROUPS[group]
        schema = Schemas("draft2020-12", 1000 * seed + number, keywords, ("dependencies",), most).root()
        lowered = lower(schema, OPTIONS)

        def valid(value: Any, lowered: Any = lowered) -> bool:
            return evaluate(lowered.root, value, lowered.refs)

        try:
            grammar = compile_json_schema(schema, BYTES, OPTIONS)
        except UnsatisfiableSchemaError:
            assert not [text for value, text in universe() if valid(value)], schema
            continue
        except (UnsupportedSchemaError, SchemaTooComplexError):
            continue
        checked += 1
        for place, (value, text) in enumerate(universe()):
            matcher = grammar.matcher()
            alive = next((end for end in range(len(text)) if not matcher.accept_bytes(text[end : end + 1])), len(text))
            accepted = alive == len(text) and matcher.is_accepting()
            assert accepted == valid(value), (schema, text)
            if not accepted and place % 7 == number % 7:  # as far as it lives, some valid text begins like it
                whole = text[:alive] + matcher.shortest_completion()
                assert valid(json.loads(whole)), (schema, whole)
    assert checked > 5
