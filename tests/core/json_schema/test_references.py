"""References beyond what the official suite of draft 7 and 2020-12 asks (tests/suite runs that)."""

from __future__ import annotations

import gc
from typing import Any

import pytest
from referencing import Registry
from referencing.jsonschema import DRAFT7, DRAFT202012

from structgen.core.json_schema.formula.evaluate import evaluate
from structgen.core.json_schema.formula.language import Type
from structgen.core.json_schema.formula.values import STRING
from structgen.core.json_schema.lowering import lower
from structgen.core.json_schema.pointers import ROOT, pointer_text
from structgen.errors import UnresolvableReferenceError
from structgen.options import JsonOptions

METASCHEMAS = {
    "http://json-schema.org/draft-03/schema#": {"minLength": 1, "type": "any"},
    "http://json-schema.org/draft-04/schema#": {"minLength": 1, "required": ["a"]},
    "http://json-schema.org/draft-06/schema#": {"minLength": 1, "const": 1},
    "http://json-schema.org/draft-07/schema#": {"minLength": 1, "if": True},
    "https://json-schema.org/draft/2019-09/schema": {"minLength": 1, "properties": {"a": {"minLength": 1}}},
    "https://json-schema.org/draft/2020-12/schema": {"minLength": 1, "properties": {"a": {"minLength": 1}}},
}


@pytest.mark.parametrize("uri", METASCHEMAS)
def test_every_metaschema_is_at_hand(uri: str) -> None:
    """Recursive, by $recursiveRef and $dynamicRef where the draft has them."""
    lowered = lower({"$schema": uri, "items": {"$ref": uri}})
    good = METASCHEMAS[uri]
    bad = [{"minLength": "1"}, {"properties": {"b": {"minLength": "1"}}}]
    assert evaluate(lowered.root, [good], lowered.refs)
    assert [evaluate(lowered.root, [value], lowered.refs) for value in bad] == [False, False]


def test_recursive_reference_of_2019() -> None:
    """A strict tree extends a tree: the recursion inside comes back to the outermost $recursiveAnchor."""
    tree = {
        "$id": "http://a.b/tree",
        "$recursiveAnchor": True,
        "type": "object",
        "properties": {"data": True, "children": {"type": "array", "items": {"$recursiveRef": "#"}}},
    }
    strict: dict[str, Any] = {
        "$id": "http://a.b/strict",
        "$recursiveAnchor": True,
        "$ref": "tree",
        "unevaluatedProperties": False,
        "$defs": {"tree": tree},
    }
    lowered = lower(strict, JsonOptions(dialect="draft2019-09"))
    assert evaluate(lowered.root, {"children": [{"data": 1}]}, lowered.refs)
    assert not evaluate(lowered.root, {"children": [{"daat": 1}]}, lowered.refs)
    loose = lower({**strict, "$recursiveAnchor": False}, JsonOptions(dialect="draft2019-09"))
    assert evaluate(loose.root, {"children": [{"daat": 1}]}, loose.refs)


def test_documents_of_a_registry_keep_their_dialect() -> None:
    remote = {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "null"}]}
    registry = Registry().with_resource("http://a.b/c", DRAFT7.create_resource(remote))
    lowered = lower({"$ref": "http://a.b/c"}, registry=registry)
    assert not evaluate(lowered.root, [1], lowered.refs)


def test_errors_in_other_documents_name_them() -> None:
    registry = Registry().with_resource("http://a.b/c", DRAFT202012.create_resource({"items": {"$ref": "#/d"}}))
    with pytest.raises(UnresolvableReferenceError) as error:
        lower({"$ref": "http://a.b/c"}, registry=registry)
    assert error.value.pointer == "http://a.b/c#/items/$ref"


def test_an_identifier_in_data_is_none() -> None:
    schema = {"const": {"$id": "http://a.b/c", "type": "null"}, "items": {"$ref": "http://a.b/c"}}
    with pytest.raises(UnresolvableReferenceError):
        lower(schema)


def test_identifiers_that_are_fragments_change_no_base() -> None:
    """As generators write them: ``"$id": "#/properties/a"``."""
    schema = {"properties": {"a": {"$id": "#/properties/a", "$ref": "#/$defs/s"}}, "$defs": {"s": {"type": "string"}}}
    lowered = lower(schema)
    assert not evaluate(lowered.root, {"a": 1}, lowered.refs)


def test_pointers_are_unescaped() -> None:
    schema = {"$ref": "#/$defs/a~1b%25~0", "$defs": {"a/b%~": {"type": "string"}}}
    assert lower(schema).root is Type(STRING)


def test_up_to_draft_7_a_reference_hides_its_siblings() -> None:
    schema = {"$ref": "#/definitions/s", "minLength": 3, "definitions": {"s": {"type": "string"}}}
    assert lower(schema, JsonOptions(dialect="draft7")).root is Type(STRING)
    assert lower(schema).root is not Type(STRING)


def test_pointer_spelling() -> None:
    assert pointer_text(ROOT) == ""
    assert pointer_text((((ROOT, "a/b"), 0), "~")) == "/a~1b/0/~0"
    assert pointer_text((("http://a.b",), "x")) == "http://a.b#/x"


def test_the_uri_of_the_root_is_that_of_its_own_draft() -> None:
    """``id`` in draft 4, which the schema names, though "$id" is that of the draft that is the default."""
    whole = {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "id": "http://a.b/whole.json",
        "items": {"$ref": "whole.json#/definitions/a"},
        "definitions": {"a": {"type": "null"}},
    }
    lowered = lower(whole)
    assert evaluate(lowered.root, [None], lowered.refs) and not evaluate(lowered.root, [1], lowered.refs)


@pytest.mark.parametrize(
    ("vocabularies", "verdicts"),
    [
        (["core", "applicator", "validation"], [False, False, True, False]),
        (["core", "applicator"], [True, True, True, False]),
        (["core", "validation"], [False, False, True, True]),
    ],
)
def test_vocabularies_that_are_left_out_say_nothing(vocabularies: list[str], verdicts: list[bool]) -> None:
    contents = {
        "$id": "http://a.b/meta",
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$vocabulary": {f"https://json-schema.org/draft/2020-12/vocab/{name}": True for name in vocabularies},
    }
    registry: Registry[Any] = Registry().with_resource("http://a.b/meta", DRAFT202012.create_resource(contents))
    plain = {"$schema": "http://a.b/meta", "type": "object", "properties": {"a": {"not": {}}}, "required": ["b"]}
    lowered = lower(plain, None, registry)
    values: list[Any] = [1, {}, {"b": 1}, {"a": 1, "b": 1}]
    assert [evaluate(lowered.root, value, lowered.refs) for value in values] == verdicts


SCHEMAS_WITH_PLACES: list[dict[str, Any]] = [
    {"type": "object", "properties": {"a": {"type": "string"}}},
    {"$ref": "#/$defs/a", "$defs": {"a": {"type": "array", "items": {"$ref": "#/$defs/a"}}}},
    {"$id": "http://a.b/c", "$defs": {"x": {"$id": "d", "$anchor": "e"}}, "properties": {"a": {"$ref": "d#e"}}},
    {"$dynamicAnchor": "n", "properties": {"a": {"$dynamicRef": "#n"}}, "unevaluatedProperties": False},
    {"properties": {"a": {}}, "anyOf": [{"properties": {"b": {}}}, {"$ref": "#/anyOf/0"}]},
]


@pytest.mark.full
@pytest.mark.parametrize("additional_members", ["schema", "closed"])
@pytest.mark.parametrize("schema", SCHEMAS_WITH_PLACES, ids=lambda schema: str(schema)[:40])
def test_no_cycles_are_left(schema: dict[str, Any], additional_members: Any) -> None:
    options = JsonOptions(additional_members=additional_members)
    lower(schema, options)
    gc.collect()
    gc.disable()
    try:
        lower(schema, options)
        assert gc.collect() == 0
    finally:
        gc.enable()
