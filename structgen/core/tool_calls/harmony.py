"""Harmony, the format of gpt-oss: an output is messages in channels, and a call is a message with a recipient.

The prompt ends with ``<|start|>assistant``. A message is ``<|channel|>analysis<|message|>text<|end|>`` (or in the
channel commentary), and the next begins with ``<|start|>assistant`` again. The last one is in the channel final, or a
call, which ends with ``<|call|>``: where that is an end of sequence, it is no part of the text, and the output ends.
Calls are in the channel commentary; gpt-oss writes them in the others, too, and ends some with ``<|end|>``.
"""

from __future__ import annotations

from structgen.core.tool_calls.calls import Calls
from structgen.core.tool_calls.grammar import START, GrammarBuilder
from structgen.core.tool_calls.patterns import CHANNELS, Marker, Pattern, fixed

CALL_END, END = Marker("<|call|>"), Marker("<|end|>")
NEXT: Pattern = (Marker("<|start|>"), "assistant")
HEADERS = (" to=", *(f"<|channel|>{channel} to=" for channel in CHANNELS))
MARKERS = ("<|channel|>", "<|message|>", "<|constrain|>", "<|start|>", "<|end|>", "<|call|>", "<|return|>")


def harmony_rules(calls: Calls, builder: GrammarBuilder, one: int) -> None:
    """Add the rules of outputs, whose calls are the nonterminal ``one``."""
    text = builder.free_text(MARKERS)
    messages = builder.nonterminal("messages")
    builder.rule(messages)
    if calls.free_text != "none":
        for channel in ("analysis", "commentary"):
            message = [
                Marker("<|channel|>"),
                channel,
                Marker("<|message|>"),
                text,
                Marker("<|end|>"),
                *NEXT,
                (messages,),
            ]
            builder.rule(messages, *builder.pieces(message))
    if not (calls.required and calls.tools):
        final = builder.pieces([Marker("<|channel|>"), "final", Marker("<|message|>"), text])
        builder.rule(START, *((messages, *final) if calls.free_text != "none" else ()))
    if not calls.tools:
        return
    run = builder.nonterminal("calls")
    builder.rule(START, messages, run)
    builder.rule(run, one, *builder.pieces([END]))
    if builder.is_end(CALL_END.text):
        builder.rule(run, one)
        return
    builder.rule(run, one, *builder.pieces([CALL_END]))
    if calls.parallel:
        between = (messages,) if calls.text_after else ()
        for end in (CALL_END, END):
            builder.rule(run, one, *builder.pieces([end, *NEXT, between]), run)


def next_header(text: str, start: int) -> int | None:
    """Where the next message that is a call begins; ``start`` is where a message begins."""
    starts = "".join(map(fixed, NEXT))
    while True:
        if text.startswith(HEADERS, start):
            return start
        following = text.find(starts, start)
        if following < 0:
            return None
        start = following + len(starts)


def end_of_call(text: str, start: int) -> int:
    """Where the message ends whose arguments end at ``start``, and the next one begins."""
    blanks = len(text) - len(text[start:].lstrip(" \t\r\n"))  # after JSON, if whitespace is free
    end = next((mark.text for mark in (CALL_END, END) if text.startswith(mark.text, blanks)), None)
    if end is not None:
        start = blanks + len(end)
        following = "".join(map(fixed, NEXT))
        start += len(following) if text.startswith(following, start) else 0
    return start
