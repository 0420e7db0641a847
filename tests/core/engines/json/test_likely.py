"""Likely texts against what writers write: json.dumps in several spacings, on schemas with declared, optional and
enumerated members; and they leave the matcher as it was."""

from __future__ import annotations

import json
import random
import string
from typing import Any

import pytest

from structgen import JsonOptions, compile_json_schema, compile_lark
from structgen.core.vocabulary.vocabulary import TextVocabulary

VOCABULARY = TextVocabulary()
SPACINGS = [(", ", ": "), (",", ":"), (", ", ":")]
LEAVES: list[Any] = [
    {"type": "string"},
    {"type": "integer"},
    {"type": "boolean"},
    {"enum": ["red", "green", "blue"]},
    {"type": "string", "format": "date"},
]


def random_schema(rng: random.Random, depth: int = 2) -> Any:
    kind = rng.randrange(7 if depth else 5)
    if kind < 5:
        return LEAVES[kind]
    if kind == 5:
        return {"type": "array", "items": random_schema(rng, depth - 1), "minItems": 1, "maxItems": 3}
    return random_object(rng, depth - 1)


def random_object(rng: random.Random, depth: int) -> Any:
    names = ["".join(rng.choices(string.ascii_lowercase, k=4)) for _ in range(rng.randint(1, 4))]
    properties = {name: random_schema(rng, depth) for name in names}
    required = [name for name in properties if rng.random() < 0.8]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def random_value(rng: random.Random, schema: Any) -> Any:
    if "enum" in schema:
        return rng.choice(schema["enum"])
    if schema["type"] == "object":
        chosen = [name for name in schema["properties"] if name in schema["required"] or rng.random() < 0.5]
        return {name: random_value(rng, schema["properties"][name]) for name in chosen}
    if schema["type"] == "array":
        return [random_value(rng, schema["items"]) for _ in range(rng.randint(1, 3))]
    if "format" in schema:
        return "2024-02-29"
    return {"string": "some text", "integer": rng.randrange(100), "boolean": rng.random() < 0.5}[schema["type"]]


@pytest.mark.parametrize("separators", SPACINGS)
def test_the_next_member_is_among_them(separators: tuple[str, str]) -> None:
    """Behind every bracket, comma and colon outside of strings, what json.dumps writes next begins like one of them."""
    rng, found, asked = random.Random(7), 0, 0
    for _ in range(60):
        schema = random_object(rng, 2)
        text = json.dumps(random_value(rng, schema), separators=separators).encode()
        matcher = compile_json_schema(schema, VOCABULARY).matcher()
        inside = False
        for place, byte in enumerate(text[:-1]):
            assert matcher.accept_bytes(bytes([byte]))
            inside ^= byte == ord('"')
            if inside or bytes([byte]) not in b"{[,:":
                continue
            before = matcher.state_key(same_matcher=True)
            likely = matcher.likely_texts(text[: place + 1])
            assert matcher.state_key(same_matcher=True) == before
            assert len(likely) <= 6 and all(likely)
            rest = text[place + 1 :]
            is_number = chr(rest.strip()[0]).isdigit()
            asked += not is_number
            found += not is_number and any(rest.startswith(each) for each in likely)
    assert found >= 0.93 * asked > 200  # members behind the sixth guess, and second items' spaces


@pytest.mark.full
@pytest.mark.parametrize(
    "options", [JsonOptions(), JsonOptions.exact(), JsonOptions(whitespace=2), JsonOptions(whitespace="compact")]
)
def test_any_state_can_be_asked(options: JsonOptions) -> None:
    """Random walks over masks: no error, whatever is under way, and nothing after the end."""
    rng = random.Random(3)
    schemas = [
        {"anyOf": [{"type": "object", "properties": {"a": {"enum": ["x", "y"]}}}, {"type": "array"}]},
        {"type": "array", "uniqueItems": True, "minItems": 2, "items": {"type": ["integer", "null", "string"]}},
        {
            "type": "object",
            "patternProperties": {"^a": {"type": "string", "pattern": "^[0-9]{3}-$"}},
            "minProperties": 1,
        },
        {"type": "array", "contains": {"const": "q"}, "maxItems": 4},
        True,
    ]
    for schema in schemas:
        grammar = compile_json_schema(schema, VOCABULARY, options)
        for _ in range(6):
            matcher, text = grammar.matcher(), b""
            for _ in range(40):
                assert all(isinstance(each, bytes) for each in matcher.likely_texts(text))
                allowed = [byte for byte in range(128) if matcher.next_bytes()[byte]]
                if not allowed:
                    break
                byte = bytes([rng.choice(allowed)])
                assert matcher.accept_bytes(byte)
                text += byte
            matcher.accept_bytes(matcher.shortest_completion())
            if matcher.accept_token(VOCABULARY.eos_token_ids[0]):
                assert matcher.likely_texts(text) == []


def test_engines_that_know_nothing_follow_few_bytes() -> None:
    pytest.importorskip("lark")
    matcher = compile_lark('start: "SELECT " ("name" | "age" | "city") " FROM t"', VOCABULARY).matcher()
    assert matcher.accept_bytes(b"SELECT ")
    assert sorted(matcher.likely_texts(b"")) == [b"age FROM t", b"city FROM t", b"name FROM t"]
    free = compile_lark("start: /[a-z]+/", VOCABULARY).matcher()
    assert free.likely_texts(b"") == []
