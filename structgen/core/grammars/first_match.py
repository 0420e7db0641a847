"""The texts that ``re.match`` takes whole: what a terminal means to Lark.

Lark's lexers ask ``re.match`` for the terminal's *first* match, by the order of alternatives and the greed of
repetitions, and its lexer ``dynamic_complete`` asks again for every shorter text. So ``/".*?"/`` never matches
``"a"b"``, although the expression as a language holds it, and ``/a|ab/`` never matches ``ab``. A text t can be a
terminal exactly if the first match on t is t itself (more text after t can only give way to longer matches).

The construction is the subset construction with *ordered* lists of threads that are cut at the first match (Pike's
virtual machine made deterministic), exponential in the worst case. Threads carry what lookaheads still ask for.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from structgen.core.kernels.automata.layout import BOL, EOL, LOOK, MATCH, SPLIT
from structgen.core.regex.charset import CharSet, complement, intersection, partition
from structgen.core.regex.dfa import Dfa, from_class_table
from structgen.core.regex.ecma_ast import Alternate, Anchor, Boundary, Chars, Concat, Look, Node, Repeat
from structgen.core.regex.nfa import Program
from structgen.core.regex.steps import Steps
from structgen.errors import TooComplexError

MAX_STATES = 2_000
MAX_STEPS = 3_000_000
"""Threads that are looked at in making an automaton; a few seconds."""
PAST = -1
"""The node of a match that lies after and that a lookahead may still undo."""

END = 0
"""The number of the set without characters; in a demand it stands for the end of the text."""
MAX_RUNS = 500

# A run of sets that the following characters must be in (False) or must not be in (True).
Demand: TypeAlias = tuple[bool, tuple[int, ...]]
Thread: TypeAlias = tuple[int, tuple[Demand, ...]]


class LazyRepeat(Repeat):
    """A repetition that prefers fewer rounds."""

    __slots__ = ()


class NotSupportedError(Exception):
    """A lookaround that is not made of runs of characters."""


def first_match_dfa(node: Node, max_states: int = MAX_STATES) -> tuple[Dfa, bool] | None:
    """The texts that the first match of an expression takes whole; None if that cannot be told.

    With it: whether a lookaround or anchor may see beyond the text, where ``re.match`` would see what is around it.

    It cannot for lookbehinds of more than one character, lookaheads that are no choice of runs of characters (or, if
    they are positive, no single run), and beyond ``max_states``.
    Lookarounds see no further than the text itself.
    """
    program = OrderedProgram(8 * max_states)
    try:
        start = program.emit(node, program.add(MATCH, 0, 0))
        threads = OrderedThreads(program)
        dfa = threads.dfa(start, max_states)
        return None if dfa is None else (dfa, threads.has_lookbehind or threads.looks_ahead)
    except (NotSupportedError, TooComplexError):
        return None


@dataclass(slots=True)
class OrderedProgram(Program):
    """A program whose SPLIT nodes name the preferred way first."""

    conditions: list[tuple[bool, bool, tuple[int, ...]]] = field(default_factory=list)  # after, negative, sets
    exits: dict[int, int] = field(default_factory=dict)  # where a loop's node leads when a round took no character

    def __post_init__(self) -> None:
        self.sets[()] = END

    def emit(self, node: Node, following: int) -> int:
        """Append nodes that match ``node``."""
        if isinstance(node, Boundary):
            node = node.as_lookarounds()
        if not isinstance(node, Look):
            return Program.emit(self, node, following)
        runs = self._runs(node.body)
        if (len(runs) != 1 and not node.negative) or not all(runs):
            raise NotSupportedError
        if node.lookbehind and any(len(run) > 1 or run[0] == END for run in runs):
            raise NotSupportedError
        for run in runs:  # none of them, or the only one
            self.conditions.append((node.lookbehind, node.negative, run))
            following = self.add(LOOK, len(self.conditions) - 1, following)
        return following

    def _runs(self, node: Node) -> list[tuple[int, ...]]:
        """The runs of sets, perhaps with the end of the text after them, of which ``node`` is the choice."""
        if isinstance(node, Chars) and node.charset:
            return [(self.sets.setdefault(node.charset, len(self.sets)),)]
        if isinstance(node, Anchor) and node.at_end:
            return [(END,)]
        if isinstance(node, Look) and not node.lookbehind and node.negative and isinstance(node.body, Chars):
            return self._runs(Alternate((Chars(complement(node.body.charset)), Anchor(True))))
        if isinstance(node, Look) and not node.lookbehind and not node.negative:  # (Python's $ is one)
            runs = self._runs(node.body)
            if not all(END in run for run in runs):
                raise NotSupportedError
            return runs
        if isinstance(node, Alternate):
            return [run for option in node.options for run in self._runs(option)]
        if not isinstance(node, Concat):
            raise NotSupportedError
        runs = [()]
        for number, part in enumerate(node.parts):
            if isinstance(part, Boundary) and number and not part.negative:  # "word\\b"
                part = self._end_of_word(part, runs)
            if any(END in run for run in runs):
                raise NotSupportedError
            runs = [(*run, *more) for run in runs for more in self._runs(part)]
            if len(runs) > MAX_RUNS:
                raise NotSupportedError
        return runs

    def _end_of_word(self, boundary: Boundary, runs: list[tuple[int, ...]]) -> Look:
        """A boundary after runs that end with characters of words."""
        sets = list(self.sets)
        if any(not run or intersection(sets[run[-1]], boundary.word) != sets[run[-1]] for run in runs):
            raise NotSupportedError
        return Look(Chars(boundary.word), False, True)

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
        return self.emit_copies(node, entry)


class OrderedThreads:
    """Ordered lists of threads as states."""

    def __init__(self, program: OrderedProgram) -> None:
        self._nodes = program.nodes
        self._conditions = program.conditions
        self._exits = program.exits
        self.has_lookbehind = self.looks_ahead = False
        self.steps = Steps(MAX_STEPS, "the automaton of the first match takes more than {} steps to make")
        sets: list[CharSet] = list(program.sets)
        self.segments, self.masks = partition(sets)
        self._known: dict[tuple[Demand, ...], tuple[Demand, ...]] = {}  # what `_needed` found

    def dfa(self, start: int, max_states: int) -> Dfa | None:
        """The automaton of the texts that the first match takes whole; None beyond ``max_states``."""
        first = self.close([(start, ())], None)
        numbers = {first: 0}
        states = [first]
        transitions, accepting = [], []
        for state in states:
            accepting.append(self.accepts(state))
            targets = []
            for mask in self.masks:
                target = self.step(state, mask)
                if not target:
                    targets.append(-1)
                    continue
                targets.append(numbers.setdefault(target, len(states)))
                if targets[-1] == len(states):
                    if len(states) >= max_states:
                        return None
                    states.append(target)
            transitions.append(targets)
        table = np.array(transitions, np.int32).reshape(len(transitions), len(self.masks))
        return from_class_table(table, np.array(accepting, np.uint8), self.segments, 8 * max_states)

    def is_match(self, node: int) -> bool:
        """Whether a thread has matched just here."""
        return node != PAST and self._nodes[node][0] == MATCH

    def char(self, node: int) -> tuple[int, int]:
        """The set that a thread's node reads, and the node after it."""
        _, charset, following = self._nodes[node]
        return charset, following

    def accepts(self, state: tuple[Thread, ...]) -> bool:
        """Whether the first match takes the whole text, if it ends here."""
        return any(self.is_match(node) and met(demands) for node, demands in state)

    def mask_of(self, character: int) -> int:
        """The sets that hold a character, as bits."""
        index = bisect_right(self.segments, character, key=lambda segment: segment[0]) - 1
        return self.masks[self.segments[index][2]]

    def step(self, state: tuple[Thread, ...], mask: int) -> tuple[Thread, ...]:
        """The state after a character of the class that lies in the sets of ``mask``."""
        self.steps.spend(1 + len(state))
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
        threads: list[Thread] = []
        stack = raw[::-1]
        while stack:
            thread = stack.pop()
            node, demands = thread
            if thread in seen:
                if node in self._exits:
                    stack.append((self._exits[node], demands))
                continue
            seen.add(thread)
            self.steps.spend(1 + len(demands))
            op, x, y = self._nodes[node] if node >= 0 else (MATCH, 0, 0)
            if op == SPLIT:
                stack += [(y, demands), (x, demands)]
            elif op == BOL:
                self.has_lookbehind |= before is None
                stack += [(y, demands)] if before is None else []
            elif op == EOL:
                stack.append((y, _with(demands, (False, (END,)))))
            elif op == LOOK:
                lookbehind, negative, sets = self._conditions[x]
                self.has_lookbehind |= lookbehind and before is None
                if not lookbehind:
                    stack.append((y, _with(demands, (negative, sets))))
                elif (before is not None and before >> sets[0] & 1 == 1) is not negative:
                    stack.append((y, demands))
            else:
                if op == MATCH and demands:
                    if demands not in self._known:
                        self._known[demands] = self._needed(demands)
                    demands = self._known[demands]
                threads.append((node, demands))
                if op == MATCH and not demands:
                    break
                self.looks_ahead |= op == MATCH
        return tuple(threads)

    def _needed(self, demands: tuple[Demand, ...]) -> tuple[Demand, ...]:
        """Demands without the runs that cannot begin, as those on the next character stand."""
        single = [(negative, run[0]) for negative, run in demands if len(run) == 1]
        allowed = [
            mask for mask in self.masks if all((mask >> first & 1 == 0) is negative for negative, first in single)
        ]
        return tuple(
            (negative, run)
            for negative, run in demands
            if len(run) == 1 or not negative or any(mask >> run[0] & 1 for mask in allowed)
        )


def _with(demands: tuple[Demand, ...], demand: Demand) -> tuple[Demand, ...]:
    return demands if demand in demands else tuple(sorted((*demands, demand)))


def met(demands: tuple[Demand, ...]) -> bool:
    """Whether the demands hold where the text ends."""
    return all(negative is (run[0] != END) for negative, run in demands)


def after(demands: tuple[Demand, ...], mask: int) -> tuple[Demand, ...] | None:
    """What is left to ask after a character; None if it breaks a demand."""
    left: list[Demand] = []
    for negative, sets in demands:
        inside = mask >> sets[0] & 1 == 1
        if inside and len(sets) > 1:
            left.append((negative, sets[1:]))
        elif inside is negative:
            return None
    return tuple(sorted(set(left)))
