"""Where cyllama's context keeps its logits: the package gives them as lists of numbers only, which take a fifth of a
small model's token to make.

The address is looked for once, in the context's own memory, by what the package gave; it is trusted once it has shown
the same numbers after two different calls. Where it is not found (another system than Linux, another layout), lists it
is. All other memory is read through the system, which refuses addresses that are none.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any

import numpy as np
import numpy.typing as npt

OBJECT_WORDS = 16  # of the package's object that are looked at
CONTEXT_WORDS = 1024  # of what these point to
ANY = 1 << 30  # rows of a call
TRIES = 4  # calls, after which nothing is looked for any more
MEMORY = "/proc/self/mem"
_WORD = 8


class LogitsMemory:
    """Logits of a context, without a list.

    Args:
        context: the package's.
        width: of a row of logits.
    """

    def __init__(self, context: Any, width: int) -> None:
        self._context, self._width = context, width
        self._tries = TRIES
        self._seen: list[bytes] = []  # beginnings of the rows that were compared
        self._fields: list[int] | None = None  # addresses that may be it
        self._field = 0  # of ``struct {float *data; size_t size;}``; 0: not known
        self._most = 1  # rows of a call that were compared

    def read(self, count: int) -> npt.NDArray[np.float32] | None:
        """The logits of the last call, of which so many were wanted: a view until the next call; None: they are
        not known to be there, see ``learn``."""
        if not self._field or count > self._most:
            return None
        self._context.get_embeddings()  # none; what is pending is done first, and rows come in the order of the tokens
        data, size = (ctypes.c_uint64 * 2).from_address(self._field)
        if not self._fits(data, size, count):
            self._field, self._tries = 0, 0
            return None
        held = (ctypes.c_float * (count * self._width)).from_address(data)
        return np.frombuffer(memoryview(held), np.float32).reshape(count, self._width)

    def learn(self, logits: npt.NDArray[np.float32]) -> None:
        """The package gave these rows for the last call."""
        if self._field and len(logits) > self._most:
            self._most = ANY if self._agrees(self._field, logits) else 1
        if self._field or not self._tries or not len(logits):
            return
        self._tries -= 1
        try:
            if self._fields is None:
                self._fields = self._candidates()
            self._fields = [field for field in self._fields if self._agrees(field, logits)]
        except OSError:
            self._tries = 0
            return
        self._seen.append(logits[0].tobytes())
        if len(self._fields) == 1 and len(set(self._seen)) >= 2:
            self._field = self._fields[0]
            self._most = ANY if len(logits) > 1 else 1
        elif not self._fields:
            self._tries = 0

    def _fits(self, data: int, size: int, count: int) -> bool:
        """Whether this may be room for so many rows."""
        return data > 0 and data % 4 == 0 and size % self._width == 0 and size >= count * self._width

    def _candidates(self) -> list[int]:
        """Addresses that hold an address and a number of logits, in what the package's object points to."""
        words = min(OBJECT_WORDS, type(self._context).__basicsize__ // _WORD)
        addresses = []
        for address in np.frombuffer(_read(id(self._context), words * _WORD), np.uint64).tolist():
            if address % _WORD or not (held := _read_some(address, CONTEXT_WORDS * _WORD)):
                continue
            values = np.frombuffer(held, np.uint64)
            sizes = np.flatnonzero((values[1:] > 0) & (values[1:] % self._width == 0) & (values[1:] < 1 << 40))
            addresses += [
                address + _WORD * int(index)
                for index in sizes
                if self._fits(int(values[index]), int(values[index + 1]), 1)
            ]
        return addresses

    def _agrees(self, field: int, logits: npt.NDArray[np.float32]) -> bool:
        """Whether these rows are where the field says."""
        held = _read_some(field, 2 * _WORD)
        if len(held) < 2 * _WORD:
            return False
        data, size = np.frombuffer(held, np.uint64).tolist()
        return self._fits(data, size, len(logits)) and _read_some(data, logits.nbytes) == logits.tobytes()


def _read(address: int, count: int) -> bytes:
    """Bytes of this process, fewer where its memory ends.

    Raises:
        OSError: there are none, or the system does not tell.
    """
    file = os.open(MEMORY, os.O_RDONLY)
    try:
        return os.pread(file, count, address)
    finally:
        os.close(file)


def _read_some(address: int, count: int) -> bytes:
    """As ``_read``; nothing where there is nothing."""
    try:
        return _read(address, count)
    except (OSError, OverflowError):
        return b""
