"""The error for a schema without values names the deepest subschema that has none and must hold, and why."""

from __future__ import annotations

import random
from typing import Any

import pytest

from structgen import JsonOptions, compile_json_schema
from structgen.core.vocabulary.vocabulary import TextVocabulary
from structgen.errors import StructgenError, UnsatisfiableSchemaError
from tests.core.json_schema.random_schemas import Schemas

VOCABULARY = TextVocabulary()
NONE = {"type": "integer", "minimum": 3, "maximum": 2}


def error_of(schema: Any, **options: Any) -> UnsatisfiableSchemaError | None:
    try:
        compile_json_schema(schema, VOCABULARY, JsonOptions(**options))
    except UnsatisfiableSchemaError as error:
        return error
    return None


def with_member(schema: Any, name: str = "a", /, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {name: schema}, "required": [name], **more}


REFERS = {"$ref": "#/$defs/x"}
CASES: list[tuple[Any, str, str | None, str]] = [  # schema, pointer, keyword, what the message says
    (NONE, "", None, "'minimum' and 'maximum' exclude each other"),
    (False, "", None, "it is false"),
    ({"enum": [], "title": "x"}, "", "enum", "'enum' allows no value"),
    ({"title": "x", "type": "string", "enum": [1]}, "", None, "'type' and 'enum' exclude each other"),
    ({"type": "string", "pattern": "^a$", "minLength": 2}, "", None, "'type', 'pattern' and 'minLength' exclude"),
    (with_member(NONE), "/properties/a", None, "since none satisfies this part of it, which must hold"),
    (with_member(with_member(NONE, "b/~")), "/properties/a/properties/b~1~0", None, "exclude each other"),
    (with_member(NONE, minProperties=1), "/properties/a", None, "exclude each other"),
    (with_member(False), "/properties/a", None, "it is false"),
    ({"allOf": [{"type": "object"}, with_member(NONE)]}, "/allOf/1/properties/a", None, "exclude each other"),
    ({"allOf": [{"type": "string"}, {"type": "integer"}]}, "", "allOf", "'allOf' allows no value"),
    ({"anyOf": [NONE]}, "/anyOf/0", None, "exclude each other"),
    ({"anyOf": [NONE, {"enum": []}]}, "", "anyOf", "'anyOf' allows no value"),
    (with_member({"oneOf": [NONE, NONE]}), "/properties/a", "oneOf", "'oneOf' allows no value"),
    ({"properties": {"a": NONE}, "allOf": [{"required": ["a"]}], "type": "object"}, "/properties/a", None, "exclude"),
    ({"type": "array", "items": NONE, "minItems": 1}, "/items", None, "exclude each other"),
    ({"type": "array", "prefixItems": [True, NONE], "minItems": 2}, "/prefixItems/1", None, "exclude each other"),
    ({"type": "array", "contains": NONE}, "/contains", None, "exclude each other"),
    ({**REFERS, "$defs": {"x": with_member(NONE)}}, "/$defs/x/properties/a", None, "exclude each other"),
    ({**with_member(REFERS), "$defs": {"x": NONE}}, "/$defs/x", None, "exclude each other"),
    (with_member({"$ref": "#"}), "/properties/a", "$ref", "without end"),
    ({"type": "object", "additionalProperties": False, "required": ["a"]}, "", None, "'additionalProperties' and"),
    ({"type": "object", "additionalProperties": NONE, "required": ["a"]}, "/additionalProperties", None, "exclude"),
    # What need not hold is not to blame.
    ({**with_member(NONE), "type": ["object", "string"], "minLength": 2, "maxLength": 1}, "", None, "exclude"),
    ({"type": "object", "properties": {"a": NONE}, "minProperties": 9, "maxProperties": 1}, "", None, "minProperties"),
    ({"type": "array", "items": NONE, "maxItems": 0, "contains": {}}, "", None, "exclude each other"),
    (with_member({"not": {}}), "/properties/a", "not", "'not' allows no value"),
]


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize(("schema", "pointer", "keyword", "said"), CASES, ids=lambda case: str(case)[:50])
def test_what_is_to_blame(schema: Any, pointer: str, keyword: str | None, said: str, closed: bool) -> None:
    error = error_of(schema, additional_members="closed" if closed else "schema")
    assert error is not None and str(error).startswith("no JSON value satisfies the schema")
    assert (error.pointer, error.keyword) == (pointer, keyword)
    assert said in error.message


def planted(chance: random.Random, depth: int) -> tuple[Any, str]:
    """A schema without values, and the place that is to blame."""
    if not depth:
        return chance.choice([NONE, False, {"type": "string", "maxLength": 1, "const": "ab"}]), ""
    inner, place = planted(chance, depth - 1)
    fine = {"type": ["string", "null"], "maxLength": chance.randrange(9)}
    match chance.randrange(5):
        case 0:
            more = {"minProperties": 1} if chance.random() < 0.5 else {}
            return {"type": "object", "properties": {"b": fine, "a": inner}, "required": ["b", "a"], **more}, (
                f"/properties/a{place}"
            )
        case 1 if inner is not False:
            return {"allOf": [{"title": "fine"}, inner]}, f"/allOf/1{place}"
        case 2:
            return {"type": "array", "prefixItems": [fine, inner], "minItems": 2}, f"/prefixItems/1{place}"
        case 3 if inner is not False:
            return {"type": "array", "items": inner, "minItems": 1}, f"/items{place}"
    return {
        "type": "object",
        "required": ["a"],
        "allOf": [{"properties": {"a": inner}}],
    }, f"/allOf/0/properties/a{place}"


def test_planted_contradictions_are_found() -> None:
    for seed in range(300):
        chance = random.Random(seed)
        schema, place = planted(chance, chance.randint(0, 6))
        error = error_of(schema, key_order=chance.choice(["any", "declared"]))
        assert error is not None and error.pointer == place, seed


def test_what_is_named_has_no_values() -> None:
    """Of random schemas: the place that is named, read on its own, has no value either, and lies in the schema."""
    named = 0
    for seed in range(1500):
        make = Schemas("draft2020-12", seed)
        inner = {"type": ["object", "array"], "allOf": [make.schema(3), make.schema(3)], "minItems": 1}
        schema = {**with_member(inner), "$defs": {"one": make.schema(1)}, "definitions": {"one": make.schema(1)}}
        try:
            error = error_of(schema)
        except StructgenError:
            continue
        if error is None:
            continue
        part: Any = schema
        for token in error.pointer.split("/")[1:]:
            token = token.replace("~1", "/").replace("~0", "~")
            part = part[int(token)] if isinstance(part, list) else part[token]
        if isinstance(part, dict):
            part = {**part, "$defs": schema["$defs"], "definitions": schema["definitions"]}
        if '"$ref": "#"' not in str(part).replace("'", '"'):
            assert error_of(part) is not None, (seed, error.pointer)
            named += bool(error.pointer)
    assert named > 20


def test_budgets_hold() -> None:
    """Asking costs no more steps than compiling may take; what is not found out is not told."""
    wide = {"allOf": [{"anyOf": [{"required": [f"a{i}"]}, {"required": [f"b{i}"]}]} for i in range(7)]}
    schema = with_member({**wide, "type": "object", "maxProperties": 3})
    error = error_of(schema)
    assert error is not None and error.pointer == "/properties/a"


@pytest.mark.parametrize(
    ("schema", "options", "said"),
    [
        ({"type": "string", "minLength": 3}, {"max_string_length": 2}, "within max_string_length=2:"),
        (with_member({"const": 100}), {"max_number_length": 2}, "within max_number_length=2:"),
        ({"enum": ["abc", 100]}, {"max_string_length": 2, "max_number_length": 2}, "=2, max_number_length=2:"),
    ],
)
def test_an_option_is_named_that_leaves_no_value(schema: Any, options: dict[str, Any], said: str) -> None:
    error = error_of(schema, **options)
    assert error is not None and said in str(error), error
    contradiction = error_of({"allOf": [schema, NONE]}, **options)
    assert contradiction is not None and "within" not in str(contradiction)
