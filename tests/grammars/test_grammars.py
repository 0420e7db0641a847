"""The grammars that ship: corpora, mutations of them and random walks, against Lark's own parsers."""

from __future__ import annotations

import pytest

pytest.importorskip("lark")

from tests.grammars.shipped import FOLDER, NAMES, accepts, corpus, grammar, judge, mutants, parses, walk

CASES = [(name, lexer) for name in NAMES for lexer in ("dynamic",)]


@pytest.mark.parametrize(("name", "lexer"), CASES)
def test_corpus(name: str, lexer: str) -> None:
    assert "Source: " in (FOLDER / f"{name}.lark").read_text().partition("\nstart:")[0]
    for text in corpus(name):
        assert accepts(grammar(name, lexer), text) and parses(judge(name, lexer), text), text
    for text in corpus(name, ".invalid"):
        assert not accepts(grammar(name, lexer), text) and not parses(judge(name, lexer), text), text


@pytest.mark.parametrize("name", NAMES)
def test_lalr_reads_it_too(name: str) -> None:
    for text in corpus(name):
        assert parses(judge(name, "contextual"), text), text
    for text in corpus(name, ".invalid"):
        assert not parses(judge(name, "contextual"), text), text


@pytest.mark.parametrize(("name", "lexer"), CASES)
def test_mutations(name: str, lexer: str) -> None:
    found = []
    for text in mutants(sorted(corpus(name), key=len)[:8], 60, name):
        found.append(accepts(grammar(name, lexer), text))
        assert found[-1] == parses(judge(name, lexer), text), text
    assert {*found} == {True, False}


@pytest.mark.parametrize(("name", "lexer"), CASES)
def test_walks(name: str, lexer: str) -> None:
    for seed in range(12):
        text = walk(grammar(name, lexer), seed)
        assert accepts(grammar(name, lexer), text) and parses(judge(name, lexer), text), text
