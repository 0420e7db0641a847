"""The texts that ``re.match`` takes whole: what a terminal means to Lark.

Lark's lexers ask ``re.match`` for the terminal's *first* match, by the order of alternatives and the greed of
repetitions, and its lexer ``dynamic_complete`` asks again for every shorter text. So ``/".*?"/`` never matches
``"a"b"``, although the expression as a language holds it, and ``/a|ab/`` never matches ``ab``. A text t can be a
terminal exactly if the first match on t is t itself (more text behind t can only give way to longer matches).

The construction is the subset construction with *ordered* lists of threads that are cut at the first match (Pike's
virtual machine made deterministic), exponential in the worst case. Threads carry what lookaheads still ask for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from structgen.automata.charset import CharSet, partition
from structgen.automata.dfa import Dfa, from_class_table
from structgen.automata.ecma_ast import Alternate, Boundary, Chars, Concat, Look, Node, Repeat
from structgen.automata.nfa import Program
from structgen.automata.subset_kernels import BOL, EOL, LOOK, MATCH, SPLIT
from structgen.errors import SchemaTooComplexError

MAX_STATES = 2_000
PAST = -1
"""The node of a match that lies behind and that a lookahead may still undo."""

# What the following characters must be (False) or must not be (True); without sets: no character may follow.
Demand: TypeAlias = tuple[bool, tuple[int, ...]]
Thread: TypeAlias = tuple[int, tuple[Demand, ...]]


class LazyRepeat(Repeat):
    """A repetition that prefers fewer rounds."""

    __slots__ = ()


class NotSupportedError(Exception):
    """A lookaround that is not one row of characters."""


def first_match_dfa(node: Node, max_states: int = MAX_STATES) -> tuple[Dfa, bool] | None:
    """The texts that the first match of an expression takes whole; None if that cannot be told.

    With it: whether a lookaround or anchor may see beyond the text, where ``re.match`` would see what is around it.

    It cannot for lookbehinds of more than one character, lookaheads of varying width, and beyond ``max_states``.
    Lookarounds see no further than the text itself.
    """
    program = OrderedProgram(8 * max_states)
    try:
        start = program.emit(node, program.add(MATCH, 0, 0))
        threads = OrderedThreads(program)
        dfa = threads.dfa(start, max_states)
        return None if dfa is None else (dfa, threads.looks_behind or threads.looks_ahead)
    except (NotSupportedError, SchemaTooComplexError):
        return None


@dataclass(slots=True)
class OrderedProgram(Program):
    """A program whose SPLIT nodes name the preferred way first."""

    conditions: list[tuple[bool, bool, tuple[int, ...]]] = field(default_factory=list)  # behind, negative, sets
    exits: dict[int, int] = field(default_factory=dict)  # where a loop's node leads when a round took no character

    def emit(self, node: Node, following: int) -> int:
        """Append nodes that match ``node``."""
        if isinstance(node, Boundary):
            node = node.as_lookarounds()
        if not isinstance(node, Look):
            return Program.emit(self, node, following)
        body = node.body
        if isinstance(body, Alternate) and node.negative:  # none of the options
            for option in body.options:
                following = self.emit(Look(option, node.behind, True), following)
            return following
        parts = body.parts if isinstance(body, Concat) else (body,)
        sets = tuple(self._set(part) for part in parts)
        if not sets or (node.behind and len(sets) > 1):
            raise NotSupportedError
        self.conditions.append((node.behind, node.negative, sets))
        return self.add(LOOK, len(self.conditions) - 1, following)

    def _set(self, node: Node) -> int:
        if not isinstance(node, Chars):
            raise NotSupportedError
        return self.sets.setdefault(node.charset, len(self.sets))

    def emit_repeat(self, node: Repeat, following: int) -> int:
        """Loops and nested options, as in ``Program``, but lazy ones prefer to leave."""
        lazy = isinstance(node, LazyRepeat)
        entry = following
        if node.high is None:
            entry = self.add(SPLIT, 0, following)
            self.exits[entry] = following
            body = self.emit(node.body, entry)
            self.nodes[entry] = (SPLIT, following, body) if lazy else (SPLIT, body, following)
        else:
            for _ in range(node.high - node.low):
                body = self.emit(node.body, entry)
                entry = self.add(SPLIT, following, body) if lazy else self.add(SPLIT, body, following)
        for _ in range(node.low):
            entry = self.emit(node.body, entry)
        return entry


class OrderedThreads:
    """Ordered lists of threads as states."""

    def __init__(self, program: OrderedProgram) -> None:
        self._nodes = program.nodes
        self._conditions = program.conditions
        self._exits = program.exits
        self.looks_behind = self.looks_ahead = False
        sets: list[CharSet] = list(program.sets)
        self.segments, self.masks = partition(sets)

    def dfa(self, start: int, max_states: int) -> Dfa | None:
        """The automaton of the texts that the first match takes whole; None beyond ``max_states``."""
        first = self.close([(start, ())], None)
        numbers = {first: 0}
        states = [first]
        rows, accepting = [], []
        for state in states:
            accepting.append(any(self.is_match(node) and met(d) for node, d in state))
            row = []
            for mask in self.masks:
                target = self._step(state, mask)
                if not target:
                    row.append(-1)
                    continue
                row.append(numbers.setdefault(target, len(states)))
                if row[-1] == len(states):
                    if len(states) >= max_states:
                        return None
                    states.append(target)
            rows.append(row)
        table = np.array(rows, np.int32).reshape(len(rows), len(self.masks))
        return from_class_table(table, np.array(accepting, np.uint8), self.segments, 8 * max_states)

    def is_match(self, node: int) -> bool:
        """Whether a thread has matched just here."""
        return node != PAST and self._nodes[node][0] == MATCH

    def char(self, node: int) -> tuple[int, int]:
        """The set that a thread's node reads, and the node behind it."""
        _, charset, following = self._nodes[node]
        return charset, following

    def _step(self, state: tuple[Thread, ...], mask: int) -> tuple[Thread, ...]:
        """The state behind a character of the class that lies in the sets of ``mask``."""
        raw: list[Thread] = []
        for node, demands in state:
            left = after(demands, mask)
            if left is None:
                continue
            if node == PAST or self.is_match(node):
                raw.append((PAST, left))
                if not left:
                    break
            elif mask >> self._nodes[node][1] & 1:
                raw.append((self._nodes[node][2], left))
        closed = self.close(raw, mask)
        return closed if any(node != PAST for node, _ in closed) else ()

    def close(self, raw: list[Thread], before: int | None) -> tuple[Thread, ...]:
        """Follow what takes no character, in order, up to the first match that nothing can undo."""
        seen: set[Thread] = set()
        found: list[Thread] = []
        stack = raw[::-1]
        while stack:
            thread = stack.pop()
            node, demands = thread
            if thread in seen:
                if node in self._exits:
                    stack.append((self._exits[node], demands))
                continue
            seen.add(thread)
            op, x, y = self._nodes[node] if node >= 0 else (MATCH, 0, 0)
            if op == SPLIT:
                stack += [(y, demands), (x, demands)]
            elif op == BOL:
                self.looks_behind |= before is None
                stack += [(y, demands)] if before is None else []
            elif op == EOL:
                stack.append((y, _with(demands, (True, ()))))
            elif op == LOOK:
                behind, negative, sets = self._conditions[x]
                self.looks_behind |= behind and before is None
                if not behind:
                    stack.append((y, _with(demands, (negative, sets))))
                elif (before is not None and before >> sets[0] & 1 == 1) is not negative:
                    stack.append((y, demands))
            else:
                found.append(thread)
                if op == MATCH and not demands:
                    break
                self.looks_ahead |= op == MATCH
        return tuple(found)


def _with(demands: tuple[Demand, ...], demand: Demand) -> tuple[Demand, ...]:
    return demands if demand in demands else tuple(sorted((*demands, demand)))


def met(demands: tuple[Demand, ...]) -> bool:
    """Whether the demands hold where the text ends."""
    return all(negative for negative, _ in demands)


def after(demands: tuple[Demand, ...], mask: int) -> tuple[Demand, ...] | None:
    """What is left to ask after a character; None if it breaks a demand."""
    left: list[Demand] = []
    for negative, sets in demands:
        inside = not sets or mask >> sets[0] & 1 == 1
        if inside and len(sets) > 1:
            left.append((negative, sets[1:]))
        elif inside is negative:
            return None
    return tuple(sorted(set(left)))
