"""Automata of phrases, judged by searches with ``re`` over all short texts."""

from __future__ import annotations

import itertools
import random
import re
from itertools import groupby

import pytest

from structgen.core.grammars.phrases import phrase_dfa
from structgen.core.regex.dfa import accepts
from structgen.core.text_sets.phrases import PhraseMode, PhraseSearch
from structgen.errors import TooComplexError

MODES: list[PhraseMode] = ["all", "any", "ordered", "none"]


def occurrences(search: PhraseSearch, text: str) -> list[tuple[int, int]]:
    """The end and the phrase of each occurrence, ascending."""
    edges = (r"(?<!\w)", r"(?!\w)") if search.words else ("", "")
    flags = re.IGNORECASE if search.ignore_case else 0
    return sorted(
        (match.start() + len(phrase), number)
        for number, phrase in enumerate(search.phrases)
        for match in re.finditer(f"{edges[0]}(?={re.escape(phrase)}{edges[1]})", text, flags)
    )


def holds(search: PhraseSearch, text: str) -> bool:
    ends = occurrences(search, text)
    seen = {number for _, number in ends}
    if search.at_most is not None and len(ends) > search.at_most:
        return False
    if search.mode == "ordered":
        reached = 0
        for _, together in groupby(ends, key=lambda end: end[0]):
            reached += reached in {number for _, number in together}
        return reached == len(search.phrases)
    return {"all": len(seen) == len(search.phrases), "any": bool(seen), "none": not seen}[search.mode]


def random_search(rng: random.Random, alphabet: str) -> PhraseSearch:
    mode = rng.choice(MODES)
    phrases = ["".join(rng.choices(alphabet, k=rng.randint(1, 3))) for _ in range(rng.randint(1, 3))]
    at_most = rng.choice([None, None, 1, 2, 3]) if mode != "none" else None
    return PhraseSearch(tuple(dict.fromkeys(phrases)), mode, at_most, rng.random() < 0.4, rng.random() < 0.4)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(1, 10))])
def test_they_take_what_a_search_finds(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(30):
        alphabet = rng.choice(["ab", "aB_ ", "aé-", "Kk\N{KELVIN SIGN} ", "ſs."])
        search = random_search(rng, alphabet)
        dfa = phrase_dfa(search)
        for length in range(5):
            for text in map("".join, itertools.product(alphabet, repeat=length)):
                assert accepts(dfa, text) == holds(search, text) == search.holds(text), (search, text)


def test_each_set_of_phrases_is_a_state() -> None:
    with pytest.raises(TooComplexError, match="20 phrases"):
        phrase_dfa(PhraseSearch(tuple(f"{letter}!" for letter in "abcdefghijklmnopqrst"), "all"))
    assert len(phrase_dfa(PhraseSearch(tuple(f"{letter}!" for letter in "abcdefghijklmnopqrst"), "any"))) < 100
