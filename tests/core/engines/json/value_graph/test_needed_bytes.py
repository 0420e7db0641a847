"""Vocabularies that lack bytes: refused where a text could come to a dead end, taken where none can."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest

from structgen import JsonOptions, TokenizerError, Vocabulary, allocate_token_bitmask, compile_json_schema

PRINTABLE = [bytes([byte]) for byte in range(0x20, 0x7F)]
EVERY = [bytes([byte]) for byte in range(256)]
ACCENTS = [char.encode() for char in "éüñ日本"]
ANUL = [bytes([byte]) for byte in b'{}:"anul']


def vocabulary(tokens: list[bytes]) -> Vocabulary:
    return Vocabulary([*tokens, None], eos_token_ids=len(tokens))


def without(tokens: list[bytes], bytes_: bytes) -> list[bytes]:
    return [token for token in tokens if not (len(token) == 1 and token in bytes_)]


def missing(schema: Any, tokens: list[bytes], **options: Any) -> str | None:
    """The bytes that the error names; None if it compiles."""
    try:
        compile_json_schema(schema, vocabulary(tokens), JsonOptions(**options))
    except TokenizerError as error:
        return str(error).partition("bytes ")[2].partition(";")[0]
    return None


REFUSED: list[tuple[Any, list[bytes], str]] = [
    ({"type": "null"}, [b"n", b"u"], "'l'"),
    ({"type": "boolean"}, without(EVERY, b"s"), "'s'"),
    ({"type": "integer"}, without(EVERY, b"0123456789"), ", ".join(f"'{digit}'" for digit in range(10))),
    ({"type": "integer", "minimum": 100, "maximum": 200}, without(EVERY, b"0123"), "'0', '1', '2', '3'"),
    ({"const": "aé"}, PRINTABLE, "0xA9, 0xC3"),
    ({"enum": ["ab", "ac"]}, without(EVERY, b"c"), "'c'"),
    ({"type": "string"}, without(EVERY, b'"'), "'\"'"),
    ({"type": "string"}, without(EVERY, bytes(range(0x80, 0x90))), ", ".join(f"0x8{digit:X}" for digit in range(16))),
    ({"type": "string", "pattern": "^é+$"}, PRINTABLE, "0xA9, 0xC3"),
    ({"type": "string", "pattern": "^(é|aaaa)$", "maxLength": 1}, PRINTABLE, "0xA9, 0xC3"),
    ({"type": "object"}, without(EVERY, b":"), "':'"),
    ({"type": "object", "properties": {"key": {}}}, without(EVERY, b"k"), "'k'"),
    ({"type": "object", "required": ["a", "b"]}, without(EVERY, b","), "','"),
    ({"type": "array"}, without(EVERY, b"]"), "']'"),
    ({"type": "array", "minItems": 2}, without(EVERY, b","), "','"),
]


@pytest.mark.parametrize(("schema", "tokens", "named"), REFUSED, ids=[json.dumps(entry[0]) for entry in REFUSED])
def test_what_could_end_in_a_dead_end_is_refused(schema: Any, tokens: list[bytes], named: str) -> None:
    assert missing(schema, tokens) == named


TAKEN: list[tuple[Any, list[bytes]]] = [
    ({}, EVERY),
    ({}, PRINTABLE),
    ({}, [b"[", b"]", b",", b"1", b'"', b"a"]),
    ({"type": "string"}, without(EVERY, b"\x80")),
    ({"type": "integer"}, without(EVERY, b"0123")),
    ({}, [*PRINTABLE, *ACCENTS]),
    ({}, without(EVERY, b"\xf1\xf2\x04\x06")),
    ({"type": "string", "pattern": "^.{3,}$"}, PRINTABLE),
    ({"type": "string", "pattern": "^[^x]*$"}, [*PRINTABLE, *ACCENTS]),
    ({"type": "string", "pattern": "^[^x]+$", "maxLength": 9}, without(EVERY, b"\xf1\xf2")),
    ({"type": "string", "maxLength": 9, "minLength": 2}, without(EVERY, b"\xf1\xf2")),
    ({"type": "array", "items": {"const": 1}}, [b"[", b"1", b"]"]),
    ({"type": "array", "items": {"const": 1}, "maxItems": 3}, [b"[", b"1", b"]", b",1"]),
    ({"type": "null"}, [b"n", b"u", b"l"]),
    ({"enum": [12, 22, "ab"]}, [b"1", b"2", b'"', b"a", b"b"]),
    ({"type": "integer", "minimum": 0, "maximum": 0}, [b"0"]),
    ({"patternProperties": {"^[^x]*$": {"type": "null"}}, "additionalProperties": False}, [*PRINTABLE, *ACCENTS]),
    ({"type": "object", "properties": {"a": {"type": "null"}}, "additionalProperties": False}, ANUL),
]


@pytest.mark.parametrize(("schema", "tokens"), TAKEN)
def test_what_cannot_is_taken_and_never_ends_in_one(schema: Any, tokens: list[bytes]) -> None:
    found = vocabulary(tokens)
    grammar = compile_json_schema(schema, found)
    bitmask = allocate_token_bitmask(1, found.size)
    for seed in range(30):
        rng, matcher = random.Random(seed), grammar.matcher()
        for _ in range(60):
            matcher.fill_next_token_bitmask(bitmask)
            allowed = np.flatnonzero(np.unpackbits(bitmask.view(np.uint8), bitorder="little"))
            assert len(allowed), schema
            token = rng.choice(allowed.tolist())
            assert matcher.accept_token(token)
            if token == found.size - 1:
                break


def test_spellings_ask_for_more() -> None:
    assert missing({"type": "array", "minItems": 1}, without(EVERY, b"\n")) is None
    assert missing({"type": "array", "minItems": 1}, without(EVERY, b"\n"), whitespace=2) == "0x0A"
    assert missing({"type": "string"}, without(EVERY, b"u")) == "'u'"  # a backslash would not lead back
    assert missing({"type": "string"}, without(EVERY, b"u\\")) is None
    assert missing({"const": 'a"'}, without(EVERY, b"\\")) == r"'\\'"
