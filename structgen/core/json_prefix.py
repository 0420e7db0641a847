"""Unfinished JSON text, taken apart: what is whole of it, and the values that are still open.

Open values lie one in the other, each the last part of the one around; all that stands before them is whole.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from structgen.core.json_text import loads_exact
from structgen.errors import GenerationError

_BLANKS = re.compile(r"[ \t\r\n]*")
_TOKEN = re.compile(
    r'(?P<string>"[^"\\]*(?:\\.[^"\\]*)*")|(?P<number>-?[0-9][0-9.eE+-]*)|(?P<word>true|false|null)|(?P<mark>[][{}:,])',
    re.DOTALL,
)
_STRING = re.compile(r'"[^"\\]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\]*)*')
_DECODER = json.JSONDecoder(strict=False)


@dataclass(frozen=True)
class WholeValue:
    """A value that is finished, as its text."""

    text: str


@dataclass(frozen=True)
class OpenString:
    """A string as far as it goes, without an escape that was only begun."""

    text: str


@dataclass
class OpenArray:
    """An array as far as it goes: values of which the last may be open."""

    items: list[JsonPart] = field(default_factory=list)
    start: int = 0


@dataclass
class OpenObject:
    """An object as far as it goes: members of which the last may be open. ``key``: of a value that has not begun."""

    members: list[tuple[str, JsonPart]] = field(default_factory=list)
    start: int = 0
    key: str | None = None


JsonPart: TypeAlias = "WholeValue | OpenString | OpenArray | OpenObject"


def read_prefix(text: str) -> JsonPart | None:
    """What a text that JSON may begin with is made of; None where no value has begun.

    A number is whole where something stands after it, since digits may follow; numbers, names and keys that are not
    whole are left out. Of a text that is the beginning of no JSON, what stands before the first wrong place.
    """
    around: list[OpenArray | OpenObject] = []
    root: JsonPart | None = None

    def add(part: JsonPart) -> None:
        nonlocal root
        if not around:
            root = part
        elif isinstance(around[-1], OpenArray):
            around[-1].items.append(part)
        elif around[-1].key is not None:
            around[-1].members.append((around[-1].key, part))
            around[-1].key = None

    offset = 0
    while root is None:
        offset = _end(_BLANKS, text, offset)
        token = _TOKEN.match(text, offset)
        inner = around[-1] if around else None
        wants_key = isinstance(inner, OpenObject) and inner.key is None
        if token is None or (token.lastgroup == "number" and token.end() == len(text)):
            if text[offset : offset + 1] == '"' and not wants_key:
                add(OpenString(_decoded(text[offset : _end(_STRING, text, offset)] + '"')))
            break
        offset = token.end()
        if token.lastgroup != "mark":
            if wants_key and isinstance(inner, OpenObject):
                inner.key = _decoded(token[0])
            else:
                add(WholeValue(token[0]))
        elif token[0] in "[{":
            around.append(OpenArray(start=token.start()) if token[0] == "[" else OpenObject(start=token.start()))
        elif token[0] in "]}":
            if not around:
                break
            add(WholeValue(text[around.pop().start : offset]))
    while around:
        add(around.pop())
    return root


def opened(part: WholeValue) -> JsonPart | None:
    """The parts of a whole value, each of them whole; None for one that has none."""
    return read_prefix(part.text[:-1] + " ") if part.text[0] in "[{" else read_prefix(part.text[:-1])


def loads_partial(text: str) -> Any:
    """The value of unfinished JSON text as plain JSON values: strings as far as they go, other scalars once they are
    whole (of a number: once something stands after it); None where there is none yet."""
    return plain_value(read_prefix(text))


def plain_value(part: JsonPart | None) -> Any:
    """Plain JSON values of what there is; None where there is nothing."""
    spine: list[JsonPart] = []
    while part is not None:
        spine.append(part)
        part = _last(part)
    value: Any = None
    for depth, each in enumerate(reversed(spine)):
        if isinstance(each, WholeValue):
            value = _whole(each)
        elif isinstance(each, OpenString):
            value = each.text
        elif isinstance(each, OpenArray):
            kept = [_whole(item) for item in each.items if isinstance(item, WholeValue)]
            value = [*kept, value] if depth else kept
        else:
            members = {key: _whole(member) for key, member in each.members if isinstance(member, WholeValue)}
            value = {**members, each.members[-1][0]: value} if depth else members
    return value


def _last(part: JsonPart) -> JsonPart | None:
    """The open value in an open one."""
    if isinstance(part, OpenArray):
        last = part.items[-1] if part.items else None
    else:
        last = part.members[-1][1] if isinstance(part, OpenObject) and part.members else None
    return None if isinstance(last, WholeValue) else last


def _whole(part: WholeValue) -> Any:
    try:
        return loads_exact(part.text)
    except GenerationError:  # nested too deeply, or no JSON
        return None


def _end(pattern: re.Pattern[str], text: str, offset: int) -> int:
    match = pattern.match(text, offset)
    return offset if match is None else match.end()


def _decoded(text: str) -> str:
    """The text of a string; half of a surrogate pair at its end, whose other half may follow, is left out."""
    try:
        decoded = str(_DECODER.decode(text))
    except ValueError:
        return ""
    return decoded[:-1] if decoded and 0xD800 <= ord(decoded[-1]) < 0xDC00 else decoded
