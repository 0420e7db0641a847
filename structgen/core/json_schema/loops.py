"""References that come back to themselves without descending into the value.

``{"anyOf": [{"$ref": "#"}, {"type": "null"}]}`` asks of a value whether it satisfies the same schema. Such schemas have
several meanings; the least one counts: nothing is valid unless it must be. Whether a value is valid under each of n
schemas that refer to each other are n truth values, and each is a monotone function of all. So rounds give the
least meaning: the first takes nothing for valid, and each puts in what the one before gave. n rounds are enough, and
fewer are if a round uses its own results. No path through the references is followed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import NoReturn

from structgen.core.json_schema.budget import StepBudget
from structgen.core.json_schema.formula.components import strong_components
from structgen.core.json_schema.formula.language import (
    FALSE,
    And,
    Formula,
    Not,
    One,
    Or,
    Ref,
    Unordered,
    and_,
    or_,
    unordered,
)
from structgen.core.json_schema.pointers import Pointer, pointer_text
from structgen.errors import UnresolvableReferenceError


def break_loops(refs: dict[Hashable, Formula], pointers: Mapping[Hashable, Pointer], budget: StepBudget) -> None:
    """Replace every formula of ``refs`` that leads back to itself in place by its least fixpoint.

    Raises:
        UnresolvableReferenceError: the fixpoint is FALSE (the reference leads only back to itself) or does not exist
            (the loop passes through a negation or oneOf).
        SchemaTooComplexError: it takes more steps than ``budget`` has.
    """
    edges = _edges(refs, budget)
    if not any(edges):
        return
    keys = list(refs)
    for loop in strong_components(edges, [True] * len(keys)):
        if len(loop) > 1 or loop[0] in edges[loop[0]]:
            formulas = {keys[number]: refs[keys[number]] for number in loop}
            for formula in formulas.values():
                for key in map(_base, _in_place(_not_monotone(formula, budget), budget)):
                    if key in formulas:
                        _refuse(key, pointers, "the path back to it passes through a negation or oneOf")
            solved = _Loop(formulas, budget).solution()
            for key, formula in solved.items():
                if formula is FALSE:
                    _refuse(key, pointers, "it leads only back to itself")
            refs.update(solved)


def _base(key: Hashable) -> Hashable:
    return key.key if isinstance(key, Unordered) else key


def _edges(refs: Mapping[Hashable, Formula], budget: StepBudget) -> list[list[int]]:
    """For each of ``refs``, by number, those that it refers to in place."""
    numbers = {key: number for number, key in enumerate(refs)}
    edges = []
    for formula in refs.values():
        bases = dict.fromkeys(_base(key) for key in _in_place([formula], budget))
        edges.append([numbers[key] for key in bases if key in numbers])
    return edges


def _in_place(formulas: Iterable[Formula], budget: StepBudget) -> Iterator[Hashable]:
    """Keys of references that speak of the same value as the formulas."""
    todo = list(dict.fromkeys(formulas))
    seen = set(todo)
    for node in todo:  # which grows
        if isinstance(node, Ref):
            yield node.key
        elif isinstance(node, (Not, And, Or, One)):
            inner = (node.arg,) if isinstance(node, Not) else node.args
            budget.spend(len(inner))
            new = [part for part in inner if part not in seen]
            seen.update(new)
            todo += new


def _not_monotone(formula: Formula, budget: StepBudget) -> list[Formula]:
    """The negations and "exactly one"s of a formula, outside of such."""
    todo, seen = [formula], {formula}
    outermost: list[Formula] = []
    for node in todo:  # which grows
        if isinstance(node, (And, Or)):
            budget.spend(len(node.args))
            new = [part for part in node.args if part not in seen]
            seen.update(new)
            todo += new
        elif isinstance(node, (Not, One)):
            outermost.append(node)
    return outermost


class _Loop:
    """Formulas that all refer to each other in place, by key, in an order in which mostly later ones refer to earlier.

    Formulas of which each is one of the other's alternatives are valid of the same values: they become one, so that
    the commonest loops, unions of unions, are solved by one round.
    """

    def __init__(self, formulas: dict[Hashable, Formula], budget: StepBudget) -> None:
        self._budget = budget
        self._leader = self._equals(formulas)
        parts: dict[Hashable, list[Formula]] = {}
        for key, formula in formulas.items():
            leader = self._leader[key]
            others = [part for part in _alternatives(formula) if self._leader.get(_referred(part)) != leader]
            parts.setdefault(leader, []).extend(others)
        self._formulas = {leader: or_(*others) for leader, others in parts.items()}
        self._known: dict[Hashable, Formula] = dict.fromkeys(self._formulas, FALSE)

    def _equals(self, formulas: dict[Hashable, Formula]) -> dict[Hashable, Hashable]:
        """For each key, the first of those whose formulas are alternatives of each other."""
        keys = list(formulas)
        numbers: dict[Hashable, int] = {key: number for number, key in enumerate(keys)}
        edges = [
            [numbers[key] for part in _alternatives(formula) if (key := _referred(part)) in numbers]
            for formula in formulas.values()
        ]
        self._budget.spend(sum(map(len, edges)))
        groups = strong_components(edges, [True] * len(keys))
        return {keys[number]: keys[group[0]] for group in groups for number in group}

    def solution(self) -> dict[Hashable, Formula]:
        """The least fixpoint."""
        changed, left = True, self._rounds()
        while changed and left:
            changed, left = False, left - 1
            for key, formula in self._formulas.items():
                # (what an own reference stands for adds nothing: the least x = f(x) is f(false))
                self._known[key], old = FALSE, self._known[key]
                new = self._known[key] = self._filled_in(formula, {})
                changed = changed or new is not old
        return {key: self._known[leader] for key, leader in self._leader.items()}

    def _rounds(self) -> int:
        """How many rounds are enough: a way without repetition has so many references to later formulas, at most."""
        pointer = {key: number for number, key in enumerate(self._formulas)}
        heads, tails = set(), set()
        for key, formula in self._formulas.items():
            for target in map(_base, _in_place([formula], self._budget)):
                other = self._leader.get(target, key)
                if pointer[other] > pointer[key]:
                    heads.add(other)
                    tails.add(key)
        return 1 + min(len(heads), len(tails))

    def _filled_in(self, formula: Formula, done: dict[Formula, Formula]) -> Formula:
        """``formula`` with what is known so far in place of references to the loop."""
        if isinstance(formula, Ref):
            leader = self._leader.get(_base(formula.key))
            if leader is None:
                return formula
            cached = self._known[leader]
            return unordered(cached) if isinstance(formula.key, Unordered) else cached
        if not isinstance(formula, (And, Or)):
            return formula
        result = done.get(formula)
        if result is None:
            parts = [self._filled_in(part, done) for part in formula.args]
            result = done[formula] = and_(*parts) if isinstance(formula, And) else or_(*parts)
            width = len(result.args) if isinstance(result, (And, Or)) else 1
            self._budget.spend(len(parts) + width)
        return result


def _alternatives(formula: Formula) -> tuple[Formula, ...]:
    return formula.args if isinstance(formula, Or) else (formula,)


def _referred(formula: Formula) -> Hashable:
    """The key of a reference; for any other formula, a key that no reference has."""
    return formula.key if isinstance(formula, Ref) else formula


def _refuse(key: Hashable, pointers: Mapping[Hashable, Pointer], why: str) -> NoReturn:
    pointer = pointers[key]
    hint = "Let the reference stand below properties, items or another keyword that descends into the value"
    message = f"the schema refers to itself without descending into the value: {why}"
    raise UnresolvableReferenceError(message, pointer=pointer_text(pointer), keyword="$ref", hint=hint)
