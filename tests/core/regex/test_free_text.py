"""Free text without words, and the first word in it: as search by hand finds them."""

from __future__ import annotations

import itertools
import random

import pytest

from structgen.core.regex.dfa import Dfa, accepts
from structgen.core.regex.free_text import can_join, free_text_dfa, word_search


def first(text: str, words: list[str]) -> tuple[int, int] | None:
    """Where the first word ends, and which it is: the first in the list of those that end there."""
    for end in range(1, len(text) + 1):
        for i, word in enumerate(words):
            if text[:end].endswith(word):
                return end, i
    return None


def taken(dfa: Dfa, texts: list[str]) -> set[str]:
    return {text for text in texts if accepts(dfa, text)}


@pytest.mark.parametrize("seed", range(80))
def test_as_searched(seed: int) -> None:
    rng = random.Random(seed)
    alphabet = "abé"
    words = ["".join(rng.choices(alphabet, k=rng.randint(1, 4))) for _ in range(rng.randint(0, 4))]
    data = [word.encode() for word in words]
    search = word_search(data)
    texts = ["".join(text) for size in range(6) for text in itertools.product(alphabet, repeat=size)]
    free = {text for text in texts if first(text, words) is None}
    assert taken(free_text_dfa(search, is_empty=True), texts) == free
    assert taken(free_text_dfa(search), texts) == free - {""}
    for i, word in enumerate(words):
        behind = {text for text in texts if first(text, words) == (len(text), i)}
        assert taken(free_text_dfa(search, i), texts) == behind
        alone = not can_join(data, data[i]) and not any(other in word for other in words if other != word)
        if alone and words.index(word) == i:  # free text and the word, cut anywhere
            assert behind == {text for text in texts if text.endswith(word) and text[: -len(word)] in free}
