"""Strings of thousands of characters in formats that write them as they are: counted, not refused."""

from __future__ import annotations

import random
from typing import Any

import pytest

from structgen.core.constraints.tools import tool_call
from structgen.core.tool_calls.calls import ToolCall
from structgen.core.tool_calls.formats import FORMATS
from structgen.core.tool_calls.patterns import Parameters
from structgen.errors import SchemaTooComplexError
from tests.core.tool_calls.vocabularies import BYTES, accepts, chat_vocabulary

RAW = sorted(name for name, form in FORMATS.items() if form.parameters is not None)


def tools(**string: Any) -> list[dict[str, Any]]:
    parameters = {
        "type": "object",
        "properties": {"note": {"type": "string", **string}, "more": {"type": "integer"}},
        "required": ["note"],
        "additionalProperties": False,
    }
    return [{"type": "function", "function": {"name": "save", "strict": True, "parameters": parameters}}]


def note(size: int, rng: random.Random, name: str = "") -> str:
    """A string of so many characters, without blanks at its ends, which some readers strip, and without what a format
    excludes."""
    parameters = FORMATS[name].parameters if name in FORMATS else None
    excluded = parameters.excluded if isinstance(parameters, Parameters) else ""
    characters = [character for character in "ab <é\n'\"\\😀" if character not in excluded]
    return "x" + "".join(rng.choice(characters) for _ in range(size - 2)) + "x"


@pytest.mark.parametrize("name", RAW)
def test_both_bounds_hold(name: str) -> None:
    """What is taken is read as it was meant."""
    least, most = 3_000, 10_000
    constraint = tool_call(name, tools(minLength=least, maxLength=most), tool_choice="required")
    grammar = constraint.compile(BYTES)
    rng = random.Random(name)
    for size in (least - 1, least, rng.randint(least, most), most, most + 1):
        call = ToolCall("save", {"note": note(size, rng, name), "more": 3})
        text = constraint.render([call])
        matcher = grammar.matcher()
        assert (matcher.accept_bytes(text.encode()) and matcher.is_accepting()) == (least <= size <= most)
        [read] = constraint.parse(text)
        assert isinstance(read, ToolCall) and read.arguments == call.arguments


@pytest.mark.first_case
@pytest.mark.parametrize("name", RAW)
def test_masks_close_to_the_bounds(name: str) -> None:
    """Token by token, with the marks of the format as special tokens."""
    vocabulary, rng = chat_vocabulary(name), random.Random(name)
    constraint = tool_call(name, tools(minLength=8, maxLength=256), tool_choice="required")
    grammar = constraint.compile(vocabulary)
    for size in (7, 8, 256, 257):
        text = constraint.render([ToolCall("save", {"note": note(size, rng, name)})])
        assert accepts(grammar, vocabulary, text, rng) == (8 <= size <= 256), (size, text)


@pytest.mark.parametrize("name", RAW)
def test_a_long_string_and_other_types(name: str) -> None:
    """A pattern without bounds of its own, and values that are no strings, alongside."""
    string = {"type": ["string", "null"], "maxLength": 5_000, "pattern": "^[a-z ]*$"}
    constraint = tool_call(name, tools(**string), tool_choice="required")
    grammar = constraint.compile(BYTES)
    for value, is_right in (("nulls x" * 700, True), ("n" * 5_001, False), ("N" * 400, False), (None, True)):
        text = constraint.render([ToolCall("save", {"note": value})])
        matcher = grammar.matcher()
        assert (matcher.accept_bytes(text.encode()) and matcher.is_accepting()) == is_right, text[:80]


def test_a_bound_that_is_counted_in_steps() -> None:
    """Pairs of characters are left to an automaton, and refused by name where that is too large."""
    fits = {"pattern": "^(?:ab)*$", "maxLength": 400}
    grammar = tool_call("qwen3_coder", tools(**fits), tool_choice="required").compile(BYTES)
    assert grammar.matcher().accept_bytes(b"<tool_call>\n<function=save>\n<parameter=note>\n" + b"ab" * 200 + b"\n</p")
    with pytest.raises(SchemaTooComplexError, match="/properties/note"):
        tool_call("qwen3_coder", tools(**{**fits, "maxLength": 90_000}), tool_choice="required").compile(BYTES)
