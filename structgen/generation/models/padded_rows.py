"""Sequences of any language model: those whose texts are read whole together share a padded cache, and are read
together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from structgen.generation.models.capabilities import capabilities_of
from structgen.generation.models.language_model import LanguageModel
from structgen.generation.models.model_runner import Part, Reading


class _Group:
    """Sequences whose texts were read together.

    Attributes:
        sequences: their numbers, in the order of the cache.
        cache: of the model.
        appended: how many tokens of each sequence the last call added, where they may have to be thinned; else None.
        kept: what sequences keep of them.
    """

    __slots__ = ("appended", "cache", "kept", "sequences")

    def __init__(self, sequences: list[int], cache: Any) -> None:
        self.sequences, self.cache = sequences, cache
        self.appended: list[int] | None = None
        self.kept: dict[int, Sequence[int]] = {}

    def settle(self) -> None:
        """Thin the cache to what sequences keep."""
        if self.appended is not None:
            counts = zip(self.sequences, self.appended, strict=True)
            self.cache.keep([self.kept.get(sequence, range(count)) for sequence, count in counts])
        self.appended, self.kept = None, {}


class PaddedReader:
    """A ``RaggedReader`` over the calls that every language model has: sequences whose texts are read whole in one call
    stay together, with a call of the model for each such group; a sequence whose text is read in pieces is a group of
    its own. Where the model reads no trees, a group reads as many tokens of each sequence as the shortest part has."""

    reads_apart = False
    shares_prefixes = False
    token_bytes = 0
    bytes = 0
    max_bytes = None
    max_sequences = None

    def __init__(self, model: LanguageModel) -> None:
        self._model, self._can = model, capabilities_of(model)
        self._groups: dict[int, _Group] = {}
        self._left: dict[int, int] = {}  # tokens that sequences were opened for and that are not read
        self._next = 0

    def open(self, tokens: Sequence[int], salt: str = "") -> tuple[int, int]:
        """See ``RaggedReader.open``; no prefix is known."""
        self._next += 1
        self._left[self._next] = len(tokens)
        return self._next, 0

    def remember(self, sequence: int, salt: str = "") -> None:
        """See ``RaggedReader.remember``: nothing is kept."""

    def known(self, tokens: Sequence[int], salt: str = "") -> int:
        """See ``RaggedReader.known``."""
        return 0

    def kept_texts(self, salt: str = "") -> list[Sequence[int]]:
        """See ``RaggedReader.kept_texts``: nothing is kept."""
        return []

    def forget_prefixes(self, until: int = 0) -> None:
        """See ``RaggedReader.forget_prefixes``."""

    def read(self, parts: Sequence[Part]) -> Reading:
        """See ``RaggedReader.read``; parts must name all sequences of a group."""
        by_sequence = {part.sequence: part for part in parts}
        groups = {id(group): group for sequence in by_sequence if (group := self._groups.get(sequence)) is not None}
        calls, first, where = [], 0, dict[int, tuple[int, int]]()
        for together in self._fresh(parts):
            logits, cache = self._model.prefill([part.tokens for part in together])
            group = _Group([part.sequence for part in together], cache)
            self._groups |= dict.fromkeys(group.sequences, group)
            where |= {part.sequence: (first + index, len(part.tokens)) for index, part in enumerate(together)}
            calls.append(logits)
            first += len(together)
        for group in groups.values():
            logits, counts = self._append(group, [by_sequence[sequence] for sequence in group.sequences])
            width = logits.shape[1]
            for index, (sequence, count) in enumerate(zip(group.sequences, counts, strict=True)):
                last = min(width, count) - 1 if by_sequence[sequence].last_only else 0
                where[sequence] = first + index * width + last, count
            calls.append(logits.reshape(-1, logits.shape[-1]))
            first += len(calls[-1])
        order = [where[part.sequence] for part in parts]
        self._note_read(parts, calls)
        return Reading(_joined(calls), [start for start, _ in order], [count for _, count in order])

    def _fresh(self, parts: Sequence[Part]) -> list[list[Part]]:
        """The parts that sequences begin with: those that are whole texts in one call, each of the others in its
        own."""
        fresh = [part for part in parts if part.sequence not in self._groups]
        whole = [part for part in fresh if len(part.tokens) >= self._left[part.sequence]]
        alone = [[part] for part in fresh if len(part.tokens) < self._left[part.sequence]]
        return [whole, *alone] if whole else alone

    def _note_read(self, parts: Sequence[Part], calls: Sequence[Any]) -> None:
        """Count what is left of texts. Of a piece nobody looks at the logits: here it is waited for, so that a call
        takes the time that it takes."""
        for part in parts:
            if part.sequence in self._left:
                self._left[part.sequence] -= len(part.tokens)
                if self._left[part.sequence] <= 0:
                    del self._left[part.sequence]
                elif self._can.asynchronous:
                    float(calls[-1].reshape(-1)[0])

    def _append(self, group: _Group, parts: Sequence[Part]) -> tuple[Any, list[int]]:
        """One call for a group: logits [sequences, n, V], and how many tokens of each part were read."""
        group.settle()
        tokens, counts = [part.tokens for part in parts], [len(part.tokens) for part in parts]
        if parts[0].sequence in self._left and self._can.forward_last is not None:  # the next piece of a text
            return self._can.forward_last(tokens, group.cache)[:, None], counts
        alike = min(counts) == max(counts) or self._can.forward_visible is None
        if alike and all(part.parents is None for part in parts):
            least = min(counts)
            return self._model.forward([sequence[:least] for sequence in tokens], group.cache), [least] * len(parts)
        parents = [part.parents or range(-1, len(part.tokens) - 1) for part in parts]
        group.appended = counts
        assert self._can.forward_tree is not None  # drafts are refused before, see check_reads_trees
        return self._can.forward_tree(tokens, parents, group.cache), counts

    def keep(self, sequence: int, kept: Sequence[int]) -> None:
        """See ``RaggedReader.keep``."""
        self._groups[sequence].kept[sequence] = kept

    def drop(self, sequence: int) -> None:
        """See ``RaggedReader.drop``."""
        self._left.pop(sequence, None)
        group = self._groups.pop(sequence, None)
        if group is None:
            return
        group.settle()
        left = [index for index, other in enumerate(group.sequences) if other != sequence]
        group.sequences = [group.sequences[index] for index in left]
        if left:
            group.cache.select(left)


def _joined(calls: Sequence[Any]) -> Any:
    """The logits of several calls, one below the other."""
    if len(calls) == 1:
        return calls[0]
    if isinstance(calls[0], np.ndarray):
        return np.concatenate(calls)
    import torch

    return torch.cat(list(calls))
