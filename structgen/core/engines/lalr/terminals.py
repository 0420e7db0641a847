"""Terminals as ``re.match`` sees them: automata of ordered threads that tell, character by character, what has matched.

Unlike an automaton of a language they say where the *first* match of an expression ends, whatever follows, and when a
longer one that the expression prefers is still possible (Pike's virtual machine made deterministic; Cox, "Regular
Expression Matching: the Virtual Machine Approach", 2009).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from structgen.core.grammars.first_match import (
    PAST,
    NotSupportedError,
    OrderedProgram,
    OrderedThreads,
    Thread,
    after,
    met,
)
from structgen.core.kernels.automata.layout import MATCH
from structgen.core.kernels.lalr.layout import FINAL, PENDING_END
from structgen.core.regex.charset import EMPTY, CharSet
from structgen.core.regex.dfa import too_complex
from structgen.core.regex.ecma_ast import Node
from structgen.core.regex.steps import check_time
from structgen.errors import TooComplexError

MAX_STATES = 4_000
MAX_NODES = 100_000
ALIVE = 4
"""Flag of a state: some thread may still match."""

State = tuple[tuple[Thread, ...], frozenset[tuple[int, int]], bool]
"""Threads in order; of each keyword that the text still begins, its number and node; whether a match ends here."""


@dataclass(frozen=True, eq=False)
class TerminalAutomata:
    """Automata of all terminals of a grammar over classes of characters, numbered through.

    Attributes:
        segments: ``(first, last, class)`` of code points, ascending.
        transitions: int32[states, classes], ``state << 1 | promoted``; state 0 is dead.
        flags: int32[states], of FINAL, PENDING_END and ALIVE.
        keywords: int32[states], a number of ``keyword_sets``.
        starts: first state of each terminal.
        keyword_sets: ``(terminal, keywords)``: texts of a terminal that are also those of other ones; 0 is no keyword.
        masks: for each class, the sets of characters that hold it.
        words: for each terminal, those of the words it was made with that are texts of it.
    """

    segments: tuple[tuple[int, int, int], ...]
    transitions: npt.NDArray[np.int32]
    flags: npt.NDArray[np.int32]
    keywords: npt.NDArray[np.int32]
    starts: list[int]
    keyword_sets: list[tuple[int, frozenset[int]]]
    masks: list[int]
    words: dict[int, list[int]]
    classes: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", len(self.masks))


def terminal_automata(
    expressions: Sequence[Node | None],
    words: Mapping[int, Mapping[int, str]],
    distinguished: Sequence[CharSet] = (),
    absent: CharSet = EMPTY,
) -> TerminalAutomata:
    """The automata of terminals.

    Args:
        expressions: syntax trees; None for terminals without text of their own.
        words: for a terminal, the terminals that are words, and their texts: its text is retyped to one that it is.
        distinguished: sets of characters that must be classes of their own.
        absent: characters that no text holds.

    Raises:
        TerminalError: an expression looks at text before its beginning, or more than a character beyond its end; or
            more than ``MAX_STATES`` states for one terminal, or too many steps for all.
    """
    return _Builder(expressions, words, distinguished, absent).build()


class TerminalError(Exception):
    """What is wrong with a terminal, by its number: `tables`, which knows its name and place, raises the error of it.

    ``cause``: what was too much; None where the expression is not supported.
    """

    def __init__(self, number: int, message: str, cause: TooComplexError | None = None) -> None:
        self.number, self.message, self.cause = number, message, cause
        super().__init__(message)


@contextmanager
def _of_terminal(number: int) -> Iterator[None]:
    """Say of an automaton that is too large whose it is."""
    try:
        yield
    except TooComplexError as error:
        raise TerminalError(number, error.message, error) from None


class _Builder:
    """Collects the states of all terminals."""

    def __init__(
        self,
        expressions: Sequence[Node | None],
        words: Mapping[int, Mapping[int, str]],
        distinguished: Sequence[CharSet],
        absent: CharSet,
    ) -> None:
        program = OrderedProgram(MAX_NODES)
        self._starts: list[int] = []
        for number, node in enumerate(expressions):
            check_time()
            try:
                with _of_terminal(number):
                    self._starts.append(-1 if node is None else program.emit(node, program.add(MATCH, 0, 0)))
            except NotSupportedError:
                raise _refused(number, "has a lookaround that is not a plain sequence of characters") from None
        for charset in (*distinguished, absent) if absent else distinguished:
            program.sets.setdefault(charset, len(program.sets))
        self._program = program
        self._absent = 1 << program.sets[absent] if absent else 0
        self._threads = OrderedThreads(program)
        self._words = {number: self._words_of(number, texts) for number, texts in words.items()}
        self._rows: list[list[int]] = [[0] * len(self._threads.masks)]
        self._flags = [0]
        self._keywords = [0]
        self._keyword_sets: dict[tuple[int, frozenset[int]], int] = {(-1, frozenset()): 0}

    def _words_of(self, number: int, texts: Mapping[int, str]) -> list[int]:
        """The words that the first match of a terminal takes whole."""
        with _of_terminal(number):
            first = self._threads.close([(self._starts[number], ())], None)
            steps: dict[tuple[tuple[Thread, ...], int], tuple[Thread, ...]] = {}
            matching = []
            for word, text in texts.items():
                state = first
                for character in text:
                    mask = self._threads.mask_of(ord(character))
                    if (state, mask) not in steps:
                        steps[state, mask] = self._threads.step(state, mask)
                    state = steps[state, mask]
                if self._threads.accepts(state):
                    matching.append(word)
            return matching

    def build(self) -> TerminalAutomata:
        first = []
        for number, start in enumerate(self._starts):
            with _of_terminal(number):
                first.append(0 if start < 0 else self._automaton(number, start))
        return TerminalAutomata(
            tuple(self._threads.segments),
            np.array(self._rows, np.int32),
            np.array(self._flags, np.int32),
            np.array(self._keywords, np.int32),
            first,
            list(self._keyword_sets),
            self._threads.masks,
            self._words,
        )

    def _automaton(self, number: int, start: int) -> int:
        """Append the states of a terminal; the first one's number."""
        threads = self._threads
        threads.has_lookbehind = False
        words = frozenset((word, self._starts[word]) for word in self._words.get(number, ()))
        begin: State = (threads.close([(start, ())], None), words, False)
        if threads.has_lookbehind:
            raise _refused(number, "looks at text before its beginning (\\b, ^ or a lookbehind)")
        first = len(self._rows)
        numbers = {begin: first}
        states = [begin]
        self._append(number, begin)
        for state in states:
            row = self._rows[numbers[state]]
            entries: dict[int, int] = {}
            self._threads.steps.spend(len(threads.masks) // 8)
            relevant = self._relevant(state)
            for m, mask in enumerate(threads.masks):
                if mask & self._absent:
                    continue
                entry = entries.get(mask & relevant)
                if entry is None:
                    entry = entries[mask & relevant] = self._entry(number, state, mask, numbers, states)
                row[m] = entry
            if len(states) > MAX_STATES:
                raise too_complex(MAX_STATES, "the expression")
        return first

    def _relevant(self, state: State) -> int:
        """The sets that decide on what follows, as bits; those of all lookbehinds too."""
        bits = 0
        for node, demands in state[0]:
            for _, sets in demands:
                bits |= 1 << sets[0] if sets else 0
            if node != PAST and not self._threads.is_match(node):
                bits |= 1 << self._threads.char(node)[0]
        for _, node in state[1]:
            if not self._threads.is_match(node):
                bits |= 1 << self._threads.char(node)[0]
        for lookbehind, _, sets in self._program.conditions:
            bits |= 1 << sets[0] if lookbehind else 0
        return bits

    def _entry(self, number: int, state: State, mask: int, numbers: dict[State, int], states: list[State]) -> int:
        raw: list[Thread] = []
        promoted = False
        self._threads.steps.spend(1 + len(state[0]) + len(state[1]))
        for node, demands in state[0]:
            left = after(demands, mask)
            if left is None:
                continue
            if node == PAST or self._threads.is_match(node):
                promoted = True
                break
            charset, following = self._threads.char(node)
            if mask >> charset & 1:
                raw.append((following, left))
        closed = self._threads.close(raw, mask)
        final = bool(closed) and self._threads.is_match(closed[-1][0]) and not closed[-1][1]
        if any(self._threads.is_match(node) and any(len(sets) > 1 for _, sets in demands) for node, demands in closed):
            raise _refused(number, "looks more than one character beyond its end")
        promoted &= not final
        if not closed:
            return int(promoted)
        target: State = (closed[: len(closed) - final], self._following_words(state, mask), final)
        state_number = numbers.get(target)
        if state_number is None:
            state_number = numbers[target] = len(self._rows)
            states.append(target)
            self._append(number, target)
        return state_number << 1 | promoted

    def _following_words(self, state: State, mask: int) -> frozenset[tuple[int, int]]:
        moved = set()
        for word, node in state[1]:
            if not self._threads.is_match(node):
                charset, following = self._threads.char(node)
                if mask >> charset & 1:
                    moved.add((word, following))
        return frozenset(moved)

    def _append(self, number: int, state: State) -> None:
        threads, words, final = state
        ends = any(self._threads.is_match(node) and met(demands) for node, demands in threads)
        matched = frozenset(word for word, node in words if self._threads.is_match(node))
        self._rows.append([0] * len(self._threads.masks))
        self._flags.append(FINAL * final | PENDING_END * ends | ALIVE * bool(threads))
        keyword = (number, matched)
        self._keywords.append(self._keyword_sets.setdefault(keyword, len(self._keyword_sets)) if matched else 0)


def _refused(number: int, what: str) -> TerminalError:
    return TerminalError(number, what)
