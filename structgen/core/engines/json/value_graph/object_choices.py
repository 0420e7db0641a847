"""Products of choices over object literals, pruned by what is already known of each key.

``oneOf`` over objects means each branch and none of the others, and the negation of a branch is a choice among all its
properties: multiplied out naively, a handful of branches are millions of conjunctions. Most fall away by two tests on
a single key: what a choice asks of the key contradicts, or already follows from, what the conjunction says of it.
So choices are made one at a time, and after each those that have become certain are drawn (unit propagation).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from structgen.core.json_schema.budget import StepBudget
from structgen.core.json_schema.formula.language import (
    FALSE,
    TRUE,
    All,
    And,
    Enum,
    Formula,
    Not,
    and_,
    not_,
    or_,
    unordered,
)

Conjunction = tuple[Formula, ...]


class ObjectChoices:
    """Joins conjunctions of object literals. ``possible(f)``: whether some value may satisfy f (False is certain)."""

    def __init__(self, possible: Callable[[Formula], bool], budget: StepBudget) -> None:
        self._possible = possible
        self._budget = budget

    def product(self, literals: Iterable[Formula], choices: Sequence[Sequence[Conjunction]]) -> Iterator[Conjunction]:
        """Conjunctions whose disjunction is ``literals`` and one alternative of each choice. May repeat itself."""
        classes_first = sorted(literals, key=lambda literal: about_key(literal)[0] is not None)
        side = self._join((), tuple(classes_first))
        if side is not None:
            yield from self._search(side, choices)

    def _search(self, side: Conjunction, choices: Sequence[Sequence[Conjunction]]) -> Iterator[Conjunction]:
        before = None
        while before is not side:
            before, remaining = side, []
            for choice in choices:
                options = [joined for other in choice if (joined := self._join(side, other)) is not None]
                if any(option is side for option in options):
                    continue
                if not options:
                    return
                if len(options) == 1:
                    side = options[0]
                else:
                    remaining.append((choice, options))
            choices = [choice for choice, _ in remaining]
        if not remaining:
            yield side
            return
        narrow, options = min(remaining, key=lambda entry: len(entry[1]))
        others = [choice for choice in choices if choice is not narrow]
        for option in options:
            yield from self._search(option, others)

    def _join(self, side: Conjunction, other: Conjunction) -> Conjunction | None:
        """Both, None if that is impossible; ``side`` itself if the other follows from it."""
        result = dict.fromkeys(side)
        self._budget.spend(1 + len(side) // 8)
        for literal in other:
            if literal in result:
                continue
            self._budget.spend(1 + len(result) // 8)
            if literal.negation in result:
                return None
            name, value = about_key(literal)
            if name is None:
                result[literal] = None
            elif value is None:
                if not self._possible(known(result, name)):
                    return None
                result[literal] = None
            elif not self._narrow(result, name, value):
                return None
        joined = tuple(result)
        return side if joined == side else joined

    def _narrow(self, result: dict[Formula, None], name: str, value: Formula) -> bool:
        """Add that the member ``name`` satisfies ``value``; whether that leaves anything."""
        context = known(result, name)
        self._budget.spend(20 + 4 * len(context.args) if isinstance(context, And) else 20)
        if not self._possible(and_(context, value)):
            value = FALSE
            if not_(All(Enum([name]), FALSE)) in result:
                return False
        elif value is not FALSE and not self._possible(and_(context, not_(unordered(value)))):
            return True
        keys = Enum([name])
        for literal in result:
            if isinstance(literal, All) and literal.keys is keys:
                value = and_(literal.value, value)
                if value is literal.value:
                    return True
                del result[literal]
                break
        result[All(keys, value)] = None
        return True


def merged(alternatives: list[Conjunction], budget: StepBudget) -> list[Conjunction]:
    """Alternatives that differ in what they say of a single key as one, the choice left to the key's value. Exact.

    Linear in the literals of all alternatives, for as often as something was merged.
    """
    return _Merger(alternatives, budget).run() if len(alternatives) > 1 else alternatives


class _Alternative:
    """A conjunction, by the keys that it speaks of.

    Attributes:
        literals: of the conjunction, in order; ``members`` the same as a set.
        sums: of what it says of each key, the sum of its literals' hashes; ``whole`` is that of all literals. So what
            is said of the other keys is compared by a subtraction, and looked at only where that agrees.
    """

    __slots__ = ("literals", "members", "sums", "whole")

    def __init__(self, literals: Conjunction, abouts: dict[Formula, tuple[str | None, int]]) -> None:
        self.literals, self.members = literals, frozenset(literals)
        self.whole, self.sums = 0, dict[str, int]()
        for literal in self.members:
            about = abouts.get(literal)
            if about is None:
                about = abouts[literal] = (about_key(literal)[0], hash((literal.id, "literal")))
            name, number = about
            self.whole += number
            if name is not None:
                self.sums[name] = self.sums.get(name, 0) + number


class _Merger:
    """Alternatives by the set of their literals, and by the keys that they speak of."""

    def __init__(self, alternatives: Iterable[Conjunction], budget: StepBudget) -> None:
        self._budget = budget
        self._known: dict[Formula, tuple[str | None, int]] = {}  # of each literal its key and its hash
        self._current: dict[frozenset[Formula], _Alternative] = {}
        self._speaking: dict[str, dict[frozenset[Formula], _Alternative]] = {}
        for literals in alternatives:
            self._add(literals)

    def run(self) -> list[Conjunction]:
        """Merge until nothing differs in a single key."""
        before = len(self._current) + 1
        while 1 < len(self._current) < before:
            before = len(self._current)
            wholes = Counter([one.whole for one in self._current.values()])
            for name in list(self._speaking):
                for group in self._differing(name, wholes):
                    united = _united([one.literals for one in group], name)
                    for one in group:
                        self._remove(one)
                    wholes[self._add(united).whole] += 1
        return [one.literals for one in self._current.values()]

    def _add(self, literals: Conjunction) -> _Alternative:
        self._budget.spend(3 * len(literals))
        added = _Alternative(literals, self._known)
        self._current[added.members] = added
        for name in added.sums:
            self._speaking.setdefault(name, {})[added.members] = added
        return added

    def _remove(self, one: _Alternative) -> None:
        del self._current[one.members]
        for name in one.sums:
            del self._speaking[name][one.members]

    def _differing(self, name: str, wholes: Counter[int]) -> list[list[_Alternative]]:
        """Groups of alternatives that say the same of all keys but ``name``. ``wholes``: those that there may be."""
        speaking = self._speaking[name].values()
        self._budget.spend(3 * len(speaking))
        remainders = [one.whole - one.sums[name] for one in speaking]
        count = Counter(remainders)
        groups: dict[frozenset[Formula], list[_Alternative]] = {}
        for one, remaining in zip(speaking, remainders, strict=True):
            if count[remaining] > 1 or remaining in wholes:
                self._budget.spend(3 * len(one.members))
                abouts = self._known
                said = frozenset([literal for literal in one.members if abouts[literal][0] != name])
                groups.setdefault(said, []).append(one)
        for said, group in groups.items():
            if said in self._current:
                group.append(self._current[said])  # says nothing of the key
        return [group for group in groups.values() if len(group) > 1]


def _united(group: list[Conjunction], name: str) -> Conjunction:
    if len(group) == 1:
        return group[0]
    absent = All(Enum([name]), FALSE)
    values = []
    required = True
    for literals in group:
        about = [literal for literal in literals if _key(literal) == name]
        required = required and not_(absent) in about
        values.append(and_(*[value for literal in about if (value := about_key(literal)[1]) is not None]))
    member = All(Enum([name]), or_(*values))
    remaining = tuple(literal for literal in group[0] if _key(literal) != name)
    return (*remaining, *([not_(absent)] if required else []), *([member] if member is not TRUE else []))


def _key(literal: Formula) -> str | None:
    return about_key(literal)[0]


def about_key(literal: Formula) -> tuple[str | None, Formula | None]:
    """(k, S) if the literal says that member k satisfies S, (k, None) if that k is present, else (None, None)."""
    atom = literal.arg if isinstance(literal, Not) else literal
    if isinstance(atom, All) and isinstance(atom.keys, Enum) and len(atom.keys.values) == 1:
        name = atom.keys.values[0]
        if isinstance(name, str):
            if atom is literal:
                return name, atom.value
            if atom.value is FALSE:
                return name, None
    return None, None


def known(literals: Iterable[Formula], name: str) -> Formula:
    """What follows for the member ``name`` from the literals that plainly speak of it."""
    values = []
    for literal in literals:
        if isinstance(literal, All):
            keys = literal.keys
            if isinstance(keys, Enum):
                if name in keys.members:
                    values.append(literal.value)
            elif keys is TRUE or (
                isinstance(keys, Not) and isinstance(keys.arg, Enum) and name not in keys.arg.members
            ):
                values.append(literal.value)
    return and_(*values)
