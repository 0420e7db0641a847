"""The atoms of the formula language; the table in `structgen.core.json_schema.formula.language` says what they mean."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from structgen.core.json_schema.formula.nodes import ORDERED, Formula
from structgen.core.json_schema.formula.nodes import add as _add
from structgen.core.json_schema.formula.nodes import find as _find
from structgen.core.json_schema.formula.nodes import intern as _intern
from structgen.core.json_schema.formula.nodes import new as _new
from structgen.core.json_schema.formula.nodes import table as _table
from structgen.core.json_schema.formula.values import ANY, ARRAY, OBJECT, STRING, Canonical, canonical, canonical_type

if TYPE_CHECKING:
    from structgen.core.text_sets.corpus import Corpus
    from structgen.core.text_sets.phrases import PhraseSearch


class Type(Formula):
    """The value's type is in ``mask``. ``Type(ANY)`` is TRUE and ``Type(0)`` is FALSE."""

    __slots__ = ("mask",)
    mask: int

    def __new__(cls, mask: int) -> Type:
        return TYPES[mask]


TYPES = [_intern(Type, (mask,)) for mask in range(ANY + 1)]


TRUE: Formula = Type(ANY)
FALSE: Formula = Type(0)
_NOT_STRING, _NOT_ARRAY, _NOT_OBJECT = Type(ANY & ~STRING), Type(ANY & ~ARRAY), Type(ANY & ~OBJECT)

MAX_COUNT = (1 << 31) - 1
"""The most code points, items or members that a value is taken to have: tables count in int32, and no text of more than
2 GiB is read or written. "At least" more is therefore false of every string, array or object, and "at most" is true."""


class Enum(Formula):
    """The value is one of ``values``: canonical forms (`core.json_schema.formula.values`), in order of first mention.

    ``members`` is the same as a set, ``types`` the types (bits) that they have. An enumeration of nothing is FALSE.
    """

    __slots__ = ("members", "types", "values")
    values: tuple[Canonical, ...]
    members: frozenset[Canonical]
    types: int

    def __new__(cls, values: Iterable[Canonical]) -> Enum:
        distinct = tuple(dict.fromkeys(values))
        if not distinct:
            return FALSE  # type: ignore[return-value]
        members = frozenset(distinct)
        key = (Enum, members)
        handle = _table.get(key)
        node = handle() if handle is not None else None
        if node is None:
            types = 0
            for value in distinct:
                types |= STRING if value.__class__ is str else canonical_type(value)
            node = _new(Enum)
            node.values, node.members, node.types = distinct, members, types
            node = _add(node, key)
        return node  # type: ignore[return-value]

    def __repr__(self) -> str:
        return f"Enum({self.values!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (Enum, (self.values,))


def enum_of(values: Iterable[Any]) -> Enum:
    """`Enum` of parsed JSON values."""
    return Enum(canonical(value) for value in values)


def named(key: str) -> Enum:
    """``Enum([key])``, the class of one key; from a table, as schemas are made of these."""
    node = _NAMED.get(key)
    if node is None:
        if len(_NAMED) >= MAX_NAMED:
            _NAMED.clear()
        node = _NAMED[key] = Enum((key,))
    return node


def members(values: Iterable[tuple[str, Formula]]) -> list[Formula]:
    """``All(named(key), value)`` for each key and value, but where that says nothing."""
    atoms: list[Formula] = []
    for key, value in values:
        if value is not TRUE:
            keys = _NAMED.get(key) or named(key)
            handle = _table.get((All, (keys.id, value.id)))  # as All does, without the call
            node = handle() if handle is not None else None
            atoms.append(All(keys, value) if node is None else node)
    return atoms


MAX_NAMED = 8_192
_NAMED: dict[str, Enum] = {}


def absent(key: str) -> Formula:
    """No member is called ``key`` (true off objects)."""
    return All(named(key), FALSE)


class Mult(Formula):
    """Number: an integer multiple of ``q`` > 0."""

    __slots__ = ("q",)
    q: Fraction

    def __new__(cls, q: Fraction | int) -> Mult:
        return _find((cls, (q,))) or _intern(cls, (Fraction(q),))  # type: ignore[return-value]


class Ge(Formula):
    """Number: at least ``x``."""

    __slots__ = ("x",)
    x: Fraction

    def __new__(cls, x: Fraction | int) -> Ge:
        return _find((cls, (x,))) or _intern(cls, (Fraction(x),))  # type: ignore[return-value]


class Gt(Formula):
    """Number: more than ``x``."""

    __slots__ = ("x",)
    x: Fraction

    def __new__(cls, x: Fraction | int) -> Gt:
        return _find((cls, (x,))) or _intern(cls, (Fraction(x),))  # type: ignore[return-value]


class Int(Formula):
    """Number: spelled as an integer, with neither fraction nor exponent. The only node is `INT`.

    A property of the text, which parsers keep: Python reads ``1`` as int, ``1.0`` and ``1e0`` as float.
    """

    __slots__ = ()

    def __new__(cls) -> Int:
        return _intern(cls, ())


INT = Int()


class Pat(Formula):
    """String: the ECMA-262 ``regex`` matches somewhere."""

    __slots__ = ("regex",)
    regex: str

    def __new__(cls, regex: str) -> Pat:
        return _intern(cls, (regex,))


class Format(Formula):
    """String: in the language of the format ``name`` as ``dialect`` defines it."""

    __slots__ = ("dialect", "name")
    name: str
    dialect: str

    def __new__(cls, name: str, dialect: str = "draft2020-12") -> Format:
        return _intern(cls, (dialect, name))


class Quoted(Formula):
    """String: a part of the documents of ``corpus``, from a border to a border."""

    __slots__ = ("corpus",)
    corpus: Corpus

    def __new__(cls, corpus: Corpus) -> Quoted:
        return _intern(cls, (corpus,))


class Phrased(Formula):
    """String: a search for phrases is content with it."""

    __slots__ = ("search",)
    search: PhraseSearch

    def __new__(cls, search: PhraseSearch) -> Phrased:
        return _intern(cls, (search,))


class Len(Formula):
    """String: at least ``n`` code points. ``Len(0)`` is TRUE; beyond `MAX_COUNT` there is no such string."""

    __slots__ = ("n",)
    n: int

    def __new__(cls, n: int) -> Len:
        if n > MAX_COUNT:
            return _NOT_STRING  # type: ignore[return-value]
        return _intern(cls, (n,)) if n > 0 else TRUE  # type: ignore[return-value]


class All(Formula):
    """Object: every member whose key satisfies ``keys`` (a formula over strings) has a value that satisfies ``value``.

    Hence ``All(named("k"), FALSE)`` says that the key k is absent, and its negation that it is required.
    """

    __slots__ = ("keys", "value")
    keys: Formula
    value: Formula

    def __new__(cls, keys: Formula, value: Formula) -> All:
        if value is TRUE or keys is FALSE:
            return TRUE  # type: ignore[return-value]
        key = (cls, (keys.id, value.id))  # as _intern does, without the call: schemas are made of these
        handle = _table.get(key)
        node = handle() if handle is not None else None
        if node is None:
            node = _new(cls)
            node.keys, node.value = keys, value
            node = _add(node, key, keys.flags | value.flags)
        return node  # type: ignore[return-value]


class Keys(Formula):
    """Object: at least ``n`` members. ``Keys(0)`` is TRUE; beyond `MAX_COUNT` there is no such object."""

    __slots__ = ("n",)
    n: int

    def __new__(cls, n: int) -> Keys:
        if n > MAX_COUNT:
            return _NOT_OBJECT  # type: ignore[return-value]
        return _intern(cls, (n,)) if n > 0 else TRUE  # type: ignore[return-value]


class Idx(Formula):
    """Array: every item with ``lo`` <= index < ``hi`` (None: no end) satisfies ``value``."""

    __slots__ = ("hi", "lo", "value")
    lo: int
    hi: int | None
    value: Formula

    def __new__(cls, lo: int, hi: int | None, value: Formula) -> Idx:
        if value is TRUE or (hi is not None and hi <= lo):
            return TRUE  # type: ignore[return-value]
        key = (cls, (hi, lo, value.id))  # as _intern does, without the call
        handle = _table.get(key)
        node = handle() if handle is not None else None
        if node is None:
            node = _new(cls)
            node.lo, node.hi, node.value = lo, hi, value
            node = _add(node, key, value.flags)
        return node  # type: ignore[return-value]


class Items(Formula):
    """Array: at least ``n`` items satisfy ``value``. TRUE if n is 0; beyond `MAX_COUNT` there is no such array."""

    __slots__ = ("n", "value")
    value: Formula
    n: int

    def __new__(cls, value: Formula, n: int) -> Items:
        if n <= 0:
            return TRUE  # type: ignore[return-value]
        if value is FALSE or n > MAX_COUNT:
            return _NOT_ARRAY  # type: ignore[return-value]
        return _intern(cls, (n, value), value.flags)


class Uniq(Formula):
    """Array: no two items are equal. The only node is `UNIQ`."""

    __slots__ = ()

    def __new__(cls) -> Uniq:
        return _intern(cls, ())


UNIQ = Uniq()


class Order(Formula):
    """Annotation, true of every value: members named in ``names`` are declared in this order, others come last.

    A writer that keeps declared order enforces it where an Order occurs positively (see `unordered`).
    """

    __slots__ = ("names",)
    names: tuple[str, ...]

    def __new__(cls, names: Iterable[str]) -> Order:
        names = tuple(names)
        return _intern(cls, (names,), ORDERED) if names else TRUE  # type: ignore[return-value]
