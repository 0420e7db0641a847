"""What tests of inference engines share: a tokenizer, random requests and the matchers that they must agree with."""

from __future__ import annotations

import json
import random
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from structgen.core.constraints.base import Constraint
from structgen.core.constraints.json import json_schema
from structgen.core.constraints.text import choice, gbnf, lark, regex
from structgen.core.engines.bitmask import allocate_token_bitmask
from structgen.core.engines.protocols import Matcher
from structgen.core.vocabulary.tokenizer_json import byte_alphabet
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import StructgenError
from tests.core.json_schema.random_schemas import Schemas
from tests.fuzz.expressions import random_pattern
from tests.fuzz.random_grammars import random_rules, to_gbnf, to_lark

MERGES = ["t h", "th e", "i n", "Ġ the", '" ,', '" :', '": Ġ', '{ "']
MERGES += ["a b", "ab c", "1 0", "10 0", "u e", "r ue", "a l"]
SPECIAL = ["<|end|>", "<|turn|>", "<think>", "</think>"]
LETTER = "the roof leaks, they said: “100 days”.\nThe label fell in"
"""Of which requests quote."""
LOGITS = 320
"""Width of the logits: more than the tokenizer has, as of models with padded embeddings."""


@cache
def tokenizer() -> Any:
    """A byte-level tokenizer of transformers with a few merges and special tokens."""
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    merges = [tuple(merge.split()) for merge in MERGES]
    words = {character: number for number, character in enumerate(byte_alphabet())}
    kept = []
    for left, right in merges:
        if left in words and right in words:
            kept.append((left, right))
            words.setdefault(left + right, len(words))
    backend = tokenizers.Tokenizer(tokenizers.models.BPE(words, kept))
    backend.decoder = tokenizers.decoders.ByteLevel()
    backend.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.add_special_tokens(SPECIAL)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend, eos_token=SPECIAL[0])


def special_id(name: str) -> int:
    found: int = tokenizer().convert_tokens_to_ids(name)
    return found


def random_request(seed: int) -> tuple[str, Any, Constraint]:
    """A kind, what is asked for, and the constraint that it must be."""
    rng = random.Random(seed)
    kind = rng.choice(["json", "json", "json_object", "regex", "choice", "grammar", "grammar"])
    if kind == "json":
        schema = Schemas("draft2020-12", seed).root()
        return kind, json.dumps(schema), json_schema(schema)
    if kind == "json_object":
        return kind, "", json_schema({"type": "object"})
    if kind == "regex":
        pattern = random_pattern(rng, "python", 3)
        return kind, pattern, regex(pattern)
    if kind == "choice":
        options = ["".join(rng.choices('ab"é\n \\', k=rng.randint(1, 6))) for _ in range(rng.randint(1, 5))]
        return kind, json.dumps(options), choice(options)
    if rng.random() < 0.5:
        text = to_gbnf(random_rules(rng, "root"))
        return kind, text, gbnf(text)
    text = to_lark(random_rules(rng, "start"), rng)
    return kind, text, lark(text + "\n")


def compiled(constraint: Constraint, vocabulary: Vocabulary) -> Any:
    """The grammar, or None where it is refused."""
    try:
        return constraint.compile(vocabulary)
    except StructgenError:
        return None


def mask_of(matcher: Matcher) -> npt.NDArray[np.bool_]:
    """Which tokens a matcher allows."""
    bitmask = allocate_token_bitmask(1, matcher.grammar.vocabulary.size)
    matcher.fill_next_token_bitmask(bitmask)
    return unpacked(bitmask[0])


def unpacked(row: Any) -> npt.NDArray[np.bool_]:
    """A row of a bitmask as truth values."""
    words = np.ascontiguousarray(np.asarray(row, np.int32))
    return np.unpackbits(words.view(np.uint8), bitorder="little").astype(bool)


def draft(rng: random.Random, matcher: Matcher, length: int) -> list[int]:
    """Tokens of which the first ones are allowed; then perhaps one that is not, and anything."""
    walker, tokens = matcher.fork(), []
    for _ in range(length):
        allowed = np.flatnonzero(mask_of(walker))
        if len(allowed) == 0:
            break
        token = int(rng.choice(allowed.tolist()))
        if rng.random() < 0.15:
            token = rng.randrange(LOGITS)
        tokens.append(token)
        if not walker.accept_token(token):
            return [*tokens, *(rng.randrange(LOGITS) for _ in range(rng.randint(0, 2)))]
    return tokens


def prompt_of(text: str) -> tuple[int, ...]:
    """The tokens of a prompt with two turns, of which one says a text."""
    ids: list[int] = tokenizer().encode(f"<|turn|>be brief<|end|><|turn|>{text}<|end|>")
    return tuple(ids)


def quote_of_prompt(structural: bool, **terms: Any) -> tuple[str, str]:
    """A kind and what a request asks for: an object with a quote of its prompt."""
    quote = {"type": "string", "x-structgen": {"quoteOf": "prompt"}, **terms}
    schema = {"type": "object", "properties": {"quote": quote}, "required": ["quote"], "additionalProperties": False}
    if not structural:
        return "json", json.dumps(schema)
    form = {"type": "json_schema", "json_schema": schema}
    return "structural_tag", json.dumps({"type": "structural_tag", "format": form})
