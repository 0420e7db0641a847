"""Asking the model about many prefixes of one prompt at once: logits after each, in one call.

`TreeReader` keeps the keys and values of every prefix read so far in one row of a cache and tells the model what is on
a prefix's own path (`VisibleLanguageModel`): a new prefix costs one token. `BranchReader` lets a `RaggedReader` keep
the prefixes; one that it has forgotten is read again. `RowReader` works with any `LanguageModel` and reads every prefix
anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from structgen.errors import GenerationError
from structgen.generation.models.capabilities import capabilities_of, prepare_for_trees
from structgen.generation.models.model_runner import Part, RaggedReader
from structgen.generation.sampling import to_numpy

Logits = npt.NDArray[np.floating[Any]]
Prefix = tuple[int, ...]

# A forward of more rows or tokens than this gains nothing on a CPU and needs memory for V logits each.
MAX_BATCH = 64
# Prefixes whose keys and values are kept (46 kB each for a model of 135 million parameters, 512 kB for one of 8
# billion); beyond, all are forgotten but the prompt, and read again when asked for.
MAX_SLOTS = 4096


class Reader(Protocol):
    """Counts and one call.

    Attributes:
        tokens: tokens read, the prompt not included.
        calls: calls of the model, the prompt's included.
    """

    tokens: int
    calls: int

    def read(self, prefixes: Sequence[Prefix]) -> Logits:
        """Logits [len(prefixes), V] after the prompt and each prefix."""
        ...


def make_reader(model: Any, prompt_ids: Sequence[int], max_tokens: int) -> Reader:
    """The best reader for the model.

    Raises:
        GenerationError: the prompt and ``max_tokens`` do not fit in the model's context.
    """
    limit = model.context_length
    if limit is not None and len(prompt_ids) + max_tokens > limit:
        raise GenerationError(
            f"The prompt has {len(prompt_ids)} tokens and texts have up to {max_tokens}, but the model reads {limit}; "
            "shorten the prompt or lower max_tokens."
        )
    can = capabilities_of(model)
    if can.forward_visible is not None:
        return TreeReader(model, prompt_ids)
    own = None if can.ragged_reader is None else can.ragged_reader()
    if own is not None and own.reads_apart and own.shares_prefixes:
        return BranchReader(own, prompt_ids)
    return RowReader(model, prompt_ids)


class RowReader:
    """Every prefix is a row that is read from the prompt's start; for any ``LanguageModel``."""

    def __init__(self, model: Any, prompt_ids: Sequence[int]) -> None:
        self._model, self._prompt = model, list(prompt_ids)
        self.tokens = self.calls = 0

    def read(self, prefixes: Sequence[Prefix]) -> Logits:
        """See ``Reader.read``."""
        found = []
        for start in range(0, len(prefixes), MAX_BATCH):
            rows = [[*self._prompt, *prefix] for prefix in prefixes[start : start + MAX_BATCH]]
            logits, _ = self._model.prefill(rows)
            found.append(to_numpy(logits))
            self.calls += 1
            self.tokens += sum(len(row) - len(self._prompt) for row in rows)
        return np.concatenate(found)


class BranchReader:
    """Every prefix is a row of a `RaggedReader` that begins with the longest one known."""

    def __init__(self, reader: RaggedReader, prompt_ids: Sequence[int]) -> None:
        self._reader, self._prompt = reader, list(prompt_ids)
        self._batch = MAX_BATCH if reader.max_rows is None else max(1, min(MAX_BATCH, reader.max_rows // 2))
        self.tokens = self.calls = 0

    def read(self, prefixes: Sequence[Prefix]) -> Logits:
        """See ``Reader.read``."""
        if not self.calls:
            self._read([()])
            self.tokens = 0  # the prompt does not count
        batches = (prefixes[start : start + self._batch] for start in range(0, len(prefixes), self._batch))
        return np.concatenate([self._read(batch) for batch in batches])

    def _read(self, prefixes: Sequence[Prefix]) -> Logits:
        parts = list[Part]()
        try:
            for prefix in prefixes:
                text = [*self._prompt, *prefix]
                row, held = self._reader.open(text)
                parts.append(Part(row, text[held:]))
            logits = to_numpy(self._reader.read(parts).logits)
            for part in parts:
                self._reader.remember(part.row)
        finally:
            for part in parts:
                self._reader.drop(part.row)
        self.calls += 1
        self.tokens += sum(len(part.tokens) for part in parts)
        return logits


class TreeReader:
    """A trie of prefixes in one row of a cache of a ``VisibleLanguageModel``."""

    def __init__(self, model: Any, prompt_ids: Sequence[int]) -> None:
        prepare_for_trees(model)
        self._model, self._prompt = model, list(prompt_ids)
        self.tokens = self.calls = 0
        self._cache: Any = None
        self._first: Logits | None = None  # logits after the prompt
        self._slots: dict[tuple[int, int], int] = {}  # (parent's slot or -1, token): slot
        self._parents: list[int] = []

    def read(self, prefixes: Sequence[Prefix]) -> Logits:
        """See ``Reader.read``. Missing beginnings of the prefixes are read too."""
        if self._cache is None:
            logits, self._cache = self._model.prefill([self._prompt])
            self._first = to_numpy(logits)
            self.calls += 1
        assert self._first is not None
        found = np.empty((len(prefixes), self._first.shape[1]), dtype=self._first.dtype)
        for start in range(0, len(prefixes), MAX_BATCH):
            self._read(prefixes[start : start + MAX_BATCH], found[start:])
        return found

    def _read(self, prefixes: Sequence[Prefix], out: Logits) -> None:
        if len(self._parents) + sum(map(len, prefixes)) > MAX_SLOTS:
            self._cache.crop(len(self._prompt))
            self._slots.clear()
            self._parents.clear()
        past = len(self._parents)
        tokens: list[int] = []
        depths: list[int] = []
        wanted = []
        for prefix in prefixes:
            slot = -1
            for depth, token in enumerate(prefix):
                parent, slot = slot, self._slots.get((slot, token), -1)
                # What is in the cache has no logits left: the end of a prefix is read again, in a slot of its own.
                if slot < 0 or (slot < past and depth == len(prefix) - 1):
                    slot = self._slots[parent, token] = len(self._parents)
                    self._parents.append(parent)
                    tokens.append(token)
                    depths.append(depth)
            wanted.append(slot)
        if tokens:
            logits = self._forward(tokens, depths, past)
        for row, slot in enumerate(wanted):
            out[row] = self._first[0] if slot < 0 else logits[slot - past]  # type: ignore[index]

    def _forward(self, tokens: list[int], depths: list[int], past: int) -> Logits:
        """Append tokens to the row, each seeing the prompt, its ancestors and itself."""
        prompt, total = len(self._prompt), past + len(tokens)
        visible = np.zeros((len(tokens), prompt + total), dtype=np.bool_)
        visible[:, :prompt] = True
        for row in range(len(tokens)):
            slot = past + row
            while slot >= 0:
                visible[row, prompt + slot] = True
                slot = self._parents[slot]
        positions = np.array([[prompt + depth for depth in depths]])
        logits = self._model.forward_visible([tokens], visible[None], positions, self._cache)
        self.calls += 1
        self.tokens += len(tokens)
        return to_numpy(logits[0])
