"""Calls of kernels that are plain functions of arrays: they get the arrays' addresses, after a look at their types."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from structgen.core.kernels.objects import Kernel

Array = npt.NDArray[Any]
_BUFFER = ctypes.c_char * 0


class Function:
    """An operation of a kernel on C-contiguous arrays. A call costs about 1 µs and 0.3 µs for each array.

    Args:
        run: the kernel.
        operation: its number there.
        read: dtypes of the arrays that it reads.
        written: dtypes of those that come after them, which it writes.
        fields: dtypes of those that come last: vectors that it may write, such as fields of an array of records. They
            need not be contiguous: in place of the columns the kernel gets how many bytes elements lie apart.
    """

    def __init__(
        self, run: Kernel, operation: int, read: Sequence[Any], written: Sequence[Any] = (), fields: Sequence[Any] = ()
    ) -> None:
        self._run, self._operation = run, operation
        self._only_read, self._first_field = len(read), len(read) + len(written)
        self._dtypes = [np.dtype(dtype) for dtype in (*read, *written, *fields)]

    def __call__(self, *arrays: Array, x: int = 0, y: int = 0, z: int = 0) -> int:
        """What the kernel returns.

        Raises:
            TypeError: wrong arrays: another number or dtype, not contiguous, or read-only where the kernel writes.
        """
        if len(arrays) != len(self._dtypes):
            raise TypeError(f"the operation takes {len(self._dtypes)} arrays, got {len(arrays)}")
        return self.run(self.words(0, *arrays), x, y, z)

    def run(self, words: Sequence[int], x: int = 0, y: int = 0, z: int = 0) -> int:
        """The same, of the `words` of all arrays."""
        arguments = array("q", words)
        return self._run(arguments.buffer_info()[0], self._operation, x, y, z)

    def words(self, first: int, *arrays: Array) -> list[int]:
        """What the kernel gets for arrays from number ``first`` on, for those that many calls have in common.

        The arrays must live as long as the words are used. Raises TypeError as a call does.
        """
        dtypes = self._dtypes
        words: list[int] = []
        for number, one in enumerate(arrays, first):
            if one.dtype != dtypes[number]:
                raise TypeError(f"array {number} has the dtype {one.dtype}, expected {dtypes[number]}")
            if number >= self._first_field:
                words += self._field(one, number)
                continue
            try:
                address = writable_address(one)
            except TypeError:
                address = self._read_only(one, number)
            words += address, one.size, one.shape[-1]
        return words

    def _read_only(self, one: Array, number: int) -> int:
        """The address of an array that may not be written to."""
        if not one.flags.c_contiguous:
            raise TypeError(f"array {number} is not C-contiguous: its strides are {one.strides}")
        if number >= self._only_read:
            raise TypeError(f"array {number} is read-only, and the kernel writes to it")
        return int(one.ctypes.data)

    @staticmethod
    def _field(one: Array, number: int) -> tuple[int, int, int]:
        if one.ndim != 1 or not one.flags.writeable or not one.flags.aligned:
            raise TypeError(f"array {number} is no aligned vector that can be written to (its shape: {one.shape})")
        return one.ctypes.data, len(one), one.strides[0]


def writable_address(one: Array) -> int:
    """Where an array lies, in a third of the time of ``ctypes.data``. TypeError: not C-contiguous, or read-only."""
    return ctypes.addressof(_BUFFER.from_buffer(one))


def address_of(one: Array) -> int:
    """Where a C-contiguous array lies, which may be read-only."""
    try:
        return writable_address(one)
    except TypeError:
        return int(one.ctypes.data)


def grown(old: Array, fill: int) -> Array:
    """The array with as many rows again, of the value ``fill``."""
    new = np.full((2 * len(old), *old.shape[1:]), fill, old.dtype)
    new[: len(old)] = old
    return new
