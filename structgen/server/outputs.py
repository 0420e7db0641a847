"""From the text of an output to what clients see of it: thinking, text, tool calls; whole, and as it grows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from structgen.core.constraints.thinking import THINK, THOUGHT
from structgen.core.constraints.tools import ToolCalls
from structgen.core.tool_calls.calls import ToolCall
from structgen.core.tool_calls.patterns import written
from structgen.errors import GenerationError

PartKind = Literal["thinking", "text", "call", "custom"]
_MESSAGE = re.compile(
    r"<\|channel\|>(analysis|commentary|final)<\|message\|>(.*?)(?:<\|end\|>(?:<\|start\|>assistant)?|\Z)", re.S
)
ThinkingState = Literal["none", "begun", "may"]
"""Whether a reply has a section of thinking: no; the prompt has begun one; it may begin with one."""
CUSTOM_INPUT = "input"
"""The one argument of the function that stands for a custom tool."""
_CUT = "\0"
_UNSURE = re.compile(r"(?:null|-?[0-9]+)\Z")
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class OutputPart:
    """A part of an output.

    Attributes:
        kind: what it is.
        text: its text; of a call, its arguments as JSON text; of a call of a custom tool, the text that it takes.
        name, id: of a call.
    """

    kind: PartKind
    text: str
    name: str = ""
    id: str | None = None


@dataclass(frozen=True)
class PartDelta:
    """What is new of a part.

    Attributes:
        index: which part of the output.
        part: the part as far as it goes.
        delta: what is new of its text.
        is_new: whether nothing was streamed of it before.
        is_done: whether nothing more will be.
    """

    index: int
    part: OutputPart
    delta: str
    is_new: bool
    is_done: bool = False


@dataclass(frozen=True)
class OutputForm:
    """How the text of an output is to be read.

    Attributes:
        calls: the calls that may be in it.
        thinking: whether there is a section of thinking.
        answer_or_calls: the whole is either calls or an answer in which nothing is a call.
        custom: names of the tools that take a text.
    """

    calls: ToolCalls | None = None
    thinking: ThinkingState = "none"
    answer_or_calls: bool = False
    custom: frozenset[str] = frozenset()

    def parts(self, text: str, *, is_whole: bool) -> list[OutputPart]:
        """The parts of a text; of one that goes on, as far as they cannot change."""
        result: list[OutputPart] = []
        thought, remaining = self._split_thinking(text, is_whole)
        if thought is not None:
            result.append(OutputPart("thinking", thought))
        if remaining is not None:
            result += self._answer(remaining, is_whole)
        return result

    def thinking_spans(self, text: str) -> list[tuple[int, int]]:
        """Where the thinking in a whole text begins and ends, the marks included; one that is cut goes to its end."""
        if self.calls is not None and self.calls.calls.format.harmony:
            return [message.span() for message in _MESSAGE.finditer(text) if message[1] != "final"]
        if self.thinking == "none" or (self.thinking == "may" and not text.lstrip().startswith(THINK)):
            return []
        end = text.find(THOUGHT)
        return [(0, len(text) if end < 0 else end + len(THOUGHT))]

    def answer_start(self, text: str) -> int:
        """Where what follows the thinking begins."""
        spans = self.thinking_spans(text)
        if not spans:
            return 0
        if self.calls is not None and self.calls.calls.format.harmony:
            return next((each.start(2) for each in _MESSAGE.finditer(text) if each[1] == "final"), len(text))
        return len(text) - len(text[spans[-1][1] :].lstrip())

    def _split_thinking(self, text: str, is_whole: bool) -> tuple[str | None, str | None]:
        """Thinking, and what follows it; None where there is none, or it is not known yet."""
        if self.thinking == "none":
            return None, text
        if self.thinking == "may":
            begun = text.lstrip()
            if not begun.startswith(THINK):
                return None, text if is_whole or not THINK.startswith(begun) else None
            text = begun[len(THINK) :]
        thought, end, remaining = text.partition(THOUGHT)
        if not end:
            return (thought if is_whole else thought[: len(thought) - held(thought, [THOUGHT])]).strip("\n"), None
        return thought.strip("\n"), remaining.lstrip()

    def _answer(self, text: str, is_whole: bool) -> list[OutputPart]:
        calls = self.calls
        if calls is None:
            return [OutputPart("text", text)] if text else []
        if self.answer_or_calls and not _begins_calls(calls, text, is_whole):
            undecided = not is_whole and (calls.calls.format.bare or _may_begin(calls, text))
            return [OutputPart("text", text)] if text and not undecided else []
        pieces = calls.parse(text) if is_whole else calls.parse_partial(text)
        parts: list[OutputPart] = []
        for number, piece in enumerate(pieces):
            is_last = number == len(pieces) - 1
            if isinstance(piece, str):
                piece = piece if is_whole or not is_last else _certain(calls, piece)
                if piece and (is_whole or piece.strip()):
                    parts += _channels(piece, is_whole) if calls.calls.format.harmony else [OutputPart("text", piece)]
            else:
                parts.append(self._call(piece, is_whole or not is_last))
        return parts

    def _call(self, call: ToolCall, is_whole: bool) -> OutputPart:
        if call.name in self.custom:
            return OutputPart("custom", str(call.arguments.get(CUSTOM_INPUT, "")), call.name, call.id)
        text = json_text(call.arguments) if is_whole else begun_json(call.arguments)
        return OutputPart("call", text, call.name, call.id)


class OutputReader:
    """Streams what is new of one output as its text grows."""

    def __init__(self, form: OutputForm) -> None:
        self._form = form
        self._streamed: list[OutputPart] = []

    @property
    def parts(self) -> list[OutputPart]:
        """What was streamed so far."""
        return self._streamed

    def read(self, text: str, *, is_whole: bool = False) -> Iterator[PartDelta]:
        """What is new, in order. After the whole text all of its parts have been streamed."""
        parts = self._form.parts(text, is_whole=is_whole)
        for index, part in enumerate(parts):
            before = self._streamed[index] if index < len(self._streamed) else None
            old = "" if before is None else before.text
            if not part.text.startswith(old):  # what was streamed stays
                continue
            is_done = is_whole or index < len(parts) - 1
            if before is None or len(part.text) > len(old):
                self._streamed[index:] = [part]
                yield PartDelta(index, part, part.text[len(old) :], before is None, is_done)


def held(text: str, marks: Sequence[str]) -> int:
    """How many characters at the end of a text may be the beginning of a mark."""
    longest = max((len(mark) for mark in marks), default=1) - 1
    for count in range(min(longest, len(text)), 0, -1):
        if any(mark.startswith(text[len(text) - count :]) for mark in marks):
            return count
    return 0


def _certain(calls: ToolCalls, text: str) -> str:
    """A text that may go on, without what may be a mark, or stand around it in its channel."""
    channel, marks = calls.calls.format.channel, _marks(calls)
    if channel is not None:
        if written(channel.begin).startswith(text):
            return ""
        marks.append(written(channel.end))
        text = text.partition(marks[-1])[0]
    return text[: len(text) - held(text, marks)]


def _marks(calls: ToolCalls) -> list[str]:
    if calls.calls.format.harmony:
        return ["<|channel|>", "<|end|>", "<|start|>"]
    return [calls.calls.format.trigger] if calls.calls.tools else []


def _begins_calls(calls: ToolCalls, text: str, is_whole: bool) -> bool:
    if not calls.calls.format.bare:
        return text.lstrip().startswith(calls.calls.format.trigger)
    if not is_whole:
        return False
    try:
        return any(isinstance(piece, ToolCall) for piece in calls.parse(text))
    except GenerationError:
        return False


def _may_begin(calls: ToolCalls, text: str) -> bool:
    return calls.calls.format.trigger.startswith(text.lstrip())


def _channels(text: str, is_whole: bool) -> list[OutputPart]:
    """Harmony's messages: the channel final is text, the others are thinking."""
    parts = []
    for message in _MESSAGE.finditer(text):
        inside = message[2] if is_whole else message[2][: len(message[2]) - held(message[2], ["<|end|>"])]
        if inside:
            parts.append(OutputPart("text" if message[1] == "final" else "thinking", inside))
    return parts


def json_text(value: Any) -> str:
    """JSON of a value, numbers with all their digits."""
    return "".join(_pieces(value, cut_floats=False))


def begun_json(value: Any) -> str:
    """What the JSON of a value begins with that is still being written: what is here may grow, but not change.

    Closing brackets and quotes at the end are left out, a number or null that may only stand for what is still to come,
    and everything from the first number with a fraction on, since how it is written depends on digits that may follow.
    """
    text = "".join(_pieces(value, cut_floats=True))
    return _UNSURE.sub("", text.partition(_CUT)[0].rstrip('}]"'))


def _pieces(value: Any, cut_floats: bool) -> list[str]:
    pieces: list[str] = []
    _add_pieces(value, cut_floats, pieces)
    return pieces


def _add_pieces(value: Any, cut_floats: bool, pieces: list[str]) -> None:
    """Add the pieces of a value. Into one list: handed up level by level, they would cost depth times depth."""
    if isinstance(value, dict):
        pieces.append("{")
        for number, (key, inner) in enumerate(value.items()):
            pieces.append(", " if number else "")
            _add_pieces(key, cut_floats, pieces)
            pieces.append(": ")
            _add_pieces(inner, cut_floats, pieces)
        pieces.append("}")
    elif isinstance(value, list):
        pieces.append("[")
        for number, inner in enumerate(value):
            pieces.append(", " if number else "")
            _add_pieces(inner, cut_floats, pieces)
        pieces.append("]")
    elif isinstance(value, (float, Decimal)):
        pieces.append(_CUT if cut_floats else str(value) if isinstance(value, Decimal) else json.dumps(value))
    else:
        pieces.append(_SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", json.dumps(value, ensure_ascii=False)))
