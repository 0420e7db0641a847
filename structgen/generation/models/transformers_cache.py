"""The cache of a transformers model: sequences padded on the left, holes where sequences kept different numbers of
tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

# Sequences that keep different numbers of draft tokens leave unused columns after. They are closed up (which copies the
# whole cache) once there are more than this share of all columns.
MAX_UNUSED_SHARE = 0.25


class TransformersCache:
    """A ``DynamicCache`` in which not every column of every sequence is a token.

    Attributes:
        cache: the ``DynamicCache``; its columns are shared by the sequences.
        valid: bool tensor [sequences, columns], which columns are tokens of the sequence; None: all of them.
        sequences: how many sequences.
        appended: columns that the last call of the model added.
    """

    def __init__(self, cache: Any, sequences: int, valid: Any = None) -> None:
        self.cache, self.sequences, self.valid = cache, sequences, valid
        self.appended = 0

    @property
    def length(self) -> int:
        """Columns, unused ones included."""
        return int(self.cache.get_seq_length())

    def counts(self) -> Any:
        """Tokens in each sequence: int64 tensor [sequences], or an int where all sequences are full."""
        return self.length if self.valid is None else self.valid.sum(dim=1)

    def held(self) -> Any:
        """Which columns hold a token of the sequence: bool [sequences, length], on the host."""
        if self.valid is None:
            return np.ones((self.sequences, self.length), dtype=np.bool_)
        return self.valid.cpu().numpy()

    def grow(self, columns: int) -> None:
        """Note that the model is about to append ``columns`` tokens to every sequence."""
        self.appended = columns
        if self.valid is not None:
            import torch

            self.valid = torch.cat([self.valid, self.valid.new_ones(self.sequences, columns)], dim=1)

    def crop(self, length: int) -> None:
        """Forget all but the first ``length`` columns of every sequence."""
        surplus = self.length - length
        if surplus > 0:
            self.cache.crop(-surplus)  # transformers 5: a negative count of tokens to remove
            if self.valid is not None:
                self.valid = self.valid[:, :length]

    def select(self, sequences: Sequence[int]) -> None:
        """Keep these sequences only, in this order."""
        import torch

        device = self.layers()[0].keys.device
        self.cache.batch_select_indices(torch.tensor(list(sequences), device=device))
        self.sequences = len(sequences)
        if self.valid is not None:
            self.valid = self.valid[list(sequences)]
            self._simplify()

    def keep(self, kept: Sequence[Sequence[int]]) -> None:
        """Of the columns that the last call appended, keep these of each sequence, in this order; sequences may differ
        in number.

        The keys and values of tokens move as they are: their positions are those of their depth in the tree. O(tokens
        kept), and O(cache) when unused columns are closed up.
        """
        import torch

        base = self.length - self.appended
        width = max(map(len, kept))
        if any(list(sequence) != list(range(len(sequence))) for sequence in kept):
            device = self.layers()[0].keys.device
            columns = [[*sequence, *[0] * (width - len(sequence))] for sequence in kept]
            self._gather(torch.tensor(columns, device=device), base)
        self.crop(base + width)
        if any(len(sequence) < width for sequence in kept):
            self._mark_unused([len(sequence) for sequence in kept], base, width)
        self.appended = 0

    def close_up(self, first: int, kept: Sequence[int]) -> None:
        """See ``VisibleCache.close_up``."""
        self.appended = self.length - first
        self.keep([kept] * self.sequences)

    def layers(self) -> list[Any]:
        """The layers that hold keys and values (a model that skips layers leaves some empty)."""
        return [layer for layer in self.cache.layers if layer.is_initialized]

    def _gather(self, columns: Any, base: int) -> None:
        """Write columns ``base + columns[sequence]`` of each sequence to the columns from ``base`` on."""
        import torch

        width = columns.shape[1]
        with torch.inference_mode():
            for layer in self.layers():
                for tensor in (layer.keys, layer.values):
                    if self.sequences == 1:
                        tensor[:, :, base : base + width] = tensor[:, :, base + columns[0]]
                    else:
                        index = (base + columns)[:, None, :, None].expand(-1, tensor.shape[1], -1, tensor.shape[3])
                        tensor[:, :, base : base + width] = tensor.gather(2, index)

    def _mark_unused(self, counts: Sequence[int], base: int, width: int) -> None:
        import torch

        device = self.layers()[0].keys.device
        if self.valid is None:
            self.valid = torch.ones(self.sequences, base + width, dtype=torch.bool, device=device)
        arrived = torch.arange(width, device=device)[None] < torch.tensor(counts, device=device)[:, None]
        self.valid[:, base : base + width] = arrived
        needed = int(self.valid.sum(dim=1).max())
        if base + width - needed > MAX_UNUSED_SHARE * (base + width):
            self._close_up(needed)

    def _close_up(self, needed: int) -> None:
        """Move every sequence's tokens to the left, in order, and drop the columns that no sequence needs."""
        import torch

        order = torch.argsort((~self.valid).to(torch.int8), dim=1, stable=True)[:, :needed]
        with torch.inference_mode():
            for layer in self.layers():
                index = order[:, None, :, None].expand(-1, layer.keys.shape[1], -1, layer.keys.shape[3])
                layer.keys, layer.values = layer.keys.gather(2, index), layer.values.gather(2, index)
        self.valid = self.valid.gather(1, order)
        self._simplify()

    def _simplify(self) -> None:
        """Forget ``valid`` where it says nothing."""
        if bool(self.valid.all()):
            self.valid = None
