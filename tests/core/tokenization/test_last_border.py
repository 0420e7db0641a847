"""The last border that is certain, against what the tokenizer cuts when the text goes on in many ways."""

from __future__ import annotations

import random
from typing import Any

import pytest

from structgen.core.tokenization.canonical import AT_START, CanonicalSpelling
from structgen.core.tokenization.reading import canonical_spelling
from structgen.core.vocabulary.vocabulary import Vocabulary
from tests.core.tokenization.small_tokenizers import PATTERNS, PIECES, encode, trained
from tests.many import cases

ENDINGS = [
    "",
    "a",
    "b",
    " ",
    "  ",
    " a",
    "\n",
    " \n",
    "1",
    "12",
    "123",
    "'",
    "'l",
    "'ll",
    "l",
    "!",
    '"',
    "é",
    "日",
    "\t",
]
ENDINGS += ["<", "e>", "<e>", "s", "ve", " 1", " !", "\r", "\n\n", "\na"]


def borders(backend: Any, text: str) -> set[int]:
    """Where it cuts, in characters; the end is one."""
    return {end for _, (_, end) in backend.pre_tokenizer.pre_tokenize_str(text)}


def spelling_of(name: str) -> tuple[Any, CanonicalSpelling]:
    backend = trained(PATTERNS[name])
    return backend, canonical_spelling(backend, Vocabulary.from_transformers(backend, eos_token_ids=0))


@pytest.mark.first_case
@pytest.mark.parametrize("name", ["none", "gpt2", "cl100k", "digits"])
def test_it_is_there_however_the_text_goes_on_and_no_later_one_is(name: str) -> None:
    backend, spelling = spelling_of(name)
    for seed in cases(200, 6):
        rng = random.Random(seed)
        text = "".join(rng.choices(PIECES[:-3], k=rng.choice([1, 2, 4, 40])))
        tokens = encode(backend, text)
        count, position = spelling.settled(tokens)
        settled = len(b"".join(spelling.texts[token] for token in tokens[:count]).decode())
        every = [borders(backend, text + ending) for ending in ENDINGS]
        certain = [end for end in range(1, len(text) + 1) if all(end in each for each in every)]
        assert settled == max(certain, default=0), text
        for ending in ENDINGS:
            longer = encode(backend, text + ending)
            if 0 in longer:  # a name of an added token
                continue
            assert longer[:count] == tokens[:count]
            for token in longer[count:]:
                assert spelling.row(position)[token >> 5] >> (token & 31) & 1, (text, ending)
                following = spelling.after(position, token)
                assert following is not None
                position = following
            assert spelling.may_end(position)
            count, position = spelling.settled(tokens)


def test_names_of_added_tokens_are_borders_and_may_be_begun() -> None:
    backend, spelling = spelling_of("gpt2")
    tokens = encode(backend, "the ab<e>")
    assert spelling.settled(tokens) == (len(tokens), AT_START)
    assert spelling.settled([]) == (0, AT_START)
    tokens = encode(backend, "the !<e")
    count, position = spelling.settled(tokens)
    for token in tokens[count:]:
        following = spelling.after(position, token)
        assert following is not None
        position = following
    (closing,) = encode(backend, ">")
    assert not spelling.row(position)[closing >> 5] >> (closing & 31) & 1
