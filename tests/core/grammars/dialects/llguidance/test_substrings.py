"""Texts cut into words, and long ones."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from structgen.core.compilers import compile_lark
from structgen.core.grammars.dialects.llguidance.substrings import words_of
from tests.core.grammars.dialects.llguidance.peers import BYTES


@given(st.text("ab_1 .é\n-", max_size=20))
def test_words(text: str) -> None:
    words = list(words_of(text))
    assert "".join(words) == text and all(words)
    kinds = [0 if word[0].isalnum() or word[0] == "_" else 1 if word[0].isspace() else 2 for word in words]
    assert all(a != b for a, b in itertools.pairwise(kinds))


def test_the_documented_words() -> None:
    assert list(words_of("foo bar. baz")) == ["foo", " ", "bar", ".", " ", "baz"]


@pytest.mark.full
def test_long_texts() -> None:
    """100 kB, of words as of characters, where llguidance takes the words only."""
    rng = random.Random(1)
    words = ["".join(rng.choices("etaoinshrdlu", k=rng.randrange(1, 9))) for _ in range(400)]
    text = " ".join(rng.choices(words, k=18_000))[:100_000]
    for kind in ("substring_words", "substring_chars"):
        matcher = compile_lark(f'start: %regex {{"{kind}": "{text}"}}', BYTES, dialect="llguidance").matcher()
        assert matcher.accept_bytes(text[text.index(" ", 5000) :][:3000].encode())
        assert matcher.next_bytes().any()
