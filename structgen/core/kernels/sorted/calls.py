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

Int32 = npt.NDArray[np.int32]

run = kernel("sorted")
_TABLES = [table.dtype for table in SORTED.tables]
_tables = Function(run, FILL, _TABLES[:-1], _TABLES[-1:])
_suffixes = Function(run, SUFFIX_KINDS, [np.int32] * 2, [np.int32, np.uint8, *[np.int32] * 7])
SMALL = 3  # letters whose suffixes Python sorts


def table_words(*arrays: npt.NDArray[Any]) -> array[int]:
    """What the kernel is called with, for arrays in the order of `tables`; they must live as long as it is used."""
    return array("q", _tables.words(0, *arrays))


def suffix_array(letters: Int32, upper: int) -> Int32:
    """Where the suffixes of letters from 0 to ``upper`` begin, in their order; a beginning comes first. Linear."""
    count = len(letters)
    if count < SMALL:
        values = letters.tolist()
        return np.array(sorted(range(count), key=lambda i: values[i:]), np.int32)
    suffix, rising = np.empty(count, np.int32), np.empty(count, np.uint8)
    falls, rises, spare = (np.empty(upper + 2, np.int32) for _ in range(3))
    numbers, begins = np.empty(count, np.int32), np.empty(count // 2 + 1, np.int32)
    ordered, ranks = np.zeros(count // 2 + 1, np.int32), np.zeros(count // 2 + 1, np.int32)
    arrays = (suffix, rising, falls, rises, numbers, begins, spare, ordered, ranks)

    def call(operation: int, given: Int32, x: int, y: int = 0) -> int:
        words = array("q", _suffixes.words(0, letters, given, *arrays))
        return run(words.buffer_info()[0], operation, x, y, 0)

    number = call(SUFFIX_KINDS, begins, upper)
    call(SUFFIX_INDUCE, begins, upper, number)
    if number > 1:
        highest = call(SUFFIX_NAMES, begins, number)
        if highest + 1 < number:
            order = suffix_array(ranks[:number], highest)
        else:
            order = np.argsort(ranks[:number], kind="stable").astype(np.int32)
        call(SUFFIX_INDUCE, begins[order], upper, number)
    return suffix
