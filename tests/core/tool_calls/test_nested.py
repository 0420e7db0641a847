"""Values in values where they are no JSON: what is written is valid, what is valid is taken; bad text does no harm."""

from __future__ import annotations

import ast
import random
from typing import Any

import pytest

from structgen.core.constraints.tools import tool_call
from structgen.core.regex.dfa import accepts, universal
from structgen.core.regex.pattern import full_match_dfa
from structgen.core.tool_calls.calls import ToolCall
from structgen.core.tool_calls.formats import FORMATS
from structgen.core.tool_calls.patterns import NestedArguments, Quotes
from structgen.core.tool_calls.spelling import read_string, spelled_strings, written_string
from structgen.errors import ConstraintError, GenerationError, SchemaTooComplexError, UnsupportedSchemaError
from tests.core.tool_calls.random_tools import is_valid, random_output
from tests.core.tool_calls.vocabularies import BYTES

NESTED = [name for name, form in FORMATS.items() if isinstance(form.parameters, NestedArguments)]
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "tree": {"$ref": "#/$defs/tree"},
        "pair": {"type": "array", "prefixItems": [{"type": "integer"}, {"enum": ["a", "b", None]}], "items": False},
        "some": {"type": "array", "items": {"type": ["integer", "string"]}, "contains": {"const": 7}, "maxItems": 4},
        "point": {
            "type": "object",
            "properties": {"x": {"type": "number"}, "tag": {"type": "string", "pattern": "^[a-c]+$"}},
            "required": ["x"],
            "dependentRequired": {"tag": ["x"]},
            "additionalProperties": False,
        },
        "mode": {"enum": ["fast", "slow", True, None, 3]},
    },
    "required": ["tree"],
    "additionalProperties": False,
    "$defs": {
        "tree": {
            "type": "object",
            "properties": {"n": {"type": "integer"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
            "required": ["n"],
            "additionalProperties": False,
        }
    },
}
TOOL = {"type": "function", "function": {"name": "f", "parameters": SCHEMA}}
VALUES: list[Any] = [
    {"tree": {"n": 1}},
    {"tree": {"n": 1, "kids": [{"n": 2}, {"n": 3, "kids": []}]}, "mode": "fast"},
    {"tree": {"n": 1, "kids": [{"kids": []}]}},
    {"tree": {"n": 1}, "pair": [4, None]},
    {"tree": {"n": 1}, "pair": [4, "c"]},
    {"tree": {"n": 1}, "pair": [4, "a", 5]},
    {"tree": {"n": 1}, "some": ["x", 7, "7y"]},
    {"tree": {"n": 1}, "some": ["x", 8]},
    {"tree": {"n": 1}, "some": [7, 7, 7, 7, 7]},
    {"tree": {"n": 1}, "point": {"x": 0.5, "tag": "abc"}},
    {"tree": {"n": 1}, "point": {"tag": "abc"}},
    {"tree": {"n": 1}, "point": {"x": 1, "more": 1}},
    {"tree": {"n": 1}, "mode": True},
    {"tree": {"n": 1}, "mode": False},
    {"mode": None},
]


@pytest.mark.parametrize("name", NESTED)
def test_valid_values_are_taken_and_others_are_not(name: str) -> None:
    constraint = tool_call(name, [TOOL])
    grammar, writer = constraint.compile(BYTES), tool_call(name, [{"name": "f", "parameters": SCHEMA}])
    taken = 0
    for arguments in VALUES:
        text = writer.render([ToolCall("f", arguments)])
        matcher = grammar.matcher()
        accepted = bool(matcher.accept_bytes(text.encode()) and matcher.is_accepting())
        assert accepted == is_valid(arguments, TOOL), arguments
        taken += accepted
    assert taken == 6


@pytest.mark.parametrize("name", NESTED)
def test_walks_are_valid(name: str) -> None:
    grammar = tool_call(name, [TOOL], tool_choice="required").compile(BYTES)
    constraint = tool_call(name, [TOOL], tool_choice="required")
    for seed in range(8):
        matcher = grammar.matcher()
        data = bytes(random_output(matcher, BYTES, random.Random(seed), 150))
        text = (data if matcher.is_accepting() else data + matcher.shortest_completion()).decode()
        for call in constraint.parse(text):
            assert isinstance(call, ToolCall) and is_valid(call.arguments, TOOL), text


@pytest.mark.parametrize("name", NESTED)
def test_changed_texts_are_refused_or_valid(name: str) -> None:
    constraint = tool_call(name, [TOOL])
    grammar, refused = constraint.compile(BYTES), 0
    text = constraint.render([ToolCall("f", VALUES[1] | {"point": {"x": 2, "tag": "ab"}})])
    rng = random.Random(name)
    for _ in range(80):
        place = rng.randrange(len(text))
        changed = text[:place] + rng.choice(["", text[place] * 2, "x", "<", '"', "'", "\\"]) + text[place + 1 :]
        matcher = grammar.matcher()
        if matcher.accept_bytes(changed.encode()) and matcher.is_accepting():
            calls = [piece for piece in constraint.parse(changed) if isinstance(piece, ToolCall)]
            assert all(is_valid(call.arguments, TOOL) for call in calls), changed
        else:
            refused += 1
            constraint.parse_partial(changed)
    assert refused > 10


@pytest.mark.parametrize("name", NESTED)
def test_closing_text_in_a_value(name: str) -> None:
    """Is escaped, or cannot be written."""
    tool = {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}
    constraint, written = tool_call(name, [tool]), 0
    for mark in (*FORMATS[name].markers(), '"', "'", "</cofl:value>", "]<]minimax[>[</a>", '", b="1', "\\", "\n", "\0"):
        call = ToolCall("f", {"a": f"x{mark}y"})
        try:
            text = constraint.render([call])
        except ConstraintError:
            continue
        matcher = constraint.compile(BYTES).matcher()
        if matcher.accept_bytes(text.encode()) and matcher.is_accepting():
            (read,) = constraint.parse(text)
            assert isinstance(read, ToolCall) and read.arguments == call.arguments
            written += 1
    assert written > 4


def test_what_cannot_be_enforced_is_refused_by_name() -> None:
    array = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}
    tool = {"name": "f", "parameters": {"type": "object", "properties": {"a": array}}}
    with pytest.raises(UnsupportedSchemaError, match="must differ") as caught:
        tool_call("gemma4", [tool]).compile(BYTES)
    assert caught.value.keyword == "uniqueItems" and caught.value.pointer.startswith("/0/parameters")
    tool_call("gemma4", [{**tool, "strict": False}]).compile(BYTES)
    array["maxItems"] = 1
    tool_call("gemma4", [tool]).compile(BYTES)
    long = {"type": "array", "items": {"type": "boolean"}, "maxItems": 1_000_000}
    with pytest.raises(SchemaTooComplexError, match="numbers of items"):
        tool_call("lfm2", [{"name": "f", "parameters": {"properties": {"a": long}}}]).compile(BYTES)


@pytest.mark.parametrize("name", NESTED)
def test_deep_and_endless_texts_do_no_harm(name: str) -> None:
    constraint = tool_call(name, [TOOL])
    begin = constraint.render([ToolCall("f", {"tree": {"n": 1, "kids": [{"n": 2}]}})])
    head = begin[: begin.index("2")]
    for text in (head + "[" * 5_000, head + "{" * 5_000, head + "9" * 50_000, head + '"\\' * 5_000, head * 50):
        constraint.parse_partial(text)
        with pytest.raises(GenerationError):
            constraint.parse(text)


@pytest.mark.parametrize("mark", ['"', "'"])
def test_strings_are_spelled_as_python_reads_them(mark: str) -> None:
    quotes, rng = Quotes(mark, escaped=True), random.Random(mark)
    every = spelled_strings(universal(), quotes, 1_000)
    some = spelled_strings(full_match_dfa('[a"\\\\\\n]{1,3}'), quotes, 1_000)
    for _ in range(300):
        text = "".join(rng.choices("ab\\\"'\n\r\t\0\x7fé\u2028🙂{", k=rng.randint(0, 6)))
        literal = written_string(text, quotes)
        assert ast.literal_eval(literal) == text
        assert read_string(literal + "x", 0, quotes) == (text, len(literal))
        assert accepts(every, literal[1:-1])
        assert accepts(some, literal[1:-1]) == (1 <= len(text) <= 3 and set(text) <= set('a"\\\n'))
    assert read_string(f"{mark}\\d+{mark}", 0, quotes) == ("\\d+", 5)
    for bad in ("a\\", "\n", mark, "\\q", "\\x4", "\0"):
        assert not accepts(every, bad)
