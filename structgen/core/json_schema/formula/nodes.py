"""Nodes of formulas, and the table by which equal ones are the same object.

The intern table holds its nodes weakly: a node lives as long as somebody uses it, and till the next sweep. Its keys
name parts by ``id``, which no later node gets again, so that they keep nothing alive. Nodes are added by
``setdefault``, which is atomic under the GIL: threads that race for the same node get the same object. Dead entries are
swept when it has grown by a quarter and some thousands.
"""

from __future__ import annotations

import itertools
import operator
import threading
import weakref
from typing import Any, TypeVar

ORDERED, REFERS = 1, 2  # flags of formulas

by_id = operator.attrgetter("id")
_next_id = itertools.count().__next__
Key = tuple[Any, ...]
table: dict[Key, weakref.ref[Formula]] = {}
_lock = threading.Lock()
_reference, new = weakref.ref, object.__new__
LEAST_SWEPT = 20_000
_sweep_at = LEAST_SWEPT
_recent: list[Formula] = []  # nodes made since the last sweep: schemas have many in common


class Formula:
    """A node. ``id``: in order of creation; ``flags``: whether an `Order` or a `Ref` may occur inside.

    ``negation`` and ``reading`` (`unordered`) are kept once built.
    """

    __slots__ = ("__weakref__", "flags", "id", "negation", "reading")
    id: int
    flags: int
    negation: Formula | None
    reading: Formula | None

    @property
    def ordered(self) -> bool:
        """Whether an `Order` may occur inside."""
        return bool(self.flags & ORDERED)

    def __repr__(self) -> str:
        fields = [getattr(self, name) for name in type(self).__slots__]
        return f"{type(self).__name__}({', '.join(map(repr, fields))})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and unpickled nodes are interned again, so that identity stays equality."""
        return (intern, (type(self), tuple(getattr(self, name) for name in type(self).__slots__), self.flags))


_F = TypeVar("_F", bound=Formula)


def intern(cls: type[_F], fields: tuple[Any, ...], flags: int = 0) -> _F:
    """The one node of ``cls`` with these fields (the values of its slots, in order)."""
    key = (cls, tuple(map(_named_by_id, fields)))
    cached = find(key)
    if cached is not None:
        return cached  # type: ignore[return-value]
    node = new(cls)
    for name, value in zip(cls.__slots__, fields, strict=True):
        setattr(node, name, value)
    return add(node, key, flags)


def _named_by_id(field: Any) -> Any:
    if isinstance(field, Formula):
        return field.id
    if field.__class__ is tuple and field and isinstance(field[0], Formula):
        return tuple([part.id for part in field])
    return field


def find(key: Key) -> Formula | None:
    """The living node under a key."""
    handle = table.get(key)
    return handle() if handle is not None else None


def add(node: _F, key: Key, flags: int = 0) -> _F:
    """The new ``node``, whose own fields are set, or that of a thread that was faster."""
    node.id = _next_id()
    node.flags = flags
    node.negation = node.reading = None
    handle: weakref.ref[Formula] = _reference(node)
    if table.setdefault(key, handle) is not handle:
        with _lock:  # only here and in _sweep, both with the lock, does a dead entry change
            cached = find(key)
            if cached is not None:
                return cached  # type: ignore[return-value]
            table[key] = handle
    _recent.append(node)
    if len(table) > _sweep_at:
        with _lock:
            _sweep()
    return node


def _sweep() -> None:
    """Drop the entries of dead nodes; next when `LEAST_SWEPT` and a quarter more were made. With the lock held."""
    global _sweep_at
    _recent.clear()
    for key in [key for key, handle in table.copy().items() if handle() is None]:  # a copy: others may add meanwhile
        del table[key]
    _sweep_at = len(table) + LEAST_SWEPT + len(table) // 4


def node_count() -> int:
    """How many nodes are in use."""
    with _lock:
        _sweep()
        return len(table)
