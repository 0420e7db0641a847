"""Automata of automata: the same as those of whole expressions."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from structgen.core.regex.dfa import Dfa, accepts, empty
from structgen.core.regex.joining import alternation, concatenation, repetition, shortest_matches, with_any_ending
from structgen.core.regex.pattern import full_match_dfa
from structgen.errors import TooComplexError

PARTS = st.sampled_from(["a", "a|ab", "b?c", "(ab)*", "[^a]", "é+", "", "a*b*", "[^]*", "[]"])
WORDS = ["".join(letters) for size in range(5) for letters in itertools.product("abcé", repeat=size)]


def dfa(pattern: str) -> Dfa:
    return full_match_dfa(f"(?:{pattern})")


@given(st.lists(PARTS, min_size=1, max_size=3))
def test_concatenation_and_alternation(parts: list[str]) -> None:
    dfas = list(map(dfa, parts))
    assert concatenation(dfas).digest == dfa("".join(f"(?:{part})" for part in parts)).digest
    assert alternation(dfas).digest == dfa("|".join(f"(?:{part})" for part in parts)).digest


@given(PARTS, st.integers(0, 3), st.integers(0, 2) | st.none())
def test_repetition(part: str, low: int, more: int | None) -> None:
    high = None if more is None else low + more
    expected = dfa(f"(?:{part}){{{low},{'' if high is None else high}}}")
    assert repetition(dfa(part), low, high).digest == expected.digest


@given(PARTS)
def test_shortest_matches(part: str) -> None:
    whole, first = dfa(part), shortest_matches(dfa(part))
    for word in WORDS:
        begins = any(accepts(whole, word[:end]) for end in range(len(word)))
        assert accepts(first, word) == (accepts(whole, word) and not begins), word


@given(PARTS)
def test_with_any_ending(part: str) -> None:
    whole = dfa(part)
    for more in (0, 1):
        longer = with_any_ending(whole, more)
        for word in WORDS:
            expected = any(accepts(whole, word[:end]) for end in range(len(word) + 1 - more))
            assert accepts(longer, word) == expected, (word, more)


def test_nothing() -> None:
    assert alternation([]).is_empty and concatenation([dfa("a"), empty()]).is_empty
    assert accepts(repetition(empty(), 0, None), "") and repetition(empty(), 1, None).is_empty


def test_too_large() -> None:
    with pytest.raises(TooComplexError):
        concatenation([dfa("[ab]*a"), dfa("[ab]{20}")], 1000)
