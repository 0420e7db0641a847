"""Tokens by their bytes, against a look at each of them."""

from __future__ import annotations

import random

from structgen.core.vocabulary.sorted_tokens import SortedTokens


def test_tokens_by_their_beginnings() -> None:
    rng = random.Random(1)
    for _ in range(40):
        tokens = [bytes(rng.choices(b"ab\xfe\xff", k=rng.randint(0, 4))) for _ in range(rng.randint(0, 60))]
        index = SortedTokens(tokens)
        for data in {b"", b"\xff", b"\xff" * 5, *tokens, *(text + b"a" for text in tokens)}:
            begins = [token for token, text in enumerate(tokens) if text and text.startswith(data)]
            assert index.beginning_with(data).tolist() == sorted(begins, key=lambda token: (tokens[token], token))
            assert index.spelling(data).tolist() == [i for i, text in enumerate(tokens) if text and text == data]
