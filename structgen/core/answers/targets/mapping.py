"""From an answer in a target's shape back to the shape that the schema asks for, and forth."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from structgen.core.json_schema.formula.values import canonical
from structgen.core.json_text import loads_exact
from structgen.core.tool_calls.values import json_text
from structgen.errors import GenerationError

VALUE, ENTRIES, KEY = "value", "entries", "key"
"""Members that lowering adds: of a wrapped root; of a map, with those of each entry."""


class Shape:
    """How values of one place are mapped; this one: not at all."""

    is_same = True

    def back(self, value: Any) -> Any:
        """The value that an answer means. What is of no such shape stays as it is."""
        return value

    def forth(self, value: Any) -> Any:
        """An answer that means a value: ``back(forth(value)) == value``. What is of no such shape stays as it is."""
        return value


SAME = Shape()


@dataclass(frozen=True)
class ObjectShape(Shape):
    """Members by name; those in ``nullable`` are absent where the answer has null; ``others``: undeclared ones."""

    members: Mapping[str, Shape]
    nullable: frozenset[str] = frozenset()
    others: Shape = SAME
    is_same = False

    def back(self, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return {
            name: self.members.get(name, self.others).back(item)
            for name, item in value.items()
            if item is not None or name not in self.nullable
        }

    def forth(self, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        mapped = {name: self.members.get(name, self.others).forth(item) for name, item in value.items()}
        ordered = [*[name for name in self.members if name in mapped or name in self.nullable], *mapped]
        return {name: mapped.get(name) for name in dict.fromkeys(ordered)}


@dataclass(frozen=True)
class ArrayShape(Shape):
    """Items by position, then ``others``."""

    items: Sequence[Shape]
    others: Shape
    is_same = False

    def _shapes(self, count: int) -> list[Shape]:
        return [*self.items[:count], *[self.others] * (count - len(self.items))]

    def back(self, value: Any) -> Any:
        if not isinstance(value, list):
            return value
        return [shape.back(item) for shape, item in zip(self._shapes(len(value)), value, strict=True)]

    def forth(self, value: Any) -> Any:
        if not isinstance(value, list):
            return value
        return [shape.forth(item) for shape, item in zip(self._shapes(len(value)), value, strict=True)]


def _are_entries(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(entry, Mapping) and isinstance(entry.get(KEY), str) and VALUE in entry for entry in value
    )


@dataclass(frozen=True)
class MapShape(Shape):
    """An object of any keys, sent as ``{"entries": [{"key": k, "value": v}, ...]}``; of one key, the last counts."""

    values: Shape
    is_same = False

    def back(self, value: Any) -> Any:
        if not isinstance(value, Mapping) or not _are_entries(value.get(ENTRIES)):
            return value
        return {entry[KEY]: self.values.back(entry[VALUE]) for entry in value[ENTRIES]}

    def forth(self, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return {ENTRIES: [{KEY: key, VALUE: self.values.forth(item)} for key, item in value.items()]}


@dataclass(frozen=True)
class TupleShape(Shape):
    """An array of fixed length, sent as an object of ``item0``, ``item1``, ..."""

    items: Sequence[Shape]
    is_same = False

    def back(self, value: Any) -> Any:
        if not isinstance(value, Mapping) or not all(f"item{index}" in value for index in range(len(self.items))):
            return value
        return [shape.back(value[f"item{index}"]) for index, shape in enumerate(self.items)]

    def forth(self, value: Any) -> Any:
        if not isinstance(value, list) or len(value) != len(self.items):
            return value
        return {f"item{i}": shape.forth(item) for i, (shape, item) in enumerate(zip(self.items, value, strict=True))}


@dataclass(frozen=True)
class WrappedShape(Shape):
    """A whole value, sent as the member ``value`` of an object."""

    inner: Shape
    is_same = False

    def back(self, value: Any) -> Any:
        return self.inner.back(value[VALUE]) if isinstance(value, Mapping) and VALUE in value else value

    def forth(self, value: Any) -> Any:
        return {VALUE: self.inner.forth(value)}


class TextShape(Shape):
    """Any value, sent as its JSON text; a text that is none means itself."""

    is_same = False

    def back(self, value: Any) -> Any:
        try:
            return loads_exact(value) if isinstance(value, str) else value
        except GenerationError:
            return value

    def forth(self, value: Any) -> Any:
        return json_text(value)


class AnythingShape(Shape):
    """Any value, sent with each object as a map of entries (see `MapShape`)."""

    is_same = False

    def back(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.back(item) for item in value]
        return MapShape(self).back(value)

    def forth(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.forth(item) for item in value]
        return MapShape(self).forth(value) if isinstance(value, Mapping) else value


@dataclass(frozen=True)
class FoldedShape(Shape):
    """Enumerated strings, which may come in other capitals."""

    values: frozenset[str]
    is_same = False

    def back(self, value: Any) -> Any:
        if not isinstance(value, str) or value in self.values:
            return value
        return next((one for one in sorted(self.values) if one.casefold() == value.casefold()), value)


@dataclass(frozen=True)
class UnionBranch:
    """One alternative: its shape, and what judges a sent and a meant value."""

    shape: Shape
    is_sent: Callable[[Any], bool]
    is_meant: Callable[[Any], bool]


@dataclass(frozen=True)
class UnionShape(Shape):
    """Alternatives: an answer is of the first that it satisfies."""

    branches: Sequence[UnionBranch]
    is_same = False

    def back(self, value: Any) -> Any:
        for branch in self.branches:
            if branch.is_sent(value):
                return branch.shape.back(value)
        return value

    def forth(self, value: Any) -> Any:
        for branch in self.branches:
            if branch.is_meant(value):
                sent = branch.shape.forth(value)
                if canonical(self.back(sent)) == canonical(value):  # members may come in another order
                    return sent
        return value


@dataclass(frozen=True)
class NamedShape(Shape):
    """That of a definition."""

    name: str
    table: Mapping[str, Shape] = field(repr=False)
    is_same = False

    def back(self, value: Any) -> Any:
        return self.table[self.name].back(value)

    def forth(self, value: Any) -> Any:
        return self.table[self.name].forth(value)
