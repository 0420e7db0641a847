"""Which format a template shows: the signs are those of what the formats write."""

from __future__ import annotations

from typing import Any

import pytest

from structgen.core.constraints.tools import tool_call
from structgen.core.tool_calls.calls import ToolCall
from structgen.core.tool_calls.templates import SIGNS, tool_format
from structgen.server.prompts import messages_in_words
from tests.server.tiny import ByteTokenizer

TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}]


@pytest.mark.parametrize(("sign", "name"), SIGNS)
def test_signs_are_what_the_formats_write(sign: str, name: str) -> None:
    tools = tool_call(name, TOOLS)
    pieces: list[str | ToolCall] = [ToolCall("f", {"a": 1}, None)]
    if name != "harmony":
        pieces.insert(0, "Well. ")
    written = tools.render(pieces)
    assert sign in written or "function name" in sign
    assert tool_format(ByteTokenizer(f"{{{{ messages }}}} {sign}")) == name


def test_a_written_call_tells_its_format() -> None:
    """The first sign that is found in what a format writes is its own, not that of another."""
    for _, name in SIGNS:
        pieces: list[str | ToolCall] = [ToolCall("f", {"a": 1}, None)]
        written = tool_call(name, TOOLS).render(pieces if name == "harmony" else ["Well. ", *pieces])
        assert tool_format(ByteTokenizer(written)) == name, written


def test_hermes_where_nothing_is_known() -> None:
    assert tool_format(ByteTokenizer("{{ messages }}")) == tool_format(ByteTokenizer(None)) == "hermes"


def test_several_answers_are_one_message() -> None:
    messages: list[dict[str, Any]] = [
        {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "name": "f", "arguments": {"a": 1}}]},
        {"role": "tool", "content": "x", "tool_call_id": "1"},
        {"role": "tool", "content": "y", "tool_call_id": "2"},
    ]
    shown = messages_in_words(messages)
    assert [message["role"] for message in shown] == ["assistant", "user"]
    assert shown[1]["content"].count("<tool_response>") == 2
