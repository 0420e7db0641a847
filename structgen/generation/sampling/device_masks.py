"""Masks on a device: rows that repeat live in a table there, and a step sends their numbers.

String bodies, whitespace and forced punctuation have the same masks again and again. Rows are found by their content:
a hash finds the slot, and a comparison with what was sent there decides, so a collision costs a transfer and never a
wrong mask.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from structgen.errors import BitmaskError
from structgen.generation.sampling.sampler import Bitmask

TABLE_BYTES = 64 << 20
_ALIGNED_WORDS = 4  # rows begin at multiples of 16 bytes, so that kernels load four words at once
_HEAD = _ALIGNED_WORDS  # words before a row in a transfer: the first is its slot
Key = tuple[int, int]


class SentMasks:
    """Masks that are on the way to a device, or there.

    Attributes:
        rows: int32 [S, at least W] on the device.
        slots: int32 [M], on the host: the row of each mask.
        words: W.
    """

    __slots__ = ("__weakref__", "_table", "rows", "slots", "words")

    def __init__(
        self, rows: torch.Tensor, slots: npt.NDArray[np.int32], words: int, table: MaskTable | None = None
    ) -> None:
        self.rows, self.slots, self.words, self._table = rows, slots, words, table

    def wait(self) -> None:
        """What the device is given from now on begins after the masks have come."""
        if self._table is not None:
            self._table.wait()

    def used(self) -> None:
        """What reads the masks has been launched: rows may be written over after it."""
        if self._table is not None:
            self._table.used()


def send_once(bitmask: Bitmask, device: torch.device) -> SentMasks:
    """All rows as they are, without a table; without a copy if the device is the CPU."""
    mask = check_bitmask(bitmask)
    rows = torch.from_numpy(mask if mask.flags.writeable else mask.copy())
    return SentMasks(rows.to(device), np.arange(len(mask), dtype=np.int32), mask.shape[1])


def check_bitmask(bitmask: Any) -> Bitmask:
    """A bitmask as contiguous int32 [M, W].

    Raises:
        BitmaskError: another dtype or shape.
    """
    if not isinstance(bitmask, np.ndarray) or bitmask.dtype != np.int32 or bitmask.ndim != 2:
        what = f"{getattr(bitmask, 'dtype', type(bitmask).__name__)} of shape {getattr(bitmask, 'shape', ())}"
        raise BitmaskError(f"the bitmask is {what}; wanted a numpy array, int32 [rows, words]")
    return np.ascontiguousarray(bitmask)


class MaskTable:
    """Rows of masks on a device, bounded; the row that was not used for longest gives way.

    ``rows`` and ``numbers`` keep their addresses, so CUDA graphs and compiled functions may hold them. New rows go from
    pinned memory over a stream of their own, while what was launched before runs; ``wait`` orders what reads them. Not
    for several threads at once.

    Args:
        words: of a row.
        device: where the table is.
        max_bytes: of the table; at least one row is kept.
        max_rows: rows of a step at most, for ``numbers``.

    Attributes:
        rows: int32 [capacity, words or a few more], zero after a row's end.
        numbers: int32 [max_rows], what ``place`` wrote.
        transferred: bytes sent so far.
        hits, misses: rows that were there, and that were not.
    """

    def __init__(
        self, words: int, device: torch.device | str, *, max_bytes: int = TABLE_BYTES, max_rows: int = 1024
    ) -> None:
        self.device = torch.device(device)
        self.words = words
        self.transferred = self.hits = self.misses = 0
        width = -(-words // _ALIGNED_WORDS) * _ALIGNED_WORDS
        capacity = max(1, max_bytes // (4 * width))
        self.rows = torch.zeros(capacity, width, dtype=torch.int32, device=self.device)
        self.numbers = torch.zeros(max_rows, dtype=torch.int32, device=self.device)
        self._sent = np.zeros((capacity, width), np.int32)  # what is in the table, for comparison
        self._slot_of: dict[Key, int] = {}
        self._order: OrderedDict[int, Key | None] = OrderedDict.fromkeys(range(capacity))  # least recently used first
        self._pins = np.zeros(capacity, np.int32)  # masks in use that a slot serves
        self._odd = np.random.default_rng(0).integers(0, 1 << 63, width // 2, np.uint64) * np.uint64(2) + np.uint64(1)
        self._stream = _SideStream(self.device)

    def __len__(self) -> int:
        return len(self._slot_of)

    def send(self, bitmask: Bitmask) -> SentMasks:
        """Begin to bring the rows of ``bitmask``, int32 [M, words], that are not there. Its content may change after.

        Rows stay as long as what is returned lives. Where they do not fit beside those in use, all are sent apart.
        """
        given = check_bitmask(bitmask)
        if given.shape[1] != self.words:
            raise BitmaskError(f"the bitmask has {given.shape[1]} words a row; the table was made for {self.words}")
        rows = given
        if self._sent.shape[1] != self.words:
            rows = np.zeros((len(given), self._sent.shape[1]), np.int32)
            rows[:, : self.words] = given
        keys = self._keys(rows)
        slots = self._known(rows, keys)
        missing = np.flatnonzero(slots < 0).tolist()
        np.add.at(self._pins, slots[slots >= 0], 1)
        new = self._enter(rows, keys, slots, missing)
        if new is None:
            np.subtract.at(self._pins, slots[slots >= 0], 1)
            return self._send_apart(given)
        self.hits += len(rows) - len(new)
        self.misses += len(new)
        if new:
            self._copy(new)
        sent = SentMasks(self.rows, slots, self.words, self)
        weakref.finalize(sent, _unpin, self._pins, slots).atexit = False
        return sent

    def place(self, sent: SentMasks) -> torch.Tensor:
        """Write the rows' numbers to ``numbers``; what is returned is its beginning, int32 [M]."""
        count = len(sent.slots)
        if sent.rows is not self.rows or count > len(self.numbers):
            raise BitmaskError(
                f"{count} masks are not all in the table of {len(self.rows)} rows and {len(self.numbers)} numbers; "
                f"give it more room (max_bytes, max_rows)"
            )
        pinned = torch.from_numpy(sent.slots)
        pinned = pinned.pin_memory() if self.device.type == "cuda" else pinned
        self.numbers[:count].copy_(pinned, non_blocking=True)
        self.transferred += 4 * count
        return self.numbers[:count]

    def wait(self) -> None:
        """The current stream goes on after the rows sent so far have come."""
        self._stream.join()

    def used(self) -> None:
        """The current stream has been given all that reads the rows sent so far."""
        self._stream.mark()

    def _keys(self, rows: npt.NDArray[np.int32]) -> list[Key]:
        """128 bits of each row: a product with odd numbers, and the exclusive or of its words."""
        pairs = rows.view(np.uint64)
        mixed = pairs >> np.uint64(31)  # without it, the highest bits of all words would count alike
        mixed ^= pairs
        products = np.einsum("ij,j->i", mixed, self._odd)
        return list(zip(products.tolist(), np.bitwise_xor.reduce(pairs, axis=1).tolist(), strict=True))

    def _known(self, rows: npt.NDArray[np.int32], keys: Sequence[Key]) -> npt.NDArray[np.int32]:
        """The slots of rows that are in the table, int32 [M]; -1 for others."""
        slots = np.array([self._slot_of.get(key, -1) for key in keys], np.int32)
        if slots.size and slots.max() >= 0:
            slots[(rows != self._sent[np.maximum(slots, 0)]).any(axis=1)] = -1
        for slot in slots[slots >= 0].tolist():
            self._order.move_to_end(slot)
        return slots

    def _enter(
        self, rows: npt.NDArray[np.int32], keys: Sequence[Key], slots: npt.NDArray[np.int32], missing: list[int]
    ) -> list[int] | None:
        """Give slots, pinned, to the rows that have none; those that have to be filled, or None if they do not fit."""
        free = iter(list(islice((slot for slot in self._order if not self._pins[slot]), len(missing))))
        new: list[int] = []
        for row in missing:
            slot = self._slot_of.get(keys[row], -1)
            if slot < 0 or not np.array_equal(rows[row], self._sent[slot]):
                taken = next(free, None)
                if taken is None:
                    self._forget(new)
                    return None
                slot = taken
                self._replace(slot, keys[row], rows[row])
                new.append(slot)
            slots[row] = slot
            self._pins[slot] += 1
        return new

    def _replace(self, slot: int, key: Key, row: npt.NDArray[np.int32]) -> None:
        old = self._order[slot]
        if old is not None and self._slot_of.get(old) == slot:
            del self._slot_of[old]
        self._slot_of[key] = slot
        self._order[slot] = key
        self._order.move_to_end(slot)
        self._sent[slot] = row

    def _forget(self, slots: Sequence[int]) -> None:
        """Slots whose rows were entered, and are not going to be sent."""
        for slot in slots:
            key = self._order[slot]
            if key is not None and self._slot_of.get(key) == slot:
                del self._slot_of[key]
            self._order[slot] = None

    def _copy(self, slots: list[int]) -> None:
        """Bring the rows of ``_sent`` at ``slots`` to the table, in one transfer."""
        packed = torch.empty(
            len(slots), _HEAD + self._sent.shape[1], dtype=torch.int32, pin_memory=self.device.type == "cuda"
        )
        host = packed.numpy()
        host[:, 0] = slots
        np.take(self._sent, slots, axis=0, out=host[:, _HEAD:])
        with self._stream.after_use():
            there = packed.to(self.device, non_blocking=True)
            self.rows.index_copy_(0, there[:, 0].long(), there[:, _HEAD:])
        self.transferred += host.nbytes

    def _send_apart(self, bitmask: Bitmask) -> SentMasks:
        self.misses += len(bitmask)
        self.transferred += bitmask.nbytes
        sent = send_once(bitmask, self.device)
        return SentMasks(sent.rows.clone() if self.device.type == "cpu" else sent.rows, sent.slots, self.words)


def _unpin(pins: npt.NDArray[np.int32], slots: npt.NDArray[np.int32]) -> None:
    np.subtract.at(pins, slots, 1)


class _SideStream:
    """A stream for transfers, on devices that have streams; on others what is given to them runs in order anyway."""

    def __init__(self, device: torch.device) -> None:
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None  # type: ignore[no-untyped-call]
        self._device = device
        self._last_use: Any = None
        self._arrived: Any = None

    @contextmanager
    def after_use(self) -> Iterator[None]:
        """What is launched inside runs on the stream, after the last use of what it writes to."""
        if self._stream is None:
            yield
            return
        if self._last_use is not None:
            self._stream.wait_event(self._last_use)
        with torch.cuda.stream(self._stream):
            yield
        self._arrived = self._stream.record_event()

    def join(self) -> None:
        if self._arrived is not None:
            torch.cuda.current_stream(self._device).wait_event(self._arrived)

    def mark(self) -> None:
        if self._stream is not None:
            self._last_use = torch.cuda.current_stream(self._device).record_event()
