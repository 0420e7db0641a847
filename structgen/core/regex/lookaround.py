"""Subset construction for programs with lookarounds, exact.

What is left to do for a text is a *goal*: a disjunction of branches ``(node, obligations)``: the program goes on at
``node`` while every obligation, itself a goal with a sign, holds for the rest of the text. A lookahead adds an
obligation; a lookbehind is tracked from the start of the text by a goal of its own that is restarted at every
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

Goal: TypeAlias = frozenset["Branch"]
Obligation: TypeAlias = tuple[bool, Goal]
Branch: TypeAlias = tuple[int, frozenset[Obligation]]
State: TypeAlias = tuple[bool, tuple[Goal, ...], Goal]

NOTHING: frozenset[Obligation] = frozenset()
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
    first: State = (True, (frozenset(),) * len(machine.behind), frozenset([(start, NOTHING)]))
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
        self.behind = [look for look in range(len(self.looks)) if self.looks[look].behind]
        self.steps = Steps(MAX_STEPS, "the lookarounds take more than {} steps to resolve")

    def accepts(self, state: State) -> bool:
        """Whether the text may end here."""
        place = _Place(self, state[0], True, state[1])
        return place.holds_at_end(state[2])

    def successors(self, state: State) -> Iterator[State]:
        """The state after one character of each class."""
        place = _Place(self, state[0], False, state[1])
        for mask in self.masks:
            behind = tuple(place.step(closed, mask) for closed in place.behind_goals)
            yield False, behind, place.advance(state[2], mask)


class _Place:
    """One position in the text: closes goals under ε-moves there and steps them over a character."""

    def __init__(self, machine: _Machine, at_start: bool, at_end: bool, behind: tuple[Goal, ...]) -> None:
        self.machine = machine
        self.at_start, self.at_end = at_start, at_end
        self.memo: dict[Goal, Goal] = {}
        self.stepped: dict[tuple[Goal, int], Goal] = {}
        self.behind: dict[int, Goal] = {}
        for look, goal in zip(machine.behind, behind, strict=True):
            restarted = goal | {(machine.looks[look].start, NOTHING)}
            self.behind[look] = self.close(restarted)
        self.behind_goals = list(self.behind.values())

    def close(self, goal: Goal) -> Goal:
        """All branches at CHAR and MATCH nodes that ε-moves reach."""
        closed = self.memo.get(goal)
        if closed is None:
            closed = self.memo[goal] = frozenset(self._reach(goal))
        return closed

    def _reach(self, goal: Iterable[Branch]) -> set[Branch]:
        nodes = self.machine.nodes
        seen: set[Branch] = set()
        found: set[Branch] = set()
        stack = list(goal)
        while stack:
            branch = stack.pop()
            if branch in seen:
                continue
            seen.add(branch)
            node, obligations = branch
            self.machine.steps.spend(1 + len(obligations))
            op, x, y = nodes[node]
            if op in (CHAR, MATCH):
                found.add(branch)
            elif op == SPLIT:
                stack += [(x, obligations), (y, obligations)]
            elif op in (BOL, EOL):
                if self.at_start if op == BOL else self.at_end:
                    stack.append((y, obligations))
            else:
                stack += [(y, obligations | extra) for extra in self._conditions(x)]
        return found

    def _conditions(self, look: int) -> list[frozenset[Obligation]]:
        """The obligations under which a lookaround holds here: any one of the sets."""
        kind = self.machine.looks[look]
        if not kind.behind:
            return [frozenset([(not kind.negative, frozenset([(kind.start, NOTHING)]))])]
        matches = [obligations for node, obligations in self.behind[look] if self.machine.nodes[node][0] == MATCH]
        if not kind.negative:
            return matches
        # Every match must fail, each by one of its obligations.
        if prod(map(len, matches)) > MAX_CHOICES:
            raise TooComplexError(
                f"a negative lookbehind can fail in more than {MAX_CHOICES} ways", budget="choices", limit=MAX_CHOICES
            )
        return [frozenset((not sign, goal) for sign, goal in choice) for choice in product(*matches)]

    def is_certain(self, closed: Goal) -> bool:
        """Whether a closed goal is met whatever follows."""
        return any(not obligations and self.machine.nodes[node][0] == MATCH for node, obligations in closed)

    def advance(self, goal: Goal, mask: int) -> Goal:
        """The goal after a character: closed, then stepped. A goal that is met stays met."""
        self.machine.steps.spend(1)
        closed = self.close(goal)
        key = (goal, mask)
        if key not in self.stepped:
            if self.is_certain(closed):
                match = next(n for n, obligations in closed if not obligations and self.machine.nodes[n][0] == MATCH)
                self.stepped[key] = frozenset([(match, NOTHING)])
            else:
                self.stepped[key] = self.step(closed, mask, keep_matches=True)
        return self.stepped[key]

    def step(self, closed: Goal, mask: int, keep_matches: bool = False) -> Goal:
        """A closed goal after a character of the sets in ``mask``; a lookbehind's matches end here."""
        nodes = self.machine.nodes
        result: set[Branch] = set()
        for node, obligations in closed:
            self.machine.steps.spend(1 + len(obligations))
            op, x, y = nodes[node]
            if op == CHAR:
                if not mask >> x & 1:
                    continue
            elif keep_matches:
                y = node
            else:
                continue
            left = self._step_obligations(obligations, mask)
            if left is not None:
                result.add((y, left))
        return _minimal(result)

    def _step_obligations(self, obligations: frozenset[Obligation], mask: int) -> frozenset[Obligation] | None:
        """What is still owed after the character; None if an obligation is broken."""
        left = []
        for sign, goal in obligations:
            certain = self.is_certain(self.close(goal))
            after = frozenset() if certain else self.advance(goal, mask)
            if certain or not after:
                if certain != sign:
                    return None
            else:
                left.append((sign, after))
        return frozenset(left)

    def holds_at_end(self, goal: Goal) -> bool:
        """Whether a goal is met by the text ending here."""
        return any(
            self.machine.nodes[node][0] == MATCH and all(self.holds_at_end(g) == sign for sign, g in obligations)
            for node, obligations in self.close(goal)
        )


def _minimal(branches: set[Branch]) -> Goal:
    """Without the branches that another one, at the same node with fewer obligations, implies."""
    free = {node for node, obligations in branches if not obligations}
    return frozenset(branch for branch in branches if not branch[1] or branch[0] not in free)
