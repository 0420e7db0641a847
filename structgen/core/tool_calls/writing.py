"""From free text and calls to the text of an output: patterns as they are written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from structgen.core.json_schema.formula.values import type_of
from structgen.core.tool_calls.arguments import typed
from structgen.core.tool_calls.calls import Calls, ToolCall
from structgen.core.tool_calls.harmony import CALL_END, NEXT
from structgen.core.tool_calls.patterns import (
    ARGUMENTS,
    JSON_NAME,
    KEY,
    NAME,
    SPELLED_KEY,
    VALUE,
    CallId,
    Forms,
    Gap,
    Marker,
    NestedArguments,
    Parameters,
    Pattern,
    ToolFormat,
    WithId,
    named,
    written,
)
from structgen.core.tool_calls.spelling import written_string
from structgen.core.tool_calls.values import json_text


def arguments_text(pattern: NestedArguments, arguments: Mapping[str, Any]) -> str:
    """The text of arguments.

    Raises:
        TypeError, ValueError: a value is none of JSON.
    """
    return _members(pattern, pattern.argument, arguments)


def _members(pattern: NestedArguments, forms: Forms, members: Mapping[Any, Any]) -> str:
    texts = [_nested(pattern, forms, key, value) for key, value in members.items()]
    return written(pattern.separator).join(texts)


def _nested(pattern: NestedArguments, forms: Forms, key: Any, value: Any) -> str:
    """A member, or an item (whose key is None)."""
    spelled = pattern.spelled
    constants = {None: spelled.null, True: spelled.true, False: spelled.false}
    if isinstance(value, str):
        form, text = forms.string, written_string(value, spelled.strings[0]) if spelled.strings else value
    elif isinstance(value, Mapping):
        form, text = forms.object, _members(pattern, pattern.member, value)
    elif isinstance(value, Sequence):
        items = [_nested(pattern, pattern.item, None, item) for item in value]
        form, text = forms.array, written(pattern.separator).join(items)
    else:
        form = forms.scalar
        text = constants[value] if value is None or isinstance(value, bool) else json_text(value)
    return written(tuple(text if piece is VALUE else _key(pattern, piece, key) for piece in form))


def _key(pattern: NestedArguments, piece: Any, key: Any) -> Any:
    if piece not in (KEY, SPELLED_KEY):
        return piece
    if not isinstance(key, str):
        raise TypeError(f"the key {key!r:.100} of an object is {type(key).__name__}, not a string")
    return key if piece is KEY else written_string(key, pattern.spelled.strings[0])


def write(calls: Calls, pieces: Iterable[str | ToolCall]) -> str:
    """The text of free text and calls, calls that follow each other together."""
    text, run, number = "", list[ToolCall](), 0
    for piece in (*pieces, ""):
        if isinstance(piece, ToolCall):
            run.append(piece)
            continue
        if run:
            text += _run(calls.format, run, number, not text)
            number += len(run)
            run = []
        text += piece
    channel = calls.format.channel
    return text if channel is None or number else text + written(channel.end)


def _run(form: ToolFormat, run: list[ToolCall], number: int, at_start: bool) -> str:
    calls = [_call(form.calls[0], call, number + i) for i, call in enumerate(run)]
    if form.harmony:
        return written((CALL_END, *NEXT)).join(calls) + CALL_END.text
    inside = written(form.separator).join(calls)
    if form.bare is not None and at_start:
        return form.bare[0] + inside + form.bare[1]
    before = () if form.channel is None else form.channel.end
    return written((*before, *form.begin)) + inside + written(form.end)


def _call(pattern: Pattern, call: ToolCall, number: int) -> str:
    text = ""
    for piece in named(pattern, call.name):
        if piece is ARGUMENTS:
            text += json_text(call.arguments)
        elif isinstance(piece, Parameters):
            text += "".join(_argument(piece, name, value) for name, value in call.arguments.items())
        elif isinstance(piece, NestedArguments):
            text += arguments_text(piece, call.arguments)
        elif isinstance(piece, WithId):
            text += _call(piece.pattern, call, number) if call.id is not None else ""
        elif isinstance(piece, CallId):
            text += _id(piece, call, number)
        else:
            text += written((piece,))
    return text


def _id(piece: CallId, call: ToolCall, number: int) -> str:
    if call.id is None:
        return str(piece.first + number)
    before, after = piece.whole.format(name=call.name, id="\0").split("\0")
    return call.id.removeprefix(before).removesuffix(after)


def _argument(pattern: Parameters, name: str, value: Any) -> str:
    pieces = pattern.string if isinstance(value, str) else typed(pattern.other, type_of(value))
    return _filled(pieces, name, value if isinstance(value, str) else json_text(value))


def is_misread(form: ToolFormat, call: ToolCall) -> bool:
    """Whether readers of the format take an argument for another: it holds a text at which they end values, or is a
    string that they strip."""
    if not isinstance(form.parameters, Parameters):
        return False
    excluded, misread = form.parameters.excluded, form.parameters.misread
    texts = [value if isinstance(value, str) else json_text(value) for value in call.arguments.values()]
    if any(one in text for one in excluded for text in (*call.arguments, *texts)):
        return True
    return bool(misread) and any(
        isinstance(value, str) and re.fullmatch(misread, value) for value in call.arguments.values()
    )


def _filled(pattern: Pattern, name: str, value: str) -> str:
    return written(tuple(name if piece is KEY else value if piece is VALUE else piece for piece in pattern))


def instruction(calls: Calls) -> str:
    """What tells a model which tools there are and how it calls them, in the words of Qwen's and GLM's templates."""
    form = calls.format
    lines = ["# Tools", "", "You may call one or more functions to assist with the user query.", ""]
    lines += ["You are provided with function signatures within <tools></tools> XML tags:", "<tools>"]
    lines += [json_text({"type": "function", "function": tool.definition}) for tool in calls.tools]
    lines += ["</tools>", "", "For each function call, write this:", _shape(form)]
    if not calls.parallel:
        lines += ["Call one function at most."]
    return "\n".join(lines)


def _shape(form: ToolFormat) -> str:
    """A call with what stands in it in words."""
    text = ""
    around = (form.begin, form.end) if form.begin or form.bare is None else ((form.bare[0],), (form.bare[1],))
    for piece in (*around[0], *form.calls[0], *around[1], *((CALL_END,) if form.harmony else ())):
        if isinstance(piece, Parameters):
            text += _filled(piece.string, "example_parameter", "its value") + "..."
        elif isinstance(piece, NestedArguments):
            text += arguments_text(piece, {"example_parameter": "its value"}) + "..."
        elif isinstance(piece, str | Marker | Gap):
            text += written((piece,))
        elif isinstance(piece, CallId):
            text += "0"
        elif not isinstance(piece, WithId):
            text += "example_function" if form.parameters else _PLACES[piece]
    return text


_PLACES = {ARGUMENTS: "<args-json-object>", JSON_NAME: '"<function-name>"', NAME: "<function-name>"}
