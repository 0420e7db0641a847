"""A deterministic language model of a few lines, for tests and examples without weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from structgen.generation.models.capabilities import HiddenStates
from structgen.generation.models.model_runner import Part, Reading
from structgen.generation.models.prefix_cache import common
from structgen.generation.models.trees import forward_tree

STATE = 8
"""Width of the states that a tiny model is said to have."""


@dataclass
class TinyCache:
    """The token history of every sequence."""

    sequences: list[list[int]]
    appended: list[int] = field(default_factory=list)

    @property
    def length(self) -> int:
        """Tokens of the longest sequence."""
        return max(map(len, self.sequences))

    def held(self) -> npt.NDArray[np.bool_]:
        """See ``VisibleCache.held``."""
        return np.arange(self.length)[None] >= self.length - np.array([[len(sequence)] for sequence in self.sequences])

    def crop(self, length: int) -> None:
        """Forget the last ``self.length - length`` tokens of every sequence."""
        drop = self.length - length
        self.sequences = [sequence[: len(sequence) - drop] for sequence in self.sequences]

    def select(self, sequences: Sequence[int]) -> None:
        """Keep these sequences only, in this order."""
        self.sequences = [list(self.sequences[sequence]) for sequence in sequences]

    def keep(self, kept: Sequence[Sequence[int]]) -> None:
        """See ``TreeCache.keep``."""
        for held, count, indices in zip(self.sequences, self.appended, kept, strict=True):
            new = held[len(held) - count :]
            held[len(held) - count :] = [new[index] for index in indices]
        self.appended = []

    def close_up(self, first: int, kept: Sequence[int]) -> None:
        """See ``VisibleCache.close_up``."""
        self.appended = [len(held) - first for held in self.sequences]
        self.keep([kept] * len(self.sequences))


class TinyModel(HiddenStates):
    """Logits drawn from a normal distribution seeded by the last ``order`` tokens: an n-gram model with random weights.

    The same history gives the same logits, bit for bit, in every sequence and every batch.
    ``bias`` (float [V]) is added to all of them, to make some tokens likelier. Its hidden states are a few of the
    logits.
    """

    full_attention = True

    def __init__(
        self,
        vocab_size: int,
        *,
        seed: int = 0,
        order: int = 2,
        scale: float = 2.0,
        bias: npt.NDArray[np.float64] | None = None,
        context_length: int | None = None,
    ) -> None:
        self.vocab_size = vocab_size
        self.context_length = context_length
        self.forwards = 0
        self._seed, self._order, self._scale, self._bias = seed, order, scale, bias

    def prefill(self, prompts: Sequence[Sequence[int]]) -> tuple[npt.NDArray[np.float32], TinyCache]:
        """See ``LanguageModel.prefill``."""
        self.forwards += 1
        cache = TinyCache([list(prompt) for prompt in prompts])
        if self._states is not None:
            (sequence,) = cache.sequences
            self._states.append(np.array([[self._logits(sequence[: end + 1])[:STATE] for end in range(len(sequence))]]))
        return np.stack([self._logits(sequence) for sequence in cache.sequences]), cache

    def forward(self, token_ids: Sequence[Sequence[int]], cache: TinyCache) -> npt.NDArray[np.float32]:
        """See ``LanguageModel.forward``."""
        self.forwards += 1
        cache.appended = [len(new) for new in token_ids]
        return np.stack([self._read(sequence, new) for sequence, new in zip(cache.sequences, token_ids, strict=True)])

    def forward_visible(
        self, token_ids: Sequence[Sequence[int]], visible: Any, positions: Any, cache: TinyCache
    ) -> npt.NDArray[np.float32]:
        """See ``VisibleLanguageModel.forward_visible``; positions say nothing to it."""
        self.forwards += 1
        sequences = zip(cache.sequences, token_ids, strict=True)
        columns = [[*[0] * (cache.length - len(sequence)), *sequence, *new] for sequence, new in sequences]
        logits = [
            [self._logits([line[column] for column in np.flatnonzero(seen)[-self._order :]]) for seen in each]
            for line, each in zip(columns, visible, strict=True)
        ]
        cache.appended = [len(new) for new in token_ids]
        for sequence, new in zip(cache.sequences, token_ids, strict=True):
            sequence += new
        if self._states is not None:
            self._states.append(np.array(logits)[..., :STATE])
        return np.array(logits)

    def forward_tree(
        self, token_ids: Sequence[Sequence[int]], parents: Sequence[Sequence[int]], cache: TinyCache
    ) -> npt.NDArray[np.float32]:
        """See ``TreeLanguageModel.forward_tree``."""
        logits: npt.NDArray[np.float32] = forward_tree(self, token_ids, parents, cache)
        return logits

    def ragged_reader(self) -> TinyReader:
        """See ``RaggedLanguageModel.ragged_reader``."""
        return TinyReader(self)

    def read_after(self, texts: Sequence[list[int]]) -> npt.NDArray[np.float32]:
        """The logits [N, V] after each of these texts: one forward."""
        self.forwards += 1
        return np.stack([self._logits(text) for text in texts])

    def _read(self, sequence: list[int], token_ids: Sequence[int]) -> npt.NDArray[np.float32]:
        logits = []
        for token in token_ids:
            sequence.append(token)
            logits.append(self._logits(sequence))
        return np.stack(logits)

    def _logits(self, history: list[int]) -> npt.NDArray[np.float32]:
        rng = np.random.default_rng([self._seed, *history[-self._order :]])
        logits = rng.normal(scale=self._scale, size=self.vocab_size)
        return (logits if self._bias is None else logits + self._bias).astype(np.float32)


class TinyReader:
    """A ``RaggedReader`` of a ``TinyModel``: sequences are lists of tokens, and every token is a byte.

    Attributes:
        sequences: the tokens of each.
        prefixes: what sequences may begin with, by salt.
    """

    reads_apart = True
    shares_prefixes = True
    token_bytes = 1
    max_bytes: int | None = None
    max_sequences: int | None = None

    def __init__(self, model: TinyModel) -> None:
        self._model = model
        self.sequences: dict[int, list[int]] = {}
        self.prefixes: dict[str, list[list[int]]] = {}
        self._opened = 0
        self._appended: dict[int, int] = {}

    @property
    def bytes(self) -> int:
        """See ``RaggedReader.bytes``."""
        return sum(map(len, self.sequences.values())) + sum(len(one) for each in self.prefixes.values() for one in each)

    def open(self, tokens: Sequence[int], salt: str = "") -> tuple[int, int]:
        """See ``RaggedReader.open``."""
        self._opened += 1
        held = self.known(tokens, salt)
        self.sequences[self._opened] = list(tokens[:held])
        return self._opened, held

    def known(self, tokens: Sequence[int], salt: str = "") -> int:
        """See ``RaggedReader.known``."""
        whole = list(tokens[:-1])
        lengths = (common(prefix, whole) for prefix in self.prefixes.get(salt, []))
        return max(lengths, default=0)

    def remember(self, sequence: int, salt: str = "") -> None:
        """See ``RaggedReader.remember``; the last few are."""
        self.prefixes[salt] = [*self.prefixes.get(salt, [])[-7:], self.sequences[sequence].copy()]

    def kept_texts(self, salt: str = "") -> list[Sequence[int]]:
        """See ``RaggedReader.kept_texts``."""
        return list(self.prefixes.get(salt, []))

    def forget_prefixes(self, until: int = 0) -> None:
        """See ``RaggedReader.forget_prefixes``."""
        self.prefixes = {}

    def read(self, parts: Sequence[Part]) -> Reading:
        """See ``RaggedReader.read``."""
        texts, starts = list[list[int]](), []
        for part in parts:
            text, node_texts = self.sequences[part.sequence], list[list[int]]()
            for index, token in enumerate(part.tokens):
                parent = index - 1 if part.parents is None else part.parents[index]
                node_texts.append([*(text if parent < 0 else node_texts[parent]), token])
            starts.append(len(texts))
            texts += node_texts[-1:] if part.last_only else node_texts
        for part in parts:
            self.sequences[part.sequence] += part.tokens
            self._appended[part.sequence] = len(part.tokens)
        return Reading(self._model.read_after(texts), starts, [len(part.tokens) for part in parts])

    def keep(self, sequence: int, kept: Sequence[int]) -> None:
        """See ``RaggedReader.keep``."""
        text, base = self.sequences[sequence], len(self.sequences[sequence]) - self._appended.pop(sequence)
        text[base:] = [text[base + index] for index in kept]

    def drop(self, sequence: int) -> None:
        """See ``RaggedReader.drop``."""
        del self.sequences[sequence]
