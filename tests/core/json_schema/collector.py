"""A validator that collects annotations as the specification words it: the oracle for ``unevaluated*``.

`collect` gives None for an invalid value, else the keys or indexes that the schema evaluates (2020-12 core, sections
10.3, 11; of 2019-09 the differences: array form of ``items``, and ``contains`` evaluates nothing).
Only what the tests generate is covered; references lead to ``#/definitions/one``.
"""

from __future__ import annotations

from typing import Any

import jsonschema
import regex

Evaluated = set[str | int]
LEAF = jsonschema.Draft202012Validator


def collect(schema: Any, value: Any, root: Any, dialect: str) -> Evaluated | None:
    """What of ``value`` the schema evaluates in place; None if it is invalid."""
    if isinstance(schema, bool):
        return set() if schema else None

    def inner(subschema: Any, item: Any = value) -> Evaluated | None:
        return collect(subschema, item, root, dialect)

    seen: Evaluated = set()
    here = [*schema.get("allOf", ())]
    if "$ref" in schema:
        here.append(root if schema["$ref"] == "#" else root["definitions"]["one"])
    results = [inner(child) for child in here]
    if "anyOf" in schema:
        results.append(_united([result for result in map(inner, schema["anyOf"]) if result is not None]))
    if "oneOf" in schema:
        matches = [result for result in map(inner, schema["oneOf"]) if result is not None]
        results.append(matches[0] if len(matches) == 1 else None)
    if "not" in schema and inner(schema["not"]) is not None:
        return None
    if "if" in schema:
        condition = inner(schema["if"])
        results.append(inner(schema.get("else" if condition is None else "then", True)))
        seen |= condition or set()
    if isinstance(value, dict):
        results += [inner(child) for name, child in schema.get("dependentSchemas", {}).items() if name in value]
    for result in results:
        if result is None:
            return None
        seen |= result
    local = {"type", "enum", "const", "required", "minimum", "maximum", "minLength", "uniqueItems", "dependentRequired"}
    if not LEAF({word: schema[word] for word in schema.keys() & local}).is_valid(value):
        return None
    if isinstance(value, dict):
        return _members(schema, value, seen, inner)
    return _items(schema, value, seen, inner, dialect) if isinstance(value, list) else seen


def _united(results: list[Evaluated]) -> Evaluated | None:
    return set().union(*results) if results else None


def _members(schema: Any, value: dict[str, Any], seen: Evaluated, inner: Any) -> Evaluated | None:
    local: Evaluated = set()
    for key, item in value.items():
        applied = [schema["properties"][key]] if key in schema.get("properties", {}) else []
        applied += [child for text, child in schema.get("patternProperties", {}).items() if regex.search(text, key)]
        if not applied and "additionalProperties" in schema:
            applied = [schema["additionalProperties"]]
        if any(inner(child, item) is None for child in applied):
            return None
        local |= {key} if applied else set()
    seen = seen | local
    if "unevaluatedProperties" in schema:
        if any(inner(schema["unevaluatedProperties"], value[key]) is None for key in value.keys() - seen):
            return None
        seen |= value.keys()
    return seen


def _items(schema: Any, value: list[Any], seen: Evaluated, inner: Any, dialect: str) -> Evaluated | None:
    old = dialect == "draft2019-09"
    items = schema.get("items")
    prefix = (items if isinstance(items, list) else []) if old else schema.get("prefixItems", [])
    rest = schema.get("additionalItems") if isinstance(items, list) else items
    seen = set(seen)
    for index, item in enumerate(value):
        child = prefix[index] if index < len(prefix) else rest
        if child is not None:
            if inner(child, item) is None:
                return None
            seen.add(index)
    if "contains" in schema:
        found = {index for index, item in enumerate(value) if inner(schema["contains"], item) is not None}
        if not schema.get("minContains", 1) <= len(found) <= schema.get("maxContains", len(value)):
            return None
        seen |= set() if old else found
    if "unevaluatedItems" in schema:
        left = [item for index, item in enumerate(value) if index not in seen]
        if any(inner(schema["unevaluatedItems"], item) is None for item in left):
            return None
        seen |= set(range(len(value)))
    return seen
