"""How a dialect writes tool calls: patterns that are read in three ways, as grammar, by the parser and by the writer.

A **pattern** is a sequence of pieces:

===================  =======================================================================================
a string             this text
``Marker(text)``     the special token of this name where the vocabulary has it, else this text
``Gap(re, w)``       text without meaning that matches ``re``; written as ``w``
``NAME``             the tool's name, as it is
``JSON_NAME``        the tool's name as a JSON string
``ARGUMENTS``        the arguments as a JSON object
``CallId(re)``       the call's id
``WithId(p)``        the pattern ``p``, which holds an id, or nothing
``Parameters``       the arguments, one after the other, in patterns of their own with ``KEY`` and ``VALUE``
``NestedArguments``  the same, and members and items in arguments are written so, too
===================  =======================================================================================
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from itertools import pairwise
from typing import TypeAlias


class Slot(Enum):
    """What a pattern leaves open."""

    NAME = "name"
    JSON_NAME = "name as JSON"
    ARGUMENTS = "arguments"
    KEY = "key"
    SPELLED_KEY = "key as a string"
    TYPE = "type of the value"
    VALUE = "value"


NAME, JSON_NAME, ARGUMENTS, KEY, SPELLED_KEY, TYPE, VALUE = Slot


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
        first: what is written of the first call that has none.
    """

    expression: str
    whole: str = "{id}"
    first: int = 0


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
        misread: an expression of strings that readers take for something else (the same in Python and ECMA-262).
    """

    string: Pattern
    other: Pattern
    closing: str
    is_searched: bool = False
    excluded: tuple[str, ...] = ()
    misread: str = ""

    @property
    def distinguishes_strings(self) -> bool:
        """Whether the pattern tells strings from other values."""
        return self.string != self.other


@dataclass(frozen=True)
class Quotes:
    """How a string is spelled: between two marks.

    Attributes:
        mark: stands before and after it.
        escaped: whether characters are escaped as in Python; else the string stands there as it is.
    """

    mark: str | Marker
    escaped: bool = False


@dataclass(frozen=True)
class ValueSpelling:
    """How values are spelled that JSON spells otherwise. Numbers are JSON's.

    Attributes:
        strings: the quotes that strings may have, the first of which are written; (): none, strings as they are.
        null, true, false: these.
    """

    strings: tuple[Quotes, ...] = ()
    null: str = "null"
    true: str = "true"
    false: str = "false"


@dataclass(frozen=True)
class Forms:
    """How a member or an item is written, by what its value is. Each pattern has one ``VALUE``.

    Attributes:
        string, scalar: of a string; of a number, null, true or false.
        object, array: ``VALUE`` is the members, or items, one after the other.
    """

    string: Pattern
    scalar: Pattern
    object: Pattern
    array: Pattern


@dataclass(frozen=True)
class NestedArguments:
    """Arguments one by one, and all that is in them.

    Where the patterns of two kinds of values are the same, the text tells which it is: what begins as a member or item
    is an object or array; an empty text is a string if that is allowed, else an array, else an object; text that reads
    as JSON of a type that is allowed is that; all other text is a string.

    Attributes:
        argument: of the arguments, with ``KEY``.
        member: of members of objects, with ``KEY`` or ``SPELLED_KEY``.
        item: of items of arrays.
        spelled: the spelling of strings, null, true and false.
        names: an expression that names match that stand in ``KEY`` (the same in Python and ECMA-262).
        closing: no string can hold it, where strings have no quotes.
        separator: between members, and between items.
        reserved: names that cannot stand in ``KEY``.
    """

    argument: Forms
    member: Forms
    item: Forms
    spelled: ValueSpelling
    names: str
    closing: str = ""
    separator: Pattern = ()
    reserved: frozenset[str] = frozenset()

    @property
    def by_schema(self) -> bool:
        """Whether the schema is needed to read what is written."""
        return self.item.string == self.item.object


Piece: TypeAlias = "str | Marker | Gap | CallId | WithId | Parameters | NestedArguments | Slot"
Pattern: TypeAlias = tuple[Piece, ...]
CHANNELS = ("commentary", "analysis", "final")
"""Where calls of Harmony may stand; they are written in the first."""
SPACE = Gap("[ ]?", " ")
"""Between the parts of JSON around a call."""


@dataclass(frozen=True)
class Channel:
    """What stands around free text, which is before all calls.

    Attributes:
        begin: may stand before it: prompts end with it, or not.
        end: stands after it, also where it is empty.
        last: may end the output.
    """

    begin: Pattern
    end: Pattern
    last: Pattern


@dataclass(frozen=True)
class ToolFormat:
    """How a family of models writes tool calls.

    Attributes:
        name: as users name it.
        models: models that write it.
        calls: the patterns of one call; the first is what is written.
        begin, end: around all calls of an output, which then stand together; () for calls that stand alone.
        separator: between calls.
        bare: what is around calls at the very start of an output, where it may be other than ``begin`` and ``end``; ""
            for nothing. Other text never begins as they do.
        names: an expression that names of tools match; None: they hold no blanks, nor what follows them.
        text_after: whether text may follow the calls.
        harmony: messages in channels, see `structgen.core.tool_calls.harmony`.
        channel: what stands around free text; None: nothing.
    """

    name: str
    models: str
    calls: tuple[Pattern, ...]
    begin: Pattern = ()
    end: Pattern = ()
    separator: Pattern = ()
    bare: tuple[str, str] | None = None
    names: str | None = None
    text_after: bool = True
    harmony: bool = False
    channel: Channel | None = None

    @property
    def together(self) -> bool:
        """Whether all calls of an output stand together."""
        return bool(self.begin) or self.bare is not None

    @property
    def bare_begins(self) -> str:
        """The character with which calls begin at the very start of an output; "" where ``bare`` says nothing."""
        return "" if self.bare is None else (self.bare[0] or fixed(self.calls[0][0]))[0]

    @property
    def trigger(self) -> str:
        """The text that begins a call (or all of them), and that free text does not hold; "": calls are bare."""
        if self.bare is not None and not self.begin:
            return ""
        if self.channel is not None:
            return written(self.begin)
        first, second = (*(self.begin or self.calls[0]), "")[:2]
        return fixed(first) + (second.text if isinstance(first, str) and isinstance(second, Marker) else "")

    @property
    def parameters(self) -> Parameters | NestedArguments | None:
        """How arguments are written one by one; None: as one JSON object."""
        return next(
            (piece for call in self.calls for piece in call if isinstance(piece, Parameters | NestedArguments)), None
        )

    def markers(self) -> tuple[str, ...]:
        """The texts of all markers, in order."""
        around = () if self.channel is None else (*self.channel.begin, *self.channel.end, *self.channel.last)
        return tuple(
            dict.fromkeys(
                _markers((*around, *self.begin, *self.separator, *self.end, *(p for c in self.calls for p in c)))
            )
        )


def _markers(pattern: Pattern) -> Iterator[str]:
    for piece in pattern:
        if isinstance(piece, Marker):
            yield piece.text
        elif isinstance(piece, WithId):
            yield from _markers(piece.pattern)
        elif isinstance(piece, Parameters | NestedArguments):
            for inner in patterns_of(piece):
                yield from _markers(inner)


def patterns_of(arguments: Parameters | NestedArguments) -> tuple[Pattern, ...]:
    """All patterns in which arguments are written one by one, with what separates them and marks their strings."""
    if isinstance(arguments, Parameters):
        return arguments.string, arguments.other
    forms = arguments.argument, arguments.member, arguments.item
    kinds = (pattern for form in forms for pattern in (form.string, form.scalar, form.object, form.array))
    return *kinds, arguments.separator, tuple(quotes.mark for quotes in arguments.spelled.strings)


def changed(
    arguments: Parameters | NestedArguments, change: Callable[[Pattern], Pattern]
) -> Parameters | NestedArguments:
    """Arguments with the pattern of each kind of value changed."""
    if isinstance(arguments, Parameters):
        return replace(arguments, string=change(arguments.string), other=change(arguments.other))

    def of(forms: Forms) -> Forms:
        return Forms(*(change(each) for each in (forms.string, forms.scalar, forms.object, forms.array)))

    argument, member, item = map(of, (arguments.argument, arguments.member, arguments.item))
    return replace(arguments, argument=argument, member=member, item=item)


def fixed(piece: Piece) -> str:
    """The text of a string or marker."""
    return piece.text if isinstance(piece, Marker) else str(piece)


def written(pattern: Pattern) -> str:
    """The text of a pattern without slots, as it is written."""
    return "".join(piece.written if isinstance(piece, Gap) else fixed(piece) for piece in pattern)


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
    if isinstance(piece, NestedArguments):
        return _first(piece.argument.string[0])
    if isinstance(piece, WithId):
        return _first(piece.pattern[0])
    return piece.written[:1] if isinstance(piece, Gap) else fixed(piece)[:1]
