"""Malformed schemas: error class, JSON Pointer, keyword, and what the message says was found."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from structgen.core.json_schema.lowering import lower
from structgen.errors import SchemaError, UnresolvableReferenceError, UnsupportedSchemaError
from structgen.options import JsonOptions

TABLE: list[tuple[Any, type[SchemaError], str, str | None, str]] = [
    # schema, class, pointer, keyword, part of the message
    (5, SchemaError, "", None, "expected a schema (an object, true or false), found 5"),
    ({"items": [1]}, SchemaError, "/items", "items", "prefixItems from 2020-12 on"),
    ({"properties": {"a": 5}}, SchemaError, "/properties/a", "properties", "expected a schema"),
    ({"properties": {"type": 5}}, SchemaError, "/properties/type", "properties", "expected a schema"),
    ({"allOf": [True, None]}, SchemaError, "/allOf/1", "allOf", "found null"),
    ({"not": "x"}, SchemaError, "/not", "not", 'found "x"'),
    ({"properties": []}, SchemaError, "/properties", "properties", "expected an object, found []"),
    ({"items": {"minLength": -1}}, SchemaError, "/items/minLength", "minLength", "non-negative integer, found -1"),
    ({"minLength": 1.5}, SchemaError, "/minLength", "minLength", "non-negative integer, found 1.5"),
    ({"minLength": True}, SchemaError, "/minLength", "minLength", "found true"),
    ({"maxItems": "3"}, SchemaError, "/maxItems", "maxItems", 'found "3"'),
    ({"maxItems": float("nan")}, SchemaError, "/maxItems", "maxItems", "found NaN"),
    ({"minimum": "3"}, SchemaError, "/minimum", "minimum", "expected a number"),
    ({"minimum": float("inf")}, SchemaError, "/minimum", "minimum", "not a JSON number"),
    ({"maximum": Decimal("1e999999999")}, SchemaError, "/maximum", "maximum", "exponent"),
    ({"exclusiveMinimum": True}, SchemaError, "/exclusiveMinimum", "exclusiveMinimum", "draft-04/schema#"),
    ({"multipleOf": 0}, SchemaError, "/multipleOf", "multipleOf", "greater than 0"),
    ({"pattern": 1}, SchemaError, "/pattern", "pattern", "expected a string"),
    ({"format": 1}, SchemaError, "/format", "format", "expected a string"),
    ({"type": "strin"}, SchemaError, "/type", "type", 'expected one of "null"'),
    ({"type": ["string", "any"]}, SchemaError, "/type/1", "type", 'found "any"'),
    ({"type": []}, SchemaError, "/type", "type", "non-empty array"),
    ({"enum": "a"}, SchemaError, "/enum", "enum", "expected an array"),
    ({"enum": [{"a": {1, 2}}]}, SchemaError, "/enum/0/a", "a", "JSON has no set"),
    ({"required": True}, SchemaError, "/required", "required", "expected an array of strings, found true"),
    ({"required": ["a", 1]}, SchemaError, "/required/1", "required", "expected a string, found 1"),
    ({"type": "object", "properties": {}, "required": False}, SchemaError, "/required", "required", "found false"),
    ({"type": "object", "properties": {}, "required": None}, SchemaError, "/required", "required", "found null"),
    ({"type": "object", "properties": {}, "required": {}}, SchemaError, "/required", "required", "found {}"),
    ({"dependentRequired": {"a": "b"}}, SchemaError, "/dependentRequired/a", "a", "an array of strings"),
    ({"anyOf": []}, SchemaError, "/anyOf", "anyOf", "non-empty array"),
    ({"uniqueItems": 1}, SchemaError, "/uniqueItems", "uniqueItems", "true or false"),
    ({"contains": {}, "maxContains": "1"}, SchemaError, "/maxContains", "maxContains", "non-negative integer"),
    ({"$id": 1}, SchemaError, "/$id", "$id", "URI reference"),
    ({"$schema": 1}, SchemaError, "/$schema", "$schema", "URI of a metaschema"),
    ({"$ref": 1}, SchemaError, "/$ref", "$ref", "expected a string"),
    ({"items": {"$ref": "#/$defs/b"}, "$defs": {"a": {}}}, UnresolvableReferenceError, "/items/$ref", "$ref", "['a']"),
    ({"$ref": "#/allOf/1", "allOf": [{}]}, UnresolvableReferenceError, "/$ref", "$ref", "a list"),
    (
        {"$ref": "#b", "$defs": {"a": {"$anchor": "a"}}},
        UnresolvableReferenceError,
        "/$ref",
        "$ref",
        "the anchors are: a",
    ),
    ({"$ref": "http://a.b/c"}, UnresolvableReferenceError, "/$ref", "$ref", "argument registry"),
    ({"$ref": "#"}, UnresolvableReferenceError, "", "$ref", "without descending into the value"),
]


@pytest.mark.parametrize(("schema", "kind", "pointer", "keyword", "message"), TABLE, ids=lambda entry: str(entry)[:40])
def test_bad_schemas(schema: Any, kind: type[SchemaError], pointer: str, keyword: str | None, message: str) -> None:
    with pytest.raises(SchemaError) as caught:
        lower(schema)
    error = caught.value
    assert (type(error), error.pointer, error.keyword) == (kind, pointer, keyword)
    assert message in str(error)


def test_integral_numbers_count_as_integers() -> None:
    assert lower({"minLength": 2.0}).root is lower({"minLength": 2}).root is lower({"minLength": Decimal("2.0")}).root


def test_draft4_accepts_what_it_defines() -> None:
    lower({"minimum": 1, "exclusiveMinimum": True, "items": [{}]}, JsonOptions(dialect="draft4"))
    with pytest.raises(SchemaError, match="/exclusiveMinimum"):
        lower({"minimum": 1, "exclusiveMinimum": 1}, JsonOptions(dialect="draft4"))


def test_a_required_vocabulary_that_is_not_known() -> None:
    from referencing import Registry
    from referencing.jsonschema import DRAFT202012

    metaschema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$vocabulary": {"http://a.b/vocabulary/units": True},
    }
    registry = Registry().with_resource("http://a.b/meta", DRAFT202012.create_resource(metaschema))
    with pytest.raises(UnsupportedSchemaError, match="units"):
        lower({"$schema": "http://a.b/meta"}, registry=registry)
