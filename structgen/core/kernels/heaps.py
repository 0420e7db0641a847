"""The memory of a kernel that interns records: a heap, the tables that its header names, growth, and calls."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from structgen.core.kernels.heap_layout import (
    H_CAP,
    H_FLAG,
    H_HASH,
    H_HEAP,
    H_SINK,
    H_TOP,
    HASH_FULL,
    HEAP_FULL,
)
from structgen.core.kernels.objects import Kernel
from structgen.core.kernels.tables import KernelTable


class Heap(ABC):
    """A heap and its tables. Threads may share it: every call of the kernel is made under its lock.

    The kernel runs without the GIL, so whoever calls it holds `lock`, from the call until what it lacks is provided
    and its results are read. Whoever reads or writes records holds it too: the heap may be moved by another thread.

    Args:
        run: the kernel's entry.
        rehash: its operation that enters records into a new hash table.
        header: words of the header.
        sink: words of the sink, which lies behind the header.
        words: of the first heap.
        slots: of the first hash table, a power of two.

    Attributes:
        lock: held around every call of the kernel; reentrant.
        root: address of the word that holds the heap's address; what the kernel is called with.
        heap: header and records, int64.
    """

    def __init__(self, run: Kernel, rehash: int, header: int, sink: int, words: int, slots: int) -> None:
        self.lock = threading.RLock()
        self._run, self._rehash = run, rehash
        self._root = np.zeros(1, np.int64)
        self.root: int = self._root.ctypes.data
        self._arrays: dict[int, npt.NDArray[Any]] = {}
        self.heap = np.empty(words, np.int64)
        self.heap[: header + sink] = 0
        self.heap[H_TOP], self.heap[H_SINK] = header + sink, header
        self._place_heap()
        self._set(H_HASH, np.zeros(slots, np.int64))

    def call(self, operation: int, x: int, y: int = 0, z: int = 0) -> int:
        """Run an operation of the kernel, giving it what it asks for. Its result, at least 0."""
        with self.lock:
            while (result := self._run(self.root, operation, x, y, z)) < 0:
                self.provide(result)
            return result

    @abstractmethod
    def provide(self, result: int) -> None:
        """Give the kernel what it asked for with a negative result. The caller holds the lock."""

    def _set(self, table: int, data: npt.NDArray[Any]) -> None:
        """Enter an array into the header, as address and length in elements."""
        if isinstance(table, KernelTable):
            assert data.dtype == table.dtype, f"the table at {table:d} is of {table.dtype}, got {data.dtype}"
        self._arrays[table] = data
        self.heap[table], self.heap[table + 1] = data.ctypes.data, data.size

    def _place_heap(self) -> None:
        self._root[0] = self.heap.ctypes.data
        self.heap[H_HEAP], self.heap[H_CAP] = self.heap.ctypes.data, len(self.heap)

    def _grow_records(self) -> None:
        """Twice the heap, four times the hash table, if the flag asks for them."""
        flag = int(self.heap[H_FLAG])
        if flag & HEAP_FULL:
            grown, top = np.empty(2 * len(self.heap), np.int64), int(self.heap[H_TOP])
            grown[:top] = self.heap[:top]
            self.heap = grown
            self._place_heap()
        if flag & HASH_FULL:
            old = self._arrays[H_HASH]
            self._set(H_HASH, np.zeros(4 * len(old), np.int64))
            self._run(self.root, self._rehash, old.ctypes.data, len(old), 0)

    @property
    def _hash(self) -> npt.NDArray[np.int64]:
        """The hash table: places of records, 0 where it is free."""
        return self._arrays[H_HASH]
