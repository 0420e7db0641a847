"""A model without weights and engines that misbehave, as worker processes load them by name."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from structgen.benchmarking.engines import Session, Structgen
from structgen.benchmarking.vocabularies import BenchVocabulary
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.generation.generator import Generator
from structgen.generation.models.tiny import TinyModel

EOS = 256
VOCABULARY = Vocabulary([bytes([byte]) for byte in range(256)] + [None, b'": ', b'{"', b'"}'], eos_token_ids=EOS)


class ByteTokenizer:
    """Bytes as tokens."""

    chat_template = None
    eos_token_id = EOS

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        return list(text.encode())

    def decode(self, ids: list[int]) -> str:
        return bytes(ids).decode("utf-8", errors="replace")


def load() -> Generator:
    """Random logits, in which quotes, brackets and the end are likely."""
    bias = np.zeros(VOCABULARY.size)
    bias[list(b'"}],')] = 4
    bias[[EOS, 257, 258, 259]] = 4
    return Generator(TinyModel(VOCABULARY.size, seed=3, bias=bias), ByteTokenizer(), vocabulary=VOCABULARY)


class Troubled(Structgen):
    """Misbehaves on schemas that say so in ``description``: at the compilation, or at the third token."""

    def __init__(self, vocabulary: BenchVocabulary, style: Any = "exact") -> None:
        super().__init__(vocabulary, style)
        self.version = "troubled"

    def compile(self, schema_text: str) -> Callable[[], Session]:
        start = super().compile(schema_text)
        if '"hang"' in schema_text:
            time.sleep(60)
        if '"crash"' not in schema_text:
            return start

        def troubled() -> Session:
            session, count = start(), [0]

            def accept(token_id: int) -> bool:
                count[0] += 1
                if count[0] == 3:
                    os._exit(5)
                return session.accept(token_id)

            return Session(session.fill, accept)

        return troubled


class Lying(Structgen):
    """Its mask allows everything, so that its matcher refuses what is drawn."""

    def compile(self, schema_text: str) -> Callable[[], Session]:
        start = super().compile(schema_text)
        return lambda: Session(lambda: self.row.fill(-1), start().accept)
