"""How a schema is described to a model: each form says the same of it, whatever the schema, in few words."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, get_args

import pytest
import referencing
from referencing.jsonschema import DRAFT202012

from structgen.core.json_schema.dialects import BY_NAME
from structgen.core.json_schema.prompt_forms import FORMS, MAX_CHARACTERS, FormOption, SchemaForm, checked_form
from structgen.errors import OptionsError
from tests.core.json_schema.random_schemas import Schemas

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "first and\nlast"},
        "age": {"type": ["integer", "null"]},
        "born": {"type": "string", "format": "date"},
        "level": {"enum": ["low", "high"]},
        "home": {"$ref": "#/$defs/place"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "at": {"type": "array", "prefixItems": [{"type": "number"}, {"type": "number"}], "items": False},
    },
    "required": ["name", "home"],
    "$defs": {"place": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}},
}
TREE = {
    "type": "object",
    "properties": {"value": {}, "children": {"type": "array", "items": {"$ref": "#"}}},
    "required": ["value"],
}
LIST = {"$ref": "#/$defs/item", "$defs": {"item": {"properties": {"next": {"$ref": "#/$defs/item"}}}}}
UNION = {"anyOf": [{"properties": {"circle": {"type": "number"}}}, {"properties": {"side": {"type": "number"}}}]}
BOTH = {
    "allOf": [{"properties": {"a": {"type": "integer"}}, "required": ["a"]}, {"$ref": "#more"}],
    "$defs": {"more": {"$anchor": "more", "properties": {"b": {"const": 1}}, "required": ["c"]}},
}


def shown(schema: Any, form: SchemaForm, **options: Any) -> str:
    """What follows the words that ask for JSON."""
    text = FORMS[form](schema, options.get("registry"))
    lead, _, rest = text.partition("\n" if form in ("schema", "typescript") else ": ")
    assert lead.startswith("Answer with JSON")
    return rest


def test_a_person_in_every_form() -> None:
    assert json.loads(shown(PERSON, "schema")) == PERSON
    assert shown(PERSON, "skeleton") == (
        '{"name": string (first and last), "age": integer | null, "born": string (date), "level": string, '
        '"home": {"city": string}, "tags": [string, ...], "at": [number, number]}'
    )
    assert shown(PERSON, "typescript").splitlines() == [
        "{",
        "  name: string; // first and last",
        "  age?: number | null;",
        "  born?: string;",
        '  level?: "low" | "high";',
        "  home: {",
        "    city: string;",
        "  };",
        "  tags?: string[];",
        "  at?: [number, number];",
        "}",
    ]
    assert json.loads(shown(PERSON, "example")) == {
        "name": "...",
        "age": 0,
        "born": "2024-05-17",
        "level": "low",
        "home": {"city": "..."},
        "tags": ["..."],
        "at": [0.5, 0.5],
    }


@pytest.mark.parametrize(
    ("schema", "skeleton"),
    [
        (TREE, '{"value": any value, "children": [{"value": any value, "children": [the whole, ...]}, ...]}'),
        (LIST, '{"next": item}'),
        (UNION, '{"circle": number} | {"side": number}'),
        (BOTH, '{"a": integer, "b": 1, "c": any value}'),
        ({"items": {"type": "integer"}}, "[integer, ...]"),
        ({"items": {"properties": {"a": {}}}}, '[{"a": any value}, ...]'),
        (
            {"type": "array", "items": [{"type": "null"}], "additionalItems": {"type": "boolean"}},
            "[null, boolean, ...]",
        ),
        ({"additionalProperties": {"type": "integer"}}, "{string: integer, ...}"),
        (
            {"patternProperties": {"^a": {"type": "null"}}, "properties": {"b": {}}},
            '{"b": any value, string: null, ...}',
        ),
        ({"enum": ["a", "b"]}, "string"),
        ({"enum": ["a", None, 1.5]}, "string | null | number"),
        ({"const": {"a": 1}}, '{"a": 1}'),
        ({"type": "string"}, "string"),
        ({"type": "object"}, "{...}"),
        (True, "any value"),
        ({}, "any value"),
        (False, "any value"),
        ({"properties": {"a": False, "b": True}}, '{"b": any value}'),
        ({"$ref": "#/nowhere"}, "any value"),
        ({"$ref": "https://example.com/elsewhere"}, "any value"),
        ({"$schema": 7}, "any value"),
        ({"properties": 5, "required": {}, "items": 3, "anyOf": {}}, "{...}"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_kinds_of_schemas(schema: Any, skeleton: str) -> None:
    assert shown(schema, "skeleton") == skeleton


def test_other_documents_are_looked_up() -> None:
    other = {"properties": {"far": {"type": "integer"}}}
    registry = referencing.Registry().with_resource("urn:far", DRAFT202012.create_resource(other))
    assert shown({"$ref": "urn:far"}, "skeleton", registry=registry) == '{"far": integer}'


def test_the_schemas_own_example_is_taken() -> None:
    assert json.loads(shown({"type": "object", "examples": [{"a": 7}]}, "example")) == {"a": 7}


def test_numbers_that_float_changes_are_rounded() -> None:
    assert shown({"const": Decimal("0.10")}, "skeleton") == "0.1"


WIDE = {"properties": {f"member{i}": {"type": "string", "description": "x" * 400} for i in range(3000)}}
DEEP: dict[str, Any] = {"type": "string"}
for _ in range(300):
    DEEP = {"properties": {"down": DEEP}}
BUSHY = {
    "$defs": {f"d{i}": {"properties": {f"p{j}": {"$ref": f"#/$defs/d{i + 1}"} for j in range(9)}} for i in range(9)}
    | {"d9": {"type": "string"}},
    "$ref": "#/$defs/d0",
}


@pytest.mark.parametrize("schema", [WIDE, DEEP, BUSHY], ids=["wide", "deep", "bushy"])
@pytest.mark.parametrize("form", [form for form in FORMS if form != "schema"])
def test_what_is_said_of_large_schemas_is_short(schema: Any, form: SchemaForm) -> None:
    text = FORMS[form](schema, None)
    assert 20 < len(text) <= MAX_CHARACTERS + 60
    assert any(name in text for name in ("member0", "down", "p0"))


@pytest.mark.parametrize("dialect", BY_NAME)
def test_random_schemas_have_every_form(dialect: str) -> None:
    schemas = Schemas(dialect, 4)
    for _ in range(40):
        schema = schemas.root()
        for form in FORMS:
            text = FORMS[form](schema, None)
            assert text == FORMS[form](schema, None) and text.startswith("Answer with JSON") and len(text) < 6000
        example = FORMS["example"](schema, None).partition("example: ")[2]
        assert not example or json.loads(example) is not NotImplemented


def test_names_of_forms() -> None:
    assert set(get_args(FormOption)) == {"auto", *FORMS} and set(get_args(SchemaForm)) == set(FORMS)
    assert checked_form("auto") is None and checked_form("example") == "example"
    for wrong in ("Schema", "", None, 3, ["schema"]):
        with pytest.raises(OptionsError, match=r'"auto".*"skeleton"'):
            checked_form(wrong)
