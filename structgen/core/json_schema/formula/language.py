"""The formula language: what a schema says of a JSON value, in a dozen atoms and five connectives.

Schemas, key classes, nodes and parse states all are formulas. Nodes are immutable and hash-consed: structurally equal
formulas are the *same* object, so equality is identity, hashing is free and ``id`` (a small integer, in order of
creation) keys every later table. ``not_`` pushes negation down, so a ``Not`` holds only an atom, a ``One`` or a
``Ref``.

==================  ======================================================================================
``Type(mask)``      the value's type is in the set (bits of `structgen.core.json_schema.formula.values`)
``Enum(values)``    the value equals one of these (JSON equality)
``Mult(q)``         number: an integer multiple of q
``Ge(x), Gt(x)``    number: at least x, more than x
``Int()``           number: spelled with neither fraction nor exponent (the integers of drafts 3 and 4)
``Pat(regex)``      string: the ECMA-262 expression matches somewhere
``Format(name)``    string: in the format's language
``Len(n)``          string: at least n code points
``All(C, S)``       object: every member whose key satisfies C (a formula over strings) has a value that satisfies S
``Keys(n)``         object: at least n members
``Idx(lo, hi, S)``  array: every item with index lo <= i < hi (hi None: no end) satisfies S
``Items(S, n)``     array: at least n items satisfy S
``Uniq``            array: no two items are equal
``Order(names)``    object: an annotation, true of every value: the declared order of members (see `unordered`)
``MemberRecord``    an object by its members: short for a conjunction (see there)
==================  ======================================================================================

Every atom but Type and Enum is true off its type. Negated, it therefore is *false* off its type: a keyword that lowers
to a negated atom needs a type guard, ``maximum x = Type(not number) or not Gt(x)``.

All but Int speak of the value: ``1.0`` is the same as ``1``. Int speaks of its spelling, so ``Enum([1])`` holds both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from fractions import Fraction
from typing import Any, NamedTuple

from structgen.core.json_schema.formula.nodes import ORDERED as ORDERED
from structgen.core.json_schema.formula.nodes import REFERS as REFERS
from structgen.core.json_schema.formula.nodes import Formula as Formula
from structgen.core.json_schema.formula.nodes import add as _add
from structgen.core.json_schema.formula.nodes import by_id as _by_id
from structgen.core.json_schema.formula.nodes import find as _find
from structgen.core.json_schema.formula.nodes import intern as _intern
from structgen.core.json_schema.formula.nodes import new as _new
from structgen.core.json_schema.formula.nodes import node_count as node_count
from structgen.core.json_schema.formula.nodes import table as _table
from structgen.core.json_schema.formula.values import ANY, ARRAY, OBJECT, STRING, Canonical, canonical, canonical_type

# --- atoms -----------------------------------------------------------------------------------------------------------


class Type(Formula):
    """The value's type is in ``mask``. ``Type(ANY)`` is TRUE and ``Type(0)`` is FALSE."""

    __slots__ = ("mask",)
    mask: int

    def __new__(cls, mask: int) -> Type:
        return _TYPES[mask]


_TYPES = [_intern(Type, (mask,)) for mask in range(ANY + 1)]


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
    known = _NAMED.get(key)
    if known is None:
        if len(_NAMED) >= MAX_NAMED:
            _NAMED.clear()
        known = _NAMED[key] = Enum((key,))
    return known


def members(values: Iterable[tuple[str, Formula]]) -> list[Formula]:
    """``All(named(key), value)`` for each key and value, but where that says nothing."""
    found: list[Formula] = []
    for key, value in values:
        if value is not TRUE:
            keys = _NAMED.get(key) or named(key)
            handle = _table.get((All, (keys.id, value.id)))  # as All does, without the call
            node = handle() if handle is not None else None
            found.append(All(keys, value) if node is None else node)
    return found


def present(key: str) -> Formula:
    """The member ``key`` is there: ``not_(All(named(key), FALSE))``, from a table too."""
    known = _PRESENT.get(key)
    if known is None:
        if len(_PRESENT) >= MAX_NAMED:
            _PRESENT.clear()
        known = _PRESENT[key] = not_(All(named(key), FALSE))
    return known


MAX_NAMED = 8_192
_NAMED: dict[str, Enum] = {}
_PRESENT: dict[str, Formula] = {}


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


class MemberRecord(Formula):
    """An object whose members have values that satisfy ``values`` where ``names`` name them, and ``others`` elsewhere.

    Those in ``required`` must be there; ``declared``: the names stand in declared order, as `Order` has it. One node in
    place of ``spelled``, the conjunction of a type and an atom for each member, which most objects never need:
    connectives, whose arguments it never is, take its parts apart. So the two are not the same node, though they say
    the same. Built by `record`.
    """

    __slots__ = ("_spelled", "declared", "names", "others", "required", "values")
    names: tuple[str, ...]
    values: tuple[Formula, ...]
    required: tuple[str, ...]
    others: Formula
    declared: bool
    _spelled: Formula | None

    @property
    def spelled(self) -> Formula:
        """The conjunction that it stands for; FALSE, if a member that must be there has no value."""
        if self._spelled is None:
            named_values = members(zip(self.names, self.values, strict=True))
            rest = All(not_(Enum(self.names)), self.others)
            order = Order(self.names) if self.declared else TRUE
            self._spelled = and_(Type(OBJECT), *named_values, *map(present, self.required), rest, order)
        return self._spelled

    def __repr__(self) -> str:
        return "MemberRecord" + repr((self.names, self.values, self.required, self.others, self.declared))

    def __reduce__(self) -> tuple[Any, ...]:
        return (record, (self.names, self.values, self.required, self.others, self.declared))


def record(
    names: tuple[str, ...], values: tuple[Formula, ...], required: tuple[str, ...], others: Formula, declared: bool
) -> Formula:
    """`MemberRecord`, or what is simpler and the same."""
    declared = declared and bool(names)
    key = (MemberRecord, names, tuple(map(_by_id, values)), required, others.id, declared)
    handle = _table.get(key)
    node = handle() if handle is not None else None
    if node is None:
        if others is TRUE and not required and not declared and values.count(TRUE) == len(values):
            return Type(OBJECT)
        node = _new(MemberRecord)
        node.names, node.values, node.required, node.others, node.declared = names, values, required, others, declared
        node._spelled = None
        flags = others.flags | ORDERED if declared else others.flags
        for value in values:
            flags |= value.flags
        node = _add(node, key, flags)
    return node


def spelled(formula: Formula) -> Formula:
    """The formula, a `MemberRecord` as the conjunction that it stands for."""
    return formula.spelled if formula.__class__ is MemberRecord else formula


# --- connectives -----------------------------------------------------------------------------------------------------


class And(Formula):
    """All of ``args``: two or more, in order of id, none an And, at most one a Type or an Enum. Built by `and_`."""

    __slots__ = ("args",)
    args: tuple[Formula, ...]


class Or(Formula):
    """Some of ``args``: two or more, in order of id, none an Or, at most one Type and one Enum. Built by `or_`."""

    __slots__ = ("args",)
    args: tuple[Formula, ...]


class Not(Formula):
    """Not ``arg``, which is an atom (but Type), a One or a Ref. Built by `not_`."""

    __slots__ = ("arg",)
    arg: Formula


class One(Formula):
    """Exactly one of ``args``: two or more, distinct, in order of id. Built by `one`."""

    __slots__ = ("args",)
    args: tuple[Formula, ...]


class Ref(Formula):
    """The formula that the table of the lowering holds under ``key``; keys of different schemas differ."""

    __slots__ = ("key",)
    key: Hashable


def ref(key: Hashable) -> Ref:
    """A reference by name, for recursion."""
    return _intern(Ref, (key,), ORDERED | REFERS)


def _compound(cls: type[Formula], parts: list[Formula]) -> Formula:
    parts.sort(key=_by_id)
    key = (cls, (tuple(map(_by_id, parts)),))
    handle = _table.get(key)
    node = handle() if handle is not None else None
    if node is None:
        node = _new(cls)
        node.args = tuple(parts)  # type: ignore[attr-defined]
        flags = 0
        for part in parts:
            flags |= part.flags
        node = _add(node, key, flags)
    return node


def _flattened(given: dict[Formula, None], cls: type[And] | type[Or], unit: Formula) -> dict[Formula, None]:
    """The distinct operands of a connective, nested ones and records taken apart; but a record beside ``unit`` alone,
    which says nothing here, stays whole."""
    given.pop(unit, None)
    whole = len(given) < 2
    flat: dict[Formula, None] = {}
    for formula in given:
        if formula.__class__ is MemberRecord and not whole:
            formula = formula.spelled
        if formula.__class__ is cls:
            for part in formula.args:
                flat[part] = None
        else:
            flat[formula] = None
    return flat


def and_(*formulas: Formula) -> Formula:
    """Conjunction: flattened, deduplicated, types and enumerations intersected; f and not f is FALSE.

    "At least n" and "fewer than m" of the same is FALSE for m <= n.
    """
    flat = dict.fromkeys(formulas)
    for formula in flat:
        if formula.__class__ is And or formula.__class__ is MemberRecord:
            flat = _flattened(flat, And, TRUE)
            break
    mask = ANY
    enums: list[Enum] = []
    parts: list[Formula] = []
    negated = limited = False
    for formula in flat:
        cls = formula.__class__
        if cls is Type:
            mask &= formula.mask  # type: ignore[attr-defined]
        elif cls is Enum:
            enums.append(formula)  # type: ignore[arg-type]
        else:
            parts.append(formula)
            if cls is Not:
                atom = formula.arg  # type: ignore[attr-defined]
                if atom in flat:
                    return FALSE
                negated = True
                limited = limited or atom.__class__ in _COUNTS
    if limited and _is_count_decided(parts, And):
        return FALSE
    if enums:
        if len(enums) > 1 or negated or enums[0].types & ~mask:
            unit, parts = _intersection(enums, mask, parts)
        else:
            unit = enums[0]
        mask = ANY if unit is not FALSE else 0
        parts.append(unit)
    if mask == 0:
        return FALSE
    if mask != ANY:
        parts.append(_TYPES[mask])
    if len(parts) < 2:
        return parts[0] if parts else TRUE
    return _compound(And, parts)


def _intersection(enums: list[Enum], mask: int, parts: list[Formula]) -> tuple[Formula, list[Formula]]:
    """The values in all ``enums`` with a type in ``mask`` that no negated Enum of ``parts`` excludes, and the rest."""
    excluded: set[Canonical] = set()
    rest: list[Formula] = []
    for part in parts:
        if isinstance(part, Not) and isinstance(part.arg, Enum):
            excluded |= part.arg.members
        else:
            rest.append(part)
    values = [value for value in enums[0].values if value not in excluded and canonical_type(value) & mask]
    for enum in enums[1:]:
        values = [value for value in values if value in enum.members]
    return Enum(values), rest


_COUNTS = (Items, Keys, Len)


def _is_count_decided(parts: list[Formula], cls: type[And] | type[Or]) -> bool:
    """Whether limits of one count contradict each other (in a conjunction), or leave nothing out (in a disjunction)."""
    strict = max if cls is And else min
    least: dict[tuple[type[Formula], Formula | None], int] = {}
    for part in parts:
        if isinstance(part, _COUNTS):
            counted = part.__class__, getattr(part, "value", None)
            least[counted] = strict(least.get(counted, part.n), part.n)
    for part in parts:
        if isinstance(part, Not) and isinstance(part.arg, _COUNTS):
            limit = part.arg
            known = least.get((limit.__class__, getattr(limit, "value", None)))
            if known is not None and (limit.n <= known if cls is And else known <= limit.n):
                return True
    return False


def or_(*formulas: Formula) -> Formula:
    """Disjunction: flattened, deduplicated, types and enumerations united; f or not f is TRUE.

    "At least n" or "fewer than m" of the same is TRUE for n <= m.
    """
    flat = dict.fromkeys(formulas)
    for formula in flat:
        if formula.__class__ is Or or formula.__class__ is MemberRecord:
            flat = _flattened(flat, Or, FALSE)
            break
    mask = 0
    values: list[Canonical] = []
    parts: list[Formula] = []
    limited = False
    for formula in flat:
        cls = formula.__class__
        if cls is Type:
            mask |= formula.mask  # type: ignore[attr-defined]
        elif cls is Enum:
            values.extend(formula.values)  # type: ignore[attr-defined]
        else:
            if cls is Not:
                atom = formula.arg  # type: ignore[attr-defined]
                if atom in flat:
                    return TRUE
                limited = limited or atom.__class__ in _COUNTS
            parts.append(formula)
    if limited and _is_count_decided(parts, Or):
        return TRUE
    if mask == ANY:
        return TRUE
    if mask:
        parts.append(_TYPES[mask])
        values = [value for value in values if not canonical_type(value) & mask]
    if values:
        parts.append(Enum(values))
    if len(parts) < 2:
        return parts[0] if parts else FALSE
    return _compound(Or, parts)


def not_(formula: Formula) -> Formula:
    """Negation, pushed down to atoms, One and Ref. Linear in the new nodes; the result is kept on the node."""
    negation = formula.negation
    if negation is None:
        cls = formula.__class__
        if cls is Type:
            negation = Type(ANY & ~formula.mask)  # type: ignore[attr-defined]
        elif cls is And:
            negation = or_(*[not_(arg) for arg in formula.args])  # type: ignore[attr-defined]
        elif cls is Or:
            negation = and_(*[not_(arg) for arg in formula.args])  # type: ignore[attr-defined]
        elif cls is MemberRecord:
            negation = not_(formula.spelled)  # type: ignore[attr-defined]
        else:  # there is none yet: one would be kept on the formula
            negation = _new(Not)
            negation.arg = formula
            negation = _add(negation, (Not, (formula.id,)), formula.flags)
            negation.negation = formula
        formula.negation = negation
    return negation


def one(*formulas: Formula) -> Formula:
    """Exactly one of the formulas, counted with repetition: ``one(f, f)`` is FALSE.

    What thereby becomes negative is `unordered`.
    """
    counts = Counter(formulas if len(formulas) < 2 else map(spelled, formulas))
    certain = counts.pop(TRUE, 0)
    counts.pop(FALSE, None)
    repeated = [formula for formula, count in counts.items() if count > 1]
    single = [formula for formula, count in counts.items() if count == 1]
    if certain > 1:
        return FALSE
    if certain or repeated:
        rest = and_(*[not_(unordered(formula)) for formula in single]) if certain else one(*single)
        return and_(rest, *[not_(unordered(formula)) for formula in repeated])
    if len(single) < 2:
        return single[0] if single else FALSE
    return _compound(One, single)


def unordered(formula: Formula) -> Formula:
    """The formula with every Order inside taken as TRUE, which is what a negative occurrence means.

    A reference ``Ref(key)`` becomes ``Ref(Unordered(key))``, which the tables of the lowering resolve on demand.
    A stage that enforces Order reads ``one(a, b)`` as ``one(unordered(a), unordered(b)) and (a or b)``.
    """
    if not formula.flags & ORDERED:
        return formula
    if formula.reading is not None:
        return formula.reading
    result: Formula
    if isinstance(formula, Order):
        return TRUE
    if isinstance(formula, Ref):
        return formula if isinstance(formula.key, Unordered) else ref(Unordered(formula.key))
    if isinstance(formula, All):
        result = All(formula.keys, unordered(formula.value))
    elif isinstance(formula, Idx):
        result = Idx(formula.lo, formula.hi, unordered(formula.value))
    elif isinstance(formula, Items):
        result = Items(unordered(formula.value), formula.n)
    elif isinstance(formula, Not):
        result = not_(unordered(formula.arg))
    elif isinstance(formula, (And, Or, One)):
        build = {And: and_, Or: or_, One: one}[type(formula)]
        result = build(*map(unordered, formula.args))
    elif isinstance(formula, MemberRecord):
        values = tuple(map(unordered, formula.values))
        result = record(formula.names, values, formula.required, unordered(formula.others), False)
    else:
        raise AssertionError(f"no Order can occur in {formula!r}")
    formula.reading = result
    return result


class Unordered(NamedTuple):
    """Key of a reference to the unordered reading of what ``key`` refers to."""

    key: Hashable
