"""The shipped laws: the smallest engine keeps them, and an engine that breaks one is told which."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import structgen
from structgen.core.engines.laws import BrokenLawError, check_laws, check_state
from structgen.core.engines.protocols import Grammar, Matcher
from structgen.core.vocabulary.vocabulary import Vocabulary
from tests.core.engines.fixed_texts import FixedTexts, FixedTextsMatcher

TEXTS = (b"yes", b"yesterday", b"no", b"nothing", "né".encode())
TOKENS = [bytes([byte]) for byte in range(256)] + [b"ye", b"es", b"not", b"hing", b"s", None, None]
WORDS = Vocabulary([*TOKENS], eos_token_ids=[261, 262], size=270)


def judge(text: bytes) -> tuple[bool, bool]:
    return any(known.startswith(text) for known in TEXTS), text in TEXTS


@pytest.mark.parametrize("seed", range(5))
def test_the_smallest_engine_keeps_the_laws(seed: int) -> None:
    grammar = FixedTexts(TEXTS, WORDS)
    check_laws(grammar, judge, texts=[*TEXTS, b"", b"ye", b"none"], seed=seed)
    check_laws(grammar, texts=TEXTS, prefixes=[b"ye", b"n"], tokens=range(200, 262), seed=seed)


def test_the_empty_text() -> None:
    check_laws(FixedTexts((b"",), WORDS), lambda text: (text == b"", text == b""))


class WideMask(FixedTextsMatcher):
    """A mask with a token too many."""

    def _fill(self, bitmask: Any, index: int, address: int) -> None:
        super()._fill(bitmask, index, address)
        (bitmask[index] if bitmask.ndim == 2 else bitmask)[2] |= 1


class NarrowMask(FixedTextsMatcher):
    """No token of two bytes."""

    def _fill(self, bitmask: Any, index: int, address: int) -> None:
        super()._fill(bitmask, index, address)
        (bitmask[index] if bitmask.ndim == 2 else bitmask)[8] &= ~0x1F


class DirtyMask(FixedTextsMatcher):
    """Bits behind the vocabulary."""

    def _fill(self, bitmask: Any, index: int, address: int) -> None:
        super()._fill(bitmask, index, address)
        (bitmask[index] if bitmask.ndim == 2 else bitmask)[-1] |= -(1 << 30)


class DeadEnd(FixedTextsMatcher):
    """Takes a text that leads nowhere."""

    def _rests(self, data: bytes = b"") -> list[bytes]:
        text = self._text + data
        return super()._rests(data) or ([b"?"] if text in (b"ne", b"n") and not self._terminated else [])

    def _step(self, data: bytes, ends: bool = False) -> bool:
        return data != b"?" and super()._step(data, ends)


class SharedHistory(FixedTextsMatcher):
    """Forks that share what they undo."""

    def fork(self) -> SharedHistory:
        twin = self.copy()
        twin._history = self._history
        return twin


class ForgetfulFork(FixedTextsMatcher):
    """Forks without a history."""

    def fork(self) -> ForgetfulFork:
        return self.copy()


class CopyWithHistory(FixedTextsMatcher):
    """Copies that can be rolled back."""

    def copy(self) -> CopyWithHistory:
        twin = super().copy()
        twin._history = self._history.copy()
        return twin


class ShortRollback(FixedTextsMatcher):
    """Undoes one step, whatever is asked."""

    def rollback(self, steps: int = 1) -> None:
        super().rollback(min(steps, 1))


class EndlessEnd(FixedTextsMatcher):
    """Goes on behind the end of sequence."""

    def _step(self, data: bytes, ends: bool = False) -> bool:
        taken = super()._step(data, ends)
        self._terminated = False
        return taken


class LongCompletion(FixedTextsMatcher):
    """The longest completion."""

    def shortest_completion(self) -> bytes:
        rests = self._rests()
        return b"" if b"" in rests else max(rests, key=len, default=b"")


class WrongCompletion(FixedTextsMatcher):
    """A completion that is none."""

    def shortest_completion(self) -> bytes:
        return super().shortest_completion()[:-1]


class GreedyForced(FixedTextsMatcher):
    """Forces the first text that fits."""

    def forced_bytes(self) -> bytes:
        return b"" if self.is_accepting() else next(iter(self._rests()), b"")


class NoForced(FixedTextsMatcher):
    """Forces nothing."""

    def forced_bytes(self) -> bytes:
        return b""


class OneState(FixedTextsMatcher):
    """All states have one key."""

    def state_key(self, *, same_matcher: bool = False) -> Hashable:
        return 0


class NeedsTheLetterX(FixedTextsMatcher):
    """Says that a text cannot stop without an x."""

    def bytes_to_stop(self) -> int:
        return 1 << ord("x")


class DeafToBytes(FixedTextsMatcher):
    """Next bytes that are none."""

    def _mark_next_bytes(self, out: Any) -> None:
        super()._mark_next_bytes(out)
        out[0] |= 1


class NoErrors(FixedTextsMatcher):
    """Refuses ids that are none instead of raising."""

    def accept_token(self, token_id: int) -> bool:
        return 0 <= token_id < WORDS.size and super().accept_token(token_id)


BROKEN: dict[type[FixedTextsMatcher], str] = {
    WideMask: "mask = accept",
    NarrowMask: "mask = accept",
    DirtyMask: "mask",
    DeadEnd: "next bytes|sound",
    SharedHistory: "rollback|fork",
    ForgetfulFork: "fork|rollback",
    CopyWithHistory: "copy",
    ShortRollback: "rollback",
    EndlessEnd: "end",
    LongCompletion: "shortest completion",
    WrongCompletion: "shortest completion",
    GreedyForced: "forced bytes",
    NoForced: "forced bytes",
    OneState: "state key",
    NeedsTheLetterX: "bytes to stop",
    DeafToBytes: "next bytes",
    NoErrors: "errors",
}


@dataclass(frozen=True)
class Broken(FixedTexts):
    """A grammar with matchers of a class."""

    kind: type[FixedTextsMatcher] = field(default=FixedTextsMatcher)

    def matcher(self) -> FixedTextsMatcher:
        return self.kind(self)


def broken_law(grammar: Grammar) -> str:
    """The law that is broken first; "" for none in some walks."""
    for seed in range(4):
        try:
            check_laws(grammar, judge, seed=seed, texts=TEXTS)
        except BrokenLawError as error:
            return error.law
    return ""


@pytest.mark.parametrize("kind", BROKEN, ids=lambda kind: kind.__name__)
def test_a_broken_law_is_named(kind: type[FixedTextsMatcher]) -> None:
    assert broken_law(Broken(TEXTS, WORDS, kind)) in BROKEN[kind].split("|")


def test_a_wrong_language_is_found() -> None:
    assert broken_law(FixedTexts(TEXTS[1:], WORDS)) == "complete"
    assert broken_law(FixedTexts((*TEXTS, b"yes!"), WORDS)) == "sound"


def test_wrong_ends_are_found() -> None:
    class WrongEnds(FixedTexts):
        def last_bytes(self) -> int:
            return 1 << ord("o")

    assert broken_law(WrongEnds(TEXTS, WORDS)) == "last bytes"


def test_a_state_is_checked_where_it_stands() -> None:
    matcher = FixedTexts(TEXTS, WORDS).matcher()
    assert matcher.accept_bytes(b"no")
    mask = check_state(matcher, judge, b"no")
    assert np.flatnonzero(mask).tolist() == [ord("t"), 261, 262]
    with pytest.raises(BrokenLawError, match="sound") as raised:
        check_state(matcher, judge, b"n")
    assert raised.value.text == b"n"


ENGINES: dict[str, Callable[[], Grammar]] = {
    "json": lambda: structgen.compile_json_schema({"type": "object", "properties": {"a": {"type": "integer"}}}, WORDS),
    "json, any white space": lambda: structgen.compile_json_schema(
        True, WORDS, structgen.JsonOptions(whitespace="any")
    ),
    "json, distinct items": lambda: structgen.compile_json_schema(
        {"type": "array", "items": {"enum": [1, 2, 12]}, "uniqueItems": True, "minItems": 2}, WORDS
    ),
    "cfg": lambda: structgen.compile_regex("(ye|s)*not?", WORDS),
    "lalr": lambda: structgen.compile_lark('start: "a" start "b" | "s"\n%ignore " "', WORDS, lexer="contextual"),
    "tags": lambda: structgen.compile_tag_dispatch(
        {("<", ">"): structgen.compile_json_schema({"type": "object"}, WORDS)}, WORDS
    ),
    "lines": lambda: structgen.compile_json_lines({"type": "integer"}, WORDS, max_lines=3),
}


@pytest.mark.parametrize("name", ENGINES)
def test_every_engine_keeps_the_laws(name: str) -> None:
    if name == "lalr":
        pytest.importorskip("lark")
    grammar = ENGINES[name]()
    assert isinstance(grammar, structgen.CompiledGrammar) and isinstance(grammar.matcher(), structgen.GrammarMatcher)
    assert structgen.CompiledGrammar is Grammar and structgen.GrammarMatcher is Matcher
    check_laws(grammar, walks=4)
