"""Long texts at once: `accept_bytes` reads them in pieces, and says what it says of each byte alone."""

from __future__ import annotations

import json
import random

import pytest

from structgen import Vocabulary, compile_json_schema
from structgen.core.engines.json import matcher as json_matcher
from structgen.core.engines.protocols import Matcher

BYTES = Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=256)
TEXT = {"type": "string"}
SCHEMAS = [
    {},
    {"type": "array", "items": {"anyOf": [TEXT, {"type": "string", "maxLength": 40}, {"pattern": "a"}]}},
    {"type": "array", "items": TEXT, "uniqueItems": True},
    {"type": "object", "patternProperties": {"^a": TEXT, "b$": {"maxLength": 300}}, "additionalProperties": TEXT},
    {"oneOf": [{"type": "array", "items": TEXT}, {"type": "array", "contains": {"minLength": 200}}]},
    {"type": "array", "items": {"enum": ["a" * 200, "a" * 199 + "\\", "b", 1]}},
    {"type": "string", "minLength": 100, "maxLength": 400},
]


def string(rng: random.Random) -> str:
    length = rng.choice([0, 1, 15, 16, 17, 40, 199, 200, 300, 700])
    return "".join(rng.choices('abé💩"\\\n', [40, 20, 3, 2, 1, 1, 1], k=length))


def document(rng: random.Random) -> bytes:
    strings = [rng.choice([string(rng), "a" * 200, "a" * 199 + "\\"]) for _ in range(rng.randrange(6))]
    value = rng.choice([strings, dict.fromkeys(strings, string(rng)), string(rng), [strings, strings]])
    data = json.dumps(value, ensure_ascii=rng.random() < 0.5).encode()
    if rng.random() < 0.4:  # wrong somewhere
        place = rng.randrange(len(data))
        data = data[:place] + rng.choice([b'"', b"\\", b"\x01", b"\xff", b"a", b""]) + data[place + 1 :]
    return data


def one_by_one(matcher: Matcher, data: bytes) -> int:
    """How many bytes are taken, each alone."""
    return next((n for n in range(len(data)) if not matcher.accept_bytes(data[n : n + 1])), len(data))


@pytest.mark.parametrize("number", range(len(SCHEMAS)))
def test_the_same_as_byte_by_byte(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    grammar = compile_json_schema(SCHEMAS[number], BYTES)
    rng = random.Random(number)
    taken = 0
    for _ in range(250):
        monkeypatch.setattr(json_matcher, "LONG_PIECE", rng.choice([17, 100, 1 << 16]))
        data = document(rng)
        whole, single = grammar.matcher(), grammar.matcher()
        start = rng.randrange(len(data) + 1)
        before = one_by_one(single, data[:start])
        assert whole.accept_bytes(data[:start]) == (before == start)
        if before < start:
            continue
        remaining = one_by_one(single, data[start:])
        assert whole.accept_bytes(data[start:]) == (remaining == len(data) - start)
        if remaining == len(data) - start:
            taken += 1
            assert whole.is_accepting() == single.is_accepting()
            assert (whole.next_bytes() == single.next_bytes()).all()
            whole.rollback(1 if start < len(data) else 0)
            whole.accept_bytes(memoryview(data[start:]))  # type: ignore[arg-type]
            assert (whole.next_bytes() == single.next_bytes()).all()
        else:  # nothing of it was taken
            twin = grammar.matcher()
            assert twin.accept_bytes(data[:start])
            assert (whole.next_bytes() == twin.next_bytes()).all()
    assert taken >= 3


def test_many_values_with_alternatives_after_a_long_string() -> None:
    """Alternatives begin outside of strings only, where pieces are short: no combinations of them are read."""
    either = {"anyOf": [{"type": "array", "items": {"anyOf": [{"minLength": n}, {"maxLength": 9}]}} for n in range(3)]}
    matcher = compile_json_schema(either, BYTES).matcher()
    assert matcher.accept_bytes(json.dumps(["a" * 200_000, *["b"] * 400, "c" * 200_000]).encode())
    assert matcher.is_accepting()
