"""Terminals that monitors narrow while the text is written: the laws, against all texts written out."""

from __future__ import annotations

import hashlib
import itertools
import pickle
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import structgen
from structgen.core.engines.laws import check_laws, mask_of
from structgen.core.engines.protocols import Grammar
from structgen.errors import GenerationError, OptionsError
from tests.many import cases

WORDS = ("a", "ab", "b,", "ba", "ü", "cab")
TOKENS: list[bytes | None] = [
    *(bytes([byte]) for byte in range(256)),
    b"ab",
    b"a,",
    b",a",
    b"b,b",
    b"a,b,",
    b"ba;",
    None,
]
TOKENS += [b"[a", b"a]", "aü".encode(), b",,", b"b;c"]
VOCABULARY = structgen.Vocabulary(TOKENS, eos_token_ids=TOKENS.index(None))


class Chosen:
    """A monitor of a terminal whose answers are a function of the text: some of the words, by a hash."""

    names = structgen.NameSet.build(WORDS)

    def __init__(self, seed: object, least: int = 1) -> None:
        self.seed, self.least = seed, least
        self.asked: list[str] = []

    def suggest(self, text: str) -> list[str]:
        self.asked.append(text)
        rng = random.Random(hashlib.sha256(f"{self.seed}|{text}".encode()).digest())
        return rng.sample(WORDS, rng.randint(self.least, 2))


Parts = tuple[str, ...]
"""A derivation: texts, and names of terminals (capitals)."""
SHAPES: dict[str, tuple[str, list[Parts]]] = {
    "one after the other": ('start: X "," Y ";"', [("X", ",", "Y", ";")]),
    "with no sign between": ("start: X Y", [("X", "Y")]),
    "alternatives": ('start: X "," Y | X ";" | "[" Y "]" X', [("X", ",", "Y"), ("X", ";"), ("[", "Y", "]", "X")]),
    "as many as there are": (
        'start: X ("," Y)? ("," X)?',
        [("X",), ("X", ",", "Y"), ("X", ",", "X"), ("X", ",", "Y", ",", "X")],
    ),
    "a plain terminal beside": ('start: X WORD Y\nWORD: "a" | "ab,"', [("X", w, "Y") for w in ("a", "ab,")]),
}
OPTIONAL: dict[str, tuple[str, list[Parts]]] = {  # a terminal may be closed, and something else is open
    "or nothing": ('start: "a" X?', [("a",), ("a", "X")]),
    "or a sign": ('start: (X | ";") ("," | Y)', [(a, b) for a in ("X", ";") for b in (",", "Y")]),
}


def texts_of(parts: Parts, monitors: dict[str, Chosen], text: str = "") -> Iterator[str]:
    """All texts of a derivation: each terminal's is one of those that its monitor suggests after what is before it."""
    if not parts:
        yield text
        return
    words = monitors[parts[0]].suggest(text) if parts[0] in monitors else [parts[0]]
    for word in words:
        yield from texts_of(parts[1:], monitors, text + word)


def judge_of(texts: set[bytes]) -> Callable[[bytes], tuple[bool, bool]]:
    beginnings = {text[:end] for text in texts for end in range(len(text) + 1)}
    return lambda text: (text in beginnings, text in texts)


def check(shape: tuple[str, list[Parts]], seed: object, least: int, **options: Any) -> None:
    source, derivations = shape
    monitors = {name: Chosen((seed, name), least) for name in "XY" if name in source}
    texts = {text.encode() for parts in derivations for text in texts_of(parts, monitors)}
    declared = "\n".join(f"%declare {name}" for name in monitors)
    grammar = structgen.compile_lark(f"{source}\n{declared}", VOCABULARY, terminals=monitors)
    samples = random.Random(str(seed)).sample(sorted(texts), min(len(texts), 4))
    check_laws(grammar, judge_of(texts), texts=[*samples, b"", b"ab,", b"a"], exact=True, **options)


@pytest.mark.parametrize("shape", SHAPES)
def test_laws_and_no_text_but_those_suggested(shape: str) -> None:
    for seed in cases(60, 1):
        check(SHAPES[shape], seed, 1, walks=2, steps=5)


@pytest.mark.parametrize("shape", OPTIONAL)
def test_an_empty_answer_closes_what_is_optional(shape: str) -> None:
    for seed in cases(60, 2):
        check(OPTIONAL[shape], seed, 0, walks=2, steps=4)


class Fixed:
    """A monitor whose answers are given by a function."""

    names = structgen.NameSet.build(["x", "xy"])

    def __init__(self, answer: Callable[[str], Any]) -> None:
        self.suggest = answer


def compiled(answer: Callable[[str], Any], source: str = 'start: "a"+ X ";"') -> Grammar:
    return structgen.compile_lark(f"{source}\n%declare X", VOCABULARY, terminals={"X": Fixed(answer)})


def accepts(grammar: Grammar, text: bytes) -> bool:
    matcher = grammar.matcher()
    return matcher.accept_bytes(text) and matcher.is_accepting()


@pytest.mark.parametrize("answer", [[], ["z"], structgen.NameSet.build(["z"])])
def test_where_nothing_is_left_all_names_are_allowed_and_counted(answer: Any) -> None:
    grammar = compiled(lambda text: answer if text == "aa" else ["x"])
    check_laws(grammar, texts=[b"ax;", b"aaxy;", b"aax;", b"aaax;"], walks=2, steps=4)
    assert accepts(grammar, b"aaxy;") and not accepts(grammar, b"axy;")
    matcher = grammar.matcher()
    assert matcher.accept_bytes(b"a") and matcher.stats["empty_suggestions"] == 0
    assert matcher.accept_bytes(b"a") and matcher.stats["empty_suggestions"] == 1


def test_no_answer_is_no_restriction_and_one_in_time_is_one() -> None:
    def late(text: str) -> list[str] | None:
        if text == "aa":
            raise TimeoutError
        return None if text == "a" else ["x"]

    grammar = compiled(late)
    assert accepts(grammar, b"axy;") and accepts(grammar, b"aaxy;") and not accepts(grammar, b"aaaxy;")
    matcher = grammar.matcher()
    matcher.accept_bytes(b"aa")
    assert matcher.stats["monitor_timeouts"] == 1


def test_a_failing_monitor_is_an_error_and_the_matcher_stays() -> None:
    def failing(text: str) -> list[str]:
        if text == "aa":
            raise KeyError("no such table")
        return ["x"]

    matcher = compiled(failing).matcher()
    assert matcher.accept_bytes(b"a")
    with pytest.raises(GenerationError, match=r"Fixed failed after the text 'aa': KeyError: 'no such table'"):
        matcher.accept_bytes(b"a")
    assert matcher.accept_bytes(b"x;") and matcher.is_accepting()
    wrong = compiled(lambda text: [3])
    with pytest.raises(GenerationError, match="what is no text"):
        wrong.matcher().accept_bytes(b"a")


def test_it_is_asked_what_is_before_it_and_once() -> None:
    monitor = Chosen(1)
    grammar = structgen.compile_lark('start: "é" X\n%declare X', VOCABULARY, terminals={"X": monitor})
    matcher = grammar.matcher()
    matcher.accept_bytes("é".encode())
    for _ in range(3):
        mask_of(matcher.fork())
    assert monitor.asked == ["é"]


def test_joined_with_others_it_sees_its_part_of_the_text() -> None:
    part = structgen.lark(
        'start: "a"+ X\n%declare X', terminals={"X": Fixed(lambda text: ["x"] if text == "a" else ["xy"])}
    )
    grammar = (structgen.choice(["a", "aa"]) + "|" + part).compile(VOCABULARY)
    assert accepts(grammar, b"aa|ax") and not accepts(grammar, b"a|axy") and accepts(grammar, b"a|aaxy")


def test_gbnf_has_them_too() -> None:
    monitors = {name: Chosen(name) for name in "XY"}
    texts = {text.encode() for text in texts_of(("a", "X", ",", "Y"), monitors)}
    grammar = structgen.gbnf('root ::= "a" X "," Y', terminals=monitors).compile(VOCABULARY)
    check_laws(grammar, judge_of(texts), texts=sorted(texts)[:2], exact=True, walks=2, steps=5)


def test_grammars_with_monitors_are_sent_and_what_is_no_monitor_is_named() -> None:
    grammar = structgen.compile_lark('start: "a" X\n%declare X', VOCABULARY, terminals={"X": Chosen(5)})
    twin = pickle.loads(pickle.dumps(grammar))
    for a, b in itertools.product(WORDS, repeat=2):
        assert accepts(grammar, f"a{a}{b}".encode()) == accepts(twin, f"a{a}{b}".encode())
    listed: Any = Fixed(lambda text: ["x"])
    listed.names = ["x"]
    with pytest.raises(OptionsError, match="names of the monitor 'X'"):
        structgen.compile_lark('start: "a" X\n%declare X', VOCABULARY, terminals={"X": listed})
    with pytest.raises(OptionsError, match="expected a NameSet"):
        structgen.compile_lark('start: "a" X\n%declare X', VOCABULARY, terminals={"X": object()})  # type: ignore[dict-item]
