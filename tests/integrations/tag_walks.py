"""What tests of structural tags share: tools, a vocabulary with the special tokens of a tag, walks, and judges."""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from structgen.core.constraints.specs import ConstraintSpec
from structgen.core.engines.bitmask import allocate_token_bitmask
from structgen.core.engines.protocols import Matcher
from structgen.core.vocabulary.special_tokens import pieces
from structgen.core.vocabulary.tokenizer_json import byte_alphabet
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.integrations.engine_requests import special_names

WALKS = int(os.environ.get("STRUCTGEN_TAG_WALKS", "4"))
"""Walks a tag."""
END = "<|endoftext|>"
# What models write as one token each, as their tokenizers have it.
SPECIAL = re.compile(
    r"<\|[a-z_:]+\|>|<｜[^<>｜]*｜>|｜DSML｜|</?(?:think|tool_call|minimax:tool_call|tool_calls|arg_key|arg_value"
    r"|longcat_tool_call)>|\[TOOL_CALLS\]|\[ARGS\]"
)

SEARCH: dict[str, Any] = {
    "type": "object",
    "properties": {
        "query": {"type": "string"},
        "limit": {"type": "integer", "minimum": 0, "maximum": 500},
        "unit": {"enum": ["celsius", "kelvin"]},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
        "note": {"type": ["string", "null"]},
        "exact": {"type": "boolean"},
    },
    "required": ["query", "limit"],
    "additionalProperties": False,
}
NOTE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "minLength": 2, "maxLength": 20},
        "code": {"type": "string", "pattern": "^[a-c<>/]{1,30}$"},
        "place": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "at": {"type": "number"}},
            "required": ["name"],
            "additionalProperties": False,
        },
        "many": {"type": "array", "items": {"enum": ["a", 1, None]}, "uniqueItems": True},
        "kind": {"const": "x"},
    },
    "required": ["text"],
    "additionalProperties": False,
}
EMPTY: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
TOOLS = {"search": SEARCH, "note": NOTE, "ping": EMPTY}
ARGUMENTS: dict[str, list[dict[str, Any]]] = {
    "search": [
        {"query": "cats & <b>dogs</b>\n", "limit": 5},
        {"query": "", "limit": 0, "unit": "kelvin", "tags": ["x", 'a "b"'], "note": None, "exact": True},
        {"query": " ü ", "limit": 12, "note": "n", "exact": False},
    ],
    "note": [
        {"text": "ab"},
        {"text": "a\nb", "code": "a<b", "place": {"name": "p", "at": 1.5}, "many": ["a", 1], "kind": "x"},
    ],
    "ping": [{}],
}
"""Arguments that models send."""


@cache
def vocabulary(names: tuple[str, ...]) -> Vocabulary:
    """Bytes, and special tokens by name."""
    return Vocabulary(
        [*(bytes([byte]) for byte in range(256)), *([None] * len(names)), None],
        eos_token_ids=256 + len(names),
        special_token_ids=range(256, 256 + len(names)),
        special_tokens={name: 256 + number for number, name in enumerate(names)},
    )


def names_in(*texts: str) -> tuple[str, ...]:
    """The special tokens that tags name, and one that a parser asks for."""
    return tuple(sorted({"<|python_tag|>", *(name for text in texts for name in SPECIAL.findall(text))}))


@cache
def tokenizer(names: tuple[str, ...]) -> Any:
    """A tokenizer of transformers with a token a byte, in whose vocabulary ids are as in ``vocabulary``."""
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    characters = {byte: character for character, byte in byte_alphabet().items()}
    backend = tokenizers.Tokenizer(tokenizers.models.BPE({characters[byte]: byte for byte in range(256)}, []))
    backend.decoder = tokenizers.decoders.ByteLevel()
    backend.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.add_special_tokens([*names, END])
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend, eos_token=END)


def compiled(kind: str, value: str, words: Vocabulary) -> Any:
    """The grammar of what an engine asks for."""
    return ConstraintSpec(kind, value, special_tokens=special_names(words)).compile(words)


def tokens_of(text: str, words: Vocabulary) -> list[int]:
    """A text as a model writes it: names of special tokens as these, bytes else."""
    names = [name for name in words.special_tokens if name]
    cut = re.compile(f"({'|'.join(sorted(map(re.escape, names), key=len, reverse=True))})" if names else "(?!)")
    found: list[int] = []
    for piece in cut.split(text):
        found += [words.special_tokens[piece]] if piece in words.special_tokens else piece.encode()
    return found


def text_of(tokens: Iterable[int], words: Vocabulary) -> str:
    """What an engine shows of tokens."""
    shown = b"".join(
        bytes([token]) if token < 256 else words.names_of(token).encode() for token in tokens if token != words.size - 1
    )
    return shown.decode()


def refused_at(grammar: Any, tokens: list[int]) -> int | None:
    """The place of the first token that the mask refuses; ``len(tokens)`` where the text cannot end then."""
    matcher = grammar.matcher()
    for place, token in enumerate(tokens):
        if not _allowed(matcher)[token] or not matcher.accept_token(token):
            return place
    return None if matcher.is_accepting() else len(tokens)


def walk(grammar: Any, rng: random.Random, begun: list[int], most: int = 120) -> list[int]:
    """Random tokens that the masks allow, after some that must be, to the end."""
    matcher, words = grammar.matcher(), grammar.vocabulary
    tokens: list[int] = []
    for token in begun:
        assert matcher.accept_token(token), text_of(tokens, words)
        tokens.append(token)
    for _ in range(rng.randint(1, most)):
        allowed = np.flatnonzero(_allowed(matcher)).tolist()
        if matcher.is_accepting() and (len(allowed) == 1 or rng.random() < 0.3):
            break
        plain = [token for token in allowed if 32 <= token < 127 or 256 <= token < words.size - 1 or token == 10]
        short = [t for t in plain if t < 256 and chr(t) in '</>ab,"|=]} 1\n'] or plain
        token = rng.choice(rng.choice([plain, short, short, allowed[:-1]]) or allowed)
        if token == words.size - 1:
            break
        assert matcher.accept_token(token)
        tokens.append(token)
    for piece in pieces(matcher.shortest_completion(), words.size):
        tokens += [piece] if isinstance(piece, int) else piece
    return tokens


def _allowed(matcher: Matcher) -> Any:
    bitmask = allocate_token_bitmask(1, matcher.grammar.vocabulary.size)
    matcher.fill_next_token_bitmask(bitmask)
    return np.unpackbits(bitmask[0].view(np.uint8), bitorder="little")[: matcher.grammar.vocabulary.size].astype(bool)


def check_call(name: str, arguments: str) -> None:
    """Assert that a call is of one of the tools, and that its arguments satisfy the schema."""
    value = json.loads(arguments)
    errors = [error.message for error in Draft202012Validator(TOOLS[name]).iter_errors(value)]
    assert not errors, (name, value, errors)
