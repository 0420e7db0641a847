"""An engine whose schemas say what it shall do: the texts it accepts, or how it misbehaves."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable

import numpy as np

from structgen.benchmarking.engines import Refused, Session
from structgen.benchmarking.vocabularies import BenchVocabulary


class Fake:
    """Accepts exactly ``schema["texts"]``; ``refuse``, ``crash``, ``sleep``, ``raise``, ``lie`` are its faults."""

    def __init__(self, vocabulary: BenchVocabulary, style: str = "exact") -> None:
        self.version = "0"
        self.row = np.zeros((len(vocabulary.tokens) + 31) // 32, dtype=np.int32)
        self._tokens = vocabulary.tokens
        self._eos = vocabulary.eos_token_id

    def compile(self, schema_text: str) -> Callable[[], Session]:
        schema = json.loads(schema_text)
        if "refuse" in schema:
            raise Refused(schema["refuse"])
        if "raise" in schema:
            raise KeyError(schema["raise"])
        if "crash" in schema:
            os._exit(schema["crash"])
        time.sleep(schema.get("sleep", 0))
        texts = [text.encode() for text in schema.get("texts", ["{}"])]
        return lambda: self._session(texts, lies=schema.get("lie", False))

    def _session(self, texts: list[bytes], lies: bool) -> Session:
        state = {"text": b""}

        def fill() -> None:
            words = self.row.view(np.uint32)
            words[:] = 0
            for token_id, token in enumerate(self._tokens):
                text = state["text"]
                allowed = text in texts if token_id == self._eos else self._goes_on(texts, text + token)
                words[token_id >> 5] |= np.uint32(allowed << (token_id & 31))

        def accept(token_id: int) -> bool:
            state["text"] += self._tokens[token_id]
            return not lies and self._goes_on(texts, state["text"])

        return Session(fill, accept)

    @staticmethod
    def _goes_on(texts: list[bytes], start: bytes) -> bool:
        return any(text.startswith(start) for text in texts)
