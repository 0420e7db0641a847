"""Canonical spelling, judged by the tokenizers themselves: what a row lets through is what they encode, and no less."""

from __future__ import annotations

import json
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import pytest

from structgen.core.tokenization.canonical import AT_START, BytePairEncoding, CanonicalSpelling
from structgen.core.tokenization.reading import GPT2, canonical_spelling, of_document
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import TokenizerError
from tests.core.tokenization.small_tokenizers import PATTERNS, PIECES, encode, tokenizers, trained
from tests.many import cases

pytestmark = pytest.mark.full


@cache
def spelling(name: str) -> tuple[Any, Vocabulary, CanonicalSpelling]:
    tokenizer = trained(PATTERNS[name])
    vocabulary = Vocabulary.from_transformers(tokenizer, eos_token_ids=tokenizer.token_to_id("<e>"))
    return tokenizer, vocabulary, canonical_spelling(tokenizer, vocabulary)


@pytest.mark.parametrize("name", PATTERNS)
def test_what_may_end_is_what_the_tokenizer_encodes(name: str) -> None:
    tokenizer, vocabulary, canonical = spelling(name)
    rng = random.Random(5)
    for _ in cases(2000, 30):
        place, written = AT_START, list[int]()
        for _ in range(10):
            allowed = np.flatnonzero(np.unpackbits(canonical.row(place).view(np.uint8), bitorder="little"))
            token = int(rng.choice([int(token) for token in allowed if vocabulary.tokens[token]]))
            after = canonical.after(place, token)
            assert after is not None
            place, written = after, [*written, token]
            if canonical.may_end(place):
                assert encode(tokenizer, vocabulary.decode(written).decode()) == written


@pytest.mark.parametrize("name", PATTERNS)
def test_sequences_are_spelled_exactly_if_they_encode_to_themselves(name: str) -> None:
    tokenizer, vocabulary, canonical = spelling(name)
    rng = random.Random(7)
    for _ in cases(20_000, 300):
        tokens = encode(tokenizer, "".join(rng.choices(PIECES[:-3], k=4)))
        for _ in range(rng.randrange(3)):
            tokens[rng.randrange(len(tokens))] = rng.choice([t for t in range(vocabulary.size) if vocabulary.tokens[t]])
        try:
            text = vocabulary.decode(tokens).decode()
        except UnicodeDecodeError:
            continue
        assert canonical.spells(tokens) is (encode(tokenizer, text) == tokens), text


@pytest.mark.parametrize("name", PATTERNS)
def test_added_tokens_that_are_text_are_spelled_anywhere(name: str) -> None:
    """Where a text begins, ends, and one behind the other; and the empty text has no tokens."""
    tokenizer, rng = trained(PATTERNS[name]), random.Random(3)
    tokenizer.add_tokens([tokenizers.AddedToken(text, special=False, normalized=False) for text in ("<t>", "q")])
    vocabulary = Vocabulary.from_transformers(tokenizer, eos_token_ids=tokenizer.token_to_id("<e>"))
    canonical = canonical_spelling(tokenizer, vocabulary)
    for _ in cases(3000, 200):
        text = "".join(rng.choices(["<t>", "q", "a", "the", " ", "\n", "x", "<", "t>", "12"], k=rng.randrange(6)))
        assert canonical.spells(encode(tokenizer, text)), text
    tokens = {text: tokenizer.token_to_id(text) for text in ("<t>", "<", "q", "a")}
    assert canonical.spells([]) and canonical.spells([tokens["q"], tokens["q"], tokens["<t>"]])
    assert not canonical.spells([tokens["<"], *encode(tokenizer, "t"), *encode(tokenizer, ">")])


def test_threads_that_ask_at_once_wait_for_one_that_builds() -> None:
    tokenizer, vocabulary, _ = spelling("gpt2")
    asked, everybody = list[int](), threading.Barrier(4)

    class Counted:
        def byte_pair_encoding(self) -> BytePairEncoding:
            asked.append(1)
            return of_document(json.loads(tokenizer.to_str()))

        def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
            return encode(tokenizer, text)

    def ask(tokenizer: Any) -> CanonicalSpelling:
        everybody.wait()
        return canonical_spelling(tokenizer, vocabulary)

    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(ask, [Counted()] * 4))
    assert asked == [1] and len({id(each) for each in made}) == 1


def test_names_of_added_tokens_are_never_spelled() -> None:
    tokenizer, _, canonical = spelling("gpt2")
    spelled = [tokenizer.token_to_id(piece) for piece in "<e>"]
    assert canonical.spells(spelled[:2]) and not canonical.spells(spelled)


def test_what_cannot_be_followed_is_refused_by_name() -> None:
    pre = tokenizers.pre_tokenizers
    ahead, lossy = trained([r"\p{N}{1,3}(?=(?:\p{N}{3})*x)|[\s\S]"]), trained([GPT2])
    lossy.normalizer = tokenizers.normalizers.NFC()
    words = trained([GPT2])
    words.pre_tokenizer = pre.Sequence([pre.Whitespace(), pre.ByteLevel(add_prefix_space=False)])
    unigram = tokenizers.Tokenizer(tokenizers.models.Unigram([("<e>", 0.0), ("a", -1.0)], 0))
    vocabulary = spelling("gpt2")[1]
    for tokenizer, words_of_it in (
        (ahead, "further ahead"),
        (lossy, "NFC"),
        (words, "Whitespace"),
        (unigram, "Unigram"),
    ):
        with pytest.raises(TokenizerError, match=words_of_it):
            canonical_spelling(tokenizer, vocabulary)
