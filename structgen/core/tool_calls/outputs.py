"""The grammar of outputs with tool calls."""

from __future__ import annotations

from structgen.core.engines.protocols import Grammar
from structgen.core.regex.pattern import full_match_dfa
from structgen.core.tool_calls.arguments import ArgumentRules, members_of
from structgen.core.tool_calls.calls import Calls
from structgen.core.tool_calls.definitions import Tool
from structgen.core.tool_calls.grammar import START, GrammarBuilder
from structgen.core.tool_calls.harmony import harmony_rules
from structgen.core.tool_calls.nested_rules import NestedRules
from structgen.core.tool_calls.patterns import (
    ARGUMENTS,
    Channel,
    Gap,
    NestedArguments,
    Parameters,
    Piece,
    ToolFormat,
    named,
)
from structgen.core.tool_calls.values import BLANKS
from structgen.core.vocabulary.vocabulary import TextVocabulary, Vocabulary
from structgen.options import JsonOptions
from structgen.progress import waiting

LEADING = Gap("\\n{0,2}")
"""What may stand before calls where no text may: templates put line feeds there."""


@waiting("compiling the tools")
def compile_calls(calls: Calls, vocabulary: Vocabulary) -> Grammar:
    """Compile what an output may be.

    Raises:
        SchemaError: the parameters of a tool cannot be used, or not be written in this format; the pointer leads into
            the list of tools.
    """
    builder = GrammarBuilder(vocabulary)
    one = _call(calls, builder)
    if calls.format.harmony:
        harmony_rules(calls, builder, one)
    else:
        _text_rules(calls, builder, one)
    return builder.compile()


def check_writable(tool: Tool, form: ToolFormat, options: JsonOptions) -> None:
    """Refuse a tool whose arguments a format that writes them one by one cannot write.

    Raises:
        UnsatisfiableSchemaError, UnsupportedSchemaError, SchemaTooComplexError: see `ArgumentRules.symbols`.
    """
    for pattern in form.calls:
        for piece in pattern:
            if isinstance(piece, Parameters | NestedArguments):
                _arguments(GrammarBuilder(TextVocabulary()), piece, tool, options)


def _arguments(
    builder: GrammarBuilder, pattern: Parameters | NestedArguments, tool: Tool, options: JsonOptions
) -> tuple[int, ...]:
    """The symbols of arguments one by one."""
    if isinstance(pattern, NestedArguments):
        return NestedRules(builder, pattern, tool, options).symbols()
    return ArgumentRules(builder, pattern, tool, options).symbols()


def _call(calls: Calls, builder: GrammarBuilder) -> int:
    """The nonterminal of one call."""
    symbol = builder.nonterminal("call")
    for tool in calls.tools:
        options = calls.options_of(tool)
        for pattern in calls.format.calls:
            right: list[Piece | tuple[int, ...]] = []
            for piece in named(pattern, tool.name):
                if piece is ARGUMENTS:
                    content = members_of(tool, options).grammar
                    right.append(builder.embedded(("arguments", tool), content))
                elif isinstance(piece, Parameters | NestedArguments):
                    right.append(_arguments(builder, piece, tool, options))
                else:
                    right.append(piece)
            builder.rule(symbol, *builder.pieces(right))
    return symbol


def _text_rules(calls: Calls, builder: GrammarBuilder, one: int) -> None:
    """Calls in text."""
    form = calls.format
    if form.channel is not None:
        _channel_rules(calls, builder, one, form.channel)
        return
    bare_text = full_match_dfa(f"{BLANKS}\\{form.bare_begins}[^]*") if form.bare is not None else None
    text = builder.free_text([word for word in (form.trigger, *form.markers()) if word], bare_text)
    before = text
    if calls.free_text == "none":
        before = () if form.bare is not None else builder.pieces([LEADING])
    if not (calls.required and calls.tools):
        builder.rule(START, *(() if calls.free_text == "none" else text))
    if form.together:
        run = _run(calls, builder, one)
        tail = text if calls.text_after else ()
        if form.begin:
            builder.rule(START, *before, *builder.pieces(form.begin), run, *builder.pieces(form.end), *tail)
        if form.bare is not None:
            builder.rule(START, *builder.pieces([form.bare[0]]), run, *builder.pieces([form.bare[1]]))
    elif calls.text_after:
        after = builder.nonterminal("after a call")
        builder.rule(START, *text, one, after)
        builder.rule(after, *text)
        if calls.parallel:
            builder.rule(after, *text, one, after)
    else:
        builder.rule(START, *before, _run(calls, builder, one))


def _channel_rules(calls: Calls, builder: GrammarBuilder, one: int, channel: Channel) -> None:
    """Text in a channel of its own, which perhaps is empty, and calls after it."""
    text = builder.free_text(calls.format.markers()) if calls.free_text != "none" else ()
    begin, last = (builder.optional(builder.pieces(each)) for each in (channel.begin, channel.last))
    before = (*begin, *text, *builder.pieces(channel.end))
    if calls.tools:
        around = (builder.pieces(calls.format.begin), builder.pieces(calls.format.end))
        builder.rule(START, *before, *around[0], _run(calls, builder, one), *around[1], *last)
    if not (calls.required and calls.tools):
        builder.rule(START, *before, *last)


def _run(calls: Calls, builder: GrammarBuilder, one: int) -> int:
    """The nonterminal of calls, one at least."""
    run = builder.nonterminal("calls")
    builder.rule(run, one)
    if calls.parallel:
        builder.rule(run, one, *builder.pieces(calls.format.separator), run)
    return run
