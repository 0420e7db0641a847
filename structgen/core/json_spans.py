"""Where the values of a JSON text stand: the bytes of each, by JSON Pointer."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace

from structgen.core.json_schema.pointers import escape

_BLANKS = re.compile(rb"[ \t\r\n]*")
_TOKEN = re.compile(
    rb'(?P<string>"[^"\\]*(?:\\.[^"\\]*)*")|(?P<scalar>-?[0-9][0-9.eE+-]*|true|false|null)|(?P<mark>[][{}:,])',
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class ValueSpan:
    """A value of a JSON text.

    Attributes:
        pointer: JSON Pointer (RFC 6901).
        start: offset after the ``:``, ``[`` or ``,`` before the value; where the text begins for the whole.
        begin, end: offsets of its first byte and after its last.
    """

    pointer: str
    start: int
    begin: int
    end: int


@dataclass(slots=True)
class _Container:
    """An array or object that is open: which span is its own, and where it stands inside."""

    span: int
    is_array: bool
    index: int = 0
    key: str | None = None


def value_spans(data: bytes, offset: int = 0) -> list[ValueSpan]:
    """All values of the JSON text that begins at ``offset``, blanks before it included, in the order of the text, each
    before what is in it. Of a text that ends early, or is no JSON, what stands whole before that."""
    spans: list[ValueSpan] = []
    stack: list[_Container] = []
    start = position = offset
    while True:
        position = _after(_BLANKS, data, position)
        token = _TOKEN.match(data, position)
        if token is None:
            return _whole(spans)
        position, mark, inner = token.end(), token[0], stack[-1] if stack else None
        if mark in (b"]", b"}"):
            if inner is None:
                return _whole(spans)
            spans[stack.pop().span] = replace(spans[inner.span], end=position)
        elif mark == b"," and inner is not None:
            inner.index, inner.key, start = inner.index + 1, None, position
            continue
        elif mark == b":":
            start = position
            continue
        elif inner is not None and not inner.is_array and inner.key is None:
            if token.lastgroup != "string":
                return _whole(spans)
            inner.key = json.loads(mark.decode(errors="replace"), strict=False)
            continue
        else:
            is_open = token.lastgroup == "mark"
            spans.append(ValueSpan(_pointer(spans, stack), start, token.start(), -1 if is_open else position))
            if is_open:
                stack.append(_Container(len(spans) - 1, mark == b"["))
                start = position
        if not stack:
            return _whole(spans)


def _pointer(spans: list[ValueSpan], stack: list[_Container]) -> str:
    """Of the value that comes next."""
    if not stack:
        return ""
    inner = stack[-1]
    return f"{spans[inner.span].pointer}/{inner.index if inner.is_array else escape(inner.key or '')}"


def _whole(spans: list[ValueSpan]) -> list[ValueSpan]:
    return [span for span in spans if span.end >= 0]


def _after(pattern: re.Pattern[bytes], data: bytes, position: int) -> int:
    match = pattern.match(data, position)
    return position if match is None else match.end()


def matches(pattern: str, pointer: str) -> bool:
    """Whether a pointer is one that a pattern means: ``*`` stands for any index or name."""
    wanted, parts = pattern.split("/"), pointer.split("/")
    return len(wanted) == len(parts) and all(each in ("*", part) for each, part in zip(wanted, parts, strict=True))
