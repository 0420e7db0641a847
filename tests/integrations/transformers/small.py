"""Small random models, a real tokenizer and constraints whose texts other judges read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import jsonschema

import structgen
from structgen.core.vocabulary.vocabulary import Vocabulary

EOS = (0, 1)
PAD = 2
WORDS = [b'{"', b'":', b'", "', b'"}', b"ab", b"abc", b"bc", b"12", b"123", b" =", b"true", b"yes", b" please"]
VOCABULARY = Vocabulary(
    [None, None, None, *(bytes([byte]) for byte in range(256)), *WORDS], eos_token_ids=EOS, special_token_ids=[PAD]
)
WIDTH = 288  # of the logits: wider than the tokenizer


@cache
def llama(seed: int = 0, width: int = WIDTH) -> Any:
    """Its scores are far apart, so that greedy texts do not hang on the last bits."""
    import torch
    import transformers

    torch.manual_seed(seed)
    config = transformers.LlamaConfig(
        vocab_size=width, hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=512, eos_token_id=list(EOS), pad_token_id=PAD, bos_token_id=None,
        initializer_range=0.5,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config).eval()


@cache
def tokenizer() -> Any:
    """A fast tokenizer of transformers, byte-level BPE."""
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=280, special_tokens=["<eos>", "<end>", "<pad>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )  # fmt: skip
    made.train_from_iterator(['{"name": "Ada", "age": 36}', "yes please, ab = 12"] * 3, trainer)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<eos>", pad_token="<pad>")


def ids(*texts: str) -> dict[str, Any]:
    """Prompts as `generate` takes them, padded on the left."""
    import torch

    rows = [[byte + 3 for byte in text.encode()] for text in texts]
    width = max(map(len, rows))
    return {
        "input_ids": torch.tensor([[PAD] * (width - len(row)) + row for row in rows]),
        "attention_mask": torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows]),
    }


def text_of(tokens: Any, vocabulary: Vocabulary = VOCABULARY) -> str:
    """The text of tokens up to their end."""
    found = list(tokens.tolist() if hasattr(tokens, "tolist") else tokens)
    end = next((place for place, token in enumerate(found) if token in vocabulary.eos_token_ids), len(found))
    spelled = [vocabulary.tokens[token] if token < vocabulary.size else b"<?>" for token in found[:end]]
    return b"".join(token or b"<?>" for token in spelled).decode(errors="replace")


def texts(sequences: Any, prompts: dict[str, Any]) -> list[str]:
    """What was written behind the prompts."""
    return [text_of(row) for row in sequences[:, prompts["input_ids"].shape[1] :]]


@dataclass(frozen=True)
class Case:
    """A constraint, and whether a text satisfies it, by another judge."""

    constraint: Any
    is_valid: Callable[[str], Any]


def pattern(expression: str) -> Case:
    return Case(structgen.regex(expression), re.compile(expression, re.DOTALL).fullmatch)


def schema(value: dict[str, Any]) -> Case:
    def is_valid(text: str) -> bool:
        return bool(jsonschema.Draft202012Validator(value).is_valid(json.loads(text)))

    return Case(value, is_valid)


CASES = {
    "pairs": pattern(r"[a-c]{2,5} =[0-9]{1,4}(;[a-c]{2,5} =[0-9]{1,4}){0,2}"),
    "choice": Case(
        structgen.choice(["yes", "yes please", "abc", "no"]), {"yes", "yes please", "abc", "no"}.__contains__
    ),
    "object": schema(
        {
            "type": "object",
            "properties": {
                "ab": {"type": "string", "maxLength": 6},
                "n": {"type": "integer", "maximum": 999, "minimum": 0},
            },
            "required": ["ab"],
            "additionalProperties": False,
        }
    ),
    "nested": Case(
        structgen.lark('start: "(" start? ")" | /[a-c]{1,3}/'), re.compile(r"\(*([a-c]{1,3}|(?<=\())\)*").fullmatch
    ),
    "list": schema({"type": "array", "items": {"enum": ["ab", 12, True]}, "minItems": 1, "maxItems": 4}),
}
