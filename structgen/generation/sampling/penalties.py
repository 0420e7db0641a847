"""What is done to a row's logits before the mask: bias and penalties, as a few entries to change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from structgen.generation.sampling.params import SamplingParams
from structgen.generation.sampling.repetitions import Repetitions

_FIRST_ROOM = 64
GREATEST_CHANGE, GREATEST_FACTOR = 1e30, 1e8
"""By which a logit is changed at the most: what comes of both is a number of float32, as a token is that the constraint
alone allows, however much it is punished."""


@dataclass(frozen=True, slots=True)
class Adjustments:
    """Changes of a row's logits: l + bias, divided by ``factor`` where that is positive and multiplied where not, less
    ``minus``.

    Attributes:
        token_ids: int64 [n], each once.
        bias, factor, minus: float32 [n].
    """

    token_ids: npt.NDArray[np.int64]
    bias: npt.NDArray[np.float32]
    factor: npt.NDArray[np.float32]
    minus: npt.NDArray[np.float32]

    def apply(self, logits: npt.NDArray[np.floating[Any]]) -> None:
        """Change a row of logits [V] in place. O(n)."""
        values = logits[self.token_ids] + self.bias
        logits[self.token_ids] = np.where(values > 0, values / self.factor, values * self.factor) - self.minus


class History:
    """The tokens before a place that penalties look at; with what ``logit_bias`` names, all that is adjusted.

    Args:
        params: what is to be adjusted, and how.
        prompt: token ids that ``repetition_penalty`` and DRY count.
        tokens: the bytes of each token of the vocabulary, for DRY.
    """

    __slots__ = ("_bias", "_counts", "_factor", "_ids", "_params", "_penalty", "_places", "_repetitions", "_size")

    def __init__(self, params: SamplingParams, prompt: Iterable[int] = (), tokens: Sequence[bytes | None] = ()) -> None:
        self._params, prompt = params, list(prompt)
        self._penalty = min(max(params.repetition_penalty, 1 / GREATEST_FACTOR), GREATEST_FACTOR)
        self._repetitions = Repetitions(params, tokens, prompt) if params.dry_multiplier else None
        self._places: dict[int, int] = {}
        self._size = 0
        self._ids = np.zeros(_FIRST_ROOM, np.int64)
        self._bias = np.zeros(_FIRST_ROOM, np.float32)
        self._factor = np.ones(_FIRST_ROOM, np.float32)
        self._counts = np.zeros(_FIRST_ROOM, np.int64)
        for token, bias in params.bias_pairs:
            index = self._place(token)  # first: it may put longer arrays in place of these
            self._bias[index] = _change(bias)
        if params.repetition_penalty != 1:
            for token in prompt:
                index = self._place(token)
                self._factor[index] = self._penalty

    def add(self, token: int) -> None:
        """A token was chosen (not forced)."""
        if self._params.has_penalties:
            index = self._place(token)
            self._counts[index] += 1
            self._factor[index] = self._penalty

    def follow(self, token: int) -> None:
        """A token came, chosen or forced."""
        if self._repetitions is not None:
            self._repetitions.add(token)

    def adjustments(self) -> Adjustments | None:
        """What is changed for the next token; None: nothing. O(different tokens), with DRY O(tokens)."""
        repeated = {} if self._repetitions is None else self._repetitions.penalties()
        places = {self._place(token): penalty for token, penalty in repeated.items()}
        n = self._size
        if not n:
            return None
        counts, params = self._counts[:n], self._params
        minus = _change(params.presence_penalty) * (counts > 0) + _change(params.frequency_penalty) * counts
        for index, penalty in places.items():
            minus[index] += penalty
        minus = np.clip(minus, -GREATEST_CHANGE, GREATEST_CHANGE).astype(np.float32)
        return Adjustments(self._ids[:n], self._bias[:n], self._factor[:n], minus)

    def _place(self, token: int) -> int:
        index = self._places.get(token)
        if index is None:
            index = self._places[token] = self._size
            if index == len(self._ids):
                for name, fill in (("_ids", 0), ("_bias", 0), ("_factor", 1), ("_counts", 0)):
                    old = getattr(self, name)
                    setattr(self, name, np.concatenate([old, np.full(len(old), fill, old.dtype)]))
            self._ids[index] = token
            self._size += 1
        return index


def _change(value: float) -> float:
    return min(max(value, -GREATEST_CHANGE), GREATEST_CHANGE)
