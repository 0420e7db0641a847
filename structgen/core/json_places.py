"""Which values of a JSON text are open, byte by byte, while it is being written."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Self

from structgen.core.json_schema.pointers import escape

_BLANKS = frozenset(b" \t\r\n")
_NUMBER = frozenset(b"-+.eE0123456789")
_MORE_BLANKS = re.compile(rb"[ \t\r\n]*")
_MORE_OF_NUMBER = re.compile(rb"[-+.eE0-9]*")
_MORE_OF_STRING = re.compile(rb'(?:[^"\\]|\\.)*(?:"|$)', re.DOTALL)
_MARKS = re.compile(rb'"(?:[^"\\]|\\.)*(?:"|$)|[][{}]', re.DOTALL)
_WORDS = {ord("t"): 3, ord("f"): 4, ord("n"): 3}  # letters after the first


@dataclass(eq=False, slots=True)
class OpenValue:
    """A value that has begun, or may begin next: after the ``:``, ``[`` or ``,`` before it.

    Attributes:
        pointer: JSON Pointer (RFC 6901).
        kind: "": it has not begun; then what it is, by its first byte: one of ``{["0w`` (w: a word).
        index: of the item that comes next, of an array.
        key: of the member that comes next, of an object: its text as far as it goes; None: no key has begun.
        missing: of a word: letters; of a string or key: 1 after a backslash.
    """

    pointer: str
    kind: str = ""
    index: int = 0
    key: bytes | None = None
    missing: int = 0
    is_key_whole: bool = False


@dataclass
class JsonPlaces:
    """The values that are open at the end of a text, outer ones first. The text must be the beginning of JSON."""

    values: list[OpenValue] = field(default_factory=lambda: [OpenValue("")])

    def copy(self) -> tuple[Self, dict[OpenValue, OpenValue]]:
        """The same state, and the values of the copy by these."""
        copies = {each: _copied(each) for each in self.values}
        return type(self)(list(copies.values())), copies

    def ends(self, completion: bytes, outermost: int = 0) -> list[int]:
        """Where a text that completes the values closes each, from ``values[outermost]`` on, outer ones first: bytes.

        A step for each bracket and string of the text.
        """
        ends = list[int]()
        for value in reversed(self.values[outermost:]):
            ends.append(_end_of_brackets(completion, ends[-1]) if ends else _end_of(value, completion))
        return ends[::-1]

    def read(self, data: bytes) -> list[OpenValue]:
        """Go on with these bytes: the values that hold at least one of them, outer ones first in their order."""
        touched: dict[OpenValue, None] = {}
        for byte in data:
            for each in self._step(byte):
                touched[each] = None
        return list(touched)

    def _step(self, byte: int) -> list[OpenValue]:
        """Read a byte: the values that it is part of."""
        if not self.values:
            return []
        last = self.values[-1]
        is_over = byte not in _NUMBER if last.kind == "0" else not last.kind and byte == ord("]")
        if is_over:  # a number before what follows it; an item that might have come
            self.values.pop()
        if not self.values:
            return []
        holding = list(self.values)
        self._go_on(self.values[-1], byte)
        return holding

    def _go_on(self, last: OpenValue, byte: int) -> None:
        if not last.kind:
            self._begin(last, byte)
        elif last.kind == "w":
            last.missing -= 1
            if not last.missing:
                self.values.pop()
        elif last.kind == '"':
            if _is_closed(last, byte):
                self.values.pop()
        elif last.kind == "{":
            self._in_object(last, byte)
        elif last.kind == "[":
            self._in_array(last, byte)

    def _begin(self, last: OpenValue, byte: int) -> None:
        if byte in _BLANKS:
            return
        if byte in _WORDS:
            last.kind, last.missing = "w", _WORDS[byte]
        elif byte in b'{["':
            last.kind = chr(byte)
        else:
            last.kind = "0"
        if last.kind == "[":
            self.values.append(OpenValue(f"{last.pointer}/0"))

    def _in_array(self, last: OpenValue, byte: int) -> None:
        if byte == ord("]"):
            self.values.pop()
        elif byte == ord(","):
            last.index += 1
            self.values.append(OpenValue(f"{last.pointer}/{last.index}"))

    def _in_object(self, last: OpenValue, byte: int) -> None:
        if last.key is not None and not last.is_key_whole:
            last.is_key_whole = _is_closed(last, byte)
            last.key += bytes([byte])
        elif byte == ord("}"):
            self.values.pop()
        elif byte == ord('"'):
            last.key, last.is_key_whole = b'"', False
        elif byte == ord(":"):
            name = json.loads((last.key or b'""').decode(errors="replace"), strict=False)
            last.key = None
            self.values.append(OpenValue(f"{last.pointer}/{escape(name)}"))


def _is_closed(text: OpenValue, byte: int) -> bool:
    """Whether a byte ends the string that is open; it is noted whether the next one is escaped."""
    is_escaped, text.missing = text.missing, 0
    if is_escaped:
        return False
    text.missing = int(byte == ord("\\"))
    return byte == ord('"')


def _end_of(value: OpenValue, text: bytes) -> int:
    """Where the innermost value ends in what completes it."""
    if value.kind == '"':
        return _after(_MORE_OF_STRING, text, value.missing)
    if value.kind == "w":
        return min(value.missing, len(text))
    if value.kind == "0":
        return _after(_MORE_OF_NUMBER, text, 0)
    if value.kind:
        in_key = value.key is not None and not value.is_key_whole
        return _end_of_brackets(text, _after(_MORE_OF_STRING, text, value.missing) if in_key else 0)
    begin = _after(_MORE_BLANKS, text, 0)
    first = text[begin : begin + 1]
    if first in (b"]", b""):  # an item that might have come
        return begin
    if first in (b"{", b"["):
        return _end_of_brackets(text, begin + 1)
    if first == b'"':
        return _after(_MORE_OF_STRING, text, begin + 1)
    word = _WORDS.get(first[0])
    return begin + 1 + word if word is not None else _after(_MORE_OF_NUMBER, text, begin)


def _end_of_brackets(text: bytes, start: int) -> int:
    """Where the array or object ends in which the text stands at an offset, between two of its marks."""
    depth = 0
    for match in _MARKS.finditer(text, start):
        mark = match[0]
        if mark in (b"]", b"}"):
            depth -= 1
            if depth < 0:
                return match.end()
        elif mark in (b"[", b"{"):
            depth += 1
    return len(text)


def _after(pattern: re.Pattern[bytes], text: bytes, start: int) -> int:
    """Where what a pattern takes at an offset ends."""
    match = pattern.match(text, start)
    return len(text) if match is None else match.end()


def _copied(value: OpenValue) -> OpenValue:
    return OpenValue(value.pointer, value.kind, value.index, value.key, value.missing, value.is_key_whole)
