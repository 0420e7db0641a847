"""The log line on schemas that let a model invent members: when it comes, what it names, and that it is right."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import jsonschema
import pydantic
import pytest

import structgen
from structgen import JsonOptions, json_lines, json_schema, tag_dispatch, think
from structgen.core.bounded_cache import BoundedCache
from structgen.generation import open_objects
from tests.server.tiny import generator

A = {"properties": {"a": {"type": "integer", "maximum": 9, "minimum": 0}}}
OPEN = {"type": "object", **A, "required": ["a"]}
CLOSED = {**OPEN, "additionalProperties": False}


@pytest.fixture(autouse=True)
def afresh(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    monkeypatch.setattr(open_objects, "_REPORTED", BoundedCache(open_objects.KEPT))
    with caplog.at_level(logging.INFO, "structgen"):
        yield


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "structgen.generation.open_objects"]


def test_the_first_generation_says_it_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    gen = generator()
    gen.generate("p", OPEN, max_new_tokens=40)
    gen.generate("q", OPEN, max_new_tokens=40)
    list(gen.stream("q", OPEN, max_new_tokens=40))
    gen.batch(["p", "q"], OPEN, max_new_tokens=40)
    asyncio.run(gen.agenerate("q", OPEN, max_new_tokens=40))
    (line,) = lines(caplog)
    assert "at the root" in line and 'additional_members="closed"' in line and "--closed" in line and "\n" not in line
    assert caplog.records[0].levelno == logging.WARNING


@pytest.mark.parametrize("how", ["stream", "batch", "agenerate", "astream"])
def test_every_way_says_it(how: str, caplog: pytest.LogCaptureFixture) -> None:
    gen = generator()

    async def events() -> None:
        async for _ in gen.astream("p", OPEN, max_new_tokens=40):
            pass

    if how == "stream":
        list(gen.stream("p", OPEN, max_new_tokens=40))
    elif how == "batch":
        gen.batch(["p"], OPEN, max_new_tokens=40)
    elif how == "agenerate":
        asyncio.run(gen.agenerate("p", OPEN, max_new_tokens=40))
    else:
        asyncio.run(events())
    assert len(lines(caplog)) == 1


class Model(pydantic.BaseModel):
    a: int = 0


class Loose(pydantic.BaseModel, extra="allow"):
    a: int = 0


CASES: dict[str, tuple[Any, list[str]]] = {
    "open": (OPEN, ["the root"]),
    "within": ({"properties": {"b": A}, "additionalProperties": False}, ["/properties/b"]),
    "several": ({**OPEN, "properties": {"b": A, "c": A}}, ["the root and 2 more"]),
    "patterns": ({"patternProperties": {"^x": True}}, ["the root"]),
    "by reference": ({"$ref": "#/$defs/a", "$defs": {"a": A}}, ["/$defs/a"]),
    "in json lines": (json_lines(OPEN), ["the root"]),
    "behind thinking": (think(OPEN), ["the root"]),
    "in tags": (tag_dispatch({"<a>": json_schema(OPEN), "<b>": json_schema(CLOSED)}, min_uses=1), ["the root"]),
    "one of two": (json_schema(OPEN) | json_schema(CLOSED), ["the root"]),
    "closed": (CLOSED, []),
    "any members, on purpose": ({**OPEN, "additionalProperties": True}, []),
    "any values, on purpose": ({**OPEN, "unevaluatedProperties": {"type": "null"}}, []),
    "closed around": ({"allOf": [A], "unevaluatedProperties": False}, []),
    "closed beside": ({"allOf": [A, {"additionalProperties": False}]}, []),
    "declares nothing": ({"type": "object"}, []),
    "no object": ({"type": "integer", "maximum": 9}, []),
    "a model": (Model, []),
    "a model that keeps others": (Loose, []),
    "by the option": (json_schema(OPEN, JsonOptions(additional_members="closed")), []),
    "a choice": (["a", "b"], []),
    "a pattern": (structgen.regex("a{2}"), []),
    "a model's field that is named so": (
        {"properties": {"properties": {"maximum": 9}}, "additionalProperties": False},
        [],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_which_schemas_leave_objects_open(name: str, caplog: pytest.LogCaptureFixture) -> None:
    constraint, places = CASES[name]
    generator().generate("p", constraint, max_new_tokens=200)
    assert [line.partition("members: at ")[2].partition(".")[0] for line in lines(caplog)] == places


@pytest.mark.parametrize("name", ["open", "within", "by reference", "closed", "closed around"])
def test_the_option_that_is_named_leaves_no_place(name: str) -> None:
    """What it says is judged by python-jsonschema: an invented member is valid exactly where there is a place."""
    invented = [{"a": 1, "z": 1}, {"b": {"a": 1, "z": 1}}]
    schema = CASES[name][0]
    is_open = any(jsonschema.Draft202012Validator(schema).is_valid(value) for value in invented)
    assert is_open == bool(json_schema(schema).open_objects())
    assert json_schema(schema, JsonOptions(additional_members="closed")).open_objects() == []


def test_masks_alone_say_nothing(caplog: pytest.LogCaptureFixture) -> None:
    json_schema(OPEN).compile(generator().vocabulary)
    assert lines(caplog) == []


def test_each_schema_is_told_of_once_and_what_is_known_is_bounded(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_objects, "_REPORTED", BoundedCache(5))
    for number in range(8):
        open_objects.report_open_objects(json_schema({"properties": {f"a{number}": True}}))
    assert len(lines(caplog)) == 8 and len(open_objects._REPORTED) == 5
    open_objects.report_open_objects(json_schema({"properties": {"a7": True}}))
    assert len(lines(caplog)) == 8
