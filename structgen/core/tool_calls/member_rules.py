"""Members one after the other as grammar rules: order, what is required, counted and conditional.

These are in the nonterminals: one for each place between members, with what matters of those before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from itertools import chain
from operator import or_
from typing import NamedTuple, Protocol

from structgen.core.engines.json.members import MemberValues, ObjectCase
from structgen.core.regex.dfa import Dfa
from structgen.core.tool_calls.grammar import GrammarBuilder


class MemberSymbols(Protocol):
    """How one member is written.

    Attributes:
        any_order: whether members may stand in any order.
        separator: the symbols between members.
    """

    @property
    def any_order(self) -> bool: ...

    @property
    def separator(self) -> tuple[int, ...]: ...

    def argument(self, name: str, values: MemberValues) -> tuple[int, ...] | None:
        """The symbols of a declared member; None if none of its values can be written."""

    def other(self, names: Dfa, values: MemberValues) -> tuple[int, ...] | None:
        """The symbols of a member with one of these names; None if it cannot be written."""

    def count_state(self) -> None:
        """Raise SchemaTooComplexError if there are too many places."""


class _State(NamedTuple):
    """What matters of the arguments before a place.

    Attributes:
        first: number of the first name that may follow, where arguments keep their order.
        there: names that are there, as far as others depend on them (all, in any order).
        declared: how many declared ones are there, as far as it matters.
        extra: how many others.
        met: existentials that declared ones meet.
        last: existentials that the last argument of a class of undeclared names meets, by class, where it meets some.
            Those before it do not count: it may have their name, and then it takes their place.
        begun: whether there is one, where something stands between them.
    """

    first: int = 0
    there: frozenset[str] = frozenset()
    declared: int = 0
    extra: int = 0
    met: int = 0
    last: frozenset[tuple[int, int]] = frozenset()
    begun: bool = False


Step = tuple[tuple[int, ...], _State]
"""The symbols of an argument, or none, and the state after it."""


class CaseRules:
    """The rules of one case."""

    def __init__(self, rules: MemberSymbols, case: ObjectCase) -> None:
        self._rules, self._case = rules, case
        self._names = list(case.members)
        self._any_order = rules.any_order
        self._relevant = set(self._names if self._any_order else chain(case.dependents, *case.dependents.values()))
        self._arguments = {
            name: [(symbols, bits) for values, bits in choices if (symbols := rules.argument(name, values)) is not None]
            for name, choices in case.members.items()
        }
        self._others = [
            (number, symbols, bits)
            for number, (dfa, choices) in enumerate(case.others)
            for values, bits in choices
            if (symbols := rules.other(dfa, values)) is not None
        ]

    def build(self, builder: GrammarBuilder, start: int) -> bool:
        """Add the rules below ``start``; whether any arguments can be written."""
        steps: dict[_State, list[Step]] = {}
        todo = [_State()]
        while todo:
            state = todo.pop()
            if state not in steps:
                self._rules.count_state()
                steps[state] = list(self._steps(state))
                todo += [after for _, after in steps[state]]
        ends = _ending(steps, {state for state in steps if self._may_end(state)})
        symbols = {state: builder.nonterminal("place") for state in steps if state in ends}
        for state, here in symbols.items():
            if self._may_end(state):
                builder.rule(here)
            for argument, after in steps[state]:
                if after in symbols:
                    builder.rule(here, *argument, symbols[after])
        if _State() in symbols:
            builder.rule(start, symbols[_State()])
        return _State() in symbols

    def _steps(self, state: _State) -> Iterator[Step]:
        separator = self._rules.separator
        for symbols, after in self._members(state):
            if separator and symbols:
                symbols = (*separator, *symbols) if state.begun else symbols
                after = after._replace(begun=True)
            yield symbols, after

    def _members(self, state: _State) -> Iterator[Step]:
        at_end = state.first == len(self._names)
        if not at_end or self._any_order:
            yield from self._declared(state)
        if (at_end or self._any_order) and self._has_room(state):
            extra = min(state.extra + 1, self._case.most or min(self._case.least, 1))
            for number, symbols, bits in self._others:
                last = {entry for entry in state.last if entry[0] != number} | ({(number, bits)} if bits else set())
                yield symbols, state._replace(extra=extra, last=frozenset(last))

    def _declared(self, state: _State) -> Iterator[Step]:
        if self._any_order:
            following = [(0, name) for name in self._names if name not in state.there]
        else:
            name = self._names[state.first]
            following = [(state.first + 1, name)]
            if name not in self._case.required:
                yield (), state._replace(first=state.first + 1)
        if not self._has_room(state):
            return
        limit = self._case.least if self._case.most is None else self._case.most
        for first, name in following:
            there = state.there | {name} if name in self._relevant else state.there
            for symbols, bits in self._arguments[name]:
                declared = min(state.declared + 1, limit)
                yield symbols, state._replace(first=first, there=there, declared=declared, met=state.met | bits)

    def _has_room(self, state: _State) -> bool:
        return self._case.most is None or state.declared + state.extra < self._case.most

    def _may_end(self, state: _State) -> bool:
        case = self._case
        whole = case.required <= state.there if self._any_order else state.first == len(self._names)
        # An argument that is not declared may come twice, and then the last counts: several may be one.
        enough = state.declared + min(state.extra, 1) >= case.least
        met = state.met | reduce(or_, (bits for _, bits in state.last), 0)
        is_met = met == (1 << case.existentials) - 1
        return (
            whole and enough and is_met and all(case.dependents.get(name, set()) <= state.there for name in state.there)
        )


def _ending(steps: dict[_State, list[Step]], ends: set[_State]) -> set[_State]:
    """The states from which one of ``ends`` is reached."""
    before: dict[_State, list[_State]] = {}
    for state, following in steps.items():
        for _, after in following:
            before.setdefault(after, []).append(state)
    todo = list(ends)
    while todo:
        fresh = set(before.get(todo.pop(), ())) - ends
        ends |= fresh
        todo += fresh
    return ends
