"""Keys and values by sequence: each sequence has memory of its own, so that sequences come, go and grow without
touching others.

Imports torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from structgen.generation.models.prefix_cache import Layers, PrefixTree

ROOM = 64  # tokens that a sequence can grow by before its memory is copied for the first time
GROWTH = 1.5


class _Held:
    """One sequence.

    Attributes:
        tokens: what it holds.
        appended: how many of them the last call of the model added.
        buffers: keys and values by layer, [heads, room, width] each.
    """

    __slots__ = ("appended", "buffers", "tokens")

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.appended = 0
        self.buffers: Layers = {}

    @property
    def bytes(self) -> int:
        return sum(tensor.numel() * tensor.element_size() for pair in self.buffers.values() for tensor in pair)

    def held(self) -> Layers:
        """Views of what is held."""
        count = len(self.tokens)
        return {layer: (keys[:, :count], values[:, :count]) for layer, (keys, values) in self.buffers.items()}


class KvStore:
    """The keys and values of many sequences, and of prefixes that new sequences begin with. Not for several threads at
    once.

    Args:
        prefix_bytes: what prefixes may take; 0: none are kept.
    """

    def __init__(self, prefix_bytes: int = 0) -> None:
        self._sequences: dict[int, _Held] = {}
        self._next = 0
        self._held_bytes = 0
        self.prefixes = PrefixTree(prefix_bytes)

    @property
    def bytes(self) -> int:
        """Memory of all sequences and prefixes, unused room included."""
        return self._held_bytes + self.prefixes.bytes

    def length(self, sequence: int) -> int:
        """Tokens that a sequence holds."""
        return len(self._sequences[sequence].tokens)

    def open(self, tokens: Sequence[int] = (), salt: str = "") -> tuple[int, int]:
        """See ``RaggedReader.open``. O(known prefix) of copying memory."""
        made = _Held()
        number = self._next
        self._next, self._sequences[number] = number + 1, made
        start = 0
        for count, layers in self.prefixes.match(tokens[:-1], salt):
            for layer, (keys, values) in layers.items():
                buffers = self._room(made, layer, start, count, len(tokens) + ROOM, keys, values)
                with torch.inference_mode():
                    for mine, tensor in zip(buffers, (keys, values), strict=True):
                        mine[:, start : start + count] = tensor
            start += count
        made.tokens = list(tokens[:start])
        return number, start

    def append(self, sequence: int, layer: int, keys: Any, values: Any) -> tuple[Any, Any]:
        """Write keys and values [heads, n, width] after what a sequence holds; views of all [heads, held + n, width].

        They count once ``advance`` was called, which is after all layers have written.
        """
        held = self._sequences[sequence]
        start, count = len(held.tokens), keys.shape[1]
        mine = self._room(held, layer, start, count, start + count + ROOM, keys, values)
        mine[0][:, start : start + count] = keys
        mine[1][:, start : start + count] = values
        return mine[0][:, : start + count], mine[1][:, : start + count]

    def advance(self, sequence: int, tokens: Sequence[int]) -> None:
        """Tokens whose keys and values were written are held now."""
        held = self._sequences[sequence]
        held.tokens += tokens
        held.appended = len(tokens)

    def keep(self, sequence: int, kept: Sequence[int]) -> None:
        """See ``RaggedReader.keep``. O(kept tokens) of copying memory; nothing where they are the first."""
        held = self._sequences[sequence]
        base = len(held.tokens) - held.appended
        if list(kept) != list(range(len(kept))):
            columns = [base + index for index in kept]
            with torch.inference_mode():
                for pair in held.buffers.values():
                    for tensor in pair:
                        tensor[:, base : base + len(kept)] = tensor[:, columns]
        held.tokens[base:] = [held.tokens[base + index] for index in kept]
        held.appended = 0

    def fork(self, sequence: int) -> int:
        """A new sequence that holds what this one does. O(tokens) of copying memory."""
        source, twin = self._sequences[sequence], _Held()
        twin.tokens = source.tokens.copy()
        twin.buffers = {layer: (keys.clone(), values.clone()) for layer, (keys, values) in source.buffers.items()}
        number = self._next
        self._next, self._sequences[number] = number + 1, twin
        self._held_bytes += twin.bytes
        return number

    def drop(self, sequence: int) -> None:
        """Forget a sequence."""
        self._held_bytes -= self._sequences.pop(sequence).bytes

    def remember(self, sequence: int, salt: str = "") -> None:
        """See ``RaggedReader.remember``. O(tokens not known before) of copying memory."""
        held = self._sequences[sequence]
        if self.prefixes.max_bytes:
            self.prefixes.add(held.tokens, held.held(), salt)

    def _room(
        self, sequence: _Held, layer: int, held: int, count: int, room: int, keys: Any, values: Any
    ) -> tuple[Any, Any]:
        """A layer's buffers of a sequence with room for ``count`` tokens after ``held``; made like ``keys`` and
        ``values``, for ``room`` tokens, where there are none."""
        pair = sequence.buffers.get(layer)
        if pair is not None and pair[0].shape[1] >= held + count:
            return pair
        size = room if pair is None else max(int(GROWTH * pair[0].shape[1]), held + count + ROOM)
        made = tuple(like.new_empty((like.shape[0], size, like.shape[2])) for like in (keys, values))
        if pair is not None:
            for new, old in zip(made, pair, strict=True):
                new[:, :held] = old[:, :held]
                self._held_bytes -= old.numel() * old.element_size()
        self._held_bytes += sum(tensor.numel() * tensor.element_size() for tensor in made)
        sequence.buffers[layer] = (made[0], made[1])
        return sequence.buffers[layer]
