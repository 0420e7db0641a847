"""Which tokens would go on with a repetition, and how long it is: what the DRY penalty goes by."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from structgen.generation.sampling.params import SamplingParams

LONGEST = 256
"""Repetitions of a prompt are as long as this for all that is longer: the penalty is then at its highest."""
GREATEST_POWER = 80.0
"""In nats: float32 has exponentials of so much."""


class Repetitions:
    """The tokens of prompt and output, and of each place how long the text before it agrees with the end of the text.

    Args:
        tokens: the bytes of each token of the vocabulary.
        prompt: token ids.
    """

    __slots__ = ("_breakers", "_count", "_ids", "_is_breaker", "_lengths", "_params", "_tokens")

    def __init__(self, params: SamplingParams, tokens: Sequence[bytes | None], prompt: Iterable[int]) -> None:
        self._params, self._tokens = params, tokens
        self._breakers = [text.encode() for text in params.dry_sequence_breakers]
        self._is_breaker: dict[int, bool] = {}
        given = np.array(list(prompt), np.int64)
        self._count = max(0, len(given) - LONGEST)
        self._ids = np.zeros(2 * len(given) + 64, np.int64)
        self._ids[: len(given)] = given
        self._lengths = np.zeros(len(self._ids), np.int32)
        for token in given[self._count :].tolist():
            self.add(token)

    def add(self, token: int) -> None:
        """A token more, whether it was forced or not. O(tokens)."""
        n = self._count
        if n + 1 >= len(self._ids):
            self._ids, self._lengths = (np.concatenate([old, np.zeros_like(old)]) for old in (self._ids, self._lengths))
        self._ids[n] = token
        agrees = self._lengths[1 : n + 1]  # of the texts before the places from 1 to n
        if self._breaks(token):
            agrees[:] = 0
        else:
            agrees[:] = np.where(self._ids[:n] == token, self._lengths[:n] + 1, 0)
        self._count = n + 1

    def penalties(self) -> dict[int, float]:
        """What is taken off the logits of tokens, by their ids."""
        params, longest = self._params, dict[int, int]()
        lengths = self._lengths[: self._count]
        for index in np.flatnonzero(lengths >= params.dry_allowed_length).tolist():
            token = int(self._ids[index])
            if not self._breaks(token):
                longest[token] = max(longest.get(token, 0), int(lengths[index]))
        rise = math.log(params.dry_base)
        return {
            token: params.dry_multiplier * math.exp(min(GREATEST_POWER, rise * (length - params.dry_allowed_length)))
            for token, length in longest.items()
        }

    def _breaks(self, token: int) -> bool:
        if token not in self._is_breaker:
            data = (self._tokens[token] if token < len(self._tokens) else None) or b""
            self._is_breaker[token] = any(text in data for text in self._breakers)
        return self._is_breaker[token]
