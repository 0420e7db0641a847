"""Which subschemas of a document speak of a value, or of a part of it: a superset, by walking both together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import unquote

from structgen.core.answers.occurrences import Path, value_at
from structgen.core.json_schema.dialects import Dialect

_MEMBERS = ("patternProperties", "additionalProperties", "unevaluatedProperties")
_ITEMS = ("items", "prefixItems", "additionalItems", "contains", "unevaluatedItems")
_ELSEWHERE = ("$dynamicRef", "$recursiveRef")
"""References whose targets depend on what leads to them."""


class _UnknownTargetError(Exception):
    """A reference that is not followed here."""


def applied(schema: Any, value: Any, dialect: Dialect) -> set[Path] | None:
    """The paths of the subschemas that are applied to the value or a part of it, and perhaps of others: what is not
    among them has no effect on the value. None: not known, since a reference is no pointer into the document."""
    paths: set[Path] = set()
    done: set[tuple[Path, int]] = set()
    todo: list[tuple[Path, Any, Any]] = [((), schema, value)]
    try:
        while todo:
            path, part, instance = todo.pop()
            if (path, id(instance)) in done or not isinstance(part, dict):
                continue
            done.add((path, id(instance)))
            paths.add(path)
            if path and any(isinstance(part.get(name), str) for name in ("$id", "id")):
                raise _UnknownTargetError  # pointers in it begin there
            todo += _inner(path, part, instance, schema, dialect)
    except _UnknownTargetError:
        return None
    return paths


def _inner(
    path: Path, part: dict[str, Any], value: Any, root: Any, dialect: Dialect
) -> Iterator[tuple[Path, Any, Any]]:
    for name, said in part.items():
        if name == "$ref" and isinstance(said, str):
            target, there = _target(said, root)
            yield target, there, value
            continue
        if name in _ELSEWHERE:
            raise _UnknownTargetError
        entry = dialect.keywords.get(name)
        if entry is None or name in ("$defs", "definitions"):
            continue
        for child, pointer in entry.children(said, ()):
            tokens: Path = (pointer[1],) if len(pointer) == 2 else ()
            parts = _parts(name, tokens, value)
            if name == "properties" and isinstance(child, dict) and child.get("required") is True:
                parts = [value]  # draft 3: it speaks of a member that may be absent
            for instance in parts:
                yield (*path, name, *tokens), child, instance


def _parts(name: str, tokens: Sequence[str | int], value: Any) -> list[Any]:
    """The parts of a value that a subschema of a keyword is applied to."""
    if name == "properties":
        return [value[tokens[0]]] if isinstance(value, dict) and tokens[0] in value else []
    if name in _MEMBERS:
        return list(value.values()) if isinstance(value, dict) else []
    if name == "propertyNames":
        return list(value) if isinstance(value, dict) else []
    if name in _ITEMS:
        return value if isinstance(value, list) else []
    return [value]


def _target(reference: str, root: Any) -> tuple[Path, Any]:
    """The path that a reference into its own document names, and what is there."""
    if reference not in ("#", "") and not reference.startswith("#/"):
        raise _UnknownTargetError
    path: list[str | int] = []
    for token in unquote(reference).split("/")[1:]:
        key: str | int = token.replace("~1", "/").replace("~0", "~")
        if isinstance(root, list) and token.isdecimal():
            key = int(token)
        has, root = value_at(root, (key,))
        if not has:
            raise _UnknownTargetError
        path.append(key)
    return tuple(path), root
