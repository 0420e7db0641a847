"""How a dialect writes tool calls: patterns that are read in three ways, as grammar, by the parser and by the writer.

A **pattern** is a sequence of pieces:

================  =======================================================================================
a string          this text
``Marker(text)``  the special token of this name where the vocabulary has it, else this text
``Gap(re, w)``    text without meaning that matches ``re``; written as ``w``
``NAME``          the tool's name, as it is
``JSON_NAME``     the tool's name as a JSON string
``ARGUMENTS``     the arguments as a JSON object
``CallId(re)``    the call's id
``WithId(p)``     the pattern ``p``, which holds an id, or nothing
``Parameters``    the arguments, one after the other, in patterns of their own with ``KEY`` and ``VALUE``
================  =======================================================================================
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import TypeAlias


class Slot(Enum):
    """What a pattern leaves open."""

    NAME = "name"
    JSON_NAME = "name as JSON"
    ARGUMENTS = "arguments"
    KEY = "key"
    TYPE = "type of the value"
    VALUE = "value"


NAME, JSON_NAME, ARGUMENTS, KEY, TYPE, VALUE = Slot


@dataclass(frozen=True)
class Marker:
    """A special token by name, or the same as text for vocabularies that have no such token."""

    text: str


@dataclass(frozen=True)
class Gap:
    """Text without meaning: what matches an expression (one that says the same in Python and ECMA-262).

    Attributes:
        expression: no text after it begins like that.
        written: what is written.
    """

    expression: str
    written: str = ""


@dataclass(frozen=True)
class CallId:
    """The id of a call: what matches an expression.

    Attributes:
        expression: what it may be (the same in Python and ECMA-262).
        whole: what users see of it, with the tool's ``{name}``.
    """

    expression: str
    whole: str = "{id}"


@dataclass(frozen=True)
class WithId:
    """A pattern that is left out where the call has no id."""

    pattern: Pattern


@dataclass(frozen=True)
class Parameters:
    """Arguments one by one.

    Attributes:
        string: the pattern of an argument that is a string; its value is the string as it is.
        other: that of another value, which is JSON; the same: then the text tells which it is. ``TYPE`` in it is the
            type's name in JSON Schema, of any number ``number``.
        closing: ends the text of the piece after ``VALUE``; no string can hold it.
        is_searched: whether readers search for ``closing`` before they read JSON: then no string and no key in JSON
            can hold it, either.
        excluded: other texts that no string and no key holds.
    """

    string: Pattern
    other: Pattern
    closing: str
    is_searched: bool = False
    excluded: tuple[str, ...] = ()

    @property
    def tells_strings(self) -> bool:
        """Whether the pattern tells strings from other values."""
        return self.string != self.other


Piece: TypeAlias = "str | Marker | Gap | CallId | WithId | Parameters | Slot"
Pattern: TypeAlias = tuple[Piece, ...]
SPACE = Gap("[ ]?", " ")
"""Between the parts of JSON around a call."""


@dataclass(frozen=True)
class ToolFormat:
    """How a family of models writes tool calls.

    Attributes:
        name: as users name it.
        models: models that write it.
        calls: the patterns of one call; the first is what is written.
        begin, end: around all calls of an output, which then stand together; () for calls that stand alone.
        separator: between calls.
        bare: at the very start of an output calls may come without ``begin``; other text never begins with "{".
        text_after: whether text may follow the calls.
        harmony: messages in channels, see `structgen.core.tool_calls.harmony`.
    """

    name: str
    models: str
    calls: tuple[Pattern, ...]
    begin: Pattern = ()
    end: Pattern = ()
    separator: Pattern = ()
    bare: bool = False
    text_after: bool = True
    harmony: bool = False

    @property
    def together(self) -> bool:
        """Whether all calls of an output stand together."""
        return bool(self.begin)

    @property
    def trigger(self) -> str:
        """The text that begins a call (or all of them), and that free text does not hold."""
        first, second = (*(self.begin or self.calls[0]), "")[:2]
        return fixed(first) + (second.text if isinstance(first, str) and isinstance(second, Marker) else "")

    @property
    def parameters(self) -> Parameters | None:
        """How arguments are written one by one; None: as one JSON object."""
        return next((piece for call in self.calls for piece in call if isinstance(piece, Parameters)), None)

    def markers(self) -> tuple[str, ...]:
        """The texts of all markers, in order."""
        return tuple(
            dict.fromkeys(_markers((*self.begin, *self.separator, *self.end, *(p for c in self.calls for p in c))))
        )


def _markers(pattern: Pattern) -> Iterator[str]:
    for piece in pattern:
        if isinstance(piece, Marker):
            yield piece.text
        elif isinstance(piece, WithId):
            yield from _markers(piece.pattern)
        elif isinstance(piece, Parameters):
            yield from _markers((*piece.string, *piece.other))


def fixed(piece: Piece) -> str:
    """The text of a string or marker."""
    return piece.text if isinstance(piece, Marker) else str(piece)


def named(pattern: Pattern, name: str) -> Pattern:
    """The pattern with a tool's name in its place."""
    spelled = {NAME: name, JSON_NAME: json.dumps(name, ensure_ascii=False)}
    return tuple(spelled[piece] if piece in (NAME, JSON_NAME) else piece for piece in pattern)


def stops(pattern: Pattern, slot: Slot) -> str:
    """Characters that what stands in a slot cannot have: those that begin what follows. "" without such a slot."""
    characters = ""
    for piece, after in pairwise(pattern):
        if piece is slot:
            characters += _first(after)
    return characters


def name_expression(pattern: Parameters) -> str:
    """What names of parameters match, in Python and ECMA-262 alike: no line feed in them, no blanks around them."""
    stopping = "".join(f"\\x{ord(c):02x}" for c in dict.fromkeys(stops(pattern.string, KEY)))
    return f"[^ \\t\\r\\n{stopping}](?:[^\\n{stopping}]*[^ \\t\\r\\n{stopping}])?"


def _first(piece: Piece) -> str:
    if isinstance(piece, Parameters):
        return _first(piece.string[0])
    if isinstance(piece, WithId):
        return _first(piece.pattern[0])
    return piece.written[:1] if isinstance(piece, Gap) else fixed(piece)[:1]
