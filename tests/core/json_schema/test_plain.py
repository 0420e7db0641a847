"""What Python may hold a schema in: taken as the JSON that it is, or refused with the pointer and what was expected."""

from __future__ import annotations

import collections
import datetime
import enum
import types
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from referencing import Registry
from referencing.jsonschema import DRAFT202012

import structgen
from structgen import ConstraintError, JsonOptions, OptionsError, SchemaError, SchemaTooComplexError, Vocabulary
from structgen.core.json_schema.lowering import lower
from structgen.core.json_schema.plain import UNNOTED, plain_json
from tests.many import nightly

BYTES = Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=256)


class Colour(enum.StrEnum):
    RED = "red"


class Count(enum.IntEnum):
    TWO = 2


PLAIN = {"type": "object", "properties": {"a": {"enum": ["red", 2, 1.5, None, True]}}, "required": ["a"]}
HELD: dict[str, Any] = {
    "OrderedDict": collections.OrderedDict(PLAIN),
    "MappingProxyType": types.MappingProxyType(PLAIN),
    "UserDict": collections.UserDict(PLAIN),
    "ChainMap": collections.ChainMap({"type": "object"}, PLAIN),
    "defaultdict": collections.defaultdict(dict, PLAIN),
    "nested": {**PLAIN, "properties": types.MappingProxyType({"a": {"enum": ("red", 2, 1.5, None, True)}})},
    "tuples": {**PLAIN, "required": ("a",)},
    "enums": {**PLAIN, "properties": {"a": {"enum": [Colour.RED, Count.TWO, 1.5, None, True]}}},
    "numpy": {
        **PLAIN,
        "properties": {"a": {"enum": [np.str_("red"), np.int64(2), np.float64(1.5), None, np.bool_(True)]}},
    },
    "decimals": {**PLAIN, "properties": {"a": {"enum": ["red", Decimal(2), Decimal("1.5"), None, True]}}},
}


@pytest.mark.parametrize("name", HELD)
def test_the_same_schema_however_it_is_held(name: str) -> None:
    assert lower(HELD[name]).root is lower(PLAIN).root
    assert structgen.json_schema(HELD[name]).compile(BYTES).matcher().accept_bytes(b'{"a": "red"}')


def test_plain_schemas_are_not_copied() -> None:
    assert plain_json(PLAIN) is PLAIN


class Shade(enum.Enum):
    DARK = "dark"


REFUSED: dict[str, tuple[Any, str, str]] = {  # schema, pointer, part of the message
    "integer key": ({"properties": {1: {}}}, "/properties", "not int, found 1"),
    "None key": ({None: 1}, "", "not NoneType"),
    "set": ({"properties": {"a/b": {"enum": {1, 2}}}}, "/properties/a~1b/enum", "set"),
    "bytes": ({"const": b"a"}, "/const", "bytes"),
    "bytes in a list": ({"enum": ["a", b"a"]}, "/enum/1", "bytes"),
    "date": ({"anyOf": [{"default": datetime.date(2024, 1, 1)}]}, "/anyOf/0/default", "date"),
    "fraction": ({"minimum": Fraction(1, 2)}, "/minimum", "Fraction"),
    "array": ({"enum": np.arange(3)}, "/enum", "ndarray"),
    "enum without a value of its own": ({"const": Shade.DARK}, "/const", "Shade"),
    "a class": ({"items": dict}, "/items", "type"),
    "complex": ({"const": 1j}, "/const", "complex"),
    "a numpy date": ({"const": np.datetime64("2024-01-01")}, "/const", "date"),
    "NaN": ({"enum": [float("nan")]}, "/enum", "NaN"),
    "infinity": ({"maximum": float("inf")}, "/maximum", "Infinity"),
    "NaN as Decimal": ({"multipleOf": Decimal("NaN")}, "/multipleOf", "NaN"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_json_is_refused_with_its_place(name: str) -> None:
    schema, pointer, part = REFUSED[name]
    for read in (lower, lambda one: structgen.json_schema(one).compile(BYTES)):
        with pytest.raises(SchemaError) as caught:
            read(schema)
        assert caught.value.pointer == pointer and part.lower() in str(caught.value).lower()


@pytest.mark.parametrize("schema", [None, 5, 1.5, [], "text", b"{}", (), {1}, np.arange(2)])
def test_what_is_no_schema(schema: Any) -> None:
    with pytest.raises(SchemaError):
        structgen.compile_json_schema(schema, BYTES)
    if schema is not None and not isinstance(schema, (str, bytes)):  # None is a type, of null
        with pytest.raises(ConstraintError):
            structgen.json_schema(schema)
        with pytest.raises(SchemaError):
            structgen.load_schema(schema)


@pytest.mark.parametrize("vocabulary", [None, 5, ["a"], b"a", Vocabulary, {}])
def test_what_is_no_vocabulary(vocabulary: Any) -> None:
    for compiled in (structgen.compile_json_schema, lambda schema, given: structgen.json_schema(schema).compile(given)):
        with pytest.raises(structgen.TokenizerError, match=r"vocabulary is .*expected"):
            compiled({}, vocabulary)


@pytest.mark.parametrize("options", [{}, {"dialect": "draft7"}, "any", 0, JsonOptions])
def test_what_are_no_options(options: Any) -> None:
    for compiled in (
        lambda: structgen.compile_json_schema({}, BYTES, options),
        lambda: structgen.json_schema({}, options),
    ):
        with pytest.raises(OptionsError, match=r"options is .*expected JsonOptions"):
            compiled()


@pytest.mark.parametrize("registry", [{}, "http://a.b/", 5])
def test_what_is_no_registry(registry: Any) -> None:
    with pytest.raises(OptionsError, match=r"registry is .*expected a referencing.Registry"):
        structgen.compile_json_schema({}, BYTES, registry=registry)


def test_documents_of_the_registry_are_read_the_same_way() -> None:
    document = DRAFT202012.create_resource(types.MappingProxyType({"type": ("null", "string")}))
    registry = Registry().with_resource("http://a.b/c", document)
    schema = {"$ref": "http://a.b/c"}
    assert lower(schema, registry=registry).root is lower({"type": ["null", "string"]}).root


# --- depth ------------------------------------------------------------------------------------------------------------
def deep(word: str, depth: int, wrap: Any = lambda child: child) -> Any:
    schema: Any = {"type": "null"}
    for _ in range(depth):
        schema = {word: wrap(schema)}
    return schema


@pytest.mark.first_case
@pytest.mark.parametrize("depth", [5_000, pytest.param(100_000, marks=nightly)])
@pytest.mark.parametrize(
    ("word", "wrap"),
    [
        ("items", lambda child: child),
        ("properties", lambda child: {"a": child}),
        ("anyOf", lambda child: [child, True]),
        ("allOf", lambda child: (child,)),
        ("not", types.MappingProxyType),
        ("unevaluatedItems", lambda child: child),
        ("const", lambda child: child),
        ("enum", lambda child: [child]),
        ("default", lambda child: child),
    ],
)
def test_deep_schemas(word: str, wrap: Any, depth: int) -> None:
    for read in (lower, structgen.json_schema):
        try:
            read(deep(word, depth, wrap))
        except SchemaTooComplexError as error:
            assert "nested too deeply" in str(error) and error.budget is None


@pytest.mark.parametrize("depth", [5_000, 100_000])
def test_deep_texts(depth: int) -> None:
    for text in ('{"items":' * depth + "true" + "}" * depth, '{"const":' + "[" * depth + "]" * depth + "}"):
        for read in (structgen.load_schema, structgen.json_schema):
            with pytest.raises(SchemaTooComplexError, match="nested too deeply"):
                read(text)


def test_schemas_that_hold_themselves() -> None:
    schema: dict[str, Any] = {"type": "array"}
    schema["items"] = schema
    for read in (lower, structgen.json_schema):
        with pytest.raises(SchemaTooComplexError, match="nested too deeply"):
            read(schema)


def test_what_is_held_many_times_is_looked_at_once() -> None:
    shared: Any = ["a"]
    for _ in range(60):
        shared = [shared, shared]
    assert plain_json({"default": shared})["default"] is shared
    whole: dict[str, Any] = {"enum": [[]] * 2 * UNNOTED}
    whole["default"] = whole
    assert plain_json(whole) is whole
    odd: dict[str, Any] = {"default": [[]] * 2 * UNNOTED + [("a",)]}
    assert plain_json(odd)["default"][-1] == ["a"]
