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
``Quoted(corpus)``  string: a part of its documents
``Phrased(search)`` string: it has the phrases that it must have, and none that it must not
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
from collections.abc import Hashable
from typing import Any, NamedTuple

from structgen.core.json_schema.formula.atoms import FALSE as FALSE
from structgen.core.json_schema.formula.atoms import INT as INT
from structgen.core.json_schema.formula.atoms import MAX_COUNT as MAX_COUNT
from structgen.core.json_schema.formula.atoms import MAX_NAMED as MAX_NAMED
from structgen.core.json_schema.formula.atoms import TRUE as TRUE
from structgen.core.json_schema.formula.atoms import TYPES
from structgen.core.json_schema.formula.atoms import UNIQ as UNIQ
from structgen.core.json_schema.formula.atoms import All as All
from structgen.core.json_schema.formula.atoms import Enum as Enum
from structgen.core.json_schema.formula.atoms import Format as Format
from structgen.core.json_schema.formula.atoms import Ge as Ge
from structgen.core.json_schema.formula.atoms import Gt as Gt
from structgen.core.json_schema.formula.atoms import Idx as Idx
from structgen.core.json_schema.formula.atoms import Int as Int
from structgen.core.json_schema.formula.atoms import Items as Items
from structgen.core.json_schema.formula.atoms import Keys as Keys
from structgen.core.json_schema.formula.atoms import Len as Len
from structgen.core.json_schema.formula.atoms import Mult as Mult
from structgen.core.json_schema.formula.atoms import Order as Order
from structgen.core.json_schema.formula.atoms import Pat as Pat
from structgen.core.json_schema.formula.atoms import Phrased as Phrased
from structgen.core.json_schema.formula.atoms import Quoted as Quoted
from structgen.core.json_schema.formula.atoms import Type as Type
from structgen.core.json_schema.formula.atoms import Uniq as Uniq
from structgen.core.json_schema.formula.atoms import absent as absent
from structgen.core.json_schema.formula.atoms import enum_of as enum_of
from structgen.core.json_schema.formula.atoms import members as members
from structgen.core.json_schema.formula.atoms import named as named
from structgen.core.json_schema.formula.nodes import ORDERED as ORDERED
from structgen.core.json_schema.formula.nodes import REFERS as REFERS
from structgen.core.json_schema.formula.nodes import Formula as Formula
from structgen.core.json_schema.formula.nodes import add as _add
from structgen.core.json_schema.formula.nodes import by_id as _by_id
from structgen.core.json_schema.formula.nodes import intern as _intern
from structgen.core.json_schema.formula.nodes import new as _new
from structgen.core.json_schema.formula.nodes import node_count as node_count
from structgen.core.json_schema.formula.nodes import table as _table
from structgen.core.json_schema.formula.values import ANY, OBJECT, Canonical, canonical_type


def present(key: str) -> Formula:
    """The member ``key`` is there: ``not_(All(named(key), FALSE))``, from a table too."""
    node = _PRESENT.get(key)
    if node is None:
        if len(_PRESENT) >= MAX_NAMED:
            _PRESENT.clear()
        node = _PRESENT[key] = not_(All(named(key), FALSE))
    return node


_PRESENT: dict[str, Formula] = {}


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
            others = All(not_(Enum(self.names)), self.others)
            order = Order(self.names) if self.declared else TRUE
            self._spelled = and_(Type(OBJECT), *named_values, *map(present, self.required), others, order)
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


# --- connectives ---


def _repr_of_arguments(self: And | Or | One) -> str:
    """In order of text: the order of ids is that in which the process happened to make them."""
    return f"{type(self).__name__}(({', '.join(sorted(map(repr, self.args)))}))"


class And(Formula):
    """All of ``args``: two or more, in order of id, none an And, at most one a Type or an Enum. Built by `and_`."""

    __slots__ = ("args",)
    args: tuple[Formula, ...]
    __repr__ = _repr_of_arguments


class Or(Formula):
    """Some of ``args``: two or more, in order of id, none an Or, at most one Type and one Enum. Built by `or_`."""

    __slots__ = ("args",)
    args: tuple[Formula, ...]
    __repr__ = _repr_of_arguments


class Not(Formula):
    """Not ``arg``, which is an atom (but Type), a One or a Ref. Built by `not_`."""

    __slots__ = ("arg",)
    arg: Formula


class One(Formula):
    """Exactly one of ``args``: two or more, distinct, in order of id. Built by `one`."""

    __slots__ = ("args",)
    args: tuple[Formula, ...]
    __repr__ = _repr_of_arguments


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
    """The distinct operands of a connective, nested ones and records taken apart; but a record that has ``unit`` alone
    with it, which says nothing here, stays whole."""
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
        parts.append(TYPES[mask])
    if len(parts) < 2:
        return parts[0] if parts else TRUE
    return _compound(And, parts)


def _intersection(enums: list[Enum], mask: int, parts: list[Formula]) -> tuple[Formula, list[Formula]]:
    """The values in all ``enums`` with a type in ``mask`` that no negated Enum of ``parts`` has; the other parts."""
    excluded: set[Canonical] = set()
    remaining: list[Formula] = []
    for part in parts:
        if isinstance(part, Not) and isinstance(part.arg, Enum):
            excluded |= part.arg.members
        else:
            remaining.append(part)
    values = [value for value in enums[0].values if value not in excluded and canonical_type(value) & mask]
    for enum in enums[1:]:
        values = [value for value in values if value in enum.members]
    return Enum(values), remaining


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
            bound = least.get((limit.__class__, getattr(limit, "value", None)))
            if bound is not None and (limit.n <= bound if cls is And else bound <= limit.n):
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
        parts.append(TYPES[mask])
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
        exactly_one = and_(*[not_(unordered(formula)) for formula in single]) if certain else one(*single)
        return and_(exactly_one, *[not_(unordered(formula)) for formula in repeated])
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
