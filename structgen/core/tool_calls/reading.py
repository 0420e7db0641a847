"""From the text of an output to its free text and calls: patterns read as a parser.

The parser asks less than the grammar: the values of arguments are not checked, so that outputs written without the
grammar can be read, too. What it finds in an output of the grammar is what the grammar meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from structgen.core.json_prefix import loads_partial
from structgen.core.json_schema.formula.values import ANY, STRING
from structgen.core.json_text import decode_exact
from structgen.core.tool_calls.arguments import TYPE_NAMES, kinds_of, members_of
from structgen.core.tool_calls.calls import CallPieces, Calls, ToolCall
from structgen.core.tool_calls.definitions import Tool
from structgen.core.tool_calls.harmony import end_of_call, next_header
from structgen.core.tool_calls.nested_reading import NestedReader
from structgen.core.tool_calls.patterns import (
    ARGUMENTS,
    KEY,
    TYPE,
    VALUE,
    CallId,
    Gap,
    Marker,
    NestedArguments,
    Parameters,
    Pattern,
    WithId,
    fixed,
    name_expression,
    named,
    written,
)
from structgen.core.tool_calls.values import is_json

BLANKS = " \t\r\n"
_UNDECIDED = re.compile(r"\s*(?:-?[0-9.eE+-]*|n(?:u(?:ll?)?)?|t(?:r(?:ue?)?)?|f(?:a(?:l(?:se?)?)?)?)\s*").fullmatch
"""Whether text may still become a number, null, true or false."""


class _Fields(NamedTuple):
    """What was read of a call."""

    arguments: dict[str, Any]
    id: str | None = None


_NOTHING = _Fields({})


class CallReader:
    """Reads one text.

    Attributes:
        unfinished: the call in which the text ends, as far as it was written; None if it ends elsewhere.
    """

    def __init__(self, calls: Calls, text: str) -> None:
        self._calls, self._format, self._text = calls, calls.format, text
        self.unfinished: ToolCall | None = None

    def read(self) -> tuple[CallPieces, int | None]:
        """Free text and calls, and where what should be a call and is none begins, if any.

        Text around calls that is only blanks is left out.
        """
        pieces: CallPieces = []
        position, wrong = 0, None
        while (begin := self._next(position)) is not None:
            pieces.append(self._text[position:begin])
            calls, end = self._together(begin) if self._format.together else self._alone(begin)
            pieces += calls
            if end is None:
                position = wrong = begin
                break
            position = end
        if wrong is None:
            pieces.append(self._text[position:])
        pieces = [self._of_channel(piece) if isinstance(piece, str) else piece for piece in pieces]
        has_calls = any(isinstance(piece, ToolCall) for piece in pieces)
        return [p for p in pieces if not isinstance(p, str) or p.strip() or (p and not has_calls)], wrong

    def _of_channel(self, text: str) -> str:
        """Free text without what stands around it."""
        channel = self._format.channel
        if channel is None:
            return text
        text = text.removesuffix(written(channel.last)).removesuffix(written(channel.end))
        return text.removeprefix(written(channel.begin))

    # --- where calls are ---
    def _next(self, position: int) -> int | None:
        """Where the next calls begin."""
        if self._format.harmony:
            return next_header(self._text, position)
        if position == 0 and self._is_bare():
            return 0
        if not self._format.trigger:
            return None
        index = self._text.find(self._format.trigger, position)
        return None if index < 0 else index

    def _is_bare(self) -> bool:
        begins = self._format.bare_begins
        return bool(begins) and self._text.lstrip(BLANKS).startswith(begins)

    def _alone(self, position: int) -> tuple[list[ToolCall], int | None]:
        one = self._call(position)
        if one is None:
            return [], None
        return [one[0]], end_of_call(self._text, one[1]) if self._format.harmony else one[1]

    def _together(self, position: int) -> tuple[list[ToolCall], int | None]:
        calls: list[ToolCall] = []
        begin, after = self._format.begin, self._format.end
        if position == 0 and self._is_bare() and self._format.bare is not None:
            begin, after = (self._format.bare[0],), (self._format.bare[1],)
            position = len(self._text) - len(self._text.lstrip(BLANKS))
        begun = self._fixed(begin, position)
        while begun is not None:
            one = self._call(begun)
            if one is None:
                return calls, None
            calls.append(one[0])
            end = self._fixed(after, one[1])
            if end is not None and any(after):
                return calls, end
            begun = self._fixed(self._format.separator, one[1])
            if begun is None and end is not None:
                return calls, end
        return calls, None

    def _fixed(self, pattern: Pattern, position: int) -> int | None:
        matched = self._match(pattern, position, None, _NOTHING)
        return None if matched is None else matched[1]

    # --- one call ---
    def _call(self, position: int) -> tuple[ToolCall, int] | None:
        for tool in self._calls.tools:
            for pattern in self._format.calls:
                matched = self._match(named(pattern, tool.name), position, tool, _NOTHING)
                if matched is not None:
                    self.unfinished = None
                    fields, end = matched
                    return ToolCall(tool.name, fields.arguments, fields.id), end
        return None

    def _match(self, pattern: Pattern, position: int, tool: Tool | None, fields: _Fields) -> tuple[_Fields, int] | None:
        """What a pattern finds at a place, and where it ends."""
        for number, piece in enumerate(pattern):
            remaining = pattern[number + 1 :]
            if isinstance(piece, str | Marker):
                if not self._text.startswith(fixed(piece), position):
                    return None
                position += len(fixed(piece))
            elif isinstance(piece, Gap | CallId):
                text = _compiled(piece.expression).match(self._text, position)
                if text is None:
                    return None
                position = text.end()
                if isinstance(piece, CallId) and tool is not None:
                    fields = fields._replace(id=piece.whole.format(name=tool.name, id=text[0]))
            elif piece is TYPE:
                name = next((name for name in TYPE_NAMES.values() if self._text.startswith(name, position)), None)
                if name is None:
                    return None
                position += len(name)
            elif isinstance(piece, WithId):
                with_id = self._match((*piece.pattern, *remaining), position, tool, fields)
                if with_id is not None:
                    return with_id
            elif piece is ARGUMENTS:
                assert tool is not None
                return self._object(remaining, position, tool, fields)
            elif isinstance(piece, NestedArguments):
                assert tool is not None
                inside = self._nested(piece, position, tool)
                if inside is None:
                    return None
                position, fields = inside[0], fields._replace(arguments=inside[1])
            else:
                assert isinstance(piece, Parameters) and tool is not None
                position, arguments = self._parameters(piece, position, tool)
                fields = fields._replace(arguments=arguments)
        return fields, position

    def _object(self, remaining: Pattern, position: int, tool: Tool, fields: _Fields) -> tuple[_Fields, int] | None:
        """Arguments as a JSON object, and what follows it."""
        value = self._json(position)
        if value is None:
            self._note(tool, loads_partial(self._text[position:]))
            return None
        if not isinstance(value[0], dict):
            return None
        self._note(tool, value[0])
        for end in self._ends_of_json(value[1]):
            matched = self._match(remaining, end, tool, fields._replace(arguments=value[0]))
            if matched is not None:
                return matched
        return None

    def _json(self, position: int) -> tuple[Any, int] | None:
        while position < len(self._text) and self._text[position] in BLANKS:
            position += 1
        return decode_exact(self._text, position)

    def _ends_of_json(self, position: int) -> Iterator[int]:
        """Where what follows JSON may begin: after it, and after each blank."""
        yield position
        while position < len(self._text) and self._text[position] in BLANKS:
            position += 1
            yield position

    def _note(self, tool: Tool, arguments: Any) -> None:
        if isinstance(arguments, dict):
            self.unfinished = ToolCall(tool.name, arguments)

    # --- arguments one by one ---
    def _parameters(self, pattern: Parameters, position: int, tool: Tool) -> tuple[int, dict[str, Any]]:
        """The arguments from a place on, and where they end."""
        arguments: dict[str, Any] = {}
        self._note(tool, arguments)
        forms = [pattern.string, pattern.other] if pattern.distinguishes_strings else [pattern.string]
        while True:
            for form in forms:
                is_string = form is pattern.string if pattern.distinguishes_strings else None
                one = self._parameter(pattern, form, position, tool, is_string, arguments)
                if one is not None:
                    break
            if one is None:
                return position, arguments
            name, value, position = one
            arguments = {**arguments, name: value}
            self._note(tool, arguments)

    def _nested(self, pattern: NestedArguments, position: int, tool: Tool) -> tuple[int, dict[str, Any]] | None:
        """The end of arguments that are written so, and the arguments; None: one of them has no end."""
        arguments: dict[str, Any] = {}
        self._note(tool, arguments)
        cases = members_of(tool, self._calls.options_of(tool)).cases if pattern.by_schema else None
        end = NestedReader(self._text, pattern, self._fixed).arguments(position, arguments, cases)
        return None if end is None else (end, arguments)

    def _parameter(
        self,
        pattern: Parameters,
        form: Pattern,
        position: int,
        tool: Tool,
        is_string: bool | None,
        before: dict[str, Any],
    ) -> tuple[str, Any, int] | None:
        index = form.index(KEY)
        begun = self._fixed(form[:index], position)
        if begun is None:
            return None
        end = self._text.find(fixed(form[index + 1])[0], begun)  # which no name holds
        if end < 0:
            return None
        name = self._text[begun:end]
        if not _compiled(name_expression(pattern)).fullmatch(name):
            return None
        value_start = self._fixed(form[index + 1 : form.index(VALUE)], end)
        if value_start is None:
            return None
        if is_string is None:
            kinds = kinds_of(tool, self._calls.options_of(tool)).of(name) or ANY
        else:
            kinds = STRING if is_string else ANY & ~STRING
        tail = form[form.index(VALUE) + 1 :]
        closed = self._closed(tail, pattern.closing, value_start)
        text = self._text[value_start : len(self._text) if closed is None else closed]
        if not is_json(text, kinds):
            end_ = None if closed is None else self._fixed(tail, closed)
            so_far = _without_beginning(text, "".join(map(fixed, tail)))
            if end_ is None and not (kinds != STRING and _UNDECIDED(so_far)):
                self._note(tool, {**before, name: so_far})
            return None if end_ is None else (name, text, end_)
        value = self._json(value_start)
        self._note(tool, {**before, name: loads_partial(self._text[value_start:]) if value is None else value[0]})
        if value is None:
            return None
        ends = (self._fixed(tail, end) for end in self._ends_of_json(value[1]))
        following = next((end for end in ends if end is not None), None)
        return None if following is None else (name, value[0], following)

    def _closed(self, tail: Pattern, closing: str, position: int) -> int | None:
        """Where a string ends that begins at a place: what closes it is found first, and stands in the pattern so."""
        index = self._text.find(closing, position)
        start = index - "".join(fixed(piece) for piece in tail if isinstance(piece, str | Marker)).index(closing)
        return start if index >= 0 and start >= position else None


@lru_cache(256)
def _compiled(expression: str) -> re.Pattern[str]:
    return re.compile(expression)


def _without_beginning(text: str, closing: str) -> str:
    """A text without what may be the beginning of what closes it."""
    for length in range(min(len(text), len(closing)), 0, -1):
        if text.endswith(closing[:length]):
            return text[:-length]
    return text
