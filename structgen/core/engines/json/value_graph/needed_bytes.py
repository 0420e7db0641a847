"""Whether a vocabulary can write out whatever it begins: the bytes that texts of a grammar cannot do without.

A vocabulary in which every byte is a token of its own can continue any text. Where bytes are missing, a text may come
to a point from which every way on needs one of them. Here is a sufficient condition that there is no such point, node
by node: what is always there (quotes, brackets, the keys that are declared) is spelled by single bytes, and every state
of an automaton leads to an end by single bytes. Characters that no token begins, and that need not be, do not count.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from structgen.core.engines.json.numbers.automaton import NumberAutomaton
from structgen.core.engines.json.value_graph.liveness import reachable
from structgen.core.engines.json.value_graph.node import StringAlternative, ValueNode
from structgen.core.engines.json.value_graph.objects import ObjectSpec, is_live
from structgen.core.engines.json.value_graph.scalars import EnumSpec, QuoteSpec
from structgen.core.kernels.automata import calls
from structgen.core.regex.dfa import universal
from structgen.core.regex.labelled import reaching
from structgen.core.regex.lengths import MAX_ENTRIES
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.options import JsonOptions

_PLAIN = frozenset(range(0x23, 0x5B))  # from "#" to "Z": spelled as they are in a string
_DIGITS = b"0123456789"
_LITERALS = (b"null", b"true", b"false")
MAX_NUMBER_STATES = 2_000
"""States of a number automaton that are looked at; one with more needs all that numbers are made of."""


class NeededBytes:
    """What is asked of a vocabulary by the value nodes of a schema."""

    def __init__(self, vocabulary: Vocabulary, options: JsonOptions) -> None:
        self._options = options
        self._single, self._occurring, self._cuts, self._content = _facts(vocabulary)
        self._escapes = ord("\\") in self._occurring

    def missing(self, root: ValueNode) -> set[int]:
        """Bytes that are needed and no token of their own. Empty: no text ends in a dead end.

        Linear in the live value nodes and the transitions of their automata.
        """
        needed: set[int] = set()
        for node in filter(is_live, reachable(root)):
            values = list(self._of_values(node))
            begun = [bytes_ for first, bytes_ in values if not self._occurring.isdisjoint(first)]
            needed.update(*(begun or [bytes_ for _, bytes_ in values]))
        return needed - self._single

    def _of_values(self, node: ValueNode) -> Iterator[tuple[bytes, set[int]]]:
        """For each kind of value: the bytes that it may begin with, and those it needs once it was begun."""
        for bit, literal in enumerate(_LITERALS):
            if node.flags >> bit & 1:
                yield literal[:1], set(literal)
        for choice in node.numbers:
            yield b"-" + _DIGITS, self._of_number(choice.automaton)
        for string in node.strings:
            yield b'"', self._of_string(string)
        for spec in node.objects:
            yield b"{", self._of_object(spec)
        for array in node.arrays:
            yield b"[", {*b"[]", *(b"," if array.needs_comma else b""), *self._whitespace()}

    def _whitespace(self) -> bytes:
        return b"\n " if isinstance(self._options.whitespace, int) and self._options.whitespace else b""

    def _of_string(self, spec: StringAlternative) -> set[int]:
        needed = {ord('"'), *self._of_escapes()}
        if isinstance(spec, EnumSpec):
            for value in spec.values:
                needed.update(json.dumps(value, ensure_ascii=False).encode())
        elif isinstance(spec, QuoteSpec):
            for text in spec.corpus.texts().values():
                needed.update(json.dumps(text, ensure_ascii=False).encode())
        elif spec.dfa is None:
            needed |= self._of_any_string()
        else:
            ends = spec.dfa.accepting
            needed |= self._of_automaton(spec.dfa.transitions, ends, counted=spec.distances is not None)
        return needed

    def _of_escapes(self) -> set[int]:
        """An escape that some token begins must be finished: the digits of ``\\u`` are any hexadecimal ones."""
        return set(b'"u0123456789abcdef') if self._escapes else set()

    def _of_any_string(self) -> set[int]:
        """A letter always goes on, and the quote ends it; a character that a token cuts has to be finished."""
        needed = set() if self._single & _PLAIN else {ord("a")}
        every = universal()
        return needed | self._of_automaton(every.transitions, every.accepting, counted=False)

    def _of_automaton(self, table: npt.NDArray[np.int32], ends: npt.NDArray[np.bool_], *, counted: bool) -> set[int]:
        """Nothing, if single bytes lead from every state to an end (in as many code points), else what is missing."""
        if not self._distinguishes(table):
            return set()
        at_character = ~(table[:, 0x80:0xC0] >= 0).any(axis=1)
        states = self._reached(table) & (at_character | self._cuts)
        within = np.where(self._content[None, :], table, -1).astype(np.int32)
        if counted:
            every = calls.distances(table, ends.view(np.uint8), MAX_ENTRIES)
            mine = calls.distances(within, ends.view(np.uint8), MAX_ENTRIES)
            good = every[1:] == mine[1:] and every[0].shape == mine[0].shape
            if good and np.array_equal(every[0][states], mine[0][states]):
                return set()
        elif reaching(within, ends)[states].all():
            return set()
        used = (table >= 0).any(axis=0) & ~self._content
        return set(np.flatnonzero(used).tolist())

    def _distinguishes(self, table: npt.NDArray[np.int32]) -> bool:
        """Whether it tells some byte that cannot be written from all others; else these lead wherever that does."""
        classes, count = calls.column_classes(table)
        written = np.zeros(count, np.bool_)
        written[classes[self._content]] = True
        apart = ~written[classes]
        return bool((table[:, apart] >= 0).any())

    def _reached(self, table: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
        """The states that bytes which occur in tokens (or are escaped) lead to."""
        usable = np.array([byte < 0x20 or byte in b'"\\' or byte in self._occurring for byte in range(256)])
        reached, todo = np.zeros(len(table), bool), [0]
        reached[0] = True
        while todo:
            after = np.unique(table[todo.pop(), usable])
            fresh = [int(state) for state in after if state >= 0 and not reached[state]]
            reached[fresh] = True
            todo.extend(fresh)
        return reached

    def _of_number(self, automaton: NumberAutomaton) -> set[int]:
        usual = {*_DIGITS, *b"-.", *(b"e" if self._options.number_spellings == "any" else b"")}
        if usual <= self._single:
            return set()
        before: dict[int, list[int]] = {automaton.start: []}  # states that lead to each by a byte there is
        states = [automaton.start]
        for state in states:
            for byte, after in automaton.row(state):
                if byte not in self._occurring:
                    continue
                if after not in before:
                    before[after] = []
                    states.append(after)
                if byte in self._single:
                    before[after].append(state)
            if len(states) > MAX_NUMBER_STATES:
                return usual
        good = {state for state in states if automaton.accepting(state)}
        todo = list(good)
        while todo:
            fresh = set(before[todo.pop()]) - good
            good |= fresh
            todo.extend(fresh)
        return set() if len(good) == len(states) else usual

    def _of_object(self, spec: ObjectSpec) -> set[int]:
        needed = {*b"{}"}
        keys = [name for name in spec.keys if name not in spec.forbidden]
        if spec.most == 0 or not (keys or spec.others):
            return needed
        needed |= {*b'":', *self._whitespace(), *self._of_escapes()}
        if spec.least > 1 or len(spec.required) > 1 or spec.dependents or spec.existentials:
            needed.add(ord(","))
        for name in keys:
            needed.update(json.dumps(name, ensure_ascii=False).encode("utf-8", "replace"))
        if spec.others is not None and spec.others.is_one:
            needed |= self._of_any_string() if spec.others.nodes[0].live else set()
        elif spec.others is not None:
            others = spec.others.automaton
            needed |= self._of_automaton(others.transitions, others.accepting, counted=False)
        return needed


@lru_cache(8)
def _facts(vocabulary: Vocabulary) -> tuple[frozenset[int], frozenset[int], bool, npt.NDArray[np.bool_]]:
    """The bytes that are tokens, those that occur in tokens, whether some token ends within a character, and which
    bytes of a string's content can be written, alone or as an escape."""
    tokens = [token for token in vocabulary.tokens if token]
    single = frozenset(token[0] for token in tokens if len(token) == 1)
    occurring = frozenset(vocabulary.token_bytes.tolist())
    content = np.array([single.issuperset(_written(byte)) for byte in range(256)])
    return single, occurring, any(map(_ends_within_a_character, tokens)), content


def _written(byte: int) -> bytes:
    """How a byte of a string's content is written."""
    if byte >= 0x20 and byte not in b'"\\':
        return bytes([byte])
    return json.dumps(chr(byte))[1:-1].encode()


def _ends_within_a_character(token: bytes) -> bool:
    """Whether UTF-8 bytes are missing at the end of a token."""
    for back, byte in enumerate(reversed(token[-3:]), 1):
        if byte >= 0xC0:
            return back < (2 if byte < 0xE0 else 3 if byte < 0xF0 else 4)
        if byte < 0x80:
            return False
    return False
