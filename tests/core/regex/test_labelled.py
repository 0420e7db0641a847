"""Labelled automata against membership in the automata that they are made of."""

from __future__ import annotations

from itertools import product as tuples

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from structgen.core.regex.dfa import accepts, from_strings
from structgen.core.regex.labelled import (
    MANY_WORDS,
    LabelledDfa,
    classes_of,
    every_text,
    labelled,
    side_by_side,
)
from structgen.core.regex.pattern import pattern_dfa

PATTERNS = ["^a", "b$", "^[ab]{1,3}$", "^(ab)*$", "é", "^$", "^.$", "^a?b?$", "a|b"]
TEXTS = ["".join(letters) for length in range(5) for letters in tuples("abé", repeat=length)]


def _truth(patterns: list[str], text: str) -> int:
    return sum(1 << i for i, pattern in enumerate(patterns) if accepts(pattern_dfa(pattern), text))


@st.composite
def classes(draw: st.DrawFn) -> tuple[list[str], tuple[int, ...], LabelledDfa]:
    """Patterns, a class for each way in which they match, and the automaton."""
    patterns = draw(st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=3, unique=True))
    dfas = tuple(map(pattern_dfa, patterns))
    kinds = side_by_side(dfas).kinds
    labels = tuple(draw(st.lists(st.integers(0, 3), min_size=len(kinds), max_size=len(kinds))))
    return patterns, labels, classes_of(dfas, labels)


@settings(max_examples=40, deadline=None)
@given(classes())
def test_each_text_has_the_class_of_the_automata_that_accept_it(found: tuple[list[str], tuple[int, ...], LabelledDfa]):
    patterns, labels, automaton = found
    kinds = side_by_side(tuple(map(pattern_dfa, patterns))).kinds
    for text in TEXTS:
        assert automaton.class_of(text) == labels[kinds.index(_truth(patterns, text))], text
    _check(automaton)


@settings(max_examples=40, deadline=None)
@given(classes(), st.lists(st.integers(0, 3), min_size=4, max_size=4), st.sets(st.sampled_from(TEXTS), max_size=5))
def test_classes_are_renamed_and_texts_taken_out(
    found: tuple[list[str], tuple[int, ...], LabelledDfa], names: list[int], taken: set[str]
):
    _, _, automaton = found
    names[0] = 0
    renamed, less = automaton.renamed(names), automaton.without(taken, 10_000)
    _check(renamed)
    _check(less)
    for text in TEXTS:
        assert renamed.class_of(text) == names[automaton.class_of(text)]
        assert less.class_of(text) == (0 if text in taken else automaton.class_of(text))


def _check(automaton: LabelledDfa) -> None:
    """Trim and minimal; as many words as are listed."""
    table, labels = automaton.transitions, automaton.labels
    assert len(np.unique(np.column_stack([table, labels]), axis=0)) == len(labels)  # else two would be one
    again = labelled(table, labels)
    assert len(again.labels) == len(labels)
    for label, count in enumerate(automaton.words, 1):
        of_class = automaton.of_class(label)
        assert count == (0 if of_class.is_empty else automaton.renamed([0] * label + [1] + [0] * 9).words[0])
    if sum(automaton.words) <= 1_000:
        texts = dict(automaton.texts())
        assert all(automaton.class_of(text) == label for text, label in texts.items())
        assert automaton.words == [list(texts.values()).count(label) for label in range(1, len(automaton.words) + 1)]
        assert automaton.is_narrow or not texts


def test_no_text_and_every_text():
    nothing = classes_of((from_strings(["a"]),), (0, 0))
    assert (nothing.words, nothing.class_of("a"), list(nothing.texts()), len(nothing.transitions)) == ([], 0, [], 0)
    assert every_text().class_of("é\0") == 1 and every_text().class_of("\ud800") == 0
    assert every_text().words == [MANY_WORDS] and not every_text().is_narrow


def test_many_classes():
    words = [f"k{number}" for number in range(1, 300)]
    dfas = tuple(from_strings([word for n, word in enumerate(words, 1) if n >> i & 1]) for i in range(9))
    kinds = side_by_side(dfas).kinds
    automaton = classes_of(dfas, kinds)  # the digits of its number are the automata that accept a word
    assert [automaton.class_of(word) for word in words] == list(range(1, 300))
    assert automaton.words == [1] * 299
    assert automaton.without(words[:150], 10_000).class_of("k151") == 151
