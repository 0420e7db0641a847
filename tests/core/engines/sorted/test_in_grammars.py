"""Names and quotes as terminals of grammars, in tagged text and in combinations: against enumerated texts."""

from __future__ import annotations

from typing import Any

import pytest

from structgen import (
    Corpus,
    GrammarError,
    NameSet,
    OptionsError,
    TagPart,
    concat,
    gbnf,
    lark,
    one_of,
    substring_of,
    tag_dispatch,
)
from structgen.core.engines.laws import check_laws
from tests.core.engines.sorted.test_sorted import VOCABULARY, judge_of, quotes_of

LETTER = "aab ba"
QUOTES = quotes_of([LETTER], "char", 1, None)
CITIES = ["a", "ab", "é"]
SENTENCES = {f"{city}:<{quote}>" for city in CITIES for quote in QUOTES}


def terminals() -> dict[str, Any]:
    return {"CITY": NameSet.build(CITIES), "QUOTE": Corpus.build(LETTER)}


def test_terminals_of_lark() -> None:
    source = 'start: CITY ":<" QUOTE ">"\n%declare CITY QUOTE\n'
    constraint = lark(source, terminals=terminals())
    check_laws(
        constraint.compile(VOCABULARY), judge_of(SENTENCES), texts=[text.encode() for text in SENTENCES], walks=2
    )
    assert constraint.compile(VOCABULARY) is lark(source, terminals=terminals()).compile(VOCABULARY)
    limited = lark(source, terminals={**terminals(), "QUOTE": substring_of(LETTER, max_chars=1)})
    expected = {f"{city}:<{quote}>" for city in CITIES for quote in set(LETTER)}
    check_laws(limited.compile(VOCABULARY), judge_of(expected), walks=2)


def test_terminals_of_gbnf() -> None:
    constraint = gbnf('root ::= CITY ":<" QUOTE ">"', terminals=terminals())
    check_laws(constraint.compile(VOCABULARY), judge_of(SENTENCES), walks=2)
    xgrammar = gbnf('root ::= CITY ":<" QUOTE ">"', dialect="xgrammar", terminals=terminals())
    check_laws(xgrammar.compile(VOCABULARY), judge_of(SENTENCES), walks=1)


def test_wrong_terminals() -> None:
    with pytest.raises(OptionsError, match="does not use 'QUOTE'"):
        lark("start: CITY\n%declare CITY\n", terminals=terminals()).compile(VOCABULARY)
    with pytest.raises(GrammarError, match="has no pattern"):
        lark("start: CITY OTHER\n%declare CITY OTHER\n", terminals={"CITY": one_of(CITIES)}).compile(VOCABULARY)
    with pytest.raises(OptionsError, match="defines it itself"):
        lark('start: QUOTE\nQUOTE: "a"', terminals={"QUOTE": NameSet.build(["a"])}).compile(VOCABULARY)
    pairs: Any = [("QUOTE", NameSet.build(["a"]))]
    for made in (lark, gbnf):
        with pytest.raises(OptionsError, match="by their names"):
            made("root ::= QUOTE", terminals=pairs)
    with pytest.raises(OptionsError, match="expected a NameSet"):
        lark("start: CITY\n%declare CITY\n", terminals={"CITY": "Paris"}).compile(VOCABULARY)  # type: ignore[dict-item]
    with pytest.raises(OptionsError, match="dialect 'lark'"):
        lark("start: CITY\n%declare CITY\n", lexer="contextual", terminals=terminals()).compile(VOCABULARY)
    with pytest.raises(GrammarError, match="given as a terminal"):
        gbnf('root ::= CITY\nCITY ::= "a"', terminals={"CITY": one_of(CITIES)}).compile(VOCABULARY)


def test_combined() -> None:
    pair = concat(one_of(CITIES), ":", substring_of(LETTER, max_chars=2))
    expected = {f"{city}:{quote}" for city in CITIES for quote in quotes_of([LETTER], "char", 1, 2)}
    check_laws(pair.compile(VOCABULARY), judge_of(expected), walks=2)
    assert [part.places for part in pair.parse("ab:ba")[2:]] == [(("", 4, 6),)]
    either = one_of(CITIES) | substring_of("zz")
    check_laws(either.compile(VOCABULARY), judge_of([*CITIES, "z", "zz"]), walks=2)


def test_in_tagged_text() -> None:
    tagged = tag_dispatch({("<q>", "</q>"): substring_of(LETTER)})
    matcher = tagged.compile(VOCABULARY).matcher()
    assert matcher.accept_bytes(b"so <q>ab b") and not matcher.accept_bytes(b"b")
    assert matcher.accept_bytes(b"a</q> and") and matcher.is_accepting()
    parts = tagged.parse("so <q>ab ba</q>.")
    assert [part.value for part in parts if isinstance(part, TagPart)] == ["ab ba"]
