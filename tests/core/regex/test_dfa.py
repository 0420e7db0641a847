"""The algebra of automata, by brute force over short texts."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from structgen.core.kernels.automata import calls
from structgen.core.regex import dfa as D
from structgen.core.regex.pattern import full_match_dfa
from structgen.errors import TooComplexError

ALPHABET = ["a", "b", "é", "€", "😀"]
TEXTS = ["".join(letters) for size in range(4) for letters in itertools.product(ALPHABET, repeat=size)]
EXPRESSIONS = ["a*", "(?:a|b)*é", "", "[^a]{2}", ".*", "a|b€|😀", "(?:ab)*", "[é-😀]+", "(?:a[^]|bb)?"]


def language(dfa: D.Dfa) -> set[str]:
    return {text for text in TEXTS if D.accepts(dfa, text)}


def run(table: np.ndarray, text: str) -> int:
    state = 0
    for byte in text.encode():
        state = int(table[state, byte])
    return state


def check_canonical(dfa: D.Dfa) -> None:
    """Trim, minimal and numbered breadth first: rebuilding it changes nothing. Bytes are classed by their columns."""
    again = D.from_table(dfa.transitions, dfa.accepting.view(np.uint8))
    assert np.array_equal(again.transitions, dfa.transitions)
    assert np.array_equal(again.accepting, dfa.accepting)
    classes, count = calls.column_classes(dfa.transitions)
    assert np.array_equal(dfa.columns[0], classes) and dfa.columns[1] == count and again.digest == dfa.digest


def test_universal_accepts_exactly_valid_utf8():
    universal = D.universal()
    assert len(universal) == 8
    source = random.Random(0)
    for _ in range(3000):
        data = bytes(source.choice([0x41, 0x80, 0x8F, 0x9F, 0xA0, 0xBF, 0xC1, 0xC2, 0xE0, 0xED, 0xF0, 0xF4, 0xF5, 0xFF])
                     for _ in range(source.randint(1, 4)))  # fmt: skip
        state = 0
        for byte in data:
            state = int(universal.transitions[state, byte]) if state >= 0 else -1
        try:
            data.decode()
            valid = True
        except UnicodeDecodeError:
            valid = False
        assert (state >= 0 and bool(universal.accepting[state])) == valid, data


@pytest.mark.parametrize("first", EXPRESSIONS)
def test_boolean_operations(first):
    a = full_match_dfa(first)
    check_canonical(a)
    assert language(D.complement(a)) == set(TEXTS) - language(a)
    assert D.complement(D.complement(a)).digest == a.digest
    for second in EXPRESSIONS:
        b = full_match_dfa(second)
        for operation, expected in (
            (D.intersect, language(a) & language(b)),
            (D.union, language(a) | language(b)),
            (D.difference, language(a) - language(b)),
        ):
            result = operation(a, b)
            check_canonical(result)
            assert language(result) == expected
        de_morgan = D.complement(D.union(D.complement(a), D.complement(b)))
        assert D.intersect(a, b).digest == de_morgan.digest


def test_equal_languages_have_equal_arrays():
    spellings = ["(?:a|b)*", "(?:a*b*)*", "[ab]*", "(?:(?:a|b)(?:a|b))*(?:a|b)?"]
    assert len({full_match_dfa(spelling).digest for spelling in spellings}) == 1
    assert full_match_dfa("a").digest != full_match_dfa("b").digest


def test_product_labels_and_completeness():
    parts = [full_match_dfa(expression) for expression in EXPRESSIONS]
    table, labels = D.product([*parts, D.empty()])
    for text in TEXTS:
        label = int(labels[run(table, text)])
        assert label == sum(1 << i for i, part in enumerate(parts) if D.accepts(part, text))
    universal = D.universal()
    assert set(map(tuple, table >= 0)) == set(map(tuple, universal.transitions >= 0))
    with pytest.raises(ValueError, match="64"):
        D.product([universal] * 65)


def test_from_strings_is_exact():
    words = ["", "a", "ab", "é€", "😀b", "ba", "aab"]
    dfa = D.from_strings([*words, "\ud800"])
    check_canonical(dfa)
    assert language(dfa) == set(words)
    assert D.from_strings([]).is_empty
    assert dfa.digest == full_match_dfa("|".join(words)).digest
    assert not D.accepts(D.universal(), "\udfff")


def test_empty_language():
    assert D.empty().is_empty
    assert full_match_dfa("a[]").digest == D.empty().digest
    assert D.complement(D.empty()).digest == D.universal().digest
    assert D.shortest(D.empty()) is None
    assert not D.accepts(D.empty(), "")
    assert len(D.count_words(D.empty(), 5)) == 0


@pytest.mark.parametrize(("expression", "length"), [("", 0), ("[^]{3}", 3), ("a{2,}|b{5}", 2), ("€|aaaa", 3)])
def test_shortest(expression, length):
    dfa = full_match_dfa(expression)
    found = D.shortest(dfa)
    assert found is not None
    assert len(found) == length
    assert D.accepts(dfa, found.decode())


@pytest.mark.parametrize(
    ("expression", "count"), [("", 1), ("[a-e]{2}", 25), ("(?:a|b|ab){0,2}", 12), ("[é-ë]?x", 4), ("a*", 1000)]
)
def test_count_words(expression, count):
    dfa = full_match_dfa(expression)
    counts = D.count_words(dfa, 1000)
    assert counts[0] == count
    edges = [[int(t) for t in row[row >= 0]] for row in dfa.transitions]
    for state, targets in enumerate(edges):
        assert counts[state] == min(1000, int(dfa.accepting[state]) + sum(int(counts[t]) for t in targets))


def test_budget_names_itself():
    with pytest.raises(TooComplexError) as error:
        D.from_strings(["abcdefgh"], max_states=5)
    assert (error.value.budget, error.value.limit) == ("automaton states", 5)
    with pytest.raises(TooComplexError):
        D.intersect(full_match_dfa("(?:a{7})*"), full_match_dfa("(?:a{11})*"), max_states=50)
