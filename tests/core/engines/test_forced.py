"""Forced text of every engine, where it is longer than what is given at once: right, in pieces, in bounded time."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

import structgen
from structgen.core.engines.laws import BrokenLawError, check_state
from structgen.core.engines.protocols import MAX_FORCED_BYTES
from tests.core.engines.fixed_texts import FixedTexts, FixedTextsMatcher

BYTES = structgen.Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=256)
ENDLESS: dict[str, Callable[[], Any]] = {
    "lark": lambda: structgen.compile_lark('start: "a"~10000000', BYTES),
    "lalr": lambda: structgen.compile_lark('start: "a"~20000', BYTES, lexer="contextual"),
    "gbnf": lambda: structgen.compile_gbnf('root ::= "a"{10000000}', BYTES, max_repetitions=10**7),
    "const": lambda: structgen.compile_json_schema({"const": "a" * 1_000_000}, BYTES),
    "pattern": lambda: structgen.compile_json_schema({"pattern": "^a*$", "minLength": 10**7, "type": "string"}, BYTES),
    "array": lambda: structgen.compile_json_schema(
        {"type": "array", "items": {"const": 1}, "minItems": 10**6}, BYTES, structgen.JsonOptions(whitespace="compact")
    ),
    "embedded": lambda: structgen.compile_lark(f'start: %json {{"const": "{"a" * 100_000}"}} "b"', BYTES),
    "fixed": lambda: FixedTexts((b"a" * 3_000, b"a" * 3_000 + b"b"), BYTES),
}


@pytest.mark.first_case
@pytest.mark.parametrize("name", ENDLESS)
def test_forced_text_is_cut(name: str) -> None:
    matcher = ENDLESS[name]().matcher()
    matcher.forced_bytes()  # what is made at first use
    started = time.process_time()
    tracemalloc.start()
    forced = matcher.forced_bytes()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(forced) == MAX_FORCED_BYTES and peak < 20_000_000 and time.process_time() - started < 5
    assert matcher.accept_bytes(forced)
    assert len(matcher.forced_bytes()) == MAX_FORCED_BYTES  # and so it goes on


@pytest.mark.first_case
@pytest.mark.parametrize("length", [MAX_FORCED_BYTES + each for each in (-2, -1, 0, 1)] + [3 * MAX_FORCED_BYTES + 5])
def test_pieces_are_the_whole(length: int) -> None:
    text = "".join(chr(0x61 + number % 7) + "é" for number in range(length))[:length]
    grammars: list[Any] = [
        structgen.compile_json_schema({"const": text}, BYTES, structgen.JsonOptions(whitespace="compact")),
        structgen.compile_choice([text], BYTES),
        structgen.compile_lark(f'start: "{text}" ("x" | "y")', BYTES),
    ]
    if length < 2 * MAX_FORCED_BYTES:  # (a keyword's states cost the LALR machine its length, each)
        grammars.append(structgen.compile_lark(f'start: "{text}" ("x" | "y")', BYTES, lexer="contextual"))
    for grammar, whole in zip(grammars, (f'"{text}"', text, text, text)[: len(grammars)], strict=True):
        matcher = grammar.matcher()
        pieces = []
        while piece := matcher.forced_bytes():
            pieces.append(piece)
            assert matcher.accept_bytes(piece)
        assert b"".join(pieces) == whole.encode()
        assert all(len(piece) == MAX_FORCED_BYTES for piece in pieces[:-1])


def test_the_laws_know_the_limit() -> None:
    class Whole(FixedTextsMatcher):
        def forced_bytes(self) -> bytes:
            return self._rests()[0]

    class Few(FixedTextsMatcher):
        def forced_bytes(self) -> bytes:
            return super().forced_bytes()[:100]

    grammar = FixedTexts((b"a" * (MAX_FORCED_BYTES + 7),), BYTES)
    check_state(grammar.matcher(), text=b"")
    for kind in (Whole, Few):
        with pytest.raises(BrokenLawError, match="forced bytes"):
            check_state(kind(grammar), text=b"")
