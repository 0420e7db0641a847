"""What type checkers see of values: read by mypy, never run."""

from __future__ import annotations

import dataclasses
import enum
import re
from collections.abc import AsyncGenerator, Iterator
from typing import Annotated, Any, Literal, NamedTuple, TypedDict, assert_type

import pydantic

import structgen
from structgen import ChoiceResult, GenerationResult, Generator, StreamEvent, StructgenError
from structgen.core.tool_calls.calls import ToolCall
from structgen.generation.target import PrefixStore, Sampler, SampleRun
from structgen.integrations.remote import AsyncRemoteGenerator, RemoteEvent, RemoteGenerator, RemoteResult
from structgen.server.engine import AsyncEngine


class Person(pydantic.BaseModel):
    name: str


class Order(pydantic.BaseModel):
    number: int


class Record(TypedDict):
    name: str


class Point(NamedTuple):
    x: int


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class City:
    name: str


Age = Annotated[int, pydantic.Field(ge=0)]
Answer = Literal["yes", "no"]


def write(city: str, days: int) -> str:
    """A function, whose arguments are written."""
    return f"{city} {days}"


def generated(generator: Generator, kind: type[pydantic.BaseModel], schema: dict[str, Any], unknown: Any) -> None:
    # classes
    assert_type(generator.generate("p", Person).value, Person)
    assert_type(generator.generate("p", Person), GenerationResult[Person])
    assert_type(generator.generate("p", City, temperature=1.0, seed=1).value, City)
    assert_type(generator.generate("p", Record).value, Record)
    assert_type(generator.generate("p", Point).value, Point)
    assert_type(generator.generate("p", Colour).value, Colour)
    assert_type(generator.generate("p", int).value, int)
    assert_type(generator.generate("p", kind).value, pydantic.BaseModel)
    assert_type(generator.generate("p", list[Person]).value, list[Person])
    assert_type(generator.generate("p", dict[str, int]).value, dict[str, int])
    assert_type(generator.generate("p", tuple[int, str]).value, tuple[int, str])
    # forms that are no classes
    assert_type(generator.generate("p", Literal["yes", "no"]).value, Literal["yes", "no"])
    assert_type(generator.generate("p", Answer).value, Literal["yes", "no"])
    assert_type(generator.generate("p", int | None).value, int | None)
    assert_type(generator.generate("p", Person | Order).value, Person | Order)
    assert_type(generator.generate("p", Annotated[int, pydantic.Field(ge=0)]).value, int)
    assert_type(generator.generate("p", Age).value, int)
    assert_type(generator.generate("p", list[Age | None]).value, list[int | None])
    # constraints
    assert_type(generator.generate("p", pydantic.TypeAdapter(list[Person])).value, list[Person])
    assert_type(generator.generate("p", structgen.json_schema(Person)).value, Person)
    assert_type(generator.generate("p", structgen.json_schema(Answer)).value, Literal["yes", "no"])
    assert_type(generator.generate("p", structgen.json_lines(Person)).value, list[Person])
    assert_type(generator.generate("p", structgen.think(Person, max_think_tokens=9)).value, Person)
    assert_type(generator.generate("p", structgen.think()).value, str)
    assert_type(generator.generate("p", structgen.regex("a+")).value, str)
    assert_type(generator.generate("p", structgen.tool_call("hermes", [])).value, list[str | ToolCall])
    # texts
    assert_type(generator.generate("p").value, str)
    assert_type(generator.generate("p", None).value, str)
    assert_type(generator.generate("p", re.compile("a+")).value, str)
    assert_type(generator.generate("p", ["yes", "no"]).value, str)
    # schemas, and what is known when it runs only
    assert_type(generator.generate("p", schema).value, Any)
    assert_type(generator.generate("p", {"type": "integer"}).value, Any)
    assert_type(generator.generate("p", "person.json").value, Any)
    assert_type(generator.generate("p", True).value, Any)
    assert_type(generator.generate("p", write).value, Any)
    assert_type(generator.generate("p", structgen.json_schema(schema)).value, Any)
    assert_type(generator.generate("p", unknown).value, Any)


def others(generator: Generator, labels: list[Answer]) -> None:
    assert_type(generator.stream("p", Person), Iterator[StreamEvent[Person]])
    for event in generator.stream("p", Answer):
        assert_type(event.partial, Literal["yes", "no"] | None)
        if event.result is not None:
            assert_type(event.result.value, Literal["yes", "no"])
    assert_type(generator.batch(["p", "q"], Person, seed=1, batch_size=2), list[GenerationResult[Person]])
    assert_type(generator.batch(["p"]), list[GenerationResult[str]])
    assert_type(generator.batch(["p"], int | None), list[GenerationResult[int | None]])
    assert_type(generator.batch(["p"], [Person, Order]), list[GenerationResult[Any]])
    assert_type(generator.batch(["p"], Person, return_exceptions=True), list[GenerationResult[Person] | StructgenError])
    for _, outcome in generator.stream_batch(["p"], Answer):
        assert_type(outcome, GenerationResult[Literal["yes", "no"]] | StructgenError)
    assert_type(generator.choice("p", ["a", "b"]), ChoiceResult[str])
    assert_type(generator.choice("p", labels).value, Literal["yes", "no"])
    assert_type(structgen.generate_json("p", Person), Person)
    assert_type(structgen.generate_json("p", Person | None, generator, max_new_tokens=9), Person | None)
    assert_type(structgen.generate_json("p", {"type": "integer"}), Any)
    assert_type(structgen.json_schema(Person).parse("{}"), Person)


async def awaited(generator: Generator, schema: dict[str, Any]) -> None:
    assert_type(await generator.agenerate("p", Person, temperature=1.0, seed=1), GenerationResult[Person])
    assert_type((await generator.agenerate("p", Answer)).value, Literal["yes", "no"])
    assert_type((await generator.agenerate("p", int | None)).value, int | None)
    assert_type((await generator.agenerate("p", ["yes", "no"])).value, str)
    assert_type((await generator.agenerate("p")).value, str)
    assert_type((await generator.agenerate("p", schema)).value, Any)
    assert_type(generator.astream("p", Person), AsyncGenerator[StreamEvent[Person], None])
    async for event in generator.astream("p", Answer):
        assert_type(event.partial, Literal["yes", "no"] | None)


def sampled(generator: Generator) -> None:
    run = generator.sample("p", Person, 3, seed=1)
    assert_type(run, SampleRun[Person])
    assert_type(run.samples[0].value, Person)
    assert_type(run.values, list[Person])
    assert_type(generator.sample("p", int | None, 3).values, list[int | None])
    assert_type(generator.sample("p", ["a", "b"], 3).values, list[str])
    target = generator.target("p", Answer)
    assert_type(Sampler(PrefixStore(target)).draw(2).values, list[Literal["yes", "no"]])


async def elsewhere(engine: AsyncEngine, remote: RemoteGenerator, server: AsyncRemoteGenerator) -> None:
    assert_type(await engine.agenerate("p", Person), GenerationResult[Person])
    assert_type(await remote.agenerate("p", Person, max_attempts=2), RemoteResult[Person])
    assert_type(await remote.agenerate("p", ["yes", "no"]), RemoteResult[str])
    assert_type(remote.astream("p", Answer), AsyncGenerator[RemoteEvent[Literal["yes", "no"]], None])
    assert_type(engine.astream("p", int | None), AsyncGenerator[StreamEvent[int | None], None])
    assert_type(remote.generate("p", Person, max_attempts=2), RemoteResult[Person])
    assert_type(remote.stream("p", Answer), Iterator[RemoteEvent[Literal["yes", "no"]]])
    assert_type(await server.generate("p", Age), RemoteResult[int])
    assert_type(server.stream("p"), AsyncGenerator[RemoteEvent[str], None])
