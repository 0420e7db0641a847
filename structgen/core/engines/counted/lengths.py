"""How many characters complete the texts of an automaton, state by state."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from structgen.core.regex.dfa import AUTOMATON_STATES, Dfa, first_places
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import TooComplexError

Flags = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
BITS = 64
LONGEST_GAP = 48
"""An endless state has completions of every number of characters from so many on, or from fewer."""


class CharacterCounts:
    """The numbers of characters of completions, for each state of an automaton.

    A character counts at its first byte. Numbers below 64 are bits. An endless state has completions of every number of
    characters from `regular` on, so that bounds of any size need no states of their own; one that is not has fewer than
    48.

    Attributes:
        dfa: the automaton.
        inside: bool[n], states inside an escape, in which no character begins.
        regular: see above.
        endless: bool[n], whether a state has completions of any length.
        bits: uint64[n], bit k for completions of k characters.

    Args:
        dfa: not empty.
        escaped: whether characters may be written with Python's escapes.

    Raises:
        TooComplexError: completions of some state skip numbers for ever, or for too long; or a state is both inside an
            escape and outside.
    """

    def __init__(self, dfa: Dfa, *, escaped: bool = False) -> None:
        self.dfa, self._key = dfa, (dfa.digest, escaped)
        self.inside: Flags = inside_escapes(dfa) if escaped else np.zeros(len(dfa), np.bool_)
        classes, count = dfa.columns
        places = first_places(classes, count)
        table = dfa.transitions[:, places]
        begins = (places & 0xC0) != 0x80
        first, later = table[:, begins], table[:, ~begins]
        done = dfa.accepting.astype(np.uint64)
        shift = (~self.inside).astype(np.uint64)[:, None]
        bits = np.zeros(len(dfa) + 1, np.uint64)  # the last stands for "no state"
        while True:
            grown = done | np.bitwise_or.reduce(bits[first] << shift, axis=1)
            grown |= np.bitwise_or.reduce(bits[later], axis=1)
            if np.array_equal(grown, bits[:-1]):
                break
            bits[:-1] = grown
        self.bits = bits[:-1].copy()
        self.endless: Flags = self.bits >> np.uint64(LONGEST_GAP) != 0
        common = int(np.bitwise_and.reduce(self.bits[self.endless])) if self.endless.any() else (1 << BITS) - 1
        self.regular = _first_of_run(common)
        leads_on = (np.append(self.endless, False)[table]).any(axis=1)
        if self.regular > LONGEST_GAP or (leads_on & ~self.endless).any():
            what = "bounds on characters where texts go on in steps"
            raise TooComplexError(what, budget=AUTOMATON_STATES, limit=LONGEST_GAP)
        self._bits, self._endless = self.bits.tolist(), self.endless.tolist()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CharacterCounts) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def are_spelled_by(self, vocabulary: Vocabulary) -> bool:
        """Whether every byte of the texts is a token."""
        return not (self.dfa.transitions[:, list(vocabulary.missing_bytes)] >= 0).any()

    def complete(self, state: int, least: int, most: int) -> bool:
        """Whether a state has a completion of ``least`` to ``most`` characters."""
        if self._endless[state] and most >= max(least, self.regular):
            return True
        return bool(self._bits[state] & window(least, most))

    def complete_all(self, states: Ints, least: Ints, most: Ints) -> Flags:
        """The same of many states, each with bounds."""
        surely = self.endless[states] & (most >= np.maximum(least, self.regular))
        low, high = np.clip(least, 0, BITS), np.clip(most, -1, BITS - 1)
        ones = np.uint64((1 << BITS) - 1)
        below = np.where(high < 0, np.uint64(0), ones >> (BITS - 1 - np.maximum(high, 0)).astype(np.uint64))
        above = np.where(low >= BITS, np.uint64(0), ones << np.minimum(low, BITS - 1).astype(np.uint64))
        result: Flags = surely | (self.bits[states] & below & above != 0)
        return result

    def fewest(self, state: int, least: int) -> int:
        """The fewest characters of a completion that has ``least`` or more; -1: there is none."""
        left = self._bits[state] & ~((1 << max(least, 0)) - 1) if least < BITS else 0
        if left:
            return (left & -left).bit_length() - 1
        return max(least, self.regular) if self._endless[state] else -1


def window(least: int, most: int) -> int:
    """Bits for the numbers from ``least`` to ``most``, as far as there are bits."""
    if most < 0 or least >= BITS:
        return 0
    return ((1 << min(most, BITS - 1) + 1) - 1) & ~((1 << max(least, 0)) - 1)


def _first_of_run(common: int) -> int:
    """The number from which on all bits are set; 64: the last one is not."""
    missing = ~common & ((1 << BITS) - 1)
    return missing.bit_length()


def inside_escapes(dfa: Dfa) -> Flags:
    r"""The states of an automaton of texts with Python's escapes ``\n`` and ``\x0a`` that are inside one, bool[n].

    Raises:
        TooComplexError: a state is both inside and outside.
    """
    phases = {0: 0}  # 0: outside; 1: after the backslash; 2, 3: digits of \x to come
    todo = [0]
    for state in todo:
        row = dfa.transitions[state]
        for byte in np.flatnonzero(row >= 0).tolist():
            phase = _after(phases[state], byte)
            target = int(row[byte])
            if phases.setdefault(target, phase) != phase:
                raise TooComplexError("a bound on escaped characters", budget=AUTOMATON_STATES, limit=len(dfa))
            if len(todo) < len(phases):
                todo.append(target)
    return np.array([phases[state] > 0 for state in range(len(dfa))], np.bool_)


def _after(phase: int, byte: int) -> int:
    if phase == 0:
        return 1 if byte == 0x5C else 0
    if phase == 1:
        return 2 if byte == 0x78 else 0
    return 3 if phase == 2 else 0
