"""``JsonOptions.additional_members="closed"`` against python-jsonschema on the schema with the closing written out."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

import structgen
from structgen.core.engines.laws import check_laws
from structgen.core.json_schema.lowering import lower
from structgen.options import JsonOptions
from tests.core.json_schema.random_schemas import Schemas

VOCABULARY = structgen.Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=256)
CLOSED = JsonOptions.exact(additional_members="closed")
IN_PLACE = ("anyOf", "allOf", "oneOf", "if", "then", "else", "dependentSchemas")
VALUES = ("properties", "patternProperties", "additionalProperties", "unevaluatedProperties", "items", "prefixItems")


def written_out(schema: Any, in_place: bool = False, says_others: bool = False) -> Any:
    """The schema (2020-12, without references) with the closing in its text.

    ``says_others``: the schema around it, which it is in place of, says itself what others are, and must see no more.
    """
    if not isinstance(schema, dict):
        return schema
    found = dict(schema)
    says_others = (says_others and in_place) or "unevaluatedProperties" in schema
    extra: list[Any] = [] if says_others else [{"properties": dict.fromkeys(_needed(schema), True)}]
    for keyword in (*VALUES, *IN_PLACE):
        if keyword not in schema or keyword == "if":
            continue
        inside = keyword in IN_PLACE
        value = schema[keyword]
        if keyword in ("properties", "patternProperties", "dependentSchemas"):
            found[keyword] = {name: written_out(child, inside, says_others) for name, child in value.items()}
        elif isinstance(value, list):
            found[keyword] = [written_out(child, inside, says_others) for child in value]
        else:
            found[keyword] = written_out(value, inside, says_others)
        if keyword == "oneOf":
            extra += [{"anyOf": found.pop(keyword)}, {"not": {"not": {"oneOf": value}}}]  # (without annotations)
    found["allOf"] = [*found.get("allOf", []), *extra]
    if in_place or not _declares(schema) or "unevaluatedProperties" in schema:
        return found
    return {"anyOf": [{**way, "unevaluatedProperties": False} for way in _ways(found)]}


def _ways(schema: Any) -> Iterator[Any]:
    """The schema with one branch of each ``anyOf`` that always applies."""
    if not isinstance(schema, dict) or "unevaluatedProperties" in schema:
        yield schema
        return
    branches = [way for branch in schema.get("anyOf", [True]) for way in _ways(branch)]
    parts = [list(_ways(part)) for part in schema.get("allOf", [])]
    for branch, *chosen in itertools.product(branches, *parts):
        yield {**schema, "anyOf": [branch], "allOf": chosen}


def _needed(schema: dict[str, Any]) -> list[str]:
    lists = [schema.get("required", []), *schema.get("dependentRequired", {}).values()]
    return [name for names in lists for name in names]


def _declares(schema: Any) -> bool:
    """Whether the schema, or one that applies in place, has ``properties`` or ``patternProperties``."""
    if not isinstance(schema, dict):
        return False
    inner: list[Any] = []
    for keyword in IN_PLACE:
        value = schema.get(keyword, [])
        if keyword in ("then", "else") and "if" not in schema:
            continue
        inner += value if isinstance(value, list) else value.values() if keyword == "dependentSchemas" else [value]
    return "properties" in schema or "patternProperties" in schema or any(map(_declares, inner))


def accepts(grammar: Any, value: Any) -> bool:
    matcher = grammar.matcher()
    return matcher.accept_bytes(json.dumps(value).encode()) and matcher.is_accepting()


P = {"properties": {"p": {"type": "integer"}}}
NESTED = {"properties": {"x": P}}
TABLE: list[tuple[Any, list[Any], list[Any]]] = [  # schema, valid, refused
    (P, [{}, {"p": 1}, 3], [{"q": 1}, {"p": 1, "q": 1}]),
    ({"type": "object"}, [{"q": 1}], []),  # a free map declares nothing
    ({}, [{"q": 1}], []),
    ({"type": "object", "propertyNames": {"pattern": "^q"}}, [{"q": 1}], [{"p": 1}]),
    ({**P, "additionalProperties": True}, [{"q": 1}], []),
    ({**P, "unevaluatedProperties": {"type": "null"}}, [{"q": None}], [{"q": 1}]),
    ({"patternProperties": {"^a": {}}}, [{"ab": 1}], [{"b": 1}]),
    ({**P, "required": ["q"]}, [{"q": 1}, {"p": 1, "q": [{}]}], [{"p": 1}, {"q": 1, "r": 1}]),
    ({**P, "dependentRequired": {"p": ["q"]}}, [{"p": 1, "q": 1}, {"q": 2}], [{"p": 1}, {"r": 1}]),
    ({"allOf": [P, {"properties": {"q": {}}}]}, [{"p": 1, "q": 2}], [{"r": 1}]),
    ({"anyOf": [{**P, "required": ["p"]}, {"properties": {"q": {}}}]},
     [{"p": 1}, {"q": 1}], [{"p": "a"}, {"p": 1, "q": 2}]),
    ({"anyOf": [{"additionalProperties": {"type": "null"}}, P]}, [{"q": None}, {"p": 1}], [{"p": 1, "q": 1}]),
    ({"if": P, "then": {"properties": {"q": {}}}, "properties": {"r": {}}}, [{"q": 1, "r": 1}], [{"q": 1, "p": ""}]),
    ({"dependentSchemas": {"p": {"properties": {"q": {}}}}, **P}, [{"p": 1, "q": 1}], [{"q": 1}]),
    ({"not": P}, [{"p": "", "q": 1}], [{"p": 1}, {"q": 1}]),
    (NESTED, [{"x": {"p": 1}}, {"x": 3}], [{"x": {"q": 1}}]),
    ({"items": P}, [[{"p": 1}]], [[{"q": 1}]]),
    ({"contains": P, "maxContains": 1}, [[{"q": 1}]], [[{"q": 1}, {"r": 1}]]),  # counted as written
    ({"oneOf": [NESTED, {"required": ["y"]}]}, [{"x": {"p": 1}}], [{"x": {"q": 1}}]),
    # which one of oneOf holds is said by the schemas as written: {"x": {"q": 1}} satisfies both of these
    ({"anyOf": [{"oneOf": [NESTED, {"properties": {"x": {"properties": {"q": {}}}}}]}, {"type": "null"}]},
     [None], [{"x": {"q": 1}}]),
    ({"anyOf": [NESTED, {"properties": {"y": {}}}]}, [{"x": {"p": 1}}, {"y": 1}], [{"x": {"q": 1}}]),
    ({"$ref": "#/$defs/n", "$defs": {"n": {"properties": {"n": {"$ref": "#/$defs/n"}}}}},
     [{"n": {"n": {}}}], [{"n": {"m": 1}}]),
    ({"$defs": {"b": P}, "allOf": [{"$ref": "#/$defs/b"}], "properties": {"c": {"$ref": "#/$defs/b"}}},
     [{"p": 1, "c": {"p": 1}}], [{"c": {"c": 1}}]),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "valid", "refused"), TABLE, ids=lambda entry: json.dumps(entry)[:50])
def test_what_is_closed(schema: Any, valid: list[Any], refused: list[Any]) -> None:
    grammar = structgen.compile_json_schema(schema, VOCABULARY, CLOSED)
    assert [value for value in valid if not accepts(grammar, value)] == []
    assert [value for value in refused if accepts(grammar, value)] == []


@pytest.mark.parametrize("dialect", ["draft3", "draft4", "draft7"])
def test_early_drafts(dialect: Any) -> None:
    words = {"draft3": "extends", "draft4": "allOf", "draft7": "allOf"}
    schema = {
        words[dialect]: [{"$ref": "#/definitions/b", "properties": {"hidden": {}}}],
        "dependencies": {"p": {"properties": {"q": {}}}},
        "definitions": {"b": P},
    }
    options = JsonOptions.exact(dialect=dialect, additional_members="closed")
    grammar = structgen.compile_json_schema(schema, VOCABULARY, options)
    assert accepts(grammar, {"p": 1, "q": 2}) and accepts(grammar, {"p": 1}) and accepts(grammar, {})
    assert not any(accepts(grammar, value) for value in ({"q": 1}, {"hidden": 1}, {"p": 1, "r": 1}))
    union = {"type": [{"properties": {"a": {"type": "integer"}}}, "null"]}
    if dialect == "draft3":
        grammar = structgen.compile_json_schema(union, VOCABULARY, options)
        assert accepts(grammar, {"a": 1}) and accepts(grammar, None) and not accepts(grammar, {"b": 1})


KEYWORDS = [
    *("type", "properties", "patternProperties", "additionalProperties", "required", "anyOf", "allOf", "oneOf", "not"),
    *("if", "dependentSchemas", "dependentRequired", "unevaluatedProperties", "items", "prefixItems", "contains"),
]


@pytest.mark.parametrize("seed", range(250))
def test_random_schemas(seed: int) -> None:
    made = Schemas("draft2020-12", seed, KEYWORDS)
    schema = made.schema()
    explicit, original = (jsonschema.Draft202012Validator(one) for one in (written_out(schema), schema))
    try:
        grammar = structgen.compile_json_schema(schema, VOCABULARY, CLOSED)
    except structgen.UnsatisfiableSchemaError:
        grammar = None
    except (structgen.UnsupportedSchemaError, structgen.SchemaTooComplexError):
        return
    for _ in range(60):
        value = made.value()
        found = grammar is not None and accepts(grammar, value)
        assert found == explicit.is_valid(value), json.dumps([schema, written_out(schema), value])
        assert original.is_valid(value) or not found


def test_the_report_names_the_places() -> None:
    schema = {"properties": {"a": {"type": "array", "items": P}, "b": {"type": "object"}}, "allOf": [P], "not": NESTED}
    report = lower(schema, JsonOptions(additional_members="closed")).report
    assert report.closed == ["/properties/a/items", ""]
    entry = report.to_dict()["/unevaluatedProperties"]
    assert entry["status"] == "closed" and "additional_members" in entry["reason"]
    assert lower(schema).report.closed == []


def test_an_error_names_the_option() -> None:
    with pytest.raises(structgen.UnsatisfiableSchemaError, match="additional_members"):
        structgen.compile_json_schema({**P, "type": "object", "minProperties": 2}, VOCABULARY, CLOSED)


def test_many_branches() -> None:
    kinds = [{"properties": {"kind": {"const": n}, f"f{n}": {**P}}, "required": ["kind", f"f{n}"]} for n in range(100)]
    untagged = [{"properties": {f"f{n}": P, f"g{n}": {}}, "required": [f"f{n}"]} for n in range(100)]
    for word, number, branches in (("anyOf", 7, kinds), ("oneOf", 7, kinds), ("anyOf", 8, untagged)):
        grammar = structgen.compile_json_schema({"type": "object", word: branches}, VOCABULARY, CLOSED)
        rest = {"kind": 7} if branches is kinds else {}
        assert accepts(grammar, {**rest, f"f{number}": {"p": 1}})
        assert not accepts(grammar, {**rest, f"f{number}": {"q": 1}})
        assert not accepts(grammar, {**rest, f"f{number}": {}, "f9": {}})


XGRAMMAR: list[Any] = [
    {"type": "object"},
    {},
    {"type": "object", "properties": {"p": {"type": "integer"}}},
    {"type": "object", "properties": {"p": {"type": "integer"}}, "additionalProperties": {"type": "integer"}},
    {"type": "object", "properties": {"x": {"type": "object", "properties": {"p": {}}}}},
    {"type": "array", "items": {"type": "object", "properties": {"p": {}}}},
    {"type": "object", "patternProperties": {"^x": {}}},
    {"type": "object", "propertyNames": {"pattern": "^x"}},
    {"anyOf": [{"type": "object", "properties": {n: {}}, "required": [n]} for n in "px"]},
    {"$ref": "#/$defs/n", "$defs": {"n": {"type": "object", "properties": {"x": {"$ref": "#/$defs/n"}}}}},
]
VALUES_OF_XGRAMMAR: list[Any] = [
    *(3, [], {}, {"p": 1}, {"p": 1, "x": {}}, {"q": 1}, {"x": 1}, {"x": {}}, {"x": {"p": 1}}, {"x": {"q": 1}}),
    *([{"p": 1}], [{"q": 1}], {"x": {"x": {}}}, {"x": {"x": {"q": 1}}}, {"p": 1, "q": 2}),
]


@pytest.mark.parametrize("schema", XGRAMMAR, ids=str)
def test_as_xgrammar_by_default(schema: Any) -> None:
    xgrammar = pytest.importorskip("xgrammar")
    theirs = xgrammar.Grammar.from_json_schema(json.dumps(schema), strict_mode=True, any_whitespace=True)
    ours = structgen.compile_json_schema(schema, VOCABULARY, CLOSED)
    for value in VALUES_OF_XGRAMMAR:
        expected = xgrammar.testing._is_grammar_accept_string(theirs, json.dumps(value))
        assert accepts(ours, value) == expected, value


@pytest.mark.parametrize("seed", range(12))
def test_laws(seed: int) -> None:
    schema = {"type": "object", **Schemas("draft2020-12", seed, KEYWORDS[:9]).schema()}
    options = JsonOptions(additional_members="closed", max_string_length=3, max_number_length=3)
    try:
        grammar = structgen.compile_json_schema(schema, VOCABULARY, options)
    except structgen.StructgenError:
        return
    check_laws(grammar, walks=2, steps=12, seed=seed)


@pytest.mark.parametrize(
    "schema",
    [{"$ref": 3}, {"anyOf": [{"properties": {"a": 1}}]}, {"anyOf": 3, **P}, {"anyOf": [], **P}, {"properties": 3},
     {"oneOf": [P, 3]}, {"$ref": "#/x"}, {"required": [3], **P}, {"dependentRequired": 3, **P}],
    ids=str,
)  # fmt: skip
def test_malformed_schemas_are_refused_as_ever(schema: Any) -> None:
    with pytest.raises(structgen.SchemaError) as closed:
        structgen.compile_json_schema(schema, VOCABULARY, CLOSED)
    with pytest.raises(structgen.SchemaError) as plain:
        structgen.compile_json_schema(schema, VOCABULARY)
    assert type(closed.value) is type(plain.value) and closed.value.pointer == plain.value.pointer


@pytest.mark.parametrize(("schema", "refused"), [(schema, refused) for schema, _, refused in TABLE], ids=str)
def test_what_would_be_closed_is_listed_as_open(schema: Any, refused: list[Any]) -> None:
    """If there is a value that closing takes away, some schema is open; each is one that is closed then."""
    judge = jsonschema.Draft202012Validator(schema)
    report = structgen.compile_json_schema(schema, VOCABULARY).report
    closed = structgen.compile_json_schema(schema, VOCABULARY, CLOSED).report
    assert report.open == closed.closed and closed.open == []
    assert report.open or not any(judge.is_valid(value) for value in refused)
    assert "open" not in {entry.status for entry in report.entries}
