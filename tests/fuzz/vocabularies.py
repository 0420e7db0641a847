"""Small random vocabularies: all bytes, and tokens that cross the borders of strings, numbers and characters."""

from __future__ import annotations

import random
from functools import cache

from structgen.core.vocabulary.vocabulary import Vocabulary

PIECES = [
    *(b'"', b"{", b"}", b"[", b"]", b",", b":", b" ", b"\n", b"\t", b"  ", b"\n  ", b"a", b"b", b"ab", b"foo", b"x1"),
    *(b"0", b"1", b"12", b"-", b".", b".5", b"e", b"E+", b"e-7", b"true", b"fal", b"se", b"nul", b"l", b"\\", b'\\"'),
    *(
        b"\\n",
        b"\\u00",
        b"61",
        b"\\ud83d",
        b"\\ude00",
        "é".encode(),
        "😀".encode(),
        "😀".encode()[:2],
        "😀".encode()[2:],
    ),
    *("é".encode()[:1], "é".encode()[1:], b"\x00", b"$ref", b"__proto__", b"/", b"~", b"\xe2\x80\xa8", b"\xff", b"-0"),
]
COUNT = 6


@cache
def vocabulary(number: int) -> Vocabulary:
    """Number 0 has the bytes alone; 1 to ``COUNT`` have some hundred tokens more, several ends and ids without text."""
    tokens: list[bytes | None] = [bytes([byte]) for byte in range(256)]
    if number == 0:
        return Vocabulary([*tokens, None], eos_token_ids=256)
    rng = random.Random(number)
    words = {b"".join(rng.choices(PIECES, k=rng.choice((2, 2, 3, 4)))) for _ in range(rng.choice((40, 120, 200)))}
    tokens += sorted(words)
    tokens += rng.sample(sorted(words), 5)  # several ids with one text
    tokens += [None] * 3
    rng.shuffle(tokens)
    without = [place for place, token in enumerate(tokens) if token is None]
    return Vocabulary(tokens, eos_token_ids=without[:2], special_token_ids=without[2:], size=len(tokens) + number)
