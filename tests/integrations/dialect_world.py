"""What tests of tool parsers share: a tokenizer that has the marks of all formats, tools, and walks through masks."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

from structgen.core.engines.bitmask import allocate_token_bitmask
from structgen.core.engines.protocols import Grammar
from structgen.core.tool_calls.formats import FORMATS
from structgen.core.vocabulary.special_tokens import pieces
from structgen.core.vocabulary.tokenizer_json import byte_alphabet
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.integrations.engine_requests import engine_vocabulary

END = "<|endoftext|>"
VALUES: dict[str, Any] = {
    "city": {"type": "string"},
    "unit": {"type": "string", "enum": ["celsius", "kelvin"]},
    "days": {"type": "integer", "minimum": -5, "maximum": 120},
    "ratio": {"type": "number", "multipleOf": 0.5, "minimum": -100, "maximum": 100},
    "exact": {"type": "boolean"},
    "code": {"type": "string", "pattern": "^[A-Z]{2}[0-9]{1,3}$"},
    "tags": {"type": "array", "items": {"type": "string", "pattern": "^[a-z ]{1,6}$"}, "minItems": 1, "maxItems": 3},
    "point": {
        "type": "object",
        "properties": {"x": {"type": "integer"}, "label": {"type": "string", "maxLength": 5, "pattern": "^[a-z]+$"}},
        "required": ["x"],
        "additionalProperties": False,
    },
}


@cache
def tokenizer() -> Any:
    """A byte-level tokenizer of transformers with a few merges, and the marks of all formats as special tokens."""
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    merges = [("t", "h"), ("i", "n"), ("c", "i"), ("ci", "t"), ("cit", "y"), ("\u0120", "\u0120"), ("a", "l")]
    words = {character: number for number, character in enumerate(byte_alphabet())}
    for left, right in merges:
        words.setdefault(left + right, len(words))
    backend = tokenizers.Tokenizer(tokenizers.models.BPE(words, merges))
    backend.decoder = tokenizers.decoders.ByteLevel()
    backend.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    marks = dict.fromkeys(mark for form in FORMATS.values() for mark in form.markers())
    backend.add_special_tokens([END, *marks, "<think>", "</think>"])
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend, eos_token=END)


@cache
def vocabulary() -> Vocabulary:
    """That tokenizer's."""
    return engine_vocabulary(tokenizer(), len(tokenizer()))


def random_tools(
    rng: random.Random, *, containers: bool = True, signed: bool = True, all_required: bool = False
) -> list[dict[str, Any]]:
    """One to three strict function definitions; ``containers``: with arrays and objects.

    ``signed``: numbers may have a sign. ``all_required``: each function takes an argument.
    """
    names = [name for name, schema in VALUES.items() if containers or schema["type"] not in ("array", "object")]
    tools = []
    for name in rng.sample(["get_weather", "search", "now"], rng.randint(1, 3)):
        chosen = rng.sample(names, rng.randint(1 if all_required else 0, 4))
        parameters = {
            "type": "object",
            "properties": {key: VALUES[key] if signed else unsigned(VALUES[key]) for key in chosen},
            "required": [key for key in chosen if all_required or rng.random() < 0.5],
            "additionalProperties": False,
        }
        function = {"name": name, "description": "does things", "parameters": parameters, "strict": True}
        tools.append({"type": "function", "function": function})
    return tools


def unsigned(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema whose numbers are positive: zero may have a sign."""
    inner = {key: unsigned(value) for key, value in schema.get("properties", {}).items()}
    kept = {**schema, "properties": inner} if inner else schema
    return {**kept, "minimum": 1} if schema["type"] in ("integer", "number") else kept


def walk(grammar: Grammar, rng: random.Random, steps: int) -> list[int]:
    """Tokens that masks allow, one by one, letters before other bytes; then the shortest completion, in bytes."""
    size = grammar.vocabulary.size
    matcher, bitmask, tokens = grammar.matcher(), allocate_token_bitmask(1, size), list[int]()
    ends = set(grammar.vocabulary.eos_token_ids)
    texts = grammar.vocabulary.tokens
    while len(tokens) < steps:
        matcher.fill_next_token_bitmask(bitmask)
        ids = np.flatnonzero(np.unpackbits(bitmask.view(np.uint8), bitorder="little")[:size]).tolist()
        if any(token in ends for token in ids) and (rng.random() < 0.4 or len(ids) == 1):
            return tokens
        ids = [token for token in ids if token not in ends]
        plain = [token for token in ids if not texts[token] or (texts[token] or b"").isalnum()]
        token = rng.choice(plain if plain and rng.random() < 0.8 else ids)
        assert matcher.accept_token(token)
        tokens.append(token)
    if not matcher.is_accepting():
        tokens += completion(matcher.shortest_completion(), matcher)
    return tokens


def completion(text: bytes, matcher: Any) -> list[int]:
    """The tokens of a completion: special ones, and other text byte by byte."""
    single = {token: number for number, token in enumerate(vocabulary().tokens) if token and len(token) == 1}
    tokens = []
    for piece in pieces(text, vocabulary().size):
        tokens += [piece] if isinstance(piece, int) else [single[bytes([byte])] for byte in piece]
    for token in tokens:
        assert matcher.accept_token(token), text
    return tokens


def deltas(tokens: list[int], rng: random.Random) -> Iterator[tuple[list[int], str]]:
    """The tokens in random pieces with the text of each, characters whole, as engines stream them."""
    at = begun = 0
    text = ""
    while at < len(tokens):
        at = min(at + rng.choice([1, 1, 2, 5, 20]), len(tokens))
        now = tokenizer().decode(tokens[:at], skip_special_tokens=False)
        if not now.endswith("\ufffd") and len(now) > len(text):
            yield tokens[begun:at], now[len(text) :]
            begun, text = at, now
