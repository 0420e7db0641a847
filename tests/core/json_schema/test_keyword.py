"""The table of keywords is complete: judged by the official meta-schemas, by python-jsonschema and by the walk."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]

from structgen.core.json_schema.dialects import BY_NAME
from structgen.core.json_schema.formula.evaluate import evaluate
from structgen.core.json_schema.keyword import Keyword
from structgen.core.json_schema.lowering import lower
from structgen.errors import SchemaError
from structgen.options import JsonOptions

METASCHEMAS = {
    **{f"draft{number}": f"http://json-schema.org/draft-0{number}/schema" for number in (3, 4, 6, 7)},
    **{f"draft{date}": f"https://json-schema.org/draft/{date}/schema" for date in ("2019-09", "2020-12")},
}
LENIENT = {("draft3", "type"): {"one"}, ("draft3", "disallow"): {"one"}}
"""Forms that functions take beyond the meta-schema."""
FORMS: dict[str, Any] = {"one": lambda child: child, "list": lambda child: [child], "map": lambda child: {"a": child}}
POINTERS = {"one": "", "list": "/0", "map": "/a"}
Occurrence = tuple[str, dict[str, Any], dict[str, Any]]  # keyword, what the meta-schema says of it, the document


def defined(dialect: str) -> Iterator[tuple[str, Occurrence]]:
    """Vocabulary and definition of each keyword of a draft's meta-schema; "" for what the whole meta-schema defines."""
    root = REGISTRY.contents(METASCHEMAS[dialect])
    parts = [part["$ref"] for part in root.get("allOf", ())]
    folder = METASCHEMAS[dialect].removesuffix("schema")
    documents = [root, *(REGISTRY.contents(folder + part) for part in parts)]
    for document, part in zip(documents, ["", *parts], strict=True):
        for name, definition in document["properties"].items():
            if definition is True or not definition.get("deprecated"):
                yield part.rpartition("/")[2], (name, definition if isinstance(definition, dict) else {}, document)


def forms(definition: Any, document: dict[str, Any]) -> set[str]:
    """Where schemas stand in a value that a meta-schema describes."""
    if not isinstance(definition, dict):
        return set()
    reference = definition.get("$ref") or definition.get("$dynamicRef") or definition.get("$recursiveRef") or ""
    if reference in ("#", "#meta"):
        return {"one"}
    if reference.startswith("#/"):
        _, folder, name = reference.split("/")
        return forms(document[folder][name], document)
    several = [*definition.get("anyOf", ()), *(definition["type"] if isinstance(definition.get("type"), list) else ())]
    found = set().union(*[forms(each, document) for each in several])
    found |= {"list"} if forms(definition.get("items"), document) else set()
    return found | ({"map"} if forms(definition.get("additionalProperties"), document) else set())


@pytest.mark.parametrize("dialect", METASCHEMAS)
def test_every_keyword_of_the_metaschema_is_in_the_table(dialect: str) -> None:
    keywords, wrong = BY_NAME[dialect].keywords, {}
    for _, (name, definition, document) in defined(dialect):
        expected = forms(definition, document) | LENIENT.get((dialect, name), set())
        given = set(keywords[name].subschemas.split(" or ")) - {"none"} if name in keywords else None
        if given != expected:
            wrong[name] = (given, expected)
    assert wrong == {}
    late = {"dependencies", "$ref"}  # which drafts have that do not define it
    names = {other: {name for _, (name, _, _) in defined(other)} for other in METASCHEMAS}
    assert BY_NAME[dialect].speaking & (set().union(*names.values()) - names[dialect]) <= late


@pytest.mark.parametrize("dialect", ["draft2019-09", "draft2020-12"])
def test_vocabularies_are_the_metaschemas(dialect: str) -> None:
    keywords = BY_NAME[dialect].keywords
    for vocabulary, (name, _, _) in defined(dialect):
        given = keywords[name].vocabulary
        if vocabulary:
            is_late = given == "unevaluated" and dialect == "draft2019-09"  # there, applicators
            assert {"format-annotation": "format"}.get(vocabulary, vocabulary) == ("applicator" if is_late else given)


def occurrences(dialect: str) -> Iterator[tuple[Keyword, str]]:
    for keyword in BY_NAME[dialect].keywords.values():
        if keyword.name in BY_NAME[dialect].speaking and not keyword.is_reference:
            yield from ((keyword, form) for form in FORMS)


@pytest.mark.parametrize("dialect", METASCHEMAS)
def test_the_walk_goes_where_the_table_says(dialect: str) -> None:
    """What functions lower is where identifiers are looked for."""
    options = JsonOptions(dialect=dialect)  # type: ignore[arg-type]
    for keyword, form in occurrences(dialect):
        schema = {keyword.name: FORMS[form]({"title": ""})} | ({keyword.needs: True} if keyword.needs else {})
        try:
            entries = lower(schema, options).report.to_dict()
        except SchemaError:
            entries = {}
        visited = f"/{keyword.name}{POINTERS[form]}/title" in entries
        assert visited == (form in keyword.subschemas.split(" or ")), (keyword.name, form)


@pytest.mark.parametrize("dialect", METASCHEMAS)
def test_identifiers_are_found_in_subschemas(dialect: str) -> None:
    options = JsonOptions(dialect=dialect)  # type: ignore[arg-type]
    for keyword in BY_NAME[dialect].keywords.values():
        for form in set(keyword.subschemas.split(" or ")) - {"none"}:
            inside = FORMS[form]({BY_NAME[dialect].identifier: "urn:inside", "type": "null"})
            schema = {"properties": {"x": {keyword.name: inside}, "y": {"$ref": "urn:inside"}}}
            lowered = lower(schema, options)
            assert not evaluate(lowered.root, {"y": 1}, lowered.refs), (keyword.name, form)


def test_what_is_evaluated_is_what_jsonschema_says() -> None:
    """(in 2020-12; its reading of 2019-09 differs from the official suite's)"""
    first = {"prefixItems": [True]}
    children = [{"properties": {"a": True}}, {"properties": {"b": {"type": "null"}}, "minProperties": 1}, first, True]
    values: list[Any] = [{}, {"a": 1}, {"b": 1}, {"a": 1, "b": None}, [], [1], [1, 2]]
    for keyword, form in occurrences("draft2020-12"):
        is_known = keyword.name in Draft202012Validator.VALIDATORS or keyword.needs in Draft202012Validator.VALIDATORS
        if keyword.name == "dependencies" or not is_known or form not in keyword.subschemas.split(" or "):
            continue
        for child in children:
            schema = {keyword.name: FORMS[form](child)} | ({keyword.needs: True} if keyword.needs else {})
            schema = {"unevaluatedProperties": False, "unevaluatedItems": False} | schema
            lowered = lower(schema)
            for value in values:
                is_valid = Draft202012Validator(schema).is_valid(value)
                assert evaluate(lowered.root, value, lowered.refs) == is_valid, (schema, value)


MADE_UP = """
from structgen.core.json_schema.keyword import Keyword, Schema, if_valid
from structgen.core.json_schema.formula.language import or_

@Keyword("someOf", "applicator", since=2020, subschemas="list", applies=if_valid)
def someOf(value, schema, pointer, context):
    return or_(*[context.descend(child, pointer, index, in_place=True) for index, child in enumerate(value)])

from structgen.core.json_schema.formula.evaluate import evaluate
from structgen.core.json_schema.lowering import lower
from structgen.options import JsonOptions

def allows(schema, value, **options):
    lowered = lower(schema, JsonOptions(**options))
    return evaluate(lowered.root, value, lowered.refs)

branches = [{"properties": {"a": {}}, "required": ["a"]}, {"$id": "urn:b", "properties": {"b": {}}, "required": ["b"]}]
assert not allows({"someOf": branches}, {"c": 1}) and allows({"someOf": branches}, {"b": 1, "c": 1})
assert not allows({"properties": {"x": {"someOf": branches}, "y": {"$ref": "urn:b"}}}, {"y": {}})
assert allows({"someOf": branches, "unevaluatedProperties": False}, {"b": 1})
assert not allows({"someOf": branches, "unevaluatedProperties": False}, {"b": 1, "c": 1})
assert allows({"someOf": branches}, {"b": 1}, additional_members="closed")
assert not allows({"someOf": branches}, {"b": 1, "c": 1}, additional_members="closed")
assert lower({"someOf": branches}).report.to_dict()["/someOf"]["status"] == "enforced"
assert "did you mean 'someOf'" in lower({"someof": branches}).misspelt["/someof"].reason
assert lower({"someOf": 1}, JsonOptions(dialect="draft7")).report.to_dict()["/someOf"]["status"] == "annotation"
"""


def test_a_new_keyword_is_one_entry() -> None:
    """References, unevaluated members, closing, the report and hints know a made-up keyword by its entry."""
    subprocess.run([sys.executable, "-c", MADE_UP], check=True)
