"""What a schema says of how its values are written: ``"x-structgen": {"max_tokens": 60, "temperature": 1.0}``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from structgen.core.json_schema.keyword import DATA, MAPS, X_STRUCTGEN
from structgen.core.json_schema.pointers import unescape
from structgen.core.regions import TERMS, Region

_HERE = ("allOf", "anyOf", "oneOf")
_HERE_ONE = ("if", "then", "else")
_MEMBERS = ("additionalProperties", "unevaluatedProperties")
_ITEMS = ("items", "additionalItems", "unevaluatedItems")


def has_regions(schema: Any) -> bool:
    """Whether a schema says so anywhere; of members that are called like a keyword, too, but not in values."""
    waiting = [(schema, False)]
    while waiting:
        one, is_map = waiting.pop()
        if isinstance(one, Mapping):
            if not is_map and X_STRUCTGEN in one and _terms(one):
                return True
            waiting += [
                (value, not is_map and name in MAPS) for name, value in one.items() if is_map or name not in DATA
            ]
        elif isinstance(one, list):
            waiting += [(each, False) for each in one]
    return False


def region_at(schema: Any, pointer: str) -> Region | None:
    """What a schema says of the value at a JSON Pointer: where several subschemas speak of it, the first has its way.

    References within the schema are followed, those to other documents are not.
    """
    speaking = list(_applied(schema, schema))
    for part in pointer.split("/")[1:]:
        name = unescape(part)
        speaking = [each for one in speaking for inner in _inside(one, name) for each in _applied(inner, schema)]
    region: Region | None = None
    for terms in filter(None, map(_terms, speaking)):
        region = Region(**terms) if region is None else region.within(Region(**terms))
    return region


def _terms(schema: Mapping[str, Any]) -> dict[str, Any]:
    given = schema.get(X_STRUCTGEN)
    return {name: given[name] for name in TERMS if name in given} if isinstance(given, Mapping) else {}


def _applied(schema: Any, root: Any) -> Iterator[Mapping[str, Any]]:
    """A schema, and those that speak of the same value."""
    waiting, seen = [schema], set[int]()
    while waiting:
        one = waiting.pop(0)
        if not isinstance(one, Mapping) or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        waiting += [_referred(one["$ref"], root)] if isinstance(one.get("$ref"), str) else []
        waiting += [each for name in _HERE if isinstance(one.get(name), list) for each in one[name]]
        waiting += [one[name] for name in _HERE_ONE if name in one]


def _referred(reference: str, root: Any) -> Any:
    """What a reference within the schema refers to; None of others."""
    if not reference.startswith("#"):
        return None
    for part in reference.split("/")[1:]:
        key = unescape(part)
        inside = root.get(key) if isinstance(root, Mapping) else None
        root = root[int(key)] if isinstance(root, list) and key.isdigit() and int(key) < len(root) else inside
    return root


def _inside(schema: Mapping[str, Any], name: str) -> Iterator[Any]:
    """The schemas of a member of this name, and, where the name is a number, of an item."""
    members = schema.get("properties")
    named = [members[name]] if isinstance(members, Mapping) and name in members else []
    patterns = schema.get("patternProperties")
    named += [each for key, each in patterns.items() if _matches(key, name)] if isinstance(patterns, Mapping) else []
    yield from named or (schema[key] for key in _MEMBERS if key in schema)
    if name.isdigit():
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
