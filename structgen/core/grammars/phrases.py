"""Texts that hold phrases, or do not, as automata.

All phrases are searched for at once: bit j of a state's ``matched`` says that the text ends with the first characters
of a phrase up to its j-th (Baeza-Yates and Gonnet 1992, "shift-and"; phrases lie in it one after the other). Beside it
a state knows how far the texts have come: which phrases were seen, how many, in which order. Occurrences may overlap.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from structgen.core.grammars.python_regex import cased, word_characters
from structgen.core.regex.charset import partition as partition_of
from structgen.core.regex.charset import single
from structgen.core.regex.dfa import MAX_STATES, Dfa, empty, from_class_table, too_complex
from structgen.core.regex.dfa_cache import keeps_automata
from structgen.core.regex.steps import check_time
from structgen.core.text_sets.phrases import PhraseSearch


class _State(NamedTuple):
    """Where a text stands.

    Attributes:
        matched: see the module.
        ended: the ends of phrases that count if no word character comes next.
        after_word: whether the last character was a word character.
        progress: the phrases seen, as bits ("all"); how many of the sequence ("ordered"); 1 if any was.
        occurrences: so many were there, where ``at_most`` counts them.
    """

    matched: int = 0
    ended: int = 0
    after_word: bool = False
    progress: int = 0
    occurrences: int = 0


@keeps_automata
def phrase_dfa(search: PhraseSearch, max_states: int = MAX_STATES) -> Dfa:
    """The texts that a search is content with. O(states × classes of characters).

    Raises:
        TooComplexError: an automaton would exceed ``max_states`` states: with "all", each set of phrases seen is one.
    """
    return _Builder(search).dfa(max_states)


class _Builder:
    """Makes the automaton of a search."""

    def __init__(self, search: PhraseSearch) -> None:
        self._search = search
        flags = re.IGNORECASE if search.ignore_case else 0
        distinct = list(dict.fromkeys("".join(search.phrases)))
        sets = [cased([(ord(char), ord(char))], flags) for char in distinct]
        self.segments, masks = partition_of([*sets, word_characters() if search.words else single(0)])
        self._is_word = [search.words and bool(mask >> len(distinct) & 1) for mask in masks]
        bit_of = {char: 1 << number for number, char in enumerate(distinct)}
        text = "".join(search.phrases)
        self._reads = [sum(1 << j for j, char in enumerate(text) if mask & bit_of[char]) for mask in masks]
        ends = np.cumsum([len(phrase) for phrase in search.phrases]).tolist()
        self._end_bits = [1 << (end - 1) for end in ends]
        self._ends = sum(self._end_bits)
        self._starts = sum(1 << start for start in [0, *ends[:-1]])

    def dfa(self, max_states: int) -> Dfa:
        """See `phrase_dfa`."""
        first = _State()
        numbers: dict[_State, int] = {first: 0}
        states, table = [first], []
        for state in states:
            check_time()
            targets = []
            for cls in range(len(self._reads)):
                following = self._step(state, cls)
                if following is None:
                    targets.append(-1)
                    continue
                if following not in numbers:
                    numbers[following] = len(states)
                    states.append(following)
                targets.append(numbers[following])
            table.append(targets)
            if len(states) > max_states:
                raise too_complex(max_states, f"the search for {len(self._search.phrases)} phrases")
        accepting = np.array([self._may_stop(state) for state in states], np.uint8)
        if not accepting.any():
            return empty()
        return from_class_table(np.array(table, np.int32), accepting, self.segments, max_states)

    def _step(self, state: _State, cls: int) -> _State | None:
        """The state after a character of a class; none where no text goes on."""
        is_word = self._is_word[cls]
        counted = self._counted(state.progress, state.occurrences, 0 if is_word else state.ended)
        if counted is None:
            return None
        starts = 0 if self._search.words and state.after_word else self._starts
        matched = ((state.matched << 1) & ~self._starts | starts) & self._reads[cls]
        ends = matched & self._ends
        if self._search.words:
            return self._settled(_State(matched & ~ends, ends, is_word, *counted))
        counted = self._counted(*counted, ends)
        return None if counted is None else self._settled(_State(matched & ~ends, 0, False, *counted))

    def _settled(self, state: _State) -> _State:
        """The state, or the one for all texts that nothing can change any more."""
        is_done = self._search.at_most is None and state.progress == self._wanted
        return _State(progress=state.progress) if is_done and self._search.mode != "none" else state

    @property
    def _wanted(self) -> int:
        search = self._search
        return {
            "all": (1 << len(search.phrases)) - 1, "ordered": len(search.phrases), "any": 1, "none": 0,
        }[search.mode]  # fmt: skip

    def _counted(self, progress: int, count: int, ends: int) -> tuple[int, int] | None:
        """Progress and count after the ends of some phrases; None where there may be no such occurrence."""
        if not ends:
            return progress, count
        search = self._search
        if search.mode == "none":
            return None
        if search.at_most is not None:
            count += ends.bit_count()
            if count > search.at_most:
                return None
        if search.mode == "all":
            for number, bit in enumerate(self._end_bits):
                progress |= bool(ends & bit) << number
        elif search.mode == "any":
            progress = 1
        elif progress < self._wanted and ends & self._end_bits[progress]:
            progress += 1
        return progress, count

    def _may_stop(self, state: _State) -> bool:
        counted = self._counted(state.progress, state.occurrences, state.ended)
        return counted is not None and counted[0] == self._wanted
