"""What a draw brings to the device: requests as arrays, and arrays packed so that one transfer carries them all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from structgen.errors import BitmaskError
from structgen.generation.sampling.params import SamplingParams
from structgen.generation.sampling.penalties import Adjustments
from structgen.generation.sampling.sampler import Choices, DrawRequest
from structgen.generation.sampling.uniforms import uniforms

Ints = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float32]
_ALIGNED = 16  # bytes; views of any dtype may begin there


@dataclass(frozen=True, slots=True)
class Entries:
    """Logits that bias and penalties change, of all rows of a batch.

    Attributes:
        rows, token_ids: int32 [n]; a pair occurs once.
        bias, factor, minus: float32 [n], as in ``Adjustments``.
    """

    rows: Ints
    token_ids: Ints
    bias: Floats
    factor: Floats
    minus: Floats

    @staticmethod
    def of(adjustments: Sequence[Adjustments | None]) -> Entries | None:
        """Of the rows that have some; None if none has. O(entries)."""
        some = [(row, each) for row, each in enumerate(adjustments) if each is not None and len(each.token_ids)]
        if not some:
            return None
        rows = np.repeat([row for row, _ in some], [len(each.token_ids) for _, each in some])
        columns = (np.concatenate([getattr(each, name) for _, each in some]) for name in Adjustments.__slots__)
        ids, bias, factor, minus = columns
        return Entries(rows.astype(np.int32), ids.astype(np.int32), bias, factor, minus)

    def take(self, chosen: npt.NDArray[Any], rows: Ints | None = None) -> Entries:
        """Those that an index or a Boolean array names; ``rows`` in place of theirs."""
        kept = Entries(*(getattr(self, name)[chosen] for name in Entries.__slots__))
        return kept if rows is None else replace(kept, rows=rows)


@dataclass(frozen=True, slots=True)
class Batch:
    """R tokens to be drawn, as arrays.

    Attributes:
        params: the different ones; which: int64 [R], each row's.
        logits_rows, mask_rows: int32 [R].
        uniforms: float64 [R], each row's random number.
        entries: bias and penalties; None: none.
    """

    params: tuple[SamplingParams, ...]
    which: npt.NDArray[np.int64]
    logits_rows: Ints
    mask_rows: Ints
    uniforms: npt.NDArray[np.float64]
    entries: Entries | None = None

    def __len__(self) -> int:
        return len(self.which)

    @staticmethod
    def of(requests: Sequence[DrawRequest]) -> Batch:
        """The arrays of a list of requests. O(requests + entries)."""
        kinds, which = distinct([request.params for request in requests])
        numbers = uniforms(
            np.array([request.seed for request in requests], np.uint64), [request.position for request in requests]
        )
        return Batch(
            kinds,
            which,
            np.array([request.logits_row for request in requests], np.int32),
            np.array([request.mask_row for request in requests], np.int32),
            numbers,
            Entries.of([request.adjustments for request in requests]),
        )

    def take(self, rows: npt.NDArray[np.int64]) -> Batch:
        """Some of the rows, in the order given."""
        entries = self.entries
        if entries is not None:
            new_index = np.full(len(self), -1, np.int32)
            new_index[rows] = np.arange(len(rows), dtype=np.int32)
            chosen = new_index[entries.rows] >= 0
            entries = entries.take(chosen, new_index[entries.rows[chosen]]) if chosen.any() else None
        return Batch(
            self.params, self.which[rows], self.logits_rows[rows], self.mask_rows[rows], self.uniforms[rows], entries
        )

    def column(self, name: str, default: float = 0.0) -> npt.NDArray[np.float64]:
        """An attribute of the rows' params, float64 [R]; ``default`` where it is None."""
        values = [getattr(params, name) for params in self.params]
        return np.array([default if value is None else value for value in values], np.float64)[self.which]

    def checked(self, logits_rows: int, mask_rows: int, columns: int) -> Batch:
        """The batch, without the entries of tokens that no mask reaches, for kernels that look at no bounds.

        Raises:
            BitmaskError: a row that is not among so many rows of logits or masks.
        """
        for name, rows, bound in (("logits", self.logits_rows, logits_rows), ("masks", self.mask_rows, mask_rows)):
            if len(rows) and not (rows.min() >= 0 and rows.max() < bound):
                raise BitmaskError(f"rows {rows.min()} to {rows.max()} of {name} were asked for; there are {bound}")
        entries = self.entries
        if entries is None:
            return self
        inside = (entries.token_ids >= 0) & (entries.token_ids < columns)
        return self if inside.all() else replace(self, entries=entries.take(inside) if inside.any() else None)


def distinct(params: Sequence[SamplingParams]) -> tuple[tuple[SamplingParams, ...], npt.NDArray[np.int64]]:
    """The different ones, and each one's place among them, int64 [R].

    By identity: comparing values costs more than drawing twice.
    """
    places: dict[int, int] = {}
    kept: list[SamplingParams] = []
    which = np.empty(len(params), np.int64)
    for row, each in enumerate(params):
        index = places.setdefault(id(each), len(kept))
        if index == len(kept):
            kept.append(each)
        which[row] = index
    return tuple(kept), which


def transfer(arrays: Sequence[npt.NDArray[Any]], device: torch.device) -> tuple[list[torch.Tensor], int]:
    """Arrays on the device, brought there in one piece (from pinned memory where the device has it), and its bytes."""
    starts, size = [], 0
    for array in arrays:
        starts.append(size)
        size += -(-array.nbytes // _ALIGNED) * _ALIGNED
    packed = torch.empty(max(size, _ALIGNED), dtype=torch.uint8, pin_memory=device.type == "cuda")
    host = packed.numpy()
    for start, array in zip(starts, arrays, strict=True):
        host[start : start + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    sent = packed.to(device, non_blocking=True)
    parts = []
    for start, array in zip(starts, arrays, strict=True):
        dtype = torch.from_numpy(np.empty(0, array.dtype)).dtype
        parts.append(sent[start : start + array.nbytes].view(dtype).view(array.shape))
    return parts, size


def choices(drawn: npt.NDArray[Any], *, kept: bool) -> Choices:
    """``Choices`` of what samplers bring up: floating [R, 3], token id (exact), log-probability, log of what was
    kept."""
    return Choices(
        drawn[:, 0].astype(np.int64),
        drawn[:, 1].astype(np.float64),
        drawn[:, 2].astype(np.float64) if kept else None,
    )
