"""The fields of formats of structural tags, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from structgen.errors import Place, SpecificationError

FIELDS: dict[Any, tuple[str, ...]] = {
    "const_string": ("value",),
    "json_schema": ("json_schema", "style", "any_order", "max_whitespace_cnt", "excludes"),
    "qwen_xml_parameter": ("json_schema",),
    "regex": ("pattern",),
    "grammar": ("grammar",),
    "any_text": ("excludes", "max_chars"),
    "any_tokens": ("exclude_tokens",),
    "exclude_token": ("exclude_tokens",),
    "token": ("token",),
    "sequence": ("elements",),
    "or": ("elements",),
    "optional": ("content",),
    "star": ("content",),
    "plus": ("content",),
    "repeat": ("content", "min", "max"),
    "tag": ("begin", "content", "end"),
    "triggered_tags": ("triggers", "tags", "at_least_one", "stop_after_first", "excludes"),
    "token_triggered_tags": ("trigger_tokens", "tags", "at_least_one", "stop_after_first", "exclude_tokens"),
    "tags_with_separator": ("tags", "separator", "at_least_one", "stop_after_first"),
    "dispatch": ("rules", "loop", "excludes"),
    "token_dispatch": ("rules", "loop", "exclude_tokens"),
}
"""What is read of each type of format; others are refused."""


def wrong(path: Place, message: str, code: str = "invalid_value") -> SpecificationError:
    """The error for what cannot be read."""
    return SpecificationError(message, path, code)


def check_fields(given: Mapping[str, Any], allowed: Sequence[str], path: Place) -> None:
    """Refuse fields that are not known and say something."""
    unknown = sorted(name for name in given.keys() - {"type", *allowed} if given[name] not in (None, [], False))
    if unknown:
        raise wrong(
            (*path, unknown[0]),
            f"The field {unknown[0]!r} of structural tags is not supported; there are {', '.join(sorted(allowed))}",
            "unsupported_parameter",
        )


def string(given: Any, name: str, path: Place) -> str:
    """A field that is a string."""
    result = given.get(name)
    if not isinstance(result, str):
        raise wrong((*path, name), f"{name} is a string")
    return result


def count(given: Any, name: str, path: Place) -> int | None:
    """A field that is a number from 0 on, or nothing."""
    result = given.get(name)
    if result is not None and (not isinstance(result, int) or isinstance(result, bool) or result < 0):
        raise wrong((*path, name), f"{name} is a whole number from 0 on, or null")
    return result


def list_of(value: Any, kind: type | tuple[type, ...]) -> list[Any]:
    """A list of such things; empty if it is none."""
    return value if isinstance(value, list) and all(isinstance(item, kind) for item in value) else []


def strings(given: Any, name: str, path: Place) -> list[str]:
    """A field that is a list of strings, none of them empty; nothing is the empty list."""
    value = given.get(name)
    result: list[str] = list_of(value or [], str)
    if (value and not result) or not all(result):
        raise wrong((*path, name), f"{name} is a list of strings, none of them empty")
    return result


def objects(given: Any, name: str, path: Place) -> list[Any]:
    """A field that is a list of objects, one at least."""
    result = list_of(given.get(name), dict)
    if not result:
        raise wrong((*path, name), f"{name} is a list of objects, one at least")
    return result
