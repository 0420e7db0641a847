"""Two schemas in one table of formulas, lowered apart, so that neither's identifiers lead into the other.

Each document has its own dialect and its own references. References of both that lead to the same are identified, by
partition refinement, so that what two versions of a recursive schema share is one object.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Mapping
from typing import NamedTuple

from structgen.core.json_schema.budget import StepBudget
from structgen.core.json_schema.context import Refs
from structgen.core.json_schema.formula.language import (
    REFERS,
    All,
    And,
    Formula,
    Idx,
    Items,
    MemberRecord,
    Not,
    One,
    Or,
    Ref,
    Unordered,
    and_,
    not_,
    one,
    or_,
    record,
    ref,
    unordered,
)
from structgen.core.json_schema.lowering import Lowered
from structgen.options import JsonOptions

_serials = itertools.count(1)
_CONNECTIVES = {And: and_, Or: or_, One: one}


class SharedKey(NamedTuple):
    """Key of the references, of several schemas, that lead to the same; ``serial`` tells joints apart."""

    serial: int
    number: int


class Joint:
    """The formulas of several lowered schemas, which may be asked about together.

    Attributes:
        roots: the formula of each schema, in the order given; without declared order.
        refs: formula by key, for each reference in them.
        budget: steps for one question (see `StepBudget`).
    """

    def __init__(self, schemas: list[Lowered], options: JsonOptions) -> None:
        self.budget = StepBudget(options.max_steps)
        self.refs = Refs()
        self.roots = [unordered(lowered.root) for lowered in schemas]
        given = {_plain(key): formula for lowered in schemas for key, formula in lowered.refs.items()}
        if given:
            self._identify(given)

    def _identify(self, given: Mapping[Hashable, Formula]) -> None:
        """Name the references by what they lead to; the coarsest partition that all of them agree with."""
        serial = next(_serials)
        tables = {key: unordered(formula) for key, formula in given.items()}
        numbers = dict.fromkeys(tables, 0)
        while True:
            names = {key: ref(Unordered(SharedKey(serial, number))) for key, number in numbers.items()}
            renamed = Renaming(names.__getitem__)
            rebuilt = {key: (numbers[key], renamed(formula).id) for key, formula in tables.items()}
            classes = {signature: number for number, signature in enumerate(dict.fromkeys(rebuilt.values()))}
            finer = {key: classes[signature] for key, signature in rebuilt.items()}
            if len(classes) == len(set(numbers.values())):
                break
            numbers = finer
        self.roots = [renamed(root) for root in self.roots]
        for key, formula in tables.items():
            self.refs[names[key].key] = renamed(formula)

    def origin(self, formula: Formula) -> tuple[str, str] | None:
        """Nothing: which of the schemas a formula comes from is not known."""
        return None


def _plain(key: Hashable) -> Hashable:
    """The key of a reference whose reading without order ``key`` may be."""
    return key.key if isinstance(key, Unordered) else key


class Renaming:
    """Formulas with other references: ``names`` gives that for each (plain) key. Linear in the distinct nodes."""

    def __init__(self, names: Callable[[Hashable], Ref]) -> None:
        self._names = names
        self._done: dict[Formula, Formula] = {}

    def __call__(self, formula: Formula) -> Formula:
        if not formula.flags & REFERS:
            return formula
        renamed = self._done.get(formula)
        if renamed is None:
            renamed = self._done[formula] = self._rebuilt(formula)
        return renamed

    def _rebuilt(self, formula: Formula) -> Formula:
        match formula:
            case Ref():
                return self._names(_plain(formula.key))
            case And() | Or() | One():
                return _CONNECTIVES[type(formula)](*map(self, formula.args))
            case Not():
                return not_(self(formula.arg))
            case All():
                return All(self(formula.keys), self(formula.value))
            case Idx():
                return Idx(formula.lo, formula.hi, self(formula.value))
            case Items():
                return Items(self(formula.value), formula.n)
            case MemberRecord():
                values = tuple(map(self, formula.values))
                return record(formula.names, values, formula.required, self(formula.others), formula.declared)
        raise AssertionError(f"no reference can occur in {formula!r}")
