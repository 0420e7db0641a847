"""Masks of strings and keys near a limit (of their length, of how many keys there are) against taking each token."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest

import structgen
from structgen import JsonOptions, Vocabulary
from tests.core.engines.json.masks.taking import checked_mask

LENGTH = 14


def vocabulary() -> Vocabulary:
    random = np.random.default_rng(7)
    pieces = [b"a", b"b", b"ab", b"0", b"12", b"f0", b".", b"-", b" ", b"x", b"zz", b"@", b"1.2.3", "é".encode()]
    ends = [b'"', b'",', b'"}', b'":', b"\\", b"\\n", b"\\u00", b"\\u0061", b"\xc3", b"\xff", "😀".encode(), b'\\"']
    tokens = [bytes([byte]) for byte in range(256)] + pieces + ends
    for _ in range(700):
        text = b"".join(pieces[i] for i in random.integers(0, len(pieces), random.integers(1, 7)))
        tokens.append(text + (ends[random.integers(0, len(ends))] if random.random() < 0.35 else b""))
    return Vocabulary([*tokens, b"a" * LENGTH, b"0" * 30, b'a":', b'b":1,"', None], eos_token_ids=len(tokens) + 4)


VOCABULARY = vocabulary()


def word(pattern: str, **limits: int) -> dict[str, Any]:
    return {"type": "string", "pattern": pattern, **limits}


def keys(pattern: str, **more: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "patternProperties": {pattern: {"type": "integer"}},
        "additionalProperties": False,
        **more,
    }


SCHEMAS = [
    word("[0-9a-f]+", minLength=12, maxLength=12),
    word("^(\\d+\\.\\d+\\.\\d+.*)$", maxLength=12),
    word("^(a{5})*$", minLength=3, maxLength=17),
    word("^(ab|ba)*$", minLength=5, maxLength=9),
    word("^(?:\\S+\\s+){0,3}\\S+$", maxLength=9),
    word("a.{4}$", maxLength=8),
    word("^[a-z]+@[a-z]+$", minLength=6, maxLength=10),
    word("é", maxLength=4),
    word("^(a|bb|ccc)*$", minLength=40),
    word('^["\\\\\\na]*$', minLength=2, maxLength=5),
    {"type": "string", "format": "email", "minLength": 1, "maxLength": 12},
    keys("^[ab]$"),
    keys("^[ab0]{1,3}$", minProperties=2),
    keys("^[0-9a-z]{1,20}$"),
    keys("^a[0-9]?$", properties={"ab": {"const": 1}}, maxProperties=3),
    {"type": "object", "propertyNames": {"pattern": "^[ab]{2}$"}, "additionalProperties": {"const": 1}},
    {"type": "object", "propertyNames": {"maxLength": 1}, "patternProperties": {"[^a]": False}},
    {"type": "array", "items": word("^[ab]{2,3}$", maxLength=3), "uniqueItems": True},
]


@pytest.mark.parametrize("escapes", ["minimal", "any"])
@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_mask_is_what_can_be_taken(schema: dict[str, Any], escapes: Literal["minimal", "any"]) -> None:
    """Along random texts: a bit is set exactly if the token is taken, which reads it byte by byte."""
    random = np.random.default_rng(1)
    options = JsonOptions(string_escapes=escapes, whitespace="compact")
    grammar = structgen.compile_json_schema(schema, VOCABULARY, options)
    seen = 0
    for _ in range(3):
        matcher = grammar.matcher()
        for _ in range(14):
            bits = checked_mask(matcher)
            seen += 1
            choices = np.flatnonzero(bits)
            plain = [t for t in choices if VOCABULARY.tokens[t] and b"\\" not in (VOCABULARY.tokens[t] or b"")]
            if matcher.is_accepting() or not len(choices):
                break
            matcher.accept_token(int(random.choice(plain if plain and random.random() < 0.9 else choices)))
    assert seen >= 6
