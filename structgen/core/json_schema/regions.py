"""What a schema says of how its values are written: ``"x-structgen": {"max_tokens": 60, "temperature": 1.0}``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from structgen.core.json_schema.dialects import BY_NAME
from structgen.core.json_schema.keyword import X_STRUCTGEN, schemas_in
from structgen.core.json_schema.pointers import ROOT, unescape
from structgen.core.json_schema.references import Resource, Resources, dialect_of
from structgen.core.regions import TERMS, Region
from structgen.errors import SchemaError

_INDEX = re.compile("[0-9]{1,18}")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_HERE = ("allOf", "anyOf", "oneOf")
_HERE_ONE = ("if", "then", "else")
_MEMBERS = ("additionalProperties", "unevaluatedProperties")
_ITEMS = ("items", "additionalItems", "unevaluatedItems")


def has_regions(schema: Any) -> bool:
    """Whether a schema says so anywhere; of members that are called like a keyword, too, but not in values."""
    return any(X_STRUCTGEN in one and _terms(one) for one in schemas_in(schema))


def region_at(schema: Any, pointer: str) -> Region | None:
    """What a schema says of the value at a JSON Pointer: where several subschemas speak of it, the first has its way.

    References within the schema are followed, those to other documents are not.
    """
    default = BY_NAME["draft2020-12"]
    try:
        resources = Resources(schema, dialect_of(schema, default, None), default, None)
    except SchemaError:  # an identifier or a dialect that compiling refuses
        return None
    speaking = list(_applied(schema, resources.root, resources))
    for part in pointer.split("/")[1:]:
        name = unescape(part)
        speaking = [
            each
            for one, resource in speaking
            for inner in _inside(one, name)
            for each in _applied(inner, resource, resources)
        ]
    region: Region | None = None
    for terms in (_terms(one) for one, _ in speaking):
        if terms:
            region = Region(**terms) if region is None else region.within(Region(**terms))
    return region


def _terms(schema: Mapping[str, Any]) -> dict[str, Any]:
    given = schema.get(X_STRUCTGEN)
    return {name: given[name] for name in TERMS if name in given} if isinstance(given, Mapping) else {}


def _applied(schema: Any, around: Resource, resources: Resources) -> Iterator[tuple[Mapping[str, Any], Resource]]:
    """A schema, and those that speak of the same value, each with the resource that its references begin at."""
    waiting, seen = [(schema, around)], set[int]()
    while waiting:
        one, around = waiting.pop(0)
        if not isinstance(one, dict) or id(one) in seen:
            continue
        seen.add(id(one))
        with suppress(SchemaError):
            around = resources.enter(one, ROOT, around)
        one = around.dialect.read_of(one)
        yield one, around
        for reference in (one[name] for name in _REFERENCES if isinstance(one.get(name), str)):
            with suppress(SchemaError):
                target, _, resource = resources.resolve(reference, around, ROOT)
                waiting.append((target, resource))
        waiting += [(each, around) for name in _HERE if isinstance(one.get(name), list) for each in one[name]]
        waiting += [(one[name], around) for name in _HERE_ONE if name in one]


def _inside(schema: Mapping[str, Any], name: str) -> Iterator[Any]:
    """The schemas of a member of this name, and, where the name is a number, of an item."""
    members = schema.get("properties")
    named = [members[name]] if isinstance(members, Mapping) and name in members else []
    patterns = schema.get("patternProperties")
    named += [each for key, each in patterns.items() if _matches(key, name)] if isinstance(patterns, Mapping) else []
    yield from named or (schema[key] for key in _MEMBERS if key in schema)
    if _INDEX.fullmatch(name):
        first = schema.get("prefixItems", schema.get("items"))
        listed = first if isinstance(first, list) else []
        yield from listed[int(name) : int(name) + 1] or (
            schema[key] for key in _ITEMS if isinstance(schema.get(key), Mapping)
        )


def _matches(pattern: str, name: str) -> bool:
    try:
        return re.search(pattern, name) is not None
    except re.error:  # of ECMA's dialect alone
        return False
