"""Prompts in the tokens that were read: always the same bytes and special tokens, and as much as there is."""

from __future__ import annotations

import random

import pytest

from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.generation.decoding.respelling import LEAST, respelled
from tests.fakes import vocabulary

VOCABULARY = vocabulary(b'{"', b'":', b"ab", b"abc", b"bc", b'"}')
HEAD = [10 + place for place in range(LEAST)]


def ids(text: str, *, canonical: bool, rng: random.Random) -> list[int]:
    """A text in tokens: the longest each, or any; ``^`` is a special token."""
    found: list[int] = []
    while text:
        if text[0] == "^":
            found.append(0)
            text = text[1:]
            continue
        able = [
            token for token, piece in enumerate(VOCABULARY.tokens) if piece and text.encode("ascii").startswith(piece)
        ]
        token = max(able, key=lambda each: len(VOCABULARY.tokens[each])) if canonical else rng.choice(able)
        found.append(token)
        text = text[len(VOCABULARY.tokens[token]) :]
    return found


def read(tokens: list[int], words: Vocabulary = VOCABULARY) -> list[bytes | int]:
    """Bytes, and special tokens by number."""
    found: list[bytes | int] = []
    for token in tokens:
        piece = words.tokens[token]
        if piece and found and isinstance(found[-1], bytes):
            found[-1] += piece
        else:
            found.append(piece or token)
    return found


@pytest.mark.parametrize("seed", range(200))
def test_the_text_is_the_same_and_more_of_it_is_known(seed: int) -> None:
    rng = random.Random(seed)
    answer = "".join(rng.choice('abc{":}') for _ in range(rng.randrange(1, 12)))
    other = "".join(rng.choice('abc{":}^') for _ in range(rng.randrange(8)))
    written = [*HEAD, *ids(answer, canonical=False, rng=rng)]
    prompt = [*HEAD, *ids(answer, canonical=True, rng=rng), 0, *ids(other, canonical=True, rng=rng)]
    got = respelled(prompt, [written, HEAD, [5] * 40], VOCABULARY)
    assert read(got) == read(prompt)
    assert got[: len(written)] == written  # the answer ends where a special token begins: all of it is known


@pytest.mark.parametrize("seed", range(200))
def test_texts_that_differ_are_left_alone_from_there_on(seed: int) -> None:
    rng = random.Random(seed)
    texts = ["".join(rng.choice("abc^") for _ in range(rng.randrange(10))) for _ in range(2)]
    written, prompt = ([*HEAD, *ids(text, canonical=bool(place), rng=rng)] for place, text in enumerate(texts))
    assert read(respelled(prompt, [written], VOCABULARY)) == read(prompt)


def test_nothing_is_done_for_little() -> None:
    written = [*HEAD[:-1], *ids("{", canonical=True, rng=random.Random()), 36]
    prompt = [*HEAD[:-1], *ids('{"', canonical=True, rng=random.Random())]
    assert respelled(prompt, [written], VOCABULARY) == prompt
    assert respelled(prompt, [], VOCABULARY) == prompt
