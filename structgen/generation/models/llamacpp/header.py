"""Values in the head of a GGUF file: llama.cpp's packages give single values as text, and no arrays.

The layout (ggml, GGUF 2 and 3), all in little endian: magic, version, number of tensors, number of pairs; then
each pair: key, type, value. A text is its length in bytes and UTF-8; an array the type and number of its elements.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Collection
from pathlib import Path
from typing import Any, NoReturn

from structgen.errors import ModelError
from structgen.generation.models.llamacpp.files import check_gguf

_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 10: "Q", 11: "q", 12: "d"}
_BOOL, _TEXT, _ARRAY = 7, 8, 9
_MOST_NESTED = 4  # arrays within arrays; files have none


def read_values(path: Path, wanted: Collection[str]) -> dict[str, Any]:
    """The values of those of the ``wanted`` keys that the file has: numbers, texts, and lists of them.

    Raises:
        ModelError: it is no GGUF file, or one whose head is damaged; what is wrong, and at which byte.
    """
    check_gguf(path)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        head = _Head(path, data)
        head.at = 8
        head.number("Q")  # tensors
        values: dict[str, Any] = {}
        for _ in range(head.number("Q")):
            key = head.text()
            if key in values:
                head.refuse(f"the key {key!r:.100} a second time")
            value = head.value(head.number("I"), key in wanted)
            if key in wanted:
                values[key] = value
        return values


def texts_of(path: Path, values: dict[str, Any], key: str) -> list[str]:
    """The texts under a key.

    Raises:
        ModelError: there is something else.
    """
    value = values.get(key)
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        what = "nothing" if value is None else f"{value!r:.60}"
        raise ModelError(f"{path} has {what} under {key}; expected a list of texts. Convert the model's file anew.")
    return value


class _Head:
    """A place in the bytes of a file."""

    def __init__(self, path: Path, data: mmap.mmap) -> None:
        self._path, self._data, self.at = path, data, 0

    def refuse(self, what: str) -> NoReturn:
        """Say what is wrong.

        Raises:
            ModelError: that.
        """
        raise ModelError(f"The head of {self._path} has {what}, at byte {self.at}. Download the file again.")

    def number(self, code: str) -> Any:
        """A number of this format (see ``struct``)."""
        start = self._skip(struct.calcsize(f"<{code}"))
        return struct.unpack_from(f"<{code}", self._data, start)[0]

    def text(self) -> str:
        """A text."""
        length = self.number("Q")
        start = self._skip(length)
        try:
            return self._data[start : start + length].decode()
        except UnicodeDecodeError:
            self.at = start
            self.refuse("a text that is no UTF-8")

    def value(self, kind: int, kept: bool, nested: int = 0) -> Any:
        """A value of this type; None if it is not ``kept``."""
        if kind in _NUMBERS:
            return self.number(_NUMBERS[kind])
        if kind == _BOOL:
            return bool(self.number("B"))
        if kind == _TEXT:
            return self.text() if kept else self._skip(self.number("Q")) and None
        if kind != _ARRAY or nested == _MOST_NESTED:
            self.refuse(f"a value of type {kind}" if kind != _ARRAY else "arrays within arrays within arrays")
        inner, count = self.number("I"), self.number("Q")
        code = "B" if inner == _BOOL else _NUMBERS.get(inner)
        if code is None:
            values = [self.value(inner, kept, nested + 1) for _ in self._counted(count)]
            return values if kept else None
        start = self._skip(count * struct.calcsize(f"<{code}"))
        return list(struct.unpack_from(f"<{count}{code}", self._data, start)) if kept else None

    def _counted(self, count: int) -> range:
        """The numbers of elements of at least eight bytes each."""
        if count > (len(self._data) - self.at) // 8:
            self.refuse(f"an array of {count} elements, more than the file has room for")
        return range(count)

    def _skip(self, size: int) -> int:
        """Go past so many bytes; where they begin."""
        if size > len(self._data) - self.at:
            self.refuse(f"a value of {size} bytes where the file has {len(self._data) - self.at} more")
        self.at += size
        return self.at - size
