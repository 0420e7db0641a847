"""The pool: rows of all automata over bytes that grammars of one vocabulary use, shared between them.

A row is found by content, so two schemas with the same pattern, format or number bounds share its states and the mask
rows computed for them. The pool only grows; when it has outgrown ``masks.rows.MAX_POOL_BYTES``, a new one is started
for later grammars.
"""

from __future__ import annotations

import threading
from array import array
from bisect import bisect_right
from typing import Any

import numpy as np
import numpy.typing as npt

from structgen.core.engines.json.numbers.automaton import NumberAutomaton
from structgen.core.engines.json.numbers.values import symbols, value_counts
from structgen.core.engines.json.value_graph.objects import Undeclared
from structgen.core.engines.pages import zero_pages
from structgen.core.kernels.checks import calls as checks
from structgen.core.kernels.json.layout import ACCEPTING, LAZY, MANY, OTHER_SYMBOLS, SHORT_WORDS, UNIVERSAL
from structgen.core.kernels.tokens.calls import add_rows
from structgen.core.regex.dfa import Dfa, count_words, short_words, universal, words_everywhere
from structgen.core.regex.labelled import MANY_WORDS, reaching
from structgen.errors import InternalError

# Room for as many as a pool has before it is replaced, so that it hardly ever grows in the middle of a mask. What is
# not written to takes up no memory.
FIRST_STATES = 1 << 16
_DIGITS = range(0x30, 0x3A)
_DEAD_ROW = array("i", [-1] * 256)
# Room left for number states when a schema is compiled.
NUMBER_STATES = 2048
STATE_BYTES = 4 * (256 + 17)  # of the arrays
KNOWN_BYTES = 128  # where an automaton is found again
NUMBER_STATE_BYTES = 1_280  # of a state of a number automaton besides, most of it the automaton's own; measured


def class_words(classes: Undeclared) -> npt.NDArray[np.int64]:
    """How many keys of each class go on from each state, int64[states, classes], at most `MANY_WORDS`."""
    counts = []
    for label in range(1, len(classes.nodes) + 1):
        transitions, ends = classes.automaton.transitions, classes.automaton.labels == label
        live = reaching(transitions, ends)
        table = np.where((transitions >= 0) & live[transitions], transitions, -1).astype(np.int32)
        counts.append(np.where(live, count_words(Dfa(table, ends), MANY_WORDS), 0))
    return np.minimum(np.stack(counts, axis=1), MANY_WORDS)


class CheckedArrays:
    """Arrays of a pool that checks of tables read, kept alive after their addresses (``words``)."""

    __slots__ = ("_arrays", "words")

    def __init__(self, *arrays: npt.NDArray[np.int32]) -> None:
        self._arrays, self.words = arrays, checks.pool_words(*arrays)


class AutomatonPool:
    """Growing arrays, one entry a state (see `structgen.core.kernels.json`). Thread-safe.

    Attributes:
        transitions: int32[256 * n], next state or -1.
        flags, payload, words_left, loops: int32[n].
        wides: int32[2 * n], where characters beyond ASCII lead (`structgen.core.kernels.tokens.calls.add_rows`).
        safe: int64[n], text that may follow the state whatever it is (`core.kernels.json.string_slices`); 0: not known.
        slots: int32[2 * n], mask row of the state at place BODY and ESCAPE, or -1.
        counts: int32[2 * n], how many values (decoded strings, numbers by value) go on from the state, and how many of
            at most `SHORT_WORDS` code points; 0: not computed (`count_values`). At most `MANY`, and one more where that
            many go on from every state after it.
        symbols: int32[n], of number states: what to follow to meet every value (`numbers.values`).
        labels, narrow, states, class_words: int32[n], of the automaton that starts there
            (`structgen.core.kernels.checks`).
        checked: those arrays that checks of tables read.
        version: one int64 that changes when an array, or the mask rows, were replaced by a larger one.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.version = array("q", [0])
        self.count = 0
        self._known: dict[Any, int] = {}
        self.beginnings: dict[Any, Any] = {}  # of tables, by what value nodes are shared under (`tables.arrays`)
        self._starts: list[int] = []  # first states of the string automata, ascending
        self._number_of: dict[int, tuple[NumberAutomaton, int, dict[int, int]]] = {}
        self._allocate(FIRST_STATES)
        self.universal = self.add_dfa(universal())
        assert self.universal == UNIVERSAL

    @property
    def memory_bytes(self) -> int:
        """About what is in use: of the arrays, whose pages after the last state were not touched, and for automata."""
        return STATE_BYTES * self.count + KNOWN_BYTES * len(self._known) + NUMBER_STATE_BYTES * len(self._number_of)

    def add_dfa(self, dfa: Dfa) -> int:
        """The start state of a string automaton in the pool."""
        key = dfa.digest
        kept = self._known.get(key)
        if kept is not None:
            return kept
        with self.lock:
            if key in self._known:
                return self._known[key]
            base = self._room(len(dfa), NUMBER_STATES)
            flags = np.where(dfa.accepting, ACCEPTING, 0).astype(np.int32)
            self._write(base, dfa.transitions, flags)
            self._starts.append(base)
            self.labels[base], self.states[base] = checks.STRING_START + 1, len(dfa)
            self._known[key] = base
            return base

    def add_key_classes(self, classes: Undeclared) -> int:
        """The start state of an automaton for undeclared keys; its ``payload`` is the class."""
        automaton, labels = classes.automaton, classes.automaton.labels
        if len(automaton.words) != len(classes.nodes):
            raise InternalError(f"an automaton of {len(classes.nodes)} classes of keys has other labels")
        key = ("keys", len(labels), automaton.digest)
        kept = self._known.get(key)
        if kept is not None:
            return kept
        with self.lock:
            base = self._room(len(labels), NUMBER_STATES)
            flags = np.where(labels > 0, ACCEPTING, 0).astype(np.int32)
            self._write(base, automaton.transitions, flags)
            end = base + len(labels)
            self.payload[base:end] = labels
            words = automaton.words_left
            self.words_left[base:end] = np.where(words >= MANY_WORDS, -1, words)
            self.labels[base], self.states[base] = checks.CLASSES_START + len(classes.nodes), len(words)
            self.narrow[base] = automaton.is_narrow
            # There are at least as many states as classes: each class has a state of its own.
            self.class_words[base : base + len(classes.nodes)] = automaton.words
            self._known[key] = base
            return base

    def add_number(self, automaton: NumberAutomaton) -> int:
        """The start state of a number automaton; its rows are filled when a kernel asks (`fill_number`)."""
        kept = self._known.get(automaton)
        if kept is not None:
            return kept
        with self.lock:
            if automaton not in self._known:
                self._room(0, NUMBER_STATES)
                start = self._known[automaton] = self._number_state(automaton, automaton.start, {})
                self.labels[start], self.states[start] = checks.NUMBER_START + 1, 1
            return self._known[automaton]

    def is_number(self, state: int) -> bool:
        """Whether a state belongs to a number automaton."""
        return state in self._number_of

    def number_at(self, state: int) -> tuple[NumberAutomaton, int]:
        """The number automaton that a pool state belongs to, and its own number of the state."""
        automaton, local, _ = self._number_of[state]
        return automaton, local

    def fill_number(self, state: int, digits: int = 1) -> None:
        """Fill the rows of a number state, if they are lazy, and of those after it within tokens of so many digits."""
        with self.lock:
            layer = {state}
            for more in range(digits):
                next_layer: set[int] = set()
                for position in layer:
                    if self.flags[position] & LAZY:
                        self._fill_row(position)
                    if more + 1 < digits:
                        row = 256 * position
                        next_layer.update(self.transitions[row + _DIGITS.start : row + _DIGITS.stop].tolist())
                next_layer.discard(-1)
                layer = next_layer

    def count_values(self, state: int) -> None:
        """Fill the counts of a state: of a string automaton those of all its states, O(states × classes of bytes)."""
        with self.lock:
            if self.is_number(state):
                automaton, local = self.number_at(state)
                bits = 0
                for byte in symbols(automaton, local):
                    bits |= 1 << ((byte & 15) + (0 if 0x30 <= byte <= 0x39 else OTHER_SYMBOLS))
                self.symbols[state] = bits
                self.counts[2 * state : 2 * state + 2] = value_counts(automaton, local, MANY)
                return
            base = self._starts[bisect_right(self._starts, state) - 1]
            size = int(self.states[base])
            table = self.transitions[256 * base : 256 * (base + size)].reshape(size, 256)
            table = np.where(table >= 0, table - base, -1).astype(np.int32)
            dfa = Dfa(table, self.flags[base : base + size] & ACCEPTING != 0)
            counts = self.counts[2 * base : 2 * (base + size)].reshape(size, 2)
            counts[:, 1] = np.maximum(short_words(dfa, SHORT_WORDS, MANY), 1)
            counts[:, 0] = words_everywhere(dfa, MANY)

    def _fill_row(self, state: int) -> None:
        automaton, local, places = self._number_of[state]
        moves = automaton.row(local)
        if not moves and not self.flags[state] & ACCEPTING:
            raise InternalError("a number can be begun that cannot be finished")
        row = _DEAD_ROW[:]
        for byte, after in moves:
            target = places.get(after)
            row[byte] = self._number_state(automaton, after, places) if target is None else target
        self.transitions[256 * state : 256 * state + 256] = row
        self.flags[state] &= ~LAZY

    def _number_state(self, automaton: NumberAutomaton, local: int, places: dict[int, int]) -> int:
        state = places.get(local)
        if state is None:
            state = places[local] = self._room(1)
            self.flags[state] = LAZY | (ACCEPTING if automaton.accepting(local) else 0)
            self._number_of[state] = (automaton, local, places)
        return state

    def _write(self, base: int, transitions: npt.NDArray[np.int32], flags: npt.NDArray[np.int32]) -> None:
        end = base + len(flags)
        table = transitions
        if not (table.flags.c_contiguous and table.flags.writeable):
            table = np.array(table, np.int32, order="C")
        wrong = checks.check_automaton(table, (flags & ACCEPTING).astype(np.uint8))
        if wrong >= 0:
            raise InternalError(f"state {wrong} of an automaton leads nowhere")
        self.flags[base:end] = flags
        add_rows(table, base, self.transitions, self.flags, self.loops, self.wides)

    def _room(self, states: int, spare: int = 0) -> int:
        """Make room for ``states`` more states, and for some that come later; the first of them."""
        base = self.count
        if base + states + spare > len(self.flags):
            self._allocate(max(2 * len(self.flags), base + states + spare))
        self.count = base + states
        self.words_left[base : base + states] = -1
        self.slots[2 * base : 2 * (base + states)] = -1
        return base

    def _allocate(self, states: int) -> None:
        """Replace the arrays by larger ones; readers of the old ones stay right, since states never change meaning."""
        count = self.count
        new: dict[str, npt.NDArray[Any]] = {
            "transitions": zero_pages(256 * states, np.int32),
            "flags": np.zeros(states, np.int32),
            "payload": np.zeros(states, np.int32),
            "words_left": np.empty(states, np.int32),
            "loops": np.zeros(states, np.int32),
            "wides": np.zeros(2 * states, np.int32),
            "safe": np.zeros(states, np.int64),
            "slots": np.empty(2 * states, np.int32),
            "counts": np.zeros(2 * states, np.int32),
            "symbols": np.zeros(states, np.int32),
            "labels": np.zeros(states, np.int32),
            "narrow": np.zeros(states, np.int32),
            "states": np.zeros(states, np.int32),
            "class_words": np.zeros(states, np.int32),
        }
        for name, grown in new.items():
            width = len(grown) // states
            if count:
                grown[: width * count] = getattr(self, name)[: width * count]
            setattr(self, name, grown)
        self.checked = CheckedArrays(
            self.transitions, self.flags, self.payload, self.class_words, self.labels, self.narrow, self.states
        )
        self.version[0] += 1

    checked: CheckedArrays
    transitions: npt.NDArray[np.int32]
    flags: npt.NDArray[np.int32]
    payload: npt.NDArray[np.int32]
    words_left: npt.NDArray[np.int32]
    loops: npt.NDArray[np.int32]
    wides: npt.NDArray[np.int32]
    safe: npt.NDArray[np.int64]
    slots: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int32]
    symbols: npt.NDArray[np.int32]
    labels: npt.NDArray[np.int32]
    narrow: npt.NDArray[np.int32]
    states: npt.NDArray[np.int32]
    class_words: npt.NDArray[np.int32]
