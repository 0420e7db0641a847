"""Intersections, judged by their parts: all texts over small alphabets, every token at every prefix."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from lark import Lark, UnexpectedInput

import structgen
from structgen.core.constraints.parts import BYTES
from structgen.core.engines.capture import Capture
from structgen.core.engines.laws import check_laws
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import ConstraintError, EmptyLanguageError, OptionsError, TooComplexError

NESTED = 'start: e\n?e: e "+" t | t\n?t: "(" e ")" | X\nX: /[ab]+/'
BLANKS = NESTED + '\n%ignore " "'
TWICE = 'start: s\ns: s s | "a" | "b" | "(" s ")" | "+"'
VOCABULARY = Vocabulary(
    [*(bytes([byte]) for byte in range(256)), b"(a", b"a+", b"b)", b")+(", b"aa", b"ab+", b"((", b" (", b"</s>"],
    eos_token_ids={264},
)


def taken(constraint: Any, text: str) -> tuple[bool, bool]:
    """Whether a text may begin an output, and be one."""
    matcher = constraint.compile(BYTES).matcher()
    viable = matcher.accept_bytes(text.encode())
    return viable, viable and matcher.is_accepting()


@cache
def by_lark(source: str) -> dict[str, bool]:
    """All texts up to five characters, and whether Lark parses them."""
    parser = Lark(source, lexer="dynamic_complete")

    def parses(text: str) -> bool:
        try:
            parser.parse(text)
        except UnexpectedInput:
            return False
        return True

    alphabet = "ab+ " if source is BLANKS else "ab+()"
    texts = ("".join(text) for length in range(6) for text in itertools.product(alphabet, repeat=length))
    return {text: parses(text) for text in texts}


SEARCHES: dict[str, tuple[Any, Callable[[str], bool]]] = {
    "none": (structgen.avoiding(["ab", "(("]), lambda text: "ab" not in text and "((" not in text),
    "all": (structgen.including(["a+", "b"]), lambda text: "a+" in text and "b" in text),
    "few": (structgen.including("a", at_most=2), lambda text: 1 <= text.count("a") <= 2),
    "length": (structgen.regex(".{2,5}"), lambda text: 2 <= len(text) <= 5),
    "words": (structgen.avoiding("a", words=True), lambda text: re.search(r"\ba\b", text) is None),
}  # fmt: skip


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("source", [NESTED, BLANKS, TWICE], ids=["nested", "blanks", "ambiguous"])
def test_a_grammar_with_what_is_regular(source: str, name: str) -> None:
    search, holds = SEARCHES[name]
    constraint = structgen.lark(source) & search
    texts = {text: parses and holds(text) for text, parses in by_lark(source).items()}
    assert any(texts.values())
    wrong = [text for text, is_whole in texts.items() if taken(constraint, text)[1] != is_whole]
    assert wrong == []
    begins = {text[:end] for text, is_whole in texts.items() if is_whole for end in range(len(text) + 1)}
    assert [text for text in begins if not taken(constraint, text)[0]] == []
    check_laws(constraint.compile(VOCABULARY), walks=3, steps=10)


@pytest.mark.parametrize("parts", list(itertools.combinations(range(5), 2)))
def test_what_is_regular(parts: tuple[int, int]) -> None:
    given: list[Any] = [
        structgen.regex("[ab]{0,4}|a(bb)*"),
        structgen.choice(["ab", "abb", "ba", ""]),
        structgen.including(["ab", "bb"], "any"),
        structgen.regex("a*") + structgen.regex("b+") | "ba",
        structgen.lark('start: "a" x* "b"?\nx: "b" "b"'),
    ]
    one, two = (given[part] for part in parts)
    both = structgen.intersect(one, two)
    for length in range(6):
        for text in map("".join, itertools.product("ab", repeat=length)):
            assert taken(both, text)[1] == (taken(one, text)[1] and taken(two, text)[1]), text
    check_laws(both.compile(VOCABULARY), walks=2)


def test_token_borders_are_no_escape() -> None:
    """A phrase may be spelled by any tokens."""
    vocabulary = Vocabulary([b"se", b"cret", b"s", b"e", b"c", b"r", b"t", b"ecret", b"</s>"], eos_token_ids={8})
    matcher = structgen.avoiding("secret").compile(vocabulary).matcher()
    for tokens in ([0, 1], [0, 4, 5, 3, 6], [2, 7], [2, 3, 1]):
        matcher.reset()
        assert all(matcher.accept_token(token) for token in tokens[:-1]) and not matcher.accept_token(tokens[-1])


def test_captures_stay() -> None:
    grammar = structgen.lark('start: "(" start ")" | name\nname: /[a-z]+/', captures=["name"])
    both = grammar & structgen.including("ab") & structgen.avoiding("abc")
    assert both.captures("((xab))")["name"] == Capture("xab", "xab", 2, 5)
    assert not taken(both, "((abc))")[0] and taken(both, "((ab")[0]


def test_the_value_is_the_first_parts() -> None:
    both = "yes" & (structgen.choice(["yes", "no"]) | structgen.regex("[a-z]+"))
    assert both.parse("yes") == "yes" and both.parse_partial("ye") == "ye"
    assert "1. Write exactly this text: yes" in both.instruction()
    assert structgen.intersect(both, structgen.including("e")).parts[:2] == both.parts


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: structgen.json_schema({}) & structgen.avoiding("x"), ConstraintError, "JsonSchemaConstraint"),
        (lambda: structgen.lark(NESTED) & structgen.lark(TWICE), ConstraintError, "undecidable"),
        (lambda: structgen.lark(NESTED, lexer="contextual") & "a", ConstraintError, "LarkConstraint"),
        (lambda: structgen.intersect(structgen.lark(NESTED)), ConstraintError, "needs another"),
        (lambda: structgen.lark(NESTED) & "b" & "a", EmptyLanguageError, "no text is allowed by all"),
        (lambda: structgen.regex("a+") & "b", EmptyLanguageError, "no text is allowed by all"),
        (lambda: structgen.lark(NESTED) & structgen.avoiding(["a", "b"]), EmptyLanguageError, "no text"),
        (lambda: structgen.including([]), ConstraintError, "at least one phrase"),
        (lambda: structgen.including(["a", ""]), ConstraintError, "one character at least, not ''"),
        (lambda: structgen.avoiding(["a", 3]), ConstraintError, "not 3"),  # type: ignore[list-item]
        (lambda: structgen.avoiding("\ud800"), ConstraintError, "surrogate"),
        (lambda: structgen.including("a", "some"), OptionsError, "'some'"),  # type: ignore[arg-type]
        (lambda: structgen.including("a", at_most=0), OptionsError, "at_most"),
        (lambda: structgen.including(list("abcdefghijklmnopqrst")), TooComplexError, "automaton states"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_by_name(make: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words.replace("(", r"\(")):
        make().compile(BYTES)


NAMED: dict[str, Callable[[], Any]] = {
    "names": lambda: structgen.one_of(["ab", "b", "(a)", "zz"]),
    "expression": lambda: structgen.regex("[ab]+"),
    "many options": lambda: structgen.choice([f"{'ab' * (n % 3)}{n}" for n in range(1500)] + ["ab", "aab"]),
    "quotes": lambda: structgen.substring_of("aab(a)b1"),
    "phrases": lambda: structgen.avoiding(["aa", "1"]),
    "grammar": lambda: structgen.lark(NESTED),
    "JSON": lambda: structgen.json_schema({"type": "integer", "multipleOf": 4}),
}


@pytest.mark.parametrize("other", NAMED)
@pytest.mark.parametrize("seed", range(3))
def test_names_with_anything(seed: int, other: str) -> None:
    """Of the names those stay that the other allows, whichever comes first; judged by both alone."""
    rng = random.Random(seed)
    names = {"".join(rng.choices("ab(1)+2", k=rng.randint(1, 4))) for _ in range(120)} | {"12", "ab", "b", "a", "aab"}
    constraint = NAMED[other]()
    kept = {name for name in names if taken(constraint, name)[1]}
    both = structgen.one_of(names) & constraint if seed % 2 else constraint & structgen.one_of(names)
    assert kept and {name for name in names if taken(both, name)[1]} == kept
    for text in ("zzz", "ab1", *(name[:-1] for name in names)):
        assert taken(both, text)[1] == (text in kept)
        assert taken(both, text)[0] == any(name.startswith(text) for name in kept)


def test_no_name_is_left() -> None:
    with pytest.raises(EmptyLanguageError, match="no text is allowed by all"):
        (structgen.one_of(["a"]) & structgen.regex("b+")).compile(BYTES)
    with pytest.raises(ConstraintError, match="QuotesConstraint cannot be intersected"):
        (structgen.substring_of("abc") & structgen.substring_of("bcd")).compile(BYTES)
