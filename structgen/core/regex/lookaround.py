"""Subset construction for programs with lookarounds, exact.

What is left to do for a text is a disjunction of branches ``(node, assertions)``: the program goes on at
``node`` while every assertion, itself a disjunction with a sign, holds for the rest of the text. A lookahead adds an
assertion; a lookbehind is tracked from the start of the text by a disjunction of its own that is restarted at every
character. (This is an alternating automaton run by derivatives.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from math import prod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from structgen.core.kernels.automata.layout import BOL, CHAR, EOL, MATCH, SPLIT
from structgen.core.regex.dfa import too_complex
from structgen.core.regex.nfa import Program
from structgen.core.regex.steps import Steps
from structgen.errors import TooComplexError

Disjunction: TypeAlias = frozenset["Branch"]
Assertion: TypeAlias = tuple[bool, Disjunction]
Branch: TypeAlias = tuple[int, frozenset[Assertion]]
State: TypeAlias = tuple[bool, tuple[Disjunction, ...], Disjunction]

NOTHING: frozenset[Assertion] = frozenset()
MAX_STEPS = 1_000_000
"""Branches that are looked at; a few seconds."""
MAX_CHOICES = 10_000
"""Ways in which all matches of a lookbehind may fail."""


def determinise_lookarounds(
    program: Program, start: int, masks: Sequence[int], max_states: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    """The table over classes (class c is in set i where bit i of ``masks[c]`` is set) and the accepting flags.

    Exponential in the number of nodes in the worst case; raises TooComplexError beyond ``max_states``.
    """
    machine = _Machine(program, masks)
    first: State = (True, (frozenset(),) * len(machine.lookbehinds), frozenset([(start, NOTHING)]))
    index: dict[State, int] = {first: 0}
    order = [first]
    rows: list[list[int]] = []
    accepting: list[bool] = []
    for state in order:
        accepting.append(machine.accepts(state))
        row = []
        for target in machine.successors(state):
            if not target[2]:
                row.append(-1)
                continue
            number = index.setdefault(target, len(order))
            if number == len(order):
                if number >= max_states:
                    raise too_complex(max_states, "the expression")
                order.append(target)
            row.append(number)
        rows.append(row)
    return np.array(rows, np.int32).reshape(len(rows), len(masks)), np.array(accepting, np.uint8)


class _Machine:
    def __init__(self, program: Program, masks: Sequence[int]) -> None:
        self.nodes = program.nodes
        self.looks = program.looks
        self.masks = masks
        # Bodies are numbered before what contains them, so inner lookbehinds are known when outer ones are closed.
        self.lookbehinds = [look for look in range(len(self.looks)) if self.looks[look].lookbehind]
        self.steps = Steps(MAX_STEPS, "the lookarounds take more than {} steps to resolve")

    def accepts(self, state: State) -> bool:
        """Whether the text may end here."""
        here = _Place(self, state[0], True, state[1])
        return here.holds_at_end(state[2])

    def successors(self, state: State) -> Iterator[State]:
        """The state after one character of each class."""
        here = _Place(self, state[0], False, state[1])
        for mask in self.masks:
            lookbehinds = tuple(here.step(closed, mask) for closed in here.closed_lookbehinds)
            yield False, lookbehinds, here.advance(state[2], mask)


class _Place:
    """One position in the text: closes disjunctions under ε-moves there and steps them over a character."""

    def __init__(self, machine: _Machine, at_start: bool, at_end: bool, lookbehinds: tuple[Disjunction, ...]) -> None:
        self.machine = machine
        self.at_start, self.at_end = at_start, at_end
        self.memo: dict[Disjunction, Disjunction] = {}
        self.stepped: dict[tuple[Disjunction, int], Disjunction] = {}
        self.lookbehinds: dict[int, Disjunction] = {}
        for look, disjunction in zip(machine.lookbehinds, lookbehinds, strict=True):
            restarted = disjunction | {(machine.looks[look].start, NOTHING)}
            self.lookbehinds[look] = self.close(restarted)
        self.closed_lookbehinds = list(self.lookbehinds.values())

    def close(self, disjunction: Disjunction) -> Disjunction:
        """All branches at CHAR and MATCH nodes that ε-moves reach."""
        closed = self.memo.get(disjunction)
        if closed is None:
            closed = self.memo[disjunction] = frozenset(self._reach(disjunction))
        return closed

    def _reach(self, disjunction: Iterable[Branch]) -> set[Branch]:
        nodes = self.machine.nodes
        seen: set[Branch] = set()
        reached: set[Branch] = set()
        stack = list(disjunction)
        while stack:
            branch = stack.pop()
            if branch in seen:
                continue
            seen.add(branch)
            node, assertions = branch
            self.machine.steps.spend(1 + len(assertions))
            op, x, y = nodes[node]
            if op in (CHAR, MATCH):
                reached.add(branch)
            elif op == SPLIT:
                stack += [(x, assertions), (y, assertions)]
            elif op in (BOL, EOL):
                if self.at_start if op == BOL else self.at_end:
                    stack.append((y, assertions))
            else:
                stack += [(y, assertions | extra) for extra in self._conditions(x)]
        return reached

    def _conditions(self, look: int) -> list[frozenset[Assertion]]:
        """The assertions under which a lookaround holds here: any one of the sets."""
        kind = self.machine.looks[look]
        if not kind.lookbehind:
            return [frozenset([(not kind.negative, frozenset([(kind.start, NOTHING)]))])]
        matches = [assertions for node, assertions in self.lookbehinds[look] if self.machine.nodes[node][0] == MATCH]
        if not kind.negative:
            return matches
        # Every match must fail, each by one of its assertions.
        if prod(map(len, matches)) > MAX_CHOICES:
            raise TooComplexError(
                f"a negative lookbehind has more than {MAX_CHOICES} combinations that fail",
                budget="choices",
                limit=MAX_CHOICES,
            )
        return [frozenset((not sign, disjunction) for sign, disjunction in choice) for choice in product(*matches)]

    def is_certain(self, closed: Disjunction) -> bool:
        """Whether a closed disjunction is met whatever follows."""
        return any(not assertions and self.machine.nodes[node][0] == MATCH for node, assertions in closed)

    def advance(self, disjunction: Disjunction, mask: int) -> Disjunction:
        """The disjunction after a character: closed, then stepped. A disjunction that is met stays met."""
        self.machine.steps.spend(1)
        closed = self.close(disjunction)
        key = (disjunction, mask)
        if key not in self.stepped:
            if self.is_certain(closed):
                match = next(n for n, assertions in closed if not assertions and self.machine.nodes[n][0] == MATCH)
                self.stepped[key] = frozenset([(match, NOTHING)])
            else:
                self.stepped[key] = self.step(closed, mask, keep_matches=True)
        return self.stepped[key]

    def step(self, closed: Disjunction, mask: int, keep_matches: bool = False) -> Disjunction:
        """A closed disjunction after a character of the sets in ``mask``; a lookbehind's matches end here."""
        nodes = self.machine.nodes
        result: set[Branch] = set()
        for node, assertions in closed:
            self.machine.steps.spend(1 + len(assertions))
            op, x, y = nodes[node]
            if op == CHAR:
                if not mask >> x & 1:
                    continue
            elif keep_matches:
                y = node
            else:
                continue
            left = self._step_assertions(assertions, mask)
            if left is not None:
                result.add((y, left))
        return _minimal(result)

    def _step_assertions(self, assertions: frozenset[Assertion], mask: int) -> frozenset[Assertion] | None:
        """What is still owed after the character; None if an assertion is broken."""
        left = []
        for sign, disjunction in assertions:
            certain = self.is_certain(self.close(disjunction))
            after = frozenset() if certain else self.advance(disjunction, mask)
            if certain or not after:
                if certain != sign:
                    return None
            else:
                left.append((sign, after))
        return frozenset(left)

    def holds_at_end(self, disjunction: Disjunction) -> bool:
        """Whether a disjunction is met by the text ending here."""
        return any(
            self.machine.nodes[node][0] == MATCH and all(self.holds_at_end(g) == sign for sign, g in assertions)
            for node, assertions in self.close(disjunction)
        )


def _minimal(branches: set[Branch]) -> Disjunction:
    """Without the branches that another one, at the same node with fewer assertions, implies."""
    free = {node for node, assertions in branches if not assertions}
    return frozenset(branch for branch in branches if not branch[1] or branch[0] not in free)
