"""The grammar of outputs with tool calls."""

from __future__ import annotations

from structgen.core.engines.protocols import Grammar
from structgen.core.regex.pattern import full_match_dfa
from structgen.core.tool_calls.arguments import ArgumentRules, members_of
from structgen.core.tool_calls.calls import Calls
from structgen.core.tool_calls.grammar import START, GrammarBuilder
from structgen.core.tool_calls.harmony import harmony_rules
from structgen.core.tool_calls.patterns import ARGUMENTS, Gap, Parameters, Piece, named
from structgen.core.tool_calls.values import BLANKS
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.progress import waiting

OBJECT_BEGINS = BLANKS + "\\{[^]*"
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
                elif isinstance(piece, Parameters):
                    right.append(ArgumentRules(builder, piece, tool, options).symbols())
                else:
                    right.append(piece)
            builder.rule(symbol, *builder.pieces(right))
    return symbol


def _text_rules(calls: Calls, builder: GrammarBuilder, one: int) -> None:
    """Calls in text."""
    form = calls.format
    text = builder.free_text([form.trigger, *form.markers()], full_match_dfa(OBJECT_BEGINS) if form.bare else None)
    before = text
    if calls.free_text == "none":
        before = () if form.bare else builder.pieces([LEADING])
    if not (calls.required and calls.tools):
        builder.rule(START, *(() if calls.free_text == "none" else text))
    if form.together:
        run = _run(calls, builder, one)
        whole = (*builder.pieces(form.begin), run, *builder.pieces(form.end))
        builder.rule(START, *before, *whole, *(text if calls.text_after else ()))
        if form.bare:
            builder.rule(START, run)
    elif calls.text_after:
        after = builder.nonterminal("after a call")
        builder.rule(START, *text, one, after)
        builder.rule(after, *text)
        if calls.parallel:
            builder.rule(after, *text, one, after)
    else:
        builder.rule(START, *before, _run(calls, builder, one))


def _run(calls: Calls, builder: GrammarBuilder, one: int) -> int:
    """The nonterminal of calls, one at least."""
    run = builder.nonterminal("calls")
    builder.rule(run, one)
    if calls.parallel:
        builder.rule(run, one, *builder.pieces(calls.format.separator), run)
    return run
