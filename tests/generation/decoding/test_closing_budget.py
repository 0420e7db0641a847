"""The fewest tokens of a text, against brute force."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from structgen.core.engines.json.compiled import compile_json_schema
from structgen.core.engines.laws import mask_of
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import TokenizerError
from structgen.generation.decoding.closing_budget import MAX_TOKEN_BYTES, ClosingTokens, Speller
from tests.fakes import vocabulary


def _brute(tokens: list[bytes], text: bytes) -> int | None:
    for count in range(len(text) + 1):
        if any(b"".join(chosen) == text for chosen in itertools.product(tokens, repeat=count)):
            return count
    return None


def test_fewest_agrees_with_brute_force() -> None:
    rng = np.random.default_rng(0)
    alphabet = [b"a", b"b"]
    for _ in range(60):
        tokens = [b"".join(rng.choice(alphabet, size=int(rng.integers(1, 4)))) for _ in range(4)]
        closing = ClosingTokens(Vocabulary([None, *tokens], eos_token_ids=0))
        text = b"".join(rng.choice(alphabet, size=int(rng.integers(0, 6))))
        found, expected = closing.fewest(text), _brute(tokens, text)
        assert (found is None) == (expected is None)
        if found is not None:
            assert len(found) == expected
            assert b"".join([b"", *tokens][token] for token in found) == text


@pytest.mark.parametrize(("budget", "fits"), [(0, False), (1, False), (2, True), (3, True)])
def test_fits(budget: int, fits: bool) -> None:
    closing = ClosingTokens(Vocabulary([None, b"ab", b"c"], eos_token_ids=0))
    assert closing.fits(b"abc", budget) is fits


def test_fits_is_exact_where_bytes_do_not_suffice() -> None:
    closing = ClosingTokens(vocabulary(b'"}]'))
    assert closing.fits(b'"}]', 1) and not closing.fits(b'"}]"', 1)
    assert not closing.fits(b"x" * (MAX_TOKEN_BYTES + 1), 1)
    assert closing.fits(b"", 0)


def test_what_is_kept_of_the_text_before_changes_nothing() -> None:
    """Texts that share ends of any length, one after the other, against each by itself."""
    rng = np.random.default_rng(1)
    tokens = [b"a", b"ab", b"ba", b"bb", b"abab", b"c" * MAX_TOKEN_BYTES]
    closing = ClosingTokens(Vocabulary([None, *tokens], eos_token_ids=0))
    speller, text = Speller(closing), b""
    for _ in range(300):
        text = b"".join(rng.choice([b"a", b"b", b"c"], int(rng.integers(0, 5)))) + text[int(rng.integers(0, 6)) :]
        assert speller.fewest(text) == closing.fewest(text)
        budget = int(rng.integers(0, 8))
        found = closing.fewest(text)
        assert speller.fits(text, budget) == (found is not None and len(found) <= budget)


@pytest.mark.full
@pytest.mark.parametrize("missing", [b"\x04\x06\xf1", b"\x01\xc3\xa9", b"\xe2"])
def test_bytes_suffice_for_tokens_only_where_all_of_them_are_tokens(missing: bytes) -> None:
    """Walks of schemas over a vocabulary with gaps: whatever the number allows can be spelled in so many tokens."""
    single = [bytes([byte]) for byte in range(256) if byte not in missing]
    words_ = Vocabulary([None, *single, "é".encode(), "日".encode(), b"ab", b'"}'], eos_token_ids=0)
    closing, rng, asked = ClosingTokens(words_), np.random.default_rng(0), 0
    schemas: list[Any] = [
        {"type": "object", "properties": {"x": {"type": "string"}, "n": {"type": "integer"}}, "required": ["x", "n"]},
        {"enum": ["é", "bb", "日b", 7]},
        {"type": "string", "pattern": "^(é|日|b+c)$"},
        {"type": "array", "items": {"enum": ["é", True, "bab"]}, "minItems": 2, "uniqueItems": True},
        {"type": "object", "patternProperties": {"^(é|b)": {"type": "null"}}, "minProperties": 2},
    ]
    for schema in schemas:
        try:
            grammar = compile_json_schema(schema, words_)
        except TokenizerError:
            continue
        for _ in range(6):
            matcher = grammar.matcher()
            while not matcher.is_accepting() and len(matcher.shortest_completion()) < 60:
                bound, text = matcher.completion_bound(), matcher.shortest_completion()
                if matcher.completion_is_spelled():
                    fewest = closing.fewest(text)
                    assert fewest is not None and len(fewest) <= len(text) <= bound
                    asked += 1
                following = np.flatnonzero(mask_of(matcher))
                matcher.accept_token(int(rng.choice(following)))
    assert asked > 20
