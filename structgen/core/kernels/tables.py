"""How tables are declared: each once, in one line, for kernels that read it and for engines that enter its array.

A table is an array that kernels find by a header (`structgen.core.kernels.memory`). ``flags = HEADER.table(INT32)``
makes it a number, the place in the header where its address stands; behind that stands its length in elements. In
kernels it is a function as well: ``flags(m, index)``. This module does not import numba, so that engines need none.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

ARGUMENT_WORDS = 3  # of an array that is an argument: address, elements, columns (`structgen.core.kernels.calls`)
UINT8, INT32, INT64 = np.dtype(np.uint8), np.dtype(np.int32), np.dtype(np.int64)


class KernelTable(int):
    """Where a header holds a table's address. In kernels ``table(m, index)`` is an element, as int64."""

    dtype: np.dtype[np.generic]

    def __new__(cls, field: int, dtype: np.dtype[np.generic]) -> KernelTable:
        """A table of a dtype at a place."""
        table = super().__new__(cls, field)
        table.dtype = dtype
        return table

    def __getnewargs__(self) -> tuple[int, np.dtype[np.generic]]:  # type: ignore[override]
        """What it is made of again in another process."""
        return int(self), self.dtype

    __call__: Callable[[int, int], int]


class Writer:
    """In kernels, ``writer(m, index, value)`` writes an element of a table, given as int64."""

    def __init__(self, table: KernelTable) -> None:
        self.table = table

    __call__: Callable[[int, int, int], None]


class Header:
    """Hands out the places of a header, one after another.

    Attributes:
        size: words so far.
        tables: declared so far.
    """

    def __init__(self, first: int = 0, words: int = 2) -> None:
        self.size, self._words = first, words
        self.tables: list[KernelTable] = []

    def table(self, dtype: np.dtype[np.generic]) -> KernelTable:
        """A table that kernels only read."""
        table = KernelTable(self.size, dtype)
        self.size += self._words
        self.tables.append(table)
        return table

    def writable(self, dtype: np.dtype[np.generic]) -> tuple[KernelTable, Writer]:
        """A table, and what writes to it."""
        table = self.table(dtype)
        return table, Writer(table)

    def numbers(self, count: int) -> range:
        """Places of so many numbers."""
        self.size += count
        return range(self.size - count, self.size)

    def buffer(self, dtype: np.dtype[np.generic]) -> KernelTable:
        """A table that is filled from its beginning; behind its length stands how much of it is."""
        table = self.table(dtype)
        self.size += 1
        return table
