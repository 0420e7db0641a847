"""Automata that tell classes of texts apart: a state in which a text of a class ends bears the class's number."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from structgen.core.kernels.automata import calls
from structgen.core.regex.dfa import (
    MAX_STATES,
    Dfa,
    Table,
    count_words,
    first_places,
    from_strings,
    from_table,
    narrowed,
    product,
    universal,
)
from structgen.core.regex.dfa_cache import keeps_automata

MANY_WORDS = 1 << 30
"""A number of texts that no value could hold; stands for endlessly many too."""


@dataclass(frozen=True, eq=False)
class LabelledDfa:
    """A trim, minimal automaton over bytes: a text that ends in ``state`` is of the class ``labels[state]``, from 1 on;
    0: of none. No states if no text is of any class. Make one with `labelled`."""

    transitions: Table
    labels: Table

    @cached_property
    def accepting(self) -> npt.NDArray[np.bool_]:
        """Which states end a text of some class."""
        return self.labels > 0

    @cached_property
    def digest(self) -> bytes:
        """16 bytes that tell automata apart."""
        digest = hashlib.blake2b(self.labels.tobytes(), digest_size=16)
        digest.update(narrowed(self.transitions).tobytes())
        return digest.digest()

    @cached_property
    def words_left(self) -> npt.NDArray[np.int64]:
        """How many texts of any class go on from each state, at most `MANY_WORDS`."""
        return count_words(Dfa(self.transitions, self.accepting), MANY_WORDS)

    @cached_property
    def words(self) -> list[int]:
        """How many texts each class has, at most `MANY_WORDS`."""
        count = int(self.labels.max(initial=0))
        if count == 1:
            return [int(self.words_left[0])]
        parts = (self.of_class(label) for label in range(1, count + 1))
        return [0 if part.is_empty else int(count_words(part, MANY_WORDS)[0]) for part in parts]

    @property
    def is_narrow(self) -> bool:
        """Whether there are beginnings that only finitely many texts have."""
        return bool((self.words_left < MANY_WORDS).any())

    def of_class(self, label: int) -> Dfa:
        """The texts of one class."""
        return from_table(self.transitions, (self.labels == label).astype(np.uint8))

    def class_of(self, text: str) -> int:
        """The class of a text (0: none). O(bytes)."""
        state, item = 0, self.transitions.item
        if not len(self.labels):
            return 0
        for byte in text.encode("utf-8", "surrogatepass"):
            state = item(state, byte)
            if state < 0:
                return 0
        return int(self.labels[state])

    def texts(self) -> Iterator[tuple[str, int]]:
        """All texts, which must be finitely many, with their classes."""
        stack = [(0, b"")] if len(self.labels) else []
        while stack:
            state, text = stack.pop()
            if self.labels[state]:
                yield text.decode(), int(self.labels[state])
            for byte in np.flatnonzero(self.transitions[state] >= 0).tolist():
                stack.append((int(self.transitions[state, byte]), text + bytes([byte])))

    def renamed(self, classes: Sequence[int]) -> LabelledDfa:
        """With ``classes[label]`` for each label; 0 takes a class out."""
        names = np.array(classes, np.int32)
        return self if (names == np.arange(len(names))).all() else labelled(self.transitions, names[self.labels])

    def without(self, texts: Iterable[str], max_states: int) -> LabelledDfa:
        """Some texts taken out. Raises TooComplexError beyond ``max_states``."""
        digits = range(int(self.labels.max(initial=0)).bit_length())  # automata side by side tell yes from no only
        parts = [from_table(self.transitions, (self.labels >> i & 1).astype(np.uint8)) for i in digits]
        table, bits = product([*parts, from_strings(texts, max_states)], max_states)
        taken = bits >> np.uint64(len(parts)) & np.uint64(1)
        kept = np.where((taken == 0) & valid_ends(table), bits & np.uint64((1 << len(parts)) - 1), np.uint64(0))
        return labelled(table, kept.astype(np.int32))


def labelled(table: Table, labels: Table) -> LabelledDfa:
    """The trim, minimal automaton of a byte table (−1: none, start 0) with a class for each state. O(n k log(n k)).

    A class is spelled as what may follow its texts: a column for each binary digit, which leads to the only end.
    """
    classes, count = calls.column_classes(table)
    states, digits = len(labels), int(labels.max(initial=0)).bit_length()
    wide = np.full((states + 1, count + digits), -1, np.int32)
    wide[:states, :count] = table[:, first_places(classes, count)]
    for digit in range(digits):
        wide[:states, count + digit][labels >> digit & 1 > 0] = states
    ends = np.zeros(states + 1, np.uint8)
    ends[states] = 1
    small, ends = calls.minimise(wide, ends)
    if not len(small):
        return LabelledDfa(np.zeros((0, 256), np.int32), np.zeros(0, np.int32))
    end = int(ends.argmax())
    rows = np.delete(small, end, axis=0)
    result = np.zeros(len(rows), np.int32)
    for digit in range(digits):
        result |= (rows[:, count + digit] >= 0).astype(np.int32) << digit
    rows[rows > end] -= 1
    return LabelledDfa(np.take(rows, classes, axis=1), result)


@lru_cache(maxsize=1)
def every_text() -> LabelledDfa:
    """All valid UTF-8 texts as one class."""
    dfa = universal()
    return LabelledDfa(dfa.transitions, dfa.accepting.astype(np.int32))


@dataclass(frozen=True, eq=False)
class SideBySide:
    """Automata side by side over all valid UTF-8 texts.

    Attributes:
        transitions, accepting: as `product` has them; ``accepting``: where a text may end.
        bits: which of the automata accept where a text ends.
        kinds: the values that ``bits`` has at ends, ascending.
    """

    transitions: Table
    accepting: npt.NDArray[np.bool_]
    bits: npt.NDArray[np.uint64]
    kinds: tuple[int, ...]


@keeps_automata
def side_by_side(dfas: tuple[Dfa, ...], max_states: int = MAX_STATES) -> SideBySide:
    """Which of some automata accept which texts; kept. Raises TooComplexError beyond ``max_states``."""
    table, bits = product(dfas, max_states)
    ends = valid_ends(table)
    return SideBySide(table, ends, bits, tuple(sorted(set(bits[ends].tolist()))))


@keeps_automata
def classes_of(dfas: tuple[Dfa, ...], classes: tuple[int, ...], max_states: int = MAX_STATES) -> LabelledDfa:
    """The texts by the class of those of ``dfas`` that accept them: ``classes[i]`` for the kind i of `side_by_side`."""
    sides = side_by_side(dfas, max_states)
    labels = np.zeros(len(sides.bits), np.int32)
    for kind, label in zip(sides.kinds, classes, strict=True):
        labels[sides.bits == np.uint64(kind)] = label
    labels[~sides.accepting] = 0
    return labelled(sides.transitions, labels)


def valid_ends(table: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Whether each state stands between characters, bool[n]: inside one, only continuation bytes can follow."""
    return np.asarray(table[:, 0x41] >= 0)


def reaching(table: npt.NDArray[Any], ends: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Which states lead to one of ``ends`` (bool[n]), these included."""
    live = ends
    while True:
        reach = live | ((table >= 0) & live[table]).any(axis=1)
        if (reach == live).all():
            return live
        live = reach
