"""Cases by the value of one member: what a formula over objects says once it is known what that member is.

Branches of a ``oneOf`` or conditions of an ``allOf`` are mostly told apart by one member: a tag with a ``const`` each.
Multiplied out, n such choices are a product; by cases of the tag they are n formulas, each of which speaks of few
branches. The values of the member fall into classes of which the formula's conditions are surely all true or all false
(`restricted <normal_form.NormalForm.restrict>` to one type, a condition is most often an
enumeration or trivial); what no class decides stays in the formula, so that cases are exact whatever the formula is.

A value that only some branches name is, to all others, like any value that nobody names. So each part of the formula is
reduced once for the unnamed values of each type, and again only for the values that it names: linear in the formula,
not branches times values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Hashable, Iterable, Iterator
from typing import NamedTuple

from structgen.core.json_schema.budget import StepBudget
from structgen.core.json_schema.formula.evaluate import evaluate
from structgen.core.json_schema.formula.language import (
    FALSE,
    TRUE,
    All,
    And,
    Enum,
    Format,
    Formula,
    Ge,
    Gt,
    Len,
    Mult,
    Not,
    One,
    Or,
    Pat,
    Phrased,
    Quoted,
    Type,
    and_,
    named,
    not_,
    one,
    or_,
)
from structgen.core.json_schema.formula.leaves import leaves
from structgen.core.json_schema.formula.values import ANY, ARRAY, BOOLEAN, NULL, NUMBER, OBJECT, STRING, Canonical
from structgen.errors import PatternError, TooComplexError

Restrict = Callable[[Formula, int], Formula]
KINDS = (NULL, BOOLEAN, NUMBER, STRING, ARRAY, OBJECT)
MAX_EVALUATED = 10_000
"""Conditions such as patterns times named values that are looked at one by one; of more, the cases stay undecided."""
_FINITE = {NULL: 1, BOOLEAN: 2}  # types with few values
_COMPOUND = {And: and_, Or: or_, One: one}
_NEUTRAL: dict[type[Formula], Formula] = {And: TRUE, Or: FALSE, One: FALSE}
_ABSORBING: dict[type[Formula], Formula] = {And: FALSE, Or: TRUE}


class Cell(NamedTuple):
    """Values of a member that the formula does not tell apart: those like ``named``, or the unnamed ones of a type.

    ``named``: a 1-tuple of the first such value, or (). A ``kind`` of 0 is the member's absence.
    """

    kind: int
    named: tuple[Canonical, ...] = ()


ABSENT = Cell(0)


def atoms(formula: Formula) -> list[All]:
    """The distinct conditions on members that a formula is built of, not looking inside them, the last first."""
    return [part for part in leaves(formula) if part.__class__ is All][::-1]


def covers(keys: Formula, name: str) -> bool:
    """Whether a class of keys surely has ``name`` in it."""
    if isinstance(keys, Enum):
        return name in keys.members
    return keys is TRUE or (isinstance(keys, Not) and isinstance(keys.arg, Enum) and name not in keys.arg.members)


def discriminator(
    units: Iterable[Formula], context: Iterable[Formula], done: frozenset[str], restrict: Restrict
) -> str | None:
    """The member, not in ``done``, by whose named values most of the ``units`` can be decided, if two can. Linear.

    ``context``: formulas whose lists of values count, but which are no choices themselves.
    """
    listing, deciding = Counter[str](), Counter[str]()
    decided: dict[Formula, tuple[bool, bool]] = {}
    for unit in units:
        lists, decides = _members(unit, restrict, decided)
        listing.update(lists)
        deciding.update(decides)
    for formula in context:
        listing.update(_members(formula, restrict, decided)[0])
    names = (name for name in deciding if listing[name] and name not in done)
    best = max(names, key=deciding.__getitem__, default=None)
    return best if best is not None and deciding[best] > 1 else None


def _members(
    formula: Formula, restrict: Restrict, decided: dict[Formula, tuple[bool, bool]]
) -> tuple[list[str], list[str]]:
    """The members of which a formula lists values, and those whose named values decide some of it."""
    lists: dict[str, None] = {}  # (no sets: of members that decide as much the first is taken, the same each time)
    decides: dict[str, None] = {}
    for atom in atoms(formula):
        if not isinstance(atom.keys, Enum) or len(atom.keys.values) != 1 or atom.value is FALSE:
            continue
        verdict = decided.get(atom.value)
        if verdict is None:
            verdict = decided[atom.value] = _what_decides(atom.value, restrict)
        name = atom.keys.values[0]
        if isinstance(name, str) and verdict[1]:
            decides[name] = None
            if verdict[0]:
                lists[name] = None
    return list(lists), list(decides)


def _what_decides(value: Formula, restrict: Restrict) -> tuple[bool, bool]:
    """Whether a condition on a value lists scalars, and whether it can be decided for single ones."""
    scalars = [restrict(value, kind) for kind in (STRING, NUMBER, BOOLEAN, NULL)]
    lists = any(True for part in scalars for _ in _listings(part))
    return lists, lists or any(True for part in scalars for _ in _opaque(part))


class Cases:
    """The cases of ``formula``, over objects, by its member ``name``."""

    def __init__(self, formula: Formula, name: str, restrict: Restrict, budget: StepBudget) -> None:
        self._formula = formula
        self._name = name
        self._restrict = restrict
        self._budget = budget
        self._cells: dict[tuple[int, Canonical], Cell] = {}  # by type and value
        self._values: dict[Cell, list[Canonical]] = {}
        self._concerned: dict[Formula, bool] = {}
        self._touched: dict[Formula, frozenset[Cell]] = {}
        self._children: dict[Formula, dict[Cell, list[Formula]]] = {}
        self._plain: dict[tuple[Formula, Cell], dict[Formula, Formula]] = {}
        self._reduced: dict[tuple[Formula, Cell], Formula] = {}
        self._decided: dict[tuple[Formula, Cell], bool | None] = {}
        self._evaluated: dict[Formula, None] = {}
        self._group()

    def __iter__(self) -> Iterator[tuple[tuple[Formula, ...], Formula]]:
        """Literals about the member, and what the formula says beyond them; their conjunctions' disjunction is it."""
        residuals: dict[Formula, list[Cell]] = {}
        for cell in self._all_cells():
            residual = self._reduce(self._formula, cell)
            if residual is not FALSE:
                residuals.setdefault(residual, []).append(cell)
        for residual, cells in residuals.items():
            yield self._literals(cells), residual

    # --- cells ---
    def _group(self) -> None:
        """Find the values that conditions on the member name; those that the same ones name share a cell."""
        naming: dict[tuple[int, Canonical], list[Formula]] = {}
        conditions = dict.fromkeys(atom.value for atom in atoms(self._formula) if covers(atom.keys, self._name))
        for condition in conditions:
            for kind in KINDS:
                for listed in _listings(self._restrict(condition, kind)):
                    for value in listed.values:
                        naming.setdefault((kind, value), []).append(listed)
        first: dict[Hashable, Cell] = {}
        count = Counter(kind for kind, _ in naming)
        opaque = self._find_opaque(conditions, count)
        for (kind, value), listings in naming.items():
            truths = tuple(_holds(condition, value) for condition in opaque[kind])
            cell = first.setdefault((kind, tuple(dict.fromkeys(listings)), truths), Cell(kind, (value,)))
            self._cells[kind, value] = cell
            self._values.setdefault(cell, []).append(value)

    def _find_opaque(self, conditions: Iterable[Formula], count: Counter[int]) -> dict[int, list[Formula]]:
        """By type, the atoms other than enumerations that are to be decided for each of ``count`` named values."""
        opaque: dict[int, list[Formula]] = {}
        for kind in KINDS:
            parts = (self._restrict(condition, kind) for condition in conditions) if count[kind] else ()
            opaque[kind] = list(dict.fromkeys(atom for part in parts for atom in _opaque(part)))
            if len(opaque[kind]) * count[kind] > MAX_EVALUATED:
                opaque[kind] = []
            self._evaluated.update(dict.fromkeys(opaque[kind]))
        return opaque

    def _all_cells(self) -> Iterator[Cell]:
        yield from self._values
        named_values = Counter(kind for kind, _ in self._cells)
        for kind in KINDS:
            if named_values[kind] != _FINITE.get(kind, -1):
                yield Cell(kind)
        yield ABSENT

    def _literals(self, cells: list[Cell]) -> tuple[Formula, ...]:
        """That the member is in one of some cells."""
        keys = named(self._name)
        present = [cell for cell in cells if cell.kind]
        absence = All(keys, FALSE)
        if not present:
            return (absence,)
        member = All(keys, self._union(present))
        needed = not_(absence) if len(present) == len(cells) else TRUE
        return tuple(literal for literal in (needed, member) if literal is not TRUE)

    def _union(self, cells: list[Cell]) -> Formula:
        open_kinds = {cell.kind for cell in cells if not cell.named}
        values = [value for cell in cells if cell.named for value in self._values[cell]]
        chosen = {(cell.kind, cell.named) for cell in cells}
        parts: list[Formula] = [Enum(values)]
        for kind in open_kinds:
            others = [
                value for cell, group in self._values.items() if cell.kind == kind and cell not in chosen
                for value in group
            ]  # fmt: skip
            parts.append(and_(Type(kind), not_(Enum(others))) if others else Type(kind))
        return or_(*parts)

    # --- reduction ---
    def _concerns(self, formula: Formula) -> bool:
        concerns = self._concerned.get(formula)
        if concerns is None:
            if isinstance(formula, All):
                concerns = covers(formula.keys, self._name)
            elif isinstance(formula, Not):
                concerns = self._concerns(formula.arg)
            else:
                concerns = isinstance(formula, (And, Or, One)) and any([self._concerns(part) for part in formula.args])
            self._concerned[formula] = concerns
        return concerns

    def _touches(self, formula: Formula) -> frozenset[Cell]:
        """The named cells on which a formula may differ from the unnamed values of their type."""
        touched = self._touched.get(formula)
        if touched is None:
            if not self._concerns(formula):
                touched = frozenset()
            elif isinstance(formula, All):
                restricted = [(kind, self._restrict(formula.value, kind)) for kind in KINDS]
                touched = frozenset(
                    self._cells[kind, value] for kind, part in restricted for listed in _listings(part)
                    for value in listed.values
                )  # fmt: skip
                decided = {kind for kind, part in restricted if not self._evaluated.keys().isdisjoint(_opaque(part))}
                touched |= {cell for cell in self._values if cell.kind in decided}
            elif isinstance(formula, Not):
                touched = self._touches(formula.arg)
            else:
                touched = self._index(formula)
            self._touched[formula] = touched
        return touched

    def _index(self, formula: Formula) -> frozenset[Cell]:
        children = self._children[formula] = {}
        for part in formula.args:  # type: ignore[attr-defined]
            for cell in self._touches(part):
                children.setdefault(cell, []).append(part)
        return frozenset(children)

    def _reduce(self, formula: Formula, cell: Cell) -> Formula:
        """What a formula says of objects whose member is in a cell, given that it is."""
        if not self._concerns(formula):
            return formula
        if cell.named and cell not in self._touches(formula):
            cell = Cell(cell.kind)
        key = (formula, cell)
        reduced = self._reduced.get(key)
        if reduced is None:
            if isinstance(formula, All):
                reduced = self._atom(formula, cell)
            elif isinstance(formula, Not):
                reduced = not_(self._reduce(formula.arg, cell))
            else:
                reduced = self._compound(formula, cell)
            self._reduced[key] = reduced
        return reduced

    def _compound(self, formula: Formula, cell: Cell) -> Formula:
        cls = formula.__class__
        if not cell.named:
            return _COMPOUND[cls](*self._unnamed(formula, cell).values())
        special = self._children[formula][cell]
        parts = [self._reduce(part, cell) for part in special]
        absorbing = _ABSORBING.get(cls)
        if absorbing is not None and absorbing in parts:
            return absorbing
        plain = self._unnamed(formula, Cell(cell.kind))
        self._budget.spend(10 + len(special) + len(plain) // 4)
        if len(plain) <= 2 * len(special):
            skip = set(special)
            parts += [residual for part, residual in plain.items() if part not in skip]
        else:
            remaining = dict(plain)
            for part in special:
                remaining.pop(part, None)
            parts += remaining.values()
        return _COMPOUND[cls](*parts)

    def _unnamed(self, formula: Formula, cell: Cell) -> dict[Formula, Formula]:
        """What the parts of a compound say in a cell without names, the neutral ones left out."""
        key = (formula, cell)
        unnamed = self._plain.get(key)
        if unnamed is None:
            neutral = _NEUTRAL[formula.__class__]
            self._budget.spend(10 + len(formula.args))  # type: ignore[attr-defined]
            unnamed = self._plain[key] = {
                part: residual
                for part in formula.args  # type: ignore[attr-defined]
                if (residual := self._reduce(part, cell)) is not neutral
            }
        return unnamed

    def _atom(self, atom: All, cell: Cell) -> Formula:
        single = isinstance(atom.keys, Enum)
        others = TRUE
        if isinstance(atom.keys, Enum) and len(atom.keys.values) > 1:
            others = All(Enum([key for key in atom.keys.values if key != self._name]), atom.value)
        if cell is ABSENT or cell.kind == 0:
            return others if single else atom
        decided = self._decide(atom.value, cell)
        if decided is False:
            return FALSE
        return others if decided and single else atom

    def _decide(self, condition: Formula, cell: Cell) -> bool | None:
        """Whether the values of a cell satisfy a condition; None: not known, or some do."""
        key = (condition, cell)
        if key not in self._decided:
            self._decided[key] = _truth(self._restrict(condition, cell.kind), cell, self._evaluated, {})
        return self._decided[key]


def _listings(restricted: Formula) -> Iterator[Enum]:
    """The enumerations in a condition, restricted to one type."""
    return (atom for atom in leaves(restricted) if isinstance(atom, Enum))


def _opaque(restricted: Formula) -> Iterator[Formula]:
    """The atoms of strings and numbers in it."""
    return (atom for atom in leaves(restricted) if isinstance(atom, (Pat, Format, Quoted, Phrased, Len, Mult, Ge, Gt)))


def _holds(atom: Formula, value: Canonical) -> bool | None:
    """Whether a string or a number satisfies an atom; None if its automaton cannot be built."""
    try:
        return evaluate(atom, value)
    except (PatternError, TooComplexError):
        return None


def _truth(
    restricted: Formula, cell: Cell, evaluated: Container[Formula], truths: dict[Formula, bool | None]
) -> bool | None:
    """Truth of a restricted condition on a cell: of atoms other than enumerations, only for named values.

    ``truths``: of the parts that were looked at for this cell.
    """
    if restricted not in truths:
        truths[restricted] = _looked_at(restricted, cell, evaluated, truths)
    return truths[restricted]


def _looked_at(
    restricted: Formula, cell: Cell, evaluated: Container[Formula], truths: dict[Formula, bool | None]
) -> bool | None:
    if isinstance(restricted, Type):
        return restricted.mask == ANY
    if isinstance(restricted, Enum):
        return bool(cell.named) and cell.named[0] in restricted.members
    if isinstance(restricted, Not):
        inner = _truth(restricted.arg, cell, evaluated, truths)
        return None if inner is None else not inner
    if isinstance(restricted, (And, Or)):
        verdicts = [_truth(part, cell, evaluated, truths) for part in restricted.args]
        settled = isinstance(restricted, Or)
        if settled in verdicts:
            return settled
        return None if None in verdicts else not settled
    if isinstance(restricted, One):
        verdicts = [_truth(part, cell, evaluated, truths) for part in restricted.args]
        if verdicts.count(True) > 1:
            return False
        return None if None in verdicts else verdicts.count(True) == 1
    return _holds(restricted, cell.named[0]) if cell.named and restricted in evaluated else None
