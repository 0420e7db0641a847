"""The grammars that ship: corpora, mutations of them and random walks, against Lark's own parsers."""

from __future__ import annotations

import pytest

pytest.importorskip("lark")

from tests.grammars.shipped import FOLDER, INDENTED, NAMES, accepts, corpus, grammar, judge, mutants, parses, walk

CASES = [(name, "dynamic") for name in NAMES] + [(name, "contextual") for name in [*NAMES, *INDENTED]]


@pytest.mark.first_case
@pytest.mark.parametrize(("name", "lexer"), CASES)
def test_corpus(name: str, lexer: str) -> None:
    assert "Source: " in (FOLDER / f"{name}.lark").read_text().partition("\nstart:")[0]
    for text in corpus(name):
        assert accepts(grammar(name, lexer), text) and parses(judge(name, lexer), text), text
    for text in corpus(name, ".invalid"):
        assert not accepts(grammar(name, lexer), text) and not parses(judge(name, lexer), text), text


@pytest.mark.first_case
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
