"""What a derived schema leaves out or cannot say, noted where it is found and collected with JSON Pointers."""

from __future__ import annotations

from typing import Any

from structgen.core.json_schema.pointers import ROOT, Pointer, pointer_text
from structgen.core.json_schema.report import Entry, Report, Status
from structgen.core.python_types.values import JsonDict, unwrapped

_NOTES = "x-structgen-notes"


class _Notes(tuple[tuple[str, Status, str], ...]):
    """Notes on the schema that holds them; a class of its own, so that nothing that users write is taken for one, and
    no list, which pydantic would copy."""

    __slots__ = ()


def narrowed(schema: JsonDict, kind: str, reason: str) -> JsonDict:
    """The schema with the note that pydantic reads more than it: ``kind`` is the type in pydantic's core schema."""
    return _noted(schema, (kind, "narrowed", reason))


def checked(schema: JsonDict, kind: str, reason: str) -> JsonDict:
    """The schema with the note that pydantic may refuse what satisfies it."""
    return _noted(schema, (kind, "checked", reason))


def _noted(schema: JsonDict, note: tuple[str, Status, str]) -> JsonDict:
    before = schema.get(_NOTES, ())
    return {**schema, _NOTES: _Notes((*before, *(() if note in before else (note,))))}


def without_notes(schema: Any) -> tuple[Any, Report]:
    """A copy of the schema without notes, its values as they are, and the notes by JSON Pointer."""
    entries: list[Entry] = []

    def walk(node: Any, pointer: Pointer) -> Any:
        if isinstance(node, list):
            return [walk(item, (pointer, index)) for index, item in enumerate(node)]
        if not isinstance(node, dict):
            return unwrapped(node)
        notes = node.get(_NOTES)
        if isinstance(notes, _Notes):
            entries.extend(Entry(pointer_text(pointer), kind, status, reason) for kind, status, reason in notes)
        return {key: walk(value, (pointer, key)) for key, value in node.items() if not isinstance(value, _Notes)}

    return walk(schema, ROOT), Report(entries)
