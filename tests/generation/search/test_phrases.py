"""Phrases in outputs, against the list of all outputs."""

from __future__ import annotations

import math
from typing import Any

import pytest

import structgen
from structgen.core.constraints.parts import BYTES
from structgen.errors import ConstraintError, OptionsError, PatternError
from structgen.generation.models.tiny import TinyModel
from structgen.generation.search.beam import Beam
from structgen.generation.search.exact import Exact
from structgen.generation.search.phrases import Covered, Phrases, Progress
from tests.generation.search.small_worlds import VOCABULARY, World, tokens_of, world
from tests.many import cases


def text_of(tokens: tuple[int, ...]) -> str:
    return VOCABULARY.decode(tokens).decode()


@pytest.mark.parametrize("case", cases(200, 10))
def test_a_large_beam_is_exact_on_the_language_with_the_phrases(case: int) -> None:
    phrases = (["bc"], ["ab", "ca"], ["cc", "b"])[case % 3]
    plain = structgen.regex("[abc]{1,5}")
    model = TinyModel(6, seed=case, scale=1.5)
    whole = World(plain.compile(VOCABULARY), model, 5)
    method = Phrases(phrases=phrases, num_beams=60, early_stopping="never", length_penalty=0.0)
    held = World(method.constrained(plain).compile(VOCABULARY), model, 5)
    inside = {
        tokens: pair[0]
        for tokens, pair in whole.outputs.items()
        if all(phrase in text_of(tokens) for phrase in phrases)
    }
    assert set(held.outputs) == set(inside)
    outcome = held.run(method)
    assert outcome.finished[0][0] == pytest.approx(max(inside.values()), abs=1e-5)
    assert outcome.finished[0][0] == pytest.approx(held.run(Exact()).finished[0][0], abs=1e-5)
    assert all(phrase in text_of(tokens) for tokens in tokens_of(outcome) for phrase in phrases)
    few = held.run(Phrases(phrases=phrases, num_beams=2))
    assert set(tokens_of(few)) <= set(inside)


@pytest.mark.parametrize("case", cases(200, 24))
def test_a_bonus_is_for_each_phrase_that_an_output_holds(case: int) -> None:
    made = world(case)
    phrases, bonus = ["bc", "a"], (0.5, 3.0, 50.0)[case % 3]
    method = Phrases(phrases=phrases, bonus=bonus, num_beams=100, early_stopping="never", length_penalty=0.0)
    scores = {
        tokens: pair[0] + bonus * sum(phrase in text_of(tokens) for phrase in phrases)
        for tokens, pair in made.outputs.items()
    }
    outcome = made.run(method)
    for score, node in outcome.finished:
        assert score == pytest.approx(scores[node.hypothesis.tokens], abs=1e-5)
    for limit in range(min(map(len, made.outputs)), 5):
        narrow = World(made.grammar, made.model, limit)
        if not narrow.closes:
            continue
        assert set(tokens_of(narrow.run(Phrases(phrases=phrases, bonus=bonus)))) <= set(narrow.outputs)
    none = Phrases(phrases=phrases, bonus=0, num_beams=3)
    assert tokens_of(made.run(none)) == tokens_of(made.run(Beam(num_beams=3)))


def test_progress_is_counted_in_bytes() -> None:
    progress = Progress([b"abab", b"b"])
    covered = progress.after(Covered(), b"aba")
    assert covered.met == {b"b"} and progress.bank(covered) == 1 + 3
    assert progress.after(covered, b"c").begun == b""
    assert progress.after(covered, b"b").met == {b"b", b"abab"}
    assert b"b" in progress.next_texts(covered) and b" a" in progress.next_texts(covered)
    assert math.isclose(progress.bank(progress.after(covered, b"b")), 5)


@pytest.mark.parametrize(
    ("pattern", "syntax", "expected"),
    [
        ("(?i)ab|c", "python", {"ab", "aB"}),
        ("(?x)a b  # or | b", "python", {"ab"}),
        ("a$|^ab", "python", {"a", "ab"}),
        ("^a|b$", "ecma", {"a"}),
    ],
)
def test_an_expression_with_phrases_is_read_by_itself(pattern: str, syntax: Any, expected: set[str]) -> None:
    grammar = Phrases(phrases=["a"]).constrained(structgen.regex(pattern, syntax)).compile(BYTES)
    texts = set()
    for text in ("", "a", "A", "b", "c", "ab", "aB", "Ab", "AB", "ca", "bca"):
        matcher = grammar.matcher()
        if matcher.accept_bytes(text.encode()) and matcher.is_accepting():
            texts.add(text)
    assert texts == expected


def test_an_expression_with_phrases_that_is_none_is_refused() -> None:
    with pytest.raises(PatternError, match="unbalanced"):
        Phrases(phrases=["a"]).constrained(structgen.regex("a)|(?:b")).compile(BYTES)


def test_what_cannot_be_demanded_is_refused_by_name() -> None:
    with pytest.raises(ConstraintError, match="give bonus"):
        Phrases(phrases=["a"]).constrained(structgen.json_schema({"type": "string"}))
    with pytest.raises(ConstraintError, match="no choice holds"):
        Phrases(phrases=["z"]).constrained(structgen.choice(["a", "b"]))
    assert Phrases(phrases=["b"]).constrained(structgen.choice(["ab", "c"])).options == ("ab",)
    for wrong in ((), "ab", [""], [1]):
        with pytest.raises(OptionsError, match="phrases"):
            Phrases(phrases=wrong)  # type: ignore[arg-type]
