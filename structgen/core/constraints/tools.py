"""Tool calls in a model's own format, as a constraint."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

from structgen.core.constraints.cache import COMPILED, joined
from structgen.core.constraints.combined import Combinable
from structgen.core.json_text import unreadable_number, utf8
from structgen.core.tool_calls.arguments import check_possible
from structgen.core.tool_calls.calls import CallPieces, Calls, FreeText, SkippedTool, ToolCall, check_names
from structgen.core.tool_calls.definitions import Tool, choose, read_tools
from structgen.core.tool_calls.formats import format_named
from structgen.core.tool_calls.outputs import check_writable, compile_calls
from structgen.core.tool_calls.reading import CallReader
from structgen.core.tool_calls.writing import instruction, is_misread, write
from structgen.core.vocabulary.vocabulary import Vocabulary, check_vocabulary
from structgen.errors import ConstraintError, GenerationError, UnsatisfiableSchemaError
from structgen.options import JsonOptions, check_choice, checked_options
from structgen.progress import CONSTRAINT_LOG

OnImpossible = Literal["refuse", "skip"]
"""What becomes of a tool without possible arguments."""
CLOSED = JsonOptions(additional_members="closed")
"""How schemas of tools are read unless something else is said: a tool takes the arguments that it declares."""


@dataclass(frozen=True)
class ToolCalls(Combinable):
    """Free text and tool calls in a model's own format. Make it with ``tool_call``.

    Attributes:
        calls: which calls there may be, and how they are written.
        skipped: tools that were given and cannot be called (``on_impossible="skip"``), and why.
    """

    calls: Calls
    skipped: tuple[SkippedTool, ...] = ()

    def compile(self, vocabulary: Vocabulary) -> Any:
        """The ``ComposedGrammar`` over ``vocabulary``; a few are kept for the process.

        Raises:
            SchemaError: the parameters of a tool cannot be used, or not be written in this format.
        """
        check_vocabulary(vocabulary)
        return COMPILED.get(joined(self.content_key(), vocabulary), lambda: compile_calls(self.calls, vocabulary))

    def content_key(self) -> Hashable:
        """See `structgen.core.constraints.cache.content_key`."""
        return "tools", self.calls

    def parse(self, text: str) -> CallPieces:
        """Free text and ``ToolCall``s in the order of the text. Text around calls that is only blanks is left out.

        Values are read as the schemas of the tools say, but not checked against them: an output of this constraint
        satisfies them, and outputs written without it can be read, too.

        Raises:
            GenerationError: what should be a call is none, or there are not as many calls, or not the text, that the
                constraint asks for.
        """
        pieces, wrong = CallReader(self.calls, text).read()
        if wrong is not None:
            no_call = (
                f"What begins at character {wrong} of the output is no call as the format {self.calls.format.name!r} "
                f"has it: {text[wrong : wrong + 200]!r}"
            )
            raise GenerationError(unreadable_number(text, wrong) or no_call, text=text)
        against = self._against(pieces)
        if against is not None:
            raise GenerationError(against, text=text)
        return pieces

    def _against(self, pieces: CallPieces) -> str | None:
        """What the constraint has against them."""
        count = sum(isinstance(piece, ToolCall) for piece in pieces)
        if self.calls.required and not count:
            return "The output has no tool call, and one is required."
        if count > 1 and not self.calls.parallel:
            return f"The output has {count} tool calls, and only one is allowed."
        if not self.calls.text_after and count and isinstance(pieces[-1], str):
            return f"The output goes on after its calls: {pieces[-1][:200]!r}"
        if self.calls.free_text == "none" and pieces and isinstance(pieces[0], str):
            return f"The output has other text than calls: {pieces[0][:200]!r}"
        return None

    def parse_partial(self, text: str) -> CallPieces:
        """As ``parse`` of unfinished text; an unfinished call has the arguments so far, once its name is written.

        Free text at the end may hold the first characters of a call.
        """
        reader = CallReader(self.calls, text)
        pieces, _ = reader.read()
        return pieces if reader.unfinished is None else [*pieces, reader.unfinished]

    def render(self, pieces: Iterable[str | ToolCall]) -> str:
        """The text of free text and calls, as this format writes it.

        Raises:
            ConstraintError: a tool that is not there, or arguments that this format cannot write: a string that holds
                what closes it, that readers strip, or that would be read as another type; half of a surrogate pair.
        """
        pieces = list(pieces)
        names = {tool.name for tool in self.calls.tools}
        for piece in pieces:
            if isinstance(piece, ToolCall) and piece.name not in names:
                raise ConstraintError(f"there is no tool {piece.name!r}; there are {', '.join(sorted(names))}")
        try:
            text = write(self.calls, pieces)
        except (TypeError, ValueError) as error:
            raise ConstraintError(f"arguments are no JSON values: {error}") from None
        if utf8(text) is None:
            raise ConstraintError(f"half of a surrogate pair, which is not a character, is in {pieces!r:.300}")
        written = [piece for piece in pieces if isinstance(piece, ToolCall)]
        calls_read = [piece for piece in CallReader(self.calls, text).read()[0] if isinstance(piece, ToolCall)]
        is_same = [(call.name, call.arguments) for call in calls_read] == [(c.name, c.arguments) for c in written]
        if not is_same or any(is_misread(self.calls.format, call) for call in written):
            raise ConstraintError(
                f"the calls {written!r:.300} cannot be written in the format {self.calls.format.name!r} so that the "
                f"same is read again: {text[:300]!r}"
            )
        return text

    def instruction(self) -> str | None:
        """Shows the tools and how they are called. Chat templates that take tools say it in their own words."""
        return instruction(self.calls) if self.calls.tools else None


def tool_call(
    format: str,
    tools: Any,
    *,
    tool_choice: Any = "auto",
    parallel_tool_calls: bool = True,
    free_text: FreeText | None = None,
    on_impossible: OnImpossible = "refuse",
    json_options: JsonOptions | None = None,
) -> ToolCalls:
    """Tool calls in a model's own dialect; the value of an output is a list of free text and ``ToolCall``s.

        tool_call("qwen3_coder", [{"type": "function", "function": {"name": "f", "parameters": {...}}}])

    Arguments satisfy the JSON Schemas of the tools. See docs/tools.md for the formats.

    Args:
        format: how the model writes calls: "hermes", "llama3", "qwen3_coder", "harmony", ...
        tools: function definitions as OpenAI's API takes them. A tool with ``strict: false`` is called with what can be
            enforced of its schema; else what cannot be is refused.
        tool_choice: "auto": text or calls; "required": at least one call; "none": no calls; a tool by name:
            ``{"name": ...}``; ``{"type": "allowed_tools", ...}``.
        parallel_tool_calls: whether there may be more than one call.
        free_text: where other text may be: "anywhere"; "before": before the first call only; "none". None: "none" where
            a call is required, "before" where there may be one call only, else "anywhere".
        on_impossible: of a tool without possible arguments; "refuse": an error names it; "skip": there are no calls of
            it, and ``skipped`` of the constraint, and the log, say why.
        json_options: how JSON may be spelled and schemas are read; None:
            ``JsonOptions(additional_members="closed")``, with which tools get no arguments that they do not declare.

    Raises:
        OptionsError: no such format (the nearest is named), or another ``tool_choice`` or ``free_text``.
        ConstraintError: tools that are no function definitions, without names or with the same, or with names that the
            format cannot write.
        SchemaError: the parameters of a tool cannot be used; the pointer leads into the list of tools.
        UnsatisfiableSchemaError: a tool has no possible arguments; with ``on_impossible="skip"``: one must be called,
            and none of those that may be has any.
    """
    form = format_named(format)
    choice = choose(read_tools(tools), tool_choice)
    parallel = bool(parallel_tool_calls)
    if free_text is None:
        free_text = "none" if choice.required else "anywhere" if parallel else "before"
    check_choice("free_text", free_text, ("anywhere", "before", "none"))
    options = CLOSED if json_options is None else checked_options(json_options)
    calls = Calls(form, choice.tools, choice.required, parallel, free_text, options)
    check_names(form, choice.tools)
    check_choice("on_impossible", on_impossible, ("refuse", "skip"))
    impossible: dict[Tool, UnsatisfiableSchemaError] = {}
    for tool in choice.tools:  # a bad schema is refused before a model is asked
        try:
            check_possible(tool, calls.options_of(tool))
            if on_impossible == "skip":
                check_writable(tool, form, calls.options_of(tool))
        except UnsatisfiableSchemaError as error:
            impossible[tool] = error
    if not impossible:
        return ToolCalls(calls)
    if on_impossible == "refuse" or (choice.required and len(impossible) == len(choice.tools)):
        raise _impossible(list(impossible), list(impossible.values()))
    skipped = tuple(SkippedTool(tool.name, error.pointer, error.message) for tool, error in impossible.items())
    for one in skipped:
        CONSTRAINT_LOG.warning("tool_call goes on without a tool: %s (at %s)", one.reason, one.pointer)
    return ToolCalls(replace(calls, tools=tuple(tool for tool in choice.tools if tool not in impossible)), skipped)


def _impossible(tools: list[Tool], errors: list[UnsatisfiableSchemaError]) -> UnsatisfiableSchemaError:
    """One error for all tools without possible arguments: why the first has none, and which others."""
    first = errors[0]
    others = ", ".join(repr(tool.name) for tool in tools[1:])
    message = first.message + (f"; nor have {others}" if others else "")
    return UnsatisfiableSchemaError(message, pointer=first.pointer, keyword=first.keyword, hint=first.hint)
