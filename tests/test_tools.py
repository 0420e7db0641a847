"""Functions as tools: definitions, typed arguments, the loop, MCP's lists."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import functools
from types import SimpleNamespace
from typing import Annotated, Any

import pydantic
import pytest

import structgen
import structgen.tools
from structgen import ConstraintError, OptionsError, ToolCall, ToolCallError, Vocabulary, tool_call
from structgen.tools import run, tool

BYTES = Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=256)


class Unit(enum.Enum):
    CELSIUS = "celsius"
    FAHRENHEIT = "fahrenheit"


@dataclasses.dataclass
class Place:
    city: str
    zone: datetime.timedelta = datetime.timedelta(0)


class Trip(pydantic.BaseModel):
    day: datetime.date
    price: Annotated[decimal.Decimal, pydantic.Field(gt=0, decimal_places=2)] = decimal.Decimal(1)


def book(place: Place, trip: Trip, /, unit: Unit = Unit.CELSIUS, *, tags: frozenset[str] = frozenset()) -> Any:
    """Book a trip.

    Args:
        place: where it goes
        tags: labels
    """
    return place, trip, unit, tags


def add(a: int, b: int = 1) -> int:
    """Add numbers.

    :param a: the first
    """
    return a + b


def fail(why: str) -> None:
    """Fail."""
    raise ValueError(why)


def test_definitions_come_from_signature_and_docstring() -> None:
    found = tool(add).definition["function"]
    assert found["name"] == "add" and found["description"] == "Add numbers."
    assert found["parameters"]["properties"]["a"] == {"type": "integer", "description": "the first", "title": "A"}
    assert found["parameters"]["required"] == ["a"] and found["parameters"]["type"] == "object"
    shown = tool(book).shown["properties"]
    assert shown["place"]["description"] == "where it goes" and shown["tags"]["description"] == "labels"
    assert tool(functools.partial(add, b=2), name="more").name == "more"


def test_arguments_arrive_as_the_types_say() -> None:
    place, trip, unit, tags = tool(book).call(
        {"place": {"city": "Bonn", "zone": "PT1H"}, "trip": {"day": "2024-02-29", "price": 1.25}, "tags": ["a"]}
    )
    assert place == Place("Bonn", datetime.timedelta(hours=1)) and tags == frozenset({"a"}) and unit is Unit.CELSIUS
    assert trip == Trip(day=datetime.date(2024, 2, 29), price=decimal.Decimal("1.25"))
    with pytest.raises(ToolCallError, match="arguments of add are refused") as caught:
        tool(add).call({"a": "x"})
    assert isinstance(caught.value.__cause__, pydantic.ValidationError) and caught.value.name == "add"
    with pytest.raises(ToolCallError, match="fail raised ValueError: so") as failed:
        tool(fail).call({"why": "so"})
    assert isinstance(failed.value.__cause__, ValueError)


def test_methods_and_callable_objects_are_tools() -> None:
    class Counter:
        """Counts."""

        def __call__(self, step: int) -> int:
            return step

        def up(self, by: int = 1) -> int:
            """Count up."""
            return by

    assert tool(Counter().up).call({"by": 3}) == 3 and tool(Counter().up).description == "Count up."
    assert tool(Counter()).name == "Counter" and tool(Counter()).call({"step": 2}) == 2


@pytest.mark.parametrize("wrong", [Place, 7, lambda *a: a, lambda **a: a], ids=["class", "value", "args", "kwargs"])
def test_what_is_no_tool_is_refused(wrong: Any) -> None:
    with pytest.raises(ConstraintError):
        tool(wrong)


def test_functions_are_tools_of_calls() -> None:
    calls = tool_call("hermes", [add, tool(book)])
    text = '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'
    assert calls.parse(text) == [ToolCall("add", {"a": 1})]
    assert accepts(calls, text) and not accepts(calls, text.replace('"a": 1', '"a": "x"'))
    trip = '<tool_call>\n{"name": "book", "arguments": {"place": {"city": "B"}, "trip": {"day": "DAY"}}}\n</tool_call>'
    assert accepts(calls, trip.replace("DAY", "2024-02-29"))
    assert not accepts(calls, trip.replace("DAY", "0000-02-29"))  # RFC 3339 would take it, Python does not
    assert "Add numbers." in (calls.instruction() or "")


def accepts(constraint: Any, text: str) -> bool:
    matcher = constraint.compile(BYTES).matcher()
    return bool(matcher.accept_bytes(text.encode()) and matcher.is_accepting())


CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def test_lists_of_mcp_are_tools() -> None:
    listed = {"name": "weather", "description": "The weather", "inputSchema": CITY, "annotations": {"title": "W"}}
    for tools in (
        [listed],
        {"tools": [listed], "nextCursor": None},
        SimpleNamespace(tools=[SimpleNamespace(**listed)]),
    ):
        calls = tool_call("hermes", tools)
        text = '<tool_call>\n{"name": "weather", "arguments": {"city": "Bonn"}}\n</tool_call>'
        assert accepts(calls, text) and not accepts(calls, text.replace('"city": "Bonn"', ""))
        assert '"parameters"' in (calls.instruction() or "") and "inputSchema" not in (calls.instruction() or "")
    with pytest.raises(structgen.SchemaError) as caught:
        tool_call("hermes", [{**listed, "inputSchema": {"type": "what"}}])
    assert caught.value.pointer.startswith("/0/inputSchema")
    with pytest.raises(OptionsError, match="is a definition"):
        run(Script([]), "p", [listed], format="hermes")  # type: ignore[arg-type]


class Script:
    """In place of a generator: writes texts that are given, after it has put them to the constraint."""

    def __init__(self, texts: list[str]) -> None:
        self.texts, self.seen = list(texts), list[Any]()

    def generate(self, prompt: Any, constraint: Any, **options: Any) -> Any:
        self.seen.append((list(prompt), constraint, options))
        text = self.texts.pop(0)
        assert accepts(constraint, text), text
        return SimpleNamespace(text=text, value=constraint.parse(text))


def written(name: str, **arguments: Any) -> str:
    return tool_call("hermes", [add, fail]).render([ToolCall(name, arguments)])


def test_the_loop_calls_until_there_is_an_answer() -> None:
    script: Any = Script([written("add", a=1, b=2), written("add", a=3), "It is 4."])
    found = run(script, "1 + 2 + 1?", [add, fail], format="hermes", temperature=0.5)
    assert found.answer == "It is 4." and [made.result for made in found.calls] == [3, 4]
    roles = [message["role"] for message in found.messages]
    assert roles == ["user", "assistant", "tool", "assistant", "tool", "assistant"]
    assert [m["content"] for m in found.messages if m["role"] == "tool"] == ["3", "4"]
    assert script.seen[0][2] == {"temperature": 0.5} and len(script.seen) == 3


def test_the_first_turn_may_have_to_call() -> None:
    script: Any = Script([written("add", a=1), "Two."])
    found = run(script, "p", [add, fail], format="hermes", tool_choice={"name": "add"})
    assert found.answer == "Two." and [accepts(constraint, "Two.") for _, constraint, _ in script.seen] == [False, True]


def test_errors_are_told_or_raised() -> None:
    told = run(Script([written("fail", why="rain"), "No."]), "p", [add, fail], format="hermes")  # type: ignore[arg-type]
    assert told.messages[2]["content"] == "Error: fail raised ValueError: rain" and told.calls[0].error is not None
    with pytest.raises(ToolCallError, match="rain"):
        run(Script([written("fail", why="rain")]), "p", [fail, add], format="hermes", on_error="raise")  # type: ignore[arg-type]


def test_calls_are_bounded() -> None:
    three = tool_call("hermes", [add, fail]).render([ToolCall("add", {"a": number}) for number in range(3)])
    script: Any = Script([three, "Enough."])
    found = run(script, "p", [add, fail], format="hermes", max_calls=2, result_role="user")
    assert [made.result for made in found.calls] == [1, 2, None]
    assert "no more are allowed" in found.messages[-2]["content"] and found.answer == "Enough."
    none: Any = Script(["Hello."])
    assert run(none, "p", [add], format="hermes", max_calls=0).answer == "Hello."
