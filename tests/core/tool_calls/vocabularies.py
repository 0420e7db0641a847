"""Vocabularies for tool calls, and texts as their tokens."""

from __future__ import annotations

import random
import re

import numpy as np

from structgen.core.engines.protocols import Grammar
from structgen.core.tool_calls.formats import FORMATS
from structgen.core.vocabulary.vocabulary import Vocabulary

BYTES = Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=256)
EXTRA = ["<|start|>", "<|end|>", "<|call|>", "<|return|>"]


def chat_vocabulary(name: str) -> Vocabulary:
    """Single bytes, pieces of text that calls are made of, and the marks of a format as special tokens."""
    pieces = [
        b'{"',
        b'": "',
        b'"}',
        b"}\n",
        b">\n",
        b"</",
        b"get_",
        b"weather",
        b", ",
        b'"}}\n',
        b'"\n}',
        b"param",
        b"\n\n",
    ]
    marks = list(dict.fromkeys([*FORMATS[name].markers(), *(EXTRA if name == "harmony" else [])]))
    first = 257 + len(pieces)
    ids = {mark: first + number for number, mark in enumerate(marks)}
    tokens = [*(bytes([byte]) for byte in range(256)), None, *pieces, *(None for _ in marks)]
    return Vocabulary(tokens, eos_token_ids=256, special_token_ids=list(ids.values()), special_tokens=ids)


def random_tokens(vocabulary: Vocabulary, text: str, rng: random.Random) -> list[int]:
    """The text in tokens, cut at random; marks are their special tokens."""
    marks = vocabulary.special_tokens
    parts = re.split("(" + "|".join(map(re.escape, marks)) + ")", text) if marks else [text]
    by_bytes = {token: number for number, token in enumerate(vocabulary.tokens) if token}
    tokens = []
    for part in parts:
        if part in marks:
            tokens.append(marks[part])
            continue
        data = part.encode()
        while data:
            fitting = [token for token in by_bytes if data.startswith(token)]
            token = rng.choice(fitting)
            tokens.append(by_bytes[token])
            data = data[len(token) :]
    return tokens


def accepts(grammar: Grammar, vocabulary: Vocabulary, text: str, rng: random.Random) -> bool:
    """Whether a text is accepted token by token, as masks say, and can end."""
    matcher = grammar.matcher()
    bitmask = np.zeros((1, -(-vocabulary.size // 32)), np.int32)
    for token in random_tokens(vocabulary, text, rng):
        matcher.fill_next_token_bitmask(bitmask)
        allowed = bool(int(bitmask[0, token >> 5]) >> (token & 31) & 1)
        assert matcher.accept_token(token) == allowed
        if not allowed:
            return False
    return bool(matcher.is_accepting())
