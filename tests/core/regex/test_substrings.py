"""Substrings by pieces: all runs of consecutive pieces, listed."""

from __future__ import annotations

import itertools
import random
import time

import pytest

from structgen.core.regex.dfa import accepts
from structgen.core.regex.substrings import substring_dfa
from structgen.errors import TooComplexError


def runs(pieces: list[str]) -> set[str]:
    return {"".join(pieces[i:j]) for i in range(len(pieces) + 1) for j in range(i, len(pieces) + 1)}


@pytest.mark.parametrize("seed", range(60))
def test_as_listed(seed: int) -> None:
    rng = random.Random(seed)
    words = rng.choice([["a", "b"], ["a", "ab", "b", ""], ["é", "è", "aé", "a"], ["aa", "a", "aaa"]])
    pieces = rng.choices(words, k=rng.randint(0, 9))
    dfa, wanted = substring_dfa(tuple(pieces)), runs(pieces)
    texts = {"".join(text) for size in range(6) for text in itertools.product("abé", repeat=size)} | wanted
    assert {text for text in texts if accepts(dfa, text)} == wanted


@pytest.mark.full
def test_of_a_long_text() -> None:
    rng = random.Random(1)
    text = "".join(rng.choices("abcdefgh \n", k=5_000))
    started = time.monotonic()
    dfa = substring_dfa(tuple(text))
    assert time.monotonic() - started < 10
    assert len(dfa) <= 2 * len(text)
    for _ in range(100):
        at = rng.randrange(len(text))
        part = text[at : at + rng.randint(1, 40)]
        assert accepts(dfa, part)
        assert accepts(dfa, part + "i") is False
        changed = part[:-1] + rng.choice("abcdefgh")
        assert accepts(dfa, changed) == (changed in text)


def test_too_many_states() -> None:
    with pytest.raises(TooComplexError):
        substring_dfa(tuple("abcde" * 40 + "f"), max_states=100)
