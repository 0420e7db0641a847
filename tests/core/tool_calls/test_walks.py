"""Whatever masks allow is a call whose arguments python-jsonschema takes; whatever it takes can be written."""

from __future__ import annotations

import random
from itertools import permutations
from typing import Any

import pytest

from structgen.core.constraints.tools import ToolCalls, tool_call
from structgen.core.tool_calls.calls import ToolCall
from structgen.core.tool_calls.formats import FORMATS
from structgen.errors import ConstraintError, SchemaError
from structgen.options import JsonOptions
from tests.core.json_schema.random_schemas import Schemas
from tests.core.tool_calls.random_tools import is_valid, random_output, random_tool
from tests.core.tool_calls.vocabularies import BYTES, accepts, chat_vocabulary
from tests.fuzz.judge import Judge

OPTIONS = [
    None,
    JsonOptions(),
    JsonOptions(key_order="any"),
    JsonOptions(whitespace="any", max_whitespace_run=2),
    JsonOptions.exact(additional_members="closed", max_number_length=4),
]
IN_TAGS = [name for name, format in FORMATS.items() if format.parameters is not None]


def constraint_of(name: str, tools: list[dict[str, Any]], options: JsonOptions | None) -> ToolCalls | None:
    """The constraint, or None where a random schema has no value or is refused by name."""
    try:
        return tool_call(name, tools, tool_choice="required", json_options=options)
    except SchemaError as error:
        assert error.pointer.startswith(("/0/function/parameters", "/1/function/parameters", "/0/parameters"))
        return None


def calls_of(constraint: ToolCalls, rng: random.Random, steps: int) -> tuple[str, list[Any]]:
    """A random output and what it is parsed to."""
    try:
        matcher = constraint.compile(BYTES).matcher()
    except SchemaError as error:
        assert error.pointer.startswith("/")
        return "", []
    data = bytes(random_output(matcher, BYTES, rng, steps))
    text = (data if matcher.is_accepting() else data + matcher.shortest_completion()).decode()
    return text, constraint.parse(text)


def is_open(arguments: dict[str, Any], tool: dict[str, Any]) -> bool:
    """Whether there are arguments, or members of them, that are not declared (schemas of tests declare "a" and "b")."""
    names = [*tool["function"]["parameters"]["properties"]]
    inner = [key for value in arguments.values() if isinstance(value, dict) for key in value]
    return not set(arguments) <= set(names) or not set(inner) <= {"a", "b"}


@pytest.mark.first_case
@pytest.mark.parametrize("name", FORMATS)
def test_outputs_are_valid(name: str) -> None:
    """And are written again to what is read as the same."""
    found = 0
    for seed in range(8 if FORMATS[name].names is None else 16):
        rng = random.Random(f"{name} {seed}")
        tools = [random_tool(rng, "alpha"), random_tool(rng, "beta")]
        constraint = constraint_of(name, tools, rng.choice(OPTIONS))
        for _ in range(3 if constraint else 0):
            assert constraint is not None
            text, calls = calls_of(constraint, rng, rng.choice([60, 200]))
            if not calls:  # a schema that the format cannot write
                continue
            for call in calls:
                assert isinstance(call, ToolCall), text
                tool = next(tool for tool in tools if tool["function"]["name"] == call.name)
                assert is_valid(call.arguments, tool), (call, tool, text)
            again = [call for call in constraint.parse(constraint.render(calls)) if isinstance(call, ToolCall)]
            assert [(c.name, c.arguments) for c in again] == [(c.name, c.arguments) for c in calls]
            found += len(calls)
    assert found > 8


@pytest.mark.first_case
@pytest.mark.parametrize("name", FORMATS)
def test_valid_calls_can_be_written(name: str) -> None:
    """Arguments that the machine for JSON writes are written in each format, unless it says that they cannot be."""
    written = 0
    for seed in range(20 if FORMATS[name].names is None else 30):  # "x y" is no name in Python
        rng = random.Random(seed)
        tools = [random_tool(rng, "get_weather")]
        constraint, source = constraint_of(name, tools, None), constraint_of("deepseek_v3_1", tools, None)
        if constraint is None or source is None:
            continue
        _, calls = calls_of(source, rng, 150)
        if name == "minimax_m3" and any(is_open(call.arguments, tools[0]) for call in calls):
            continue  # names that are not declared would have to stand there twice
        try:
            text = constraint.render(calls)
            vocabulary = rng.choice([BYTES, chat_vocabulary(name)])
            grammar = constraint.compile(vocabulary)
        except ConstraintError as error:  # an unwritable string, or a schema that lists one
            assert name in IN_TAGS and "cannot be written" in str(error)
            continue
        assert accepts(grammar, vocabulary, text, rng), text
        written += len(calls)
    assert written >= 10


@pytest.mark.parametrize("name", IN_TAGS)
def test_invalid_arguments_are_refused(name: str) -> None:
    """Of random arguments in order, the grammar takes those that python-jsonschema takes."""
    values: list[Any] = [
        None,
        True,
        0,
        7,
        1.5,
        "",
        "a",
        "ab",
        "celsius",
        "12",
        "[",
        [],
        ["a"],
        [1, 2],
        {"a": 1},
        {"b": ""},
    ]
    refused = 0
    for seed in range(15):
        rng = random.Random(seed)
        tools = [random_tool(rng, "alpha")]
        constraint = constraint_of(name, tools, JsonOptions())
        if constraint is None:
            continue
        properties = tools[0]["function"]["parameters"]["properties"]
        for _ in range(15):
            arguments = {key: rng.choice(values) for key in properties if rng.random() < 0.7}
            try:
                text = constraint.render([ToolCall("alpha", arguments)])
                grammar = constraint.compile(BYTES)
            except ConstraintError:
                continue
            matcher = grammar.matcher()
            taken = bool(matcher.accept_bytes(text.encode()) and matcher.is_accepting())
            assert taken == is_valid(arguments, tools[0]), (arguments, tools[0])
            refused += not taken
    assert refused > 20


EXISTENTIALS: list[dict[str, Any]] = [
    {"type": "object", "not": {"additionalProperties": {"type": "boolean"}}},
    {"type": "object", "properties": {"a": {"type": "integer"}}, "not": {"additionalProperties": {"type": "boolean"}}},
    {
        "type": "object",
        "allOf": [
            {"not": {"patternProperties": {"^b": {"type": "boolean"}}}},
            {"not": {"additionalProperties": {"type": "integer"}}},
        ],
    },
    {
        "type": "object",
        "oneOf": [
            {"multipleOf": 1},
            {
                "properties": {"b": {"type": "object"}, "a": {"type": "boolean"}},
                "additionalProperties": {"type": "boolean"},
                "unevaluatedProperties": {"type": "object"},
            },
        ],
    },
    {"anyOf": [{"required": ["k"]}, {"not": {"patternProperties": {"b": {"type": "object"}}}}], "type": "object"},
]


@pytest.mark.parametrize("name", ["qwen3_coder", "glm4_5"])
@pytest.mark.parametrize("order", ["any", "declared"])
@pytest.mark.parametrize("parameters", EXISTENTIALS, ids=range(len(EXISTENTIALS)))
def test_arguments_without_a_declaration_meet_existentials(name: str, order: Any, parameters: dict[str, Any]) -> None:
    """Where they come last of their class: one that follows might have the same name, and take their place."""
    tool = {"name": "f", "parameters": parameters}
    judge, rng = Judge(parameters, "draft2020-12"), random.Random(0)
    constraint = constraint_of(name, [tool], JsonOptions.exact(key_order=order))
    assert constraint is not None
    grammar, taken = constraint.compile(BYTES), 0
    for _ in range(10):
        matcher = grammar.matcher()
        data = bytes(random_output(matcher, BYTES, rng, 60))
        text = data if matcher.is_accepting() else data + matcher.shortest_completion()
        (call,) = constraint.parse(text.decode())[:1]
        assert isinstance(call, ToolCall) and judge.valid(call.arguments), (call, tool)
    others: list[dict[str, Any]] = [{}, {"zz": True}, {"a": 1}, {"b": {}, "ab": {}}]
    for meeting in (7, {"b": 1}, "x", True):
        for other in others:
            found = set()
            for order_of_names in permutations([*other, "bc"]):
                arguments = {key: {**other, "bc": meeting}[key] for key in order_of_names}
                matcher = grammar.matcher()
                text = constraint.render([ToolCall("f", arguments)]).encode()
                found.add(bool(matcher.accept_bytes(text) and matcher.is_accepting()))
            valid = judge.valid({**other, "bc": meeting})
            assert found == {False} if not valid else True in found, (other, meeting, tool)
            taken += valid
    assert taken


@pytest.mark.full
@pytest.mark.parametrize("name", ["qwen3_coder", "glm4_5", "deepseek_v3_2", "hermes"])
def test_any_schema(name: str) -> None:
    """Schemas of all keywords: what is written is valid, and of random objects the valid ones are taken."""
    walked = taken = refused = 0
    for seed in range(60):
        schemas = Schemas("draft2020-12", seed, without=["dependencies"])
        schema = {**schemas.root(), "type": "object"}
        tool, judge = {"name": "f", "parameters": schema}, Judge(schema, "draft2020-12")
        rng = random.Random(seed)
        options = JsonOptions.exact(key_order=rng.choice(["any", "declared"]), max_number_length=4)
        constraint = constraint_of(name, [tool], options)
        if constraint is None:
            continue
        try:
            grammar = constraint.compile(BYTES)
        except SchemaError as error:
            assert error.pointer.startswith("/0/parameters")
            continue
        for _ in range(2):
            matcher = grammar.matcher()
            data = bytes(random_output(matcher, BYTES, rng, 100))
            (call,) = constraint.parse(
                (data if matcher.is_accepting() else data + matcher.shortest_completion()).decode()
            )[:1]
            assert isinstance(call, ToolCall) and judge.valid(call.arguments), (call, tool)
            walked += 1
        for _ in range(12):
            arguments = {key: schemas.value(1) for key in ("a", "b", "ab", "c") if rng.random() < 0.4}
            try:
                text = constraint.render([ToolCall("f", arguments)])
            except ConstraintError:
                continue
            matcher = grammar.matcher()
            accepted = bool(matcher.accept_bytes(text.encode()) and matcher.is_accepting())
            valid = judge.valid(arguments)
            if accepted:
                assert valid, (arguments, tool)
                taken += 1
            else:
                assert not valid or options.key_order == "declared", (arguments, tool)
                refused += 1
    assert walked > 40 and taken > 30 and refused > 60
