"""Random tools and calls, and random outputs of a constraint."""

from __future__ import annotations

import random
from decimal import Decimal
from fractions import Fraction
from typing import Any

import jsonschema
import numpy as np

from structgen.core.engines.protocols import Matcher
from structgen.core.vocabulary.vocabulary import Vocabulary

STRINGS: list[dict[str, Any]] = [
    {"type": "string"},
    {"type": "string", "enum": ["celsius", "fahren heit", "ä<b", ""]},
    {"const": "fixed"},
    {"type": "string", "pattern": "^[a-c<]+$"},
    {"type": "string", "minLength": 2, "maxLength": 5},
    {"type": "string", "format": "ipv4"},
    {"type": "string", "pattern": "e", "maxLength": 3},
]
OTHERS: list[dict[str, Any]] = [
    {"type": "integer", "minimum": -5, "maximum": 120},
    {"type": "number", "multipleOf": 0.5},
    {"type": "boolean"},
    {"enum": [1, None, True]},
    {"type": "array", "items": {"type": "string"}, "maxItems": 2},
    {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a"]},
    {"$ref": "#/$defs/point"},
]
MIXED: list[dict[str, Any]] = [
    {"type": ["string", "null"]},
    {"type": ["string", "integer"], "maxLength": 4},
    {"anyOf": [{"type": "string", "pattern": "^[0-9n]"}, {"type": "array", "items": {"type": "integer"}}]},
    {"type": ["boolean", "string"]},
    {},
    {"type": ["object", "string", "number"]},
]
DEFS = {"point": {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "integer"}], "items": False}}


def random_tool(rng: random.Random, name: str) -> dict[str, Any]:
    """A function definition whose parameters are of all kinds, with what objects can say of them."""
    names = rng.sample(["city", "unit", "days", "note", "x y", "tags_2"], rng.randint(0, 4))
    kinds = [*STRINGS, *OTHERS, *MIXED]
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {parameter: rng.choice(kinds) for parameter in names},
        "required": [parameter for parameter in names if rng.random() < 0.4],
        "$defs": DEFS,
    }
    if rng.random() < 0.3:
        schema["additionalProperties"] = rng.choice([False, True, *STRINGS[:2], *OTHERS[:3], MIXED[0]])
    if names and rng.random() < 0.2:
        schema["dependentRequired"] = {rng.choice(names): [rng.choice(names)]}
    if names and rng.random() < 0.2:
        schema["minProperties"] = rng.randint(0, len(names))
    if rng.random() < 0.2:
        schema["maxProperties"] = rng.randint(1, 4)
    if len(names) > 1 and rng.random() < 0.25:
        one, other = rng.sample(names, 2)
        schema[rng.choice(["anyOf", "oneOf"])] = [
            {"required": [one]},
            {"properties": {other: rng.choice(kinds)}, "required": [other]},
        ]
    if names and rng.random() < 0.15:
        one = rng.choice(names)
        schema["if"] = {"properties": {one: rng.choice(kinds)}, "required": [one]}
        schema["then"] = {"properties": {rng.choice(names): rng.choice(kinds)}}
    if rng.random() < 0.1:
        schema["patternProperties"] = {"^[xt]": rng.choice(kinds)}
    return {"type": "function", "function": {"name": name, "description": "does things", "parameters": schema}}


def is_valid(arguments: dict[str, Any], tool: dict[str, Any]) -> bool:
    """Whether python-jsonschema takes the arguments."""
    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
    validator = jsonschema.Draft202012Validator(_exact(tool["function"]["parameters"]), format_checker=checker)
    return validator.is_valid(_exact(arguments))


def _exact(value: Any) -> Any:
    """Numbers as fractions, which divide by each other exactly."""
    if isinstance(value, dict):
        return {key: _exact(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_exact(item) for item in value]
    if isinstance(value, float | Decimal):
        number = Fraction(str(value))
        return number.numerator if number.denominator == 1 else number
    return value


def random_output(matcher: Matcher, vocabulary: Vocabulary, rng: random.Random, steps: int) -> list[int]:
    """Tokens that masks allow, one by one, then the shortest completion; letters are preferred to other bytes."""
    bitmask = np.zeros((1, -(-vocabulary.size // 32)), np.int32)
    tokens: list[int] = []
    while len(tokens) < steps:
        matcher.fill_next_token_bitmask(bitmask)
        ids = np.flatnonzero(np.unpackbits(bitmask.view(np.uint8), bitorder="little")).tolist()
        ends = [token for token in ids if token in vocabulary.eos_token_ids]
        if ends and (len(ends) == len(ids) or rng.random() < 0.3):
            return tokens
        ids = [token for token in ids if token not in vocabulary.eos_token_ids]
        likely = [token for token in ids if chr(min(token, 255)).isalnum() or token > 255 or chr(token) in '<>"{[:, \n']
        token = rng.choice(likely if likely and rng.random() < 0.9 else ids)
        assert matcher.accept_token(token)
        tokens.append(token)
    return tokens
