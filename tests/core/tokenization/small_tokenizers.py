"""Small byte-level tokenizers with overlapping merges, trained on the spot."""

from __future__ import annotations

import random
from typing import Any

import pytest

from structgen.core.tokenization.reading import GPT2

tokenizers = pytest.importorskip("tokenizers")

CL100K = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
PATTERNS = {"gpt2": [GPT2], "digits": [r"\p{N}", GPT2], "cl100k": [CL100K], "none": []}
PIECES = [
    "a",
    "the ",
    " the",
    "'l",
    "'ll",
    "x\n",
    "  ",
    "\n",
    "12",
    "é",
    "日本",
    "\t",
    "!",
    '{"',
    "👩",
    "ab",
    "<e>",
    "<",
    "e>",
]


def trained(patterns: list[str]) -> Any:
    """A small byte-level tokenizer with overlapping merges."""
    pre = tokenizers.pre_tokenizers
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    steps = [pre.Split(tokenizers.Regex(pattern), "isolated") for pattern in patterns]
    tokenizer.pre_tokenizer = pre.Sequence([*steps, pre.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    rng = random.Random(3)
    texts = ["".join(rng.choices(PIECES[:-3], k=30)) for _ in range(60)]
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=420, initial_alphabet=pre.ByteLevel.alphabet(), special_tokens=["<e>"], show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def encode(tokenizer: Any, text: str) -> list[int]:
    ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
    return ids
