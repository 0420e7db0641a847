"""Where in a JSON text each value stands: JSON Pointer to line and column."""

from __future__ import annotations

import contextlib
import re
from bisect import bisect_right
from json.decoder import scanstring  # type: ignore[attr-defined]

from structgen.core.json_schema.pointers import escape

_SPACE = re.compile(r"[ \t\r\n]*")
_SCALAR = re.compile(r"[^\s,\]}]+")


class TextPositions:
    """Lines and columns, both from 1, of the values of a JSON text; of a member, those of its key. Linear.

    A text that is no JSON has positions as far as it could be read.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = [0, *(match.end() for match in re.finditer("\n", text))]
        self._offsets: dict[str, int] = {}
        with contextlib.suppress(IndexError, ValueError):
            self._scan()

    def of(self, pointer: str) -> tuple[int, int]:
        """Line and column of the value at a pointer, or of the nearest one around it."""
        while pointer and pointer not in self._offsets:
            pointer = pointer.rpartition("/")[0]
        offset = self._offsets.get(pointer, 0)
        line = bisect_right(self._lines, offset)
        return line, offset - self._lines[line - 1] + 1

    def _skip(self, offset: int) -> int:
        match = _SPACE.match(self._text, offset)
        return match.end() if match else offset

    def _scan(self) -> None:
        """Without recursion: a stack of the containers that are open, each with how many items it has had."""
        text, offset = self._text, self._skip(0)
        self._offsets[""] = offset
        stack: list[tuple[str, list[int] | None]] = []  # the pointer, and the number of items of an array
        pointer = ""
        while True:
            first = text[offset]
            closed = False
            if first in "{[":
                stack.append((pointer, [0] if first == "[" else None))
                offset = self._skip(offset + 1)
                closed = text[offset] in "]}"
            elif first == '"':
                _, offset = scanstring(text, offset + 1)
            else:
                match = _SCALAR.match(text, offset)
                offset = match.end() if match else len(text)
            if not closed and first not in "{[":
                offset = self._skip(offset)
                closed = text[offset] in "]}"
                offset += text[offset] == ","
            while closed:
                stack.pop()
                if not stack:
                    return
                offset = self._skip(offset + 1)
                closed = text[offset] in "]}"
                offset += text[offset] == ","
            pointer, offset = self._member(stack[-1], self._skip(offset))

    def _member(self, container: tuple[str, list[int] | None], offset: int) -> tuple[str, int]:
        """The pointer of the next member or item, and where its value begins."""
        around, count = container
        if count is None:
            name, end = scanstring(self._text, offset + 1)
            pointer = f"{around}/{escape(name)}"
            self._offsets[pointer] = offset
            return pointer, self._skip(self._skip(end) + 1)
        pointer = f"{around}/{count[0]}"
        count[0] += 1
        self._offsets[pointer] = offset
        return pointer, offset
