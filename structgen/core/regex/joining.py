"""Automata one after the other, side by side and repeated: what makes automata of automata.

Nondeterministic programs over bytes, determinised once. Expressions that are known as syntax trees are better joined
as trees (`structgen.core.regex.pattern`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from structgen.core.kernels.automata.calls import determinise
from structgen.core.kernels.automata.layout import CHAR, EOL, MATCH, SPLIT
from structgen.core.regex.dfa import (
    MAX_STATES,
    Dfa,
    distinct_columns,
    empty,
    from_strings,
    from_table,
    too_complex,
    universal,
)
from structgen.core.regex.nfa import NODES_PER_STATE
from structgen.errors import TooComplexError

MAX_STEPS = 2_000_000_000
"""Nodes that are looked at in making an automaton; a few seconds."""


def concatenation(parts: Sequence[Dfa], max_states: int = MAX_STATES) -> Dfa:
    """The texts that are a text of each part, one after the other.

    Raises:
        TooComplexError: the automaton would exceed ``max_states``.
    """
    if any(part.is_empty for part in parts):
        return empty()
    return repetition(parts[0], 1, 1, max_states) if len(parts) == 1 else _joined([tuple(parts)], max_states)


def alternation(options: Sequence[Dfa], max_states: int = MAX_STATES) -> Dfa:
    """The texts of any of the options. Raises as `concatenation`."""
    some = [(option,) for option in options if not option.is_empty]
    return _joined(some, max_states) if some else empty()


def repetition(body: Dfa, low: int, high: int | None, max_states: int = MAX_STATES) -> Dfa:
    """The texts that are ``low`` to ``high`` texts of the body (None: any number). Raises as `concatenation`."""
    if high == 0 or (body.is_empty and low == 0):
        return from_strings([""])
    if body.is_empty or (low, high) == (1, 1):
        return body
    program = _Program(max_states)
    entry = program.match
    if high is None:
        loop = program.add(SPLIT, 0, 0)
        program.nodes[loop] = (SPLIT, program.emit(body, loop), entry)
        entry = loop
    else:
        for _ in range(high - low):
            entry = program.split([program.emit(body, entry), program.match])
    for _ in range(low):
        entry = program.emit(body, entry)
    return program.determinised(entry)


def shortest_matches(dfa: Dfa) -> Dfa:
    """The texts none of whose beginnings is another one: what ends at the first place where it can."""
    if dfa.is_empty:
        return dfa
    transitions = dfa.transitions.copy()
    transitions[dfa.accepting] = -1
    return from_table(transitions, dfa.accepting.view(np.uint8).copy())


def with_any_ending(dfa: Dfa, at_least: int = 0) -> Dfa:
    """The texts that begin with one of the automaton's, and go on for ``at_least`` 0 or 1 characters. O(states)."""
    if dfa.is_empty:
        return dfa
    remaining = universal()
    begin, base = len(dfa), len(dfa) + 1  # of the rest: where it must go on, and its own states
    moved = np.where(remaining.transitions >= 0, remaining.transitions + base, -1)
    table = np.concatenate([dfa.transitions, moved[:1], moved]).astype(np.int32)
    ends = np.concatenate([dfa.accepting, np.zeros(1 + len(remaining), np.bool_)])
    into = np.where(ends)[0]
    part = table[:begin]
    part[np.isin(part, into)] = begin
    if dfa.accepting[0]:
        table[0] = moved[0]
    accepting = np.concatenate([np.zeros(begin, np.bool_), [at_least == 0], remaining.accepting])
    accepting[0] |= bool(dfa.accepting[0]) and at_least == 0
    return from_table(table, accepting.astype(np.uint8))


def _joined(options: Sequence[tuple[Dfa, ...]], max_states: int) -> Dfa:
    program = _Program(max_states)
    entries = []
    for parts in options:
        entry = program.match
        for part in reversed(parts):
            entry = program.emit(part, entry)
        entries.append(entry)
    return program.determinised(program.split(entries))


class _Program:
    """Nodes ``(op, x, y)`` over sets of bytes, written from the end to the start."""

    def __init__(self, max_states: int) -> None:
        self._max_states = max_states
        self._sets: dict[bytes, int] = {}
        self.nodes: list[tuple[int, int, int]] = []
        self.match = self.add(EOL, 0, self.add(MATCH, 0, 0))  # MATCH alone holds whatever follows

    def add(self, op: int, x: int, y: int) -> int:
        """Append a node and return its number."""
        if len(self.nodes) >= NODES_PER_STATE * self._max_states:
            raise too_complex(self._max_states, "the expression")
        self.nodes.append((op, x, y))
        return len(self.nodes) - 1

    def split(self, entries: Sequence[int]) -> int:
        """A node from which all of some go on."""
        entry_node = entries[-1]
        for entry in reversed(entries[:-1]):
            entry_node = self.add(SPLIT, entry, entry_node)
        return entry_node

    def emit(self, dfa: Dfa, following: int) -> int:
        """Append an automaton that goes on at ``following`` where its texts end; returns where it begins."""
        states = [self.add(SPLIT, 0, 0) for _ in range(len(dfa))]
        for state, row in enumerate(dfa.transitions):
            branches = [following] if dfa.accepting[state] else []
            for target in np.unique(row[row >= 0]).tolist():
                members = (row == target).tobytes()
                branches.append(self.add(CHAR, self._sets.setdefault(members, len(self._sets)), states[target]))
            entry_node = self.split(branches)
            self.nodes[states[state]] = (SPLIT, entry_node, entry_node)
        return states[0]

    def determinised(self, start: int) -> Dfa:
        """The automaton of what matches from ``start`` on."""
        members: npt.NDArray[np.uint8] = np.frombuffer(b"".join(self._sets), np.uint8).reshape(-1, 256)
        columns, classes = distinct_columns(members)
        table, accepting, count = determinise(
            np.array(self.nodes, np.int32), start, np.ascontiguousarray(columns), self._max_states, MAX_STEPS
        )
        if count == -1:
            raise too_complex(self._max_states, "the expression")
        if count < 0:
            raise TooComplexError(
                f"the automaton of the expression takes more than {MAX_STEPS} steps to make",
                budget="automaton steps",
                limit=MAX_STEPS,
            )
        return from_table(np.ascontiguousarray(table[:, classes]), accepting)
