"""Completions of objects some of whose members must meet existentials, judged by jsonschema."""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema
import numpy as np
import pytest

import structgen
from structgen import JsonOptions, Vocabulary

BYTES = Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=256)
CONDITIONS: list[dict[str, Any]] = [
    {"type": "string"},
    {"type": "integer"},
    {"type": "boolean"},
    {"type": "null"},
    {"enum": [1, "a"]},
    {"type": "string", "minLength": 5},
    {"minLength": 2},
    {"minimum": 7},
    {"type": ["string", "boolean"]},
]
# Two members must meet three existentials: what is cheapest for each in turn leaves no room for the last.
CROWDED = {
    "type": "object",
    "allOf": [
        {"not": {"patternProperties": {"a|b": {"type": "string", "minLength": 5}}}},
        {"not": {"patternProperties": {"c": {"type": "null"}}}},
        {"not": {"patternProperties": {"^[ab]": {"minimum": 7}}}},
    ],
    "maxProperties": 3,
    "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
    "additionalProperties": {"type": "string"},
}


def random_schema(rng: random.Random) -> dict[str, Any]:
    """An object with one to four existentials, and bounds that they have to fit into."""
    names = ["a", "b", "c", "d"]
    schema: dict[str, Any] = {"type": "object", "allOf": []}
    if rng.random() < 0.6:
        schema["maxProperties"] = rng.randint(1, 3)
    if rng.random() < 0.4:
        schema["required"] = rng.sample(names, rng.randint(1, 2))
    if rng.random() < 0.3:
        schema["dependentRequired"] = {rng.choice(names): [rng.choice(names)]}
    if rng.random() < 0.6:
        values = [*CONDITIONS, {"$ref": "#"}]
        schema["properties"] = {name: rng.choice(values) for name in rng.sample(names, rng.randint(1, 3))}
    if rng.random() < 0.5:
        schema["additionalProperties"] = rng.choice([False, {"type": "string"}, {"type": ["string", "integer"]}])
    for _ in range(rng.randint(1, 4)):
        kind = rng.choice(["additionalProperties", "patternProperties", "propertyNames"])
        part: Any = rng.choice(CONDITIONS)
        if kind == "patternProperties":
            part = {rng.choice(["a|b", "c", "^[ab]", "d$"]): part}
        elif kind == "propertyNames":
            part = {"pattern": rng.choice(["a|b", "^[abc]$", "x"])}
        schema["allOf"].append({"not": {kind: part}})
    return schema


def check_walk(schema: dict[str, Any], rng: random.Random) -> None:
    """Wherever an output stands, it can be completed, to a valid value and within the bound."""
    options = JsonOptions(key_order=rng.choice(["any", "declared"]))
    try:
        matcher = structgen.compile_json_schema(schema, BYTES, options).matcher()
    except structgen.SchemaError:
        return  # no value satisfies it, or it is refused
    judge = jsonschema.Draft202012Validator(schema)
    text = b""
    for _ in range(25):
        rest = matcher.shortest_completion()
        assert judge.is_valid(json.loads(text + rest)), (schema, text, rest)
        bound = matcher.completion_bound()
        assert bound is not None and bound >= len(rest), (schema, text, rest)
        following = np.flatnonzero(matcher.next_bytes())
        if not len(following):
            return
        byte = int(rng.choice(following.tolist())) if rng.random() < 0.5 or not rest else rest[0]
        assert matcher.accept_token(byte)
        text += bytes([byte])


@pytest.mark.parametrize("seed", range(4))
def test_members_that_meet_obligations_complete_objects(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(20):
        check_walk(random_schema(rng), rng)


def test_few_members_meet_many_obligations() -> None:
    for seed in range(5):
        check_walk(CROWDED, random.Random(seed))
