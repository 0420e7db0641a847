"""Conditions that some item or some undeclared member must meet, spelled out where that is exact.

``contains``, and the negations of ``items``, ``additionalProperties`` and their like, ask for a witness. The machine
knows none, but often the rest of the conjunction decides: where every item that may stand at a place is a witness, the
number of items says it all; where none can be, there is nothing to look for; and few places are told apart one by one.
What is left over stays in the conjunction for its builder to refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from itertools import combinations, permutations, product
from math import perm

from structgen.formula.evaluate import evaluate
from structgen.formula.language import (
    FALSE,
    TRUE,
    UNIQ,
    All,
    Enum,
    Formula,
    Idx,
    Items,
    Keys,
    Not,
    and_,
    not_,
    unordered,
)
from structgen.machine.key_terms import named, string_atoms, truth
from structgen.machine.object_choices import Conjunction, about_key

MAX_POSITIONS = 16
"""Places of a tuple that are told apart for one condition."""
MAX_ORDERS = 120
"""Orders of the values of an enumeration that ``uniqueItems`` is spelled out into."""
MAX_OPTIONAL = 5
"""Optional members whose presence is told apart where some undeclared member must be present."""
MAX_ATOMS = 5
"""Patterns and formats of keys whose combinations are told apart."""

Possible = Callable[[Formula], bool]


# --- arrays ----------------------------------------------------------------------------------------------------------


class ArrayWitnesses:
    """The existential literals of one array conjunction as choices."""

    def __init__(self, literals: Conjunction, possible: Possible) -> None:
        self._possible = possible
        self._ranges = [literal for literal in literals if isinstance(literal, Idx)]
        ends = [
            literal.arg.n - 1
            for literal in literals
            if isinstance(literal, Not) and isinstance(literal.arg, Items) and literal.arg.value is TRUE
        ]
        self._most = min(ends, default=None)

    def choice(self, literal: Formula) -> list[Conjunction] | None:
        """Alternatives that say what ``literal`` says; None if that takes more than is known here."""
        atom = literal.arg if isinstance(literal, Not) else literal
        if isinstance(atom, Idx):
            return self._some(atom.lo, atom.hi, not_(unordered(atom.value)))
        if atom is UNIQ:
            return self._orders() if atom is literal else None
        assert isinstance(atom, Items)
        if atom is not literal:
            if atom.n == 1:
                return [(Idx(0, None, not_(unordered(atom.value))),)]
            return self._at_most(atom.n - 1, atom.value)
        return self._some(0, None, atom.value) if atom.n == 1 else self._at_least(atom.n, atom.value)

    def _segments(self, low: int, high: int | None) -> Iterator[tuple[int, int | None, Formula]]:
        """Runs of positions from ``low`` to ``high`` with the same condition on items, and the condition."""
        if self._most is not None:
            high = self._most if high is None else min(high, self._most)
        bounds = {low, *(bound for part in self._ranges for bound in (part.lo, part.hi) if bound is not None)}
        starts = sorted(bound for bound in bounds if low <= bound and (high is None or bound < high))
        ends: list[int | None] = [*starts[1:], high]
        for start, end in zip(starts, ends, strict=False):  # (no place at all: an end is left over)
            inside = [part.value for part in self._ranges if part.lo <= start and (part.hi is None or start < part.hi)]
            yield start, end, and_(*inside)

    def _witness(self, every: Formula, condition: Formula) -> bool | None:
        """Whether items that satisfy ``every`` satisfy the condition: all (True), none (False) or some (None)."""
        if not self._possible(and_(every, condition)):
            return False
        return None if self._possible(and_(every, not_(unordered(condition)))) else True

    def _some(self, low: int, high: int | None, condition: Formula) -> list[Conjunction] | None:
        found: list[Conjunction] = []
        for start, end, every in self._segments(low, high):
            witness = self._witness(every, condition)
            if witness:
                return [*found, (Items(TRUE, start + 1),)]
            if witness is None:
                if end is None or end - start > MAX_POSITIONS:
                    return None
                found += [(Items(TRUE, i + 1), Idx(i, i + 1, condition)) for i in range(start, end)]
        return found

    def _places(self, condition: Formula) -> tuple[dict[int, bool | None], int | None] | None:
        """Where witnesses can stand (True: any item there is one), and from where on all are. None: too many places."""
        places: dict[int, bool | None] = {}
        for start, end, every in self._segments(0, None):
            witness = self._witness(every, condition)
            if witness is False:
                continue
            if end is None and witness:
                return places, start
            if end is None or end - start > MAX_POSITIONS:
                return None
            places.update(dict.fromkeys(range(start, end), witness))
        return places, None

    def _at_least(self, n: int, condition: Formula) -> list[Conjunction] | None:
        found = self._places(condition)
        if found is None:
            return None
        places, rest = found
        if rest is not None:
            places.update(dict.fromkeys(range(rest, rest + n), True))
        return [
            (Items(TRUE, chosen[-1] + 1), *(Idx(i, i + 1, condition) for i in chosen if not places[i]))
            for chosen in combinations(places, n)
        ]

    def _at_most(self, n: int, condition: Formula) -> list[Conjunction] | None:
        known = self._places(condition)
        if known is None:
            return None
        places, rest = known
        if rest is not None:
            return None if places else [(not_(Items(TRUE, rest + n + 1)),)]
        otherwise = not_(unordered(condition))
        found: list[Conjunction] = []
        for exempt in combinations(places, min(n, len(places))):
            gaps = zip([0, *(place + 1 for place in exempt)], [*exempt, None], strict=True)
            found.append(tuple(part for low, high in gaps if (part := Idx(low, high, otherwise)) is not TRUE))
        return found

    def _orders(self) -> list[Conjunction] | None:
        """Distinct items out of a small enumeration: all orders of as many as there may be."""
        if self._most is not None and self._most < 2:
            return [()]
        segments = list(self._segments(0, None))
        values = segments[0][2]
        if len(segments) != 1 or not isinstance(values, Enum):
            return None
        length = len(values.values) if self._most is None else min(self._most, len(values.values))
        if perm(len(values.values), length) > MAX_ORDERS:
            return None
        end = not_(Items(TRUE, length + 1))
        return [
            (*(Idx(i, i + 1, Enum([value])) for i, value in enumerate(order)), end)
            for order in permutations(values.values, length)
        ]


def is_array_witness(literal: Formula) -> bool:
    """Whether the literal is none of those that an array builder takes as they are."""
    atom = literal.arg if isinstance(literal, Not) else literal
    return (
        atom is UNIQ
        or (isinstance(atom, Items) and atom.value is not TRUE)
        or (atom is not literal and isinstance(atom, Idx))
    )


# --- objects ---------------------------------------------------------------------------------------------------------


def is_member_witness(literal: Formula) -> bool:
    """Whether the literal asks for some member that it does not name."""
    return isinstance(literal, Not) and isinstance(literal.arg, All) and about_key(literal)[0] is None


class MemberWitnesses:
    """The existential literals of one object conjunction as choices."""

    def __init__(self, literals: Conjunction, possible: Possible, refs: Mapping[Hashable, Formula]) -> None:
        self._possible, self._refs = possible, refs
        self._rules = [literal for literal in literals if isinstance(literal, All)]
        self._required: dict[str, None] = {}
        names: dict[str, None] = {}
        for literal in literals:
            name, value = about_key(literal)
            if name is not None and value is None:
                self._required[name] = names[name] = None
            for atom in _alls(literal):
                names.update(dict.fromkeys(named(atom.keys)))
        self._names = names

    def choice(self, literal: Formula) -> list[Conjunction] | None:
        """Alternatives that say what ``literal`` says; None if that takes more than is known here."""
        assert isinstance(literal, Not) and isinstance(literal.arg, All)
        keys, condition = literal.arg.keys, not_(unordered(literal.arg.value))
        found: list[Conjunction] = []
        for name in self._names:
            if evaluate(keys, name, self._refs):
                every = and_(*[rule.value for rule in self._rules if evaluate(rule.keys, name, self._refs)])
                if self._possible(and_(every, condition)):
                    member = All(Enum([name]), condition)
                    present = not_(All(Enum([name]), FALSE))
                    found.append((present,) if member is TRUE else (present, member))
        others = self._others(keys, condition)
        return None if others is None else found + others

    def _others(self, keys: Formula, condition: Formula) -> list[Conjunction] | None:
        """The same for a witness that no literal names."""
        atoms = dict.fromkeys(atom for rule in (keys, *(r.keys for r in self._rules)) for atom in string_atoms(rule))
        if len(atoms) > MAX_ATOMS:
            return None
        all_are, some_may_be = True, False
        for signature in product((False, True), repeat=len(atoms)):
            facts = dict(zip(atoms, signature, strict=True))
            every = and_(*[rule.value for rule in self._rules if truth(rule.keys, facts)])
            if not self._possible(every):
                continue
            if not truth(keys, facts) or not self._possible(and_(every, condition)):
                all_are = False
                continue
            some_may_be = True
            all_are = all_are and not self._possible(and_(every, not_(unordered(condition))))
        if not some_may_be:
            return []
        return self._undeclared() if all_are else None

    def _undeclared(self) -> list[Conjunction] | None:
        """At least one member that no literal names: for each set of the named ones, more members than these."""
        optional = [name for name in self._names if name not in self._required and not self._is_absent(name)]
        if len(optional) > MAX_OPTIONAL:
            return None
        found: list[Conjunction] = []
        for chosen in product((False, True), repeat=len(optional)):
            absent = {name: All(Enum([name]), FALSE) for name in optional}
            literals = [not_(absent[n]) if there else absent[n] for n, there in zip(optional, chosen, strict=True)]
            found.append((*literals, Keys(len(self._required) + sum(chosen) + 1)))
        return found

    def _is_absent(self, name: str) -> bool:
        return any(rule.value is FALSE and evaluate(rule.keys, name, self._refs) for rule in self._rules)


def _alls(literal: Formula) -> Iterable[All]:
    atom = literal.arg if isinstance(literal, Not) else literal
    if isinstance(atom, All):
        return [atom]
    return [part for arg in getattr(atom, "args", ()) for part in _alls(arg)]
