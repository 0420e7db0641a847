"""``spelling="canonical"``, judged by tokenizers: what is written is what they make of its text, and what may be written
so is."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import pytest

import structgen as sg
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import IncompleteOutputError
from structgen.generation.generator import Generator
from structgen.generation.models.tiny import TinyModel
from tests.core.tokenization.small_tokenizers import PATTERNS, encode, trained
from tests.many import cases

pytestmark = pytest.mark.full
SCHEMA = {
    "type": "object",
    "properties": {
        "the": {"type": "string", "maxLength": 9},
        "12": {"type": "number"},
        "ll": {"enum": ["the the", "ab"]},
    },
    "required": ["the", "ll"],
}
CONSTRAINTS: dict[str, Any] = {
    "nothing": None,
    "object": SCHEMA,
    "blanks": sg.regex(r"[ \n]{0,4}(the|12)?[ ]{1,3}[a-z!]{1,5}"),
    "words": ["the the", "the  the", "tha", " ab\n\n", "12ab'll", "日本é👩"],
    "cut": sg.regex(r"(th|the |日|é){1,3}e"),
    "grammar": sg.lark('start: (WORD " "?)+ "\\n"\nWORD: /[a-z\']+/'),
}


class Tokenizer:
    """What ``Generator`` uses of one."""

    def __init__(self, backend: Any) -> None:
        self.backend_tokenizer, self.eos_token_id, self.chat_template = backend, backend.token_to_id("<e>"), None

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """Ids."""
        return encode(self.backend_tokenizer, text)


@cache
def generator(name: str, seed: int = 0, draft: str | None = None) -> Generator:
    """Of random logits."""
    tokenizer = Tokenizer(trained(PATTERNS[name]))
    vocabulary = Vocabulary.from_transformers(tokenizer.backend_tokenizer, eos_token_ids=tokenizer.eos_token_id)
    return Generator(TinyModel(vocabulary.size, seed=seed), tokenizer, vocabulary=vocabulary, draft=draft)


def check(made: Generator, result: Any) -> None:
    """Its tokens are those of its text."""
    text = made.vocabulary.decode(result.token_ids).decode()
    assert encode(made.tokenizer.backend_tokenizer, text) == list(result.token_ids), text


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("kind", CONSTRAINTS)
def test_outputs_encode_to_themselves(name: str, kind: str) -> None:
    made, rng = generator(name), random.Random(11)
    for seed in cases(100, 6):
        budget = rng.choice([12, 18, 30])
        options = {"temperature": 1.0, "seed": seed, "max_new_tokens": budget, "schema_in_prompt": False}
        try:
            result = made.generate("the", CONSTRAINTS[kind], spelling="canonical", **options)
        except IncompleteOutputError as error:
            assert "Even the shortest" in str(error) and kind == "object"
            continue
        check(made, result)
        if kind == "object":
            sg.validate_instance(SCHEMA, result.value) if hasattr(sg, "validate_instance") else None


@pytest.mark.parametrize("name", PATTERNS)
def test_every_text_can_be_written_and_nothing_else(name: str) -> None:
    made, texts = generator(name), CONSTRAINTS["words"]
    found = set()
    for seed in range(80):
        result = made.generate("the", texts, temperature=3.0, seed=seed, spelling="canonical")
        check(made, result)
        found.add(result.text)
    assert found == set(texts)
