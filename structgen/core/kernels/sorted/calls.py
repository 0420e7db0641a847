"""What others call of the kernel of sorted texts. Arrays of other dtypes are a TypeError."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
import numpy.typing as npt

from structgen.core.kernels.calls import Function
from structgen.core.kernels.loading import kernel
from structgen.core.kernels.sorted.layout import *
from structgen.core.kernels.sorted.tables import *

Bytes = npt.NDArray[np.uint8]
Int32 = npt.NDArray[np.int32]

run = kernel("sorted")
_TABLES = [table.dtype for table in SORTED.tables]
_tables = Function(run, FILL, _TABLES[:-1], _TABLES[-1:])
_suffixes = Function(run, SUFFIX_KINDS, [np.uint8, np.int32, np.int32], [np.int32, np.uint8, *[np.int32] * 5])
_NONE = np.zeros(0, np.int32)


def table_words(*arrays: npt.NDArray[Any]) -> array[int]:
    """What the kernel is called with, for arrays in the order of `tables`; they must live as long as it is used."""
    return array("q", _tables.words(0, *arrays))


def suffix_array(letters: Bytes | Int32, upper: int) -> Int32:
    """Where the suffixes of letters from 0 to ``upper`` begin, in their order; a beginning comes first. Linear."""
    count = len(letters)
    if not count:
        return _NONE
    half = (count >> 1) + 1
    suffix, begins = np.empty(count, np.int32), np.zeros((count >> 3) + 1, np.uint8)
    counts = [np.empty(upper + 2, np.int32) for _ in range(3)]
    in_order, ranks = np.empty(half, np.int32), np.empty(half, np.int32)
    as_bytes, as_ranks = (letters, _NONE) if letters.dtype == np.uint8 else (_NONE.view(np.uint8), letters)

    def call(operation: int, given: Int32) -> int:
        arrays = (as_bytes, as_ranks, given, suffix, begins, *counts, in_order, ranks)
        words = array("q", _suffixes.words(0, *arrays))
        return run(words.buffer_info()[0], operation, upper, 0, 0)

    number = call(SUFFIX_KINDS, _NONE)
    places = np.flatnonzero(np.unpackbits(begins, bitorder="little")).astype(np.int32)
    call(SUFFIX_INDUCE, places)
    if number > 1:
        highest = call(SUFFIX_RANKS, _NONE)
        order = in_order[:number]
        if highest + 1 < number:
            order = places[suffix_array(ranks[places >> 1], highest)]
        call(SUFFIX_INDUCE, order)
    return suffix
