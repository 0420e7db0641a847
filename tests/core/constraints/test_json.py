"""Constraints: every kind of source, exact values, compile cache, clear errors."""

from __future__ import annotations

import enum
import json
import re
import sys
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pydantic
import pytest
from typing_extensions import TypedDict

from structgen.core.constraints.cache import LEAST_BYTES, CompiledCache
from structgen.core.constraints.json import as_constraint, json_schema
from structgen.core.json_text import loads_exact
from structgen.errors import ConstraintError, GenerationError, SchemaError, SchemaTooComplexError
from structgen.options import JsonOptions

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}


class Model(pydantic.BaseModel):
    name: str
    age: int


@dataclass
class Point:
    x: int
    y: int


class Movie(TypedDict):
    title: str


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


def test_schemas_as_dict_text_and_file_are_equal(tmp_path: Path) -> None:
    file = tmp_path / "schema.json"
    file.write_text(json.dumps(SCHEMA))
    same = [
        json_schema(source) for source in (SCHEMA, json.dumps(SCHEMA), json.dumps(SCHEMA).encode(), file, str(file))
    ]
    assert len(set(same)) == 1 and all(constraint.schema == SCHEMA for constraint in same)
    assert json_schema(True).schema is True and json_schema("false").schema is False


@pytest.mark.parametrize(
    ("source", "text", "value"),
    [
        (Model, '{"name": "Ada", "age": 36}', Model(name="Ada", age=36)),
        (Point, '{"x": 1, "y": 2}', Point(1, 2)),
        (Movie, '{"title": "Alien"}', {"title": "Alien"}),
        (Color, '"blue"', Color.BLUE),
        (Literal["a", 3], "3", 3),
        (list[int], "[1, 2]", [1, 2]),
        (int | None, "null", None),
        (pydantic.TypeAdapter(bool), "true", True),
        (SCHEMA, '{"a": 1}', {"a": 1}),
    ],
)
def test_values_are_of_the_given_type(source: Any, text: str, value: Any) -> None:
    constraint = json_schema(source)
    assert isinstance(constraint.schema, dict)
    parsed = constraint.parse(text)
    assert parsed == value and type(parsed) is type(value)


def test_objects_of_a_type_are_closed_unless_it_keeps_what_is_undeclared() -> None:
    class Open(pydantic.BaseModel, extra="allow"):
        n: int

    class Outer(pydantic.BaseModel):
        open: Open
        point: Point
        movies: dict[str, Movie]

    schema: Any = json_schema(Outer).schema
    assert schema["additionalProperties"] is False
    assert schema["properties"]["movies"]["additionalProperties"] == {"$ref": "#/$defs/Movie"}
    closed = {name: definition["additionalProperties"] for name, definition in schema["$defs"].items()}
    assert closed == {"Open": True, "Point": False, "Movie": False}


def test_the_validators_of_a_type_have_the_last_word() -> None:
    class Even(pydantic.BaseModel):
        n: int

        @pydantic.field_validator("n")
        @classmethod
        def even(cls, n: int) -> int:
            if n % 2:
                raise ValueError("odd")
            return n

    with pytest.raises(GenerationError, match="type's own validators"):
        json_schema(Even).parse('{"n": 3}')


def test_a_constraint_does_not_change_with_the_callers_dict() -> None:
    schema: dict[str, Any] = {"enum": [1, 2]}
    constraint = json_schema(schema)
    schema["enum"].append(3)
    constraint.schema["enum"].append(4)  # type: ignore[index]
    assert constraint.schema == {"enum": [1, 2]}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.1", 0.1),
        ("1e2", 100.0),
        ("-0.0", -0.0),
        ("0.10", 0.1),
        ("0.1000000000000000055511151231257827", Decimal("0.1000000000000000055511151231257827")),
        ("0.99999999999999999999", Decimal("0.99999999999999999999")),
        ("1e999", Decimal("1e999")),
        ("123456789012345678901234567890", 123456789012345678901234567890),
    ],
)
def test_numbers_keep_all_their_digits(text: str, value: Any) -> None:
    parsed = loads_exact(text)
    assert type(parsed) is type(value) and repr(parsed) == repr(value)


def test_integers_beyond_pythons_digit_limit() -> None:
    assert loads_exact("[1" + "0" * 10_000 + "]") == [10**10_000]


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000])
def test_texts_that_cannot_be_parsed_raise(text: str) -> None:
    with pytest.raises(GenerationError):
        loads_exact(text)


def test_partial_values() -> None:
    constraint = json_schema(SCHEMA)
    assert constraint.parse_partial("") is None
    assert constraint.parse_partial('{"a": [1, "x') == {"a": [1, "x"]}


def test_the_instruction_shows_the_schema() -> None:
    assert json.dumps(SCHEMA, separators=(",", ":")) in json_schema(SCHEMA).instruction()
    assert "0.01" in json_schema('{"multipleOf": 0.01}').instruction()


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ("no/such/file.json", SchemaError, "cannot read the schema from 'no/such/file.json': No such file"),
        ("{", SchemaError, "not JSON"),
        ("[1]", SchemaError, "a schema is an object"),
        (b"\xff{}", SchemaError, "not UTF-8"),
        ({"const": {1, 2}}, ConstraintError, "expected a JSON value.*const"),
        (42, ConstraintError, "Cannot read 42 as a constraint"),
        (None.__class__.__mro__, ConstraintError, "as a constraint"),
        (lambda *given: 0, ConstraintError, "stands for any number of arguments"),
        (type("Opaque", (), {}), ConstraintError, "as a constraint"),
        (["a", "b"], ConstraintError, r"Give Literal\['a', 'b'\]; or give choice"),
        (re.compile("a+"), ConstraintError, r"'pattern': 'a\+'"),
        ([int, str], ConstraintError, r"Give list\[int \| str\]\."),
        ((int, str), ConstraintError, r"Give tuple\[int, str\]\."),
    ],
)
def test_bad_sources_raise(source: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        json_schema(source)


def test_a_missing_package_of_pydantic_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "email_validator", None)
    with pytest.raises(ConstraintError, match="email-validator is not installed"):
        json_schema(pydantic.EmailStr)


def test_a_schema_nested_too_deeply_raises() -> None:
    schema: dict[str, Any] = {}
    for _ in range(10_000):
        schema = {"not": schema}
    with pytest.raises(SchemaTooComplexError):
        json_schema(schema)
    with pytest.raises(SchemaTooComplexError):
        json_schema('{"not":' * 100_000 + "{}" + "}" * 100_000)


def test_as_constraint() -> None:
    constraint = json_schema(SCHEMA)
    assert as_constraint(None) is None
    assert as_constraint(constraint) is constraint
    assert as_constraint(SCHEMA) == constraint
    assert as_constraint(Model) == json_schema(Model)


def test_the_compile_cache_is_bounded_and_keyed() -> None:
    cache, built = CompiledCache(max_bytes=3 * LEAST_BYTES), []

    def build(size: int) -> Any:
        built.append(size)
        return SimpleNamespace(memory_bytes=size, is_outdated=False, vocabulary=SimpleNamespace(digest="one"))

    first = cache.get("a", lambda: build(10))
    assert cache.get("a", lambda: build(11)) is first
    for key in "bcd":
        cache.get(key, lambda: build(10))
    assert cache.get("a", lambda: build(10)) is not first  # three were newer
    cache.get("e", lambda: build(5 * LEAST_BYTES))  # too large for anything beside it, yet usable
    assert cache.get("e", lambda: build(1)).memory_bytes == 5 * LEAST_BYTES
    assert len(cache) == 1 and cache.bytes == 5 * LEAST_BYTES
    cache.get("f", lambda: build(1)).memory_bytes = 2 * LEAST_BYTES  # it grows
    cache.get("g", lambda: build(1))
    assert cache.bytes == 3 * LEAST_BYTES, "those used last are counted again when another comes in"
    cache.get("f", lambda: build(1))
    assert cache.bytes == 3 * LEAST_BYTES and cache._grammars.keys() == ["g", "f"]


def test_constraints_differ_by_schema_options_and_type() -> None:
    distinct = [
        json_schema(SCHEMA),
        json_schema(SCHEMA, JsonOptions.exact()),
        json_schema({"properties": SCHEMA["properties"], "type": "object"}),  # the order of members matters
        json_schema('{"multipleOf": 0.1}'),
        json_schema('{"multipleOf": 0.10}'),
        json_schema(Model),
    ]
    assert len(set(distinct)) == len(distinct)
