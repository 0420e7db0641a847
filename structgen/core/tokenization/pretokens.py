"""Where a tokenizer cuts a text before it merges anything: its borders, one character after the other.

A tokenizer searches a text for an expression from left to right, and each first match (by the order of alternatives
and the greed of repetitions) is a *pretoken*. Several such steps may follow one another, each within the pieces of the
one before. Whether a pretoken ends somewhere is often known only later (``\\s+(?!\\S)``, ``'l`` before another ``l``).
So the automaton reads a text *with* its borders: before each character it is given whether there is one. A state is a
guess that can still come true; of all ways to set the borders of a whole text, exactly one is accepted.

While a pretoken is read, a state holds the ordered threads of Pike's machine. A border says that the match ends here:
then all threads of higher priority must come to nothing. They are kept, as *denied*, until they have. No border says
that the match here is not the first: threads of its priority and lower are dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from structgen.core.grammars.first_match import (
    NotSupportedError,
    OrderedProgram,
    OrderedThreads,
    Thread,
    after,
    met,
)
from structgen.core.kernels.automata.layout import BOL, MATCH
from structgen.core.regex.charset import CharSet, partition
from structgen.core.regex.ecma_ast import Node
from structgen.errors import StructgenError, TokenizerError

MAX_STATES = 20_000
MAX_NODES = 20_000
DEAD = -1


@dataclass(frozen=True)
class _Cut:
    """Where one step stands: threads of the pretoken, in order, and those that must come to nothing."""

    threads: tuple[Thread, ...]
    denied: frozenset[Thread] = frozenset()


State: TypeAlias = frozenset[tuple[_Cut, ...]]


@dataclass(frozen=True)
class Pretokens:
    """The automaton of the borders of texts. State 0 is that of the start, where the first character has no border.

    Attributes:
        firsts: int64[s], where segments of characters begin, ascending; ``classes``: int64[s], the class of each.
        steps: int32[n, 2, c], the state after a character, without a border before it and with one; -1: none.
        may_end: bool[n], whether the text may end.
    """

    firsts: NDArray[np.int64]
    classes: NDArray[np.int64]
    steps: NDArray[np.int32]
    may_end: NDArray[np.bool_]

    def classes_of(self, characters: NDArray[np.int64]) -> NDArray[np.int64]:
        """The class of each character (code points)."""
        return self.classes[np.searchsorted(self.firsts, characters, side="right") - 1]


def pretokens(patterns: Sequence[Node], unknown: CharSet = ()) -> Pretokens:
    """The automaton of steps that follow one another, each an expression that matches all of any text.

    Args:
        patterns: the expressions.
        unknown: characters that no text has.

    Raises:
        TokenizerError: an expression looks further than one character ahead or behind, leaves text out, matches the
            empty text, or the automaton is too large.
    """
    try:
        steps = [_Step(pattern) for pattern in patterns]
        return _explored(_Machine(steps, unknown))
    except NotSupportedError:
        raise TokenizerError(
            "The tokenizer cuts texts by an expression that looks back, or further ahead than a character. "
            "Canonical spelling is not to be had with it; leave spelling out"
        ) from None
    except StructgenError as error:
        if isinstance(error, TokenizerError):
            raise
        raise TokenizerError(f"The expression that the tokenizer cuts texts by cannot be used: {error}") from error


class _Step:
    """One expression as a machine that reads borders."""

    def __init__(self, pattern: Node) -> None:
        program = OrderedProgram(MAX_NODES)
        start = program.emit(pattern, program.add(MATCH, 0, 0))
        wide = any(preceding or len(row) > 1 for preceding, _, row in program.conditions)
        if wide or any(op == BOL for op, _, _ in program.nodes):
            raise NotSupportedError
        self._machine = OrderedThreads(program)
        self.sets: list[CharSet] = list(program.sets)
        self.start = _Cut(self._machine.close([(start, ())], 0))
        if any(self._machine.is_match(node) for node, _ in self.start.threads):
            raise TokenizerError("The tokenizer cuts texts by an expression that matches the empty text")

    def step(self, cut: _Cut, border: bool, mask: int) -> _Cut | None:
        """Where it stands after a character in the sets of ``mask``; None: it cannot be."""
        denied = self._denied(cut.denied, mask)
        if denied is None:
            return None
        ahead, matched = self._ahead(cut.threads, mask)
        if not border:
            threads = self._machine.close(ahead, mask)
            return _Cut(threads, denied) if threads else None
        more = self._closed_denied(ahead, mask) if matched else None
        threads = self._machine.close(self._ahead(self.start.threads, mask)[0], mask)
        return None if more is None or not threads else _Cut(threads, denied | more)

    def may_end(self, cut: _Cut) -> bool:
        """Whether a pretoken, and the text or piece, may end."""
        ends = [self._machine.is_match(node) and met(demands) for node, demands in cut.threads]
        return any(ends) and not any(self._machine.is_match(node) and met(demands) for node, demands in cut.denied)

    def _ahead(self, threads: Iterable[Thread], mask: int) -> tuple[list[Thread], bool]:
        """Threads before the first match that a character lets stand, moved over it, and whether there is one."""
        moved: list[Thread] = []
        for node, demands in threads:
            left = after(demands, mask)
            if left is None:
                continue
            if self._machine.is_match(node):
                return moved, True
            charset, following = self._machine.char(node)
            if mask >> charset & 1:
                moved.append((following, left))
        return moved, False

    def _denied(self, threads: Iterable[Thread], mask: int) -> frozenset[Thread] | None:
        """Threads that must come to nothing, after a character; None: one has matched."""
        moved: list[Thread] = []
        for thread in threads:
            result, matched = self._ahead([thread], mask)
            if matched:
                return None
            moved += result
        return self._closed_denied(moved, mask)

    def _closed_denied(self, moved: list[Thread], mask: int) -> frozenset[Thread] | None:
        closed = self._machine.close(moved, mask)
        if any(self._machine.is_match(node) and not demands for node, demands in closed):
            return None
        return frozenset(closed)


class _Machine:
    """Several steps as one."""

    def __init__(self, steps: Sequence[_Step], unknown: CharSet) -> None:
        self._steps = steps
        self.segments, joint = partition([*(charset for step in steps for charset in step.sets), unknown])
        self.masks: list[tuple[int, ...]] = []
        self.is_unknown: list[bool] = []
        for mask in joint:
            parts, shift = [], 0
            for step in steps:
                parts.append(mask >> shift & (1 << len(step.sets)) - 1)
                shift += len(step.sets)
            self.masks.append(tuple(parts))
            self.is_unknown.append(bool(mask >> shift & 1))
        self.start: State = frozenset([tuple(step.start for step in steps)])

    def after(self, state: State, border: bool, masks: tuple[int, ...]) -> State:
        """All that it may stand at."""
        places = self._with_border if border else self._without_border
        return frozenset(after for cuts in state for after in places(cuts, masks))

    def may_end(self, state: State) -> bool:
        """Whether the text may."""
        return any(all(step.may_end(cut) for step, cut in zip(self._steps, cuts, strict=True)) for cuts in state)

    def _without_border(self, cuts: tuple[_Cut, ...], masks: tuple[int, ...]) -> Iterator[tuple[_Cut, ...]]:
        moved = [step.step(cut, False, mask) for step, cut, mask in zip(self._steps, cuts, masks, strict=True)]
        if all(moved):
            yield tuple(cut for cut in moved if cut is not None)

    def _with_border(self, cuts: tuple[_Cut, ...], masks: tuple[int, ...]) -> Iterator[tuple[_Cut, ...]]:
        """The border is that of one step; those before it have none, and those after it begin in a new piece."""
        for number in range(len(self._steps)):
            moved: list[_Cut | None] = []
            for other, (step, cut, mask) in enumerate(zip(self._steps, cuts, masks, strict=True)):
                if other <= number:
                    moved.append(step.step(cut, other == number, mask))
                else:
                    moved.append(step.step(step.start, False, mask) if step.may_end(cut) else None)
            if all(moved):
                yield tuple(cut for cut in moved if cut is not None)


def _explored(machine: _Machine) -> Pretokens:
    """The table of all states from which some text can end."""
    numbers: dict[State, int] = {machine.start: 0}
    states = [machine.start]
    rows: list[list[list[int]]] = []
    for state in states:
        row: list[list[int]] = []
        for border in (False, True):
            row.append([])
            for masks, is_unknown in zip(machine.masks, machine.is_unknown, strict=True):
                target = frozenset() if is_unknown else machine.after(state, border, masks)
                if target and target not in numbers:
                    numbers[target] = len(states)
                    states.append(target)
                row[-1].append(numbers[target] if target else DEAD)
        rows.append(row)
        if len(states) > MAX_STATES:
            raise TokenizerError(f"The expression that the tokenizer cuts texts by needs more than {MAX_STATES} states")
    if any(target == DEAD and not unknown for target, unknown in zip(rows[0][0], machine.is_unknown, strict=True)):
        raise TokenizerError("The tokenizer cuts texts by an expression that leaves some text out")
    table = np.array(rows, np.int32)
    may_end = np.array([machine.may_end(state) for state in states])
    table[~_live(table, may_end)[table] | (table < 0)] = DEAD
    firsts, classes = ([segment[part] for segment in machine.segments] for part in (0, 2))
    return Pretokens(np.array(firsts, np.int64), np.array(classes, np.int64), table, may_end)


def _live(table: NDArray[np.int32], may_end: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """From which states a text can end."""
    live = may_end.copy()
    while True:
        reached = live | (live[table] & (table >= 0)).any(axis=(1, 2))
        if (reached == live).all():
            return live
        live = reached
