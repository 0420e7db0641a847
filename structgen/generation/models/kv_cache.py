"""Keys and values by row: each row has memory of its own, so that rows come, go and grow without touching others.

Imports torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from structgen.generation.models.prefix_cache import Layers, PrefixTree

ROOM = 64  # tokens that a row can grow by before its memory is copied for the first time
GROWTH = 1.5


class _Row:
    """One row.

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


class RowStore:
    """The keys and values of many rows, and of prefixes that new rows begin with. Not for several threads at once.

    Args:
        prefix_bytes: what prefixes may take; 0: none are kept.
    """

    def __init__(self, prefix_bytes: int = 0) -> None:
        self._rows: dict[int, _Row] = {}
        self._next = 0
        self._row_bytes = 0
        self.prefixes = PrefixTree(prefix_bytes)

    @property
    def bytes(self) -> int:
        """Memory of all rows and prefixes, unused room included."""
        return self._row_bytes + self.prefixes.bytes

    def length(self, row: int) -> int:
        """Tokens that a row holds."""
        return len(self._rows[row].tokens)

    def open(self, tokens: Sequence[int] = (), salt: str = "") -> tuple[int, int]:
        """See ``RaggedReader.open``. O(known prefix) of copying memory."""
        made = _Row()
        number = self._next
        self._next, self._rows[number] = number + 1, made
        start = 0
        for count, layers in self.prefixes.match(tokens[:-1], salt):
            for layer, (keys, values) in layers.items():
                own = self._room(made, layer, start, count, len(tokens) + ROOM, keys, values)
                with torch.inference_mode():
                    for mine, known in zip(own, (keys, values), strict=True):
                        mine[:, start : start + count] = known
            start += count
        made.tokens = list(tokens[:start])
        return number, start

    def append(self, row: int, layer: int, keys: Any, values: Any) -> tuple[Any, Any]:
        """Write keys and values [heads, n, width] after what a row holds; views of all [heads, held + n, width].

        They count once ``advance`` was called, which is after all layers have written.
        """
        own = self._rows[row]
        start, count = len(own.tokens), keys.shape[1]
        mine = self._room(own, layer, start, count, start + count + ROOM, keys, values)
        mine[0][:, start : start + count] = keys
        mine[1][:, start : start + count] = values
        return mine[0][:, : start + count], mine[1][:, : start + count]

    def advance(self, row: int, tokens: Sequence[int]) -> None:
        """Tokens whose keys and values were written are held now."""
        own = self._rows[row]
        own.tokens += tokens
        own.appended = len(tokens)

    def keep(self, row: int, kept: Sequence[int]) -> None:
        """See ``RaggedReader.keep``. O(kept tokens) of copying memory; nothing where they are the first."""
        own = self._rows[row]
        base = len(own.tokens) - own.appended
        if list(kept) != list(range(len(kept))):
            columns = [base + index for index in kept]
            with torch.inference_mode():
                for pair in own.buffers.values():
                    for tensor in pair:
                        tensor[:, base : base + len(kept)] = tensor[:, columns]
        own.tokens[base:] = [own.tokens[base + index] for index in kept]
        own.appended = 0

    def fork(self, row: int) -> int:
        """A new row that holds what this one does. O(tokens) of copying memory."""
        own, twin = self._rows[row], _Row()
        twin.tokens = own.tokens.copy()
        twin.buffers = {layer: (keys.clone(), values.clone()) for layer, (keys, values) in own.buffers.items()}
        number = self._next
        self._next, self._rows[number] = number + 1, twin
        self._row_bytes += twin.bytes
        return number

    def drop(self, row: int) -> None:
        """Forget a row."""
        self._row_bytes -= self._rows.pop(row).bytes

    def remember(self, row: int, salt: str = "") -> None:
        """See ``RaggedReader.remember``. O(tokens not known before) of copying memory."""
        own = self._rows[row]
        if self.prefixes.max_bytes:
            self.prefixes.add(own.tokens, own.held(), salt)

    def _room(self, row: _Row, layer: int, held: int, count: int, room: int, keys: Any, values: Any) -> tuple[Any, Any]:
        """A layer's buffers of a row with room for ``count`` tokens after ``held``; made like ``keys`` and ``values``,
        for ``room`` tokens, where there are none."""
        pair = row.buffers.get(layer)
        if pair is not None and pair[0].shape[1] >= held + count:
            return pair
        size = room if pair is None else max(int(GROWTH * pair[0].shape[1]), held + count + ROOM)
        made = tuple(like.new_empty((like.shape[0], size, like.shape[2])) for like in (keys, values))
        if pair is not None:
            for new, old in zip(made, pair, strict=True):
                new[:, :held] = old[:, :held]
                self._row_bytes -= old.numel() * old.element_size()
        self._row_bytes += sum(tensor.numel() * tensor.element_size() for tensor in made)
        row.buffers[layer] = (made[0], made[1])
        return row.buffers[layer]
