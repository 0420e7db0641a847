"""Deterministic finite automata over the UTF-8 bytes of a string, and the algebra of their languages.

A :class:`Dfa` is always trim, minimal and numbered breadth first in byte order, so two automata accept the same
language exactly when their arrays are equal. Languages are sets of valid UTF-8 texts (no surrogates, no overlong
forms); complements are taken within them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from structgen.core.kernels.automata import calls
from structgen.core.regex.charset import ANY, partition
from structgen.core.regex.utf8 import Utf8Tree, utf8_tree
from structgen.errors import TooComplexError

AUTOMATON_STATES = "automaton states"  # what ``TooComplexError`` says is counted; options are known above
MAX_STATES = 20_000
"""Default of ``max_states``: the states of any one automaton, intermediate ones included."""

Table = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Dfa:
    """A trim, minimal, canonically numbered automaton.

    ``transitions[state, byte]`` is the next state, −1 where no accepted text goes on; ``accepting[state]``. The start
    state is 0; the empty language has no states. Make one with :func:`from_table` or the functions of this module.
    """

    transitions: Table
    accepting: Flags

    def __reduce__(self) -> tuple[Any, ...]:
        """Of columns that are alike one is sent: mostly a hundredth of the table."""
        classes, count = self.columns
        return _expanded, (*compact(self.transitions, classes, count), self.accepting)

    @property
    def held_bytes(self) -> int:
        """Bytes of its arrays, with what they are parts of."""
        arrays = (self.transitions, self.accepting)
        return sum(getattr(array.base, "nbytes", array.nbytes) for array in arrays)

    @property
    def is_empty(self) -> bool:
        """Whether no text is accepted."""
        return len(self.accepting) == 0

    @cached_property
    def digest(self) -> bytes:
        """16 bytes that are equal exactly for equal languages (BLAKE2b of the arrays)."""
        classes, count = self.columns
        digest = hashlib.blake2b(self.accepting.tobytes(), digest_size=16)
        digest.update(classes.tobytes())
        digest.update(narrowed(self.transitions[:, first_places(classes, count)]).tobytes())
        return digest.digest()

    @cached_property
    def columns(self) -> tuple[Table, int]:
        """The class of each byte (bytes with equal columns share one), and the number of classes."""
        classes, count = calls.column_classes(self.transitions)
        return classes, int(count)

    def __len__(self) -> int:
        return len(self.accepting)

    def __repr__(self) -> str:
        return f"Dfa({len(self)} states, {self.digest.hex()[:8]})"


def compact(transitions: Table, classes: Table, count: int) -> tuple[npt.NDArray[Any], npt.NDArray[np.uint8]]:
    """One column for each class of bytes, in half the bytes where there are few enough states, and the classes."""
    return narrowed(np.take(transitions, first_places(classes, count), axis=1)), classes.astype(np.uint8)


def expanded(columns: npt.NDArray[Any], classes: npt.NDArray[np.uint8]) -> Table:
    """The table of which `compact` was made."""
    table = columns.astype(np.int32)
    if columns.dtype == np.uint16:
        table[columns == 0xFFFF] = -1
    return np.take(table, classes, axis=1)


def _expanded(columns: npt.NDArray[Any], classes: npt.NDArray[np.uint8], accepting: Flags) -> Dfa:
    dfa = Dfa(expanded(columns, classes), accepting)
    dfa.__dict__["columns"] = (classes.astype(np.int32), columns.shape[1])
    return dfa


def narrowed(transitions: Table) -> npt.NDArray[Any]:
    """The same numbers in half the bytes, where there are few enough states: what is hashed or kept."""
    return transitions.astype(np.uint16) if len(transitions) < 0xFFFF else transitions  # -1 is 65535


def too_complex(max_states: int, what: str) -> TooComplexError:
    """The error for an automaton that outgrows its budget."""
    return TooComplexError(
        f"{what} needs more than {max_states} automaton states", budget=AUTOMATON_STATES, limit=max_states
    )


def from_table(transitions: Table, accepting: npt.NDArray[np.uint8]) -> Dfa:
    """The canonical Dfa of a byte table ``int32[n, 256]`` (−1: none, start 0) whose language is valid UTF-8.

    O(n k log(n k)) for k distinct columns.
    """
    classes, count = calls.column_classes(transitions)
    lead = first_places(classes, count)
    table, flags = calls.minimise(np.ascontiguousarray(transitions[:, lead]), accepting)
    return _distinguished(_frozen(np.take(table, classes, axis=1) if count < 256 else table, flags), classes, count)


def first_places(classes: npt.NDArray[np.int32], count: int) -> npt.NDArray[np.int64]:
    """Where each of the classes 0 to ``count`` - 1 comes first, int64[count]."""
    places = np.zeros(count, np.int64)
    places[classes[::-1]] = np.arange(len(classes) - 1, -1, -1)  # the last write stays
    return places


def distinct_columns(table: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """The distinct columns in lexicographic order, and which of them each column is. (`np.unique` by axis, without
    the 10 ms of what it imports when it is called first.)"""
    columns = list(map(tuple, table.T.tolist()))
    distinct = sorted(set(columns))
    number = {column: index for index, column in enumerate(distinct)}
    return np.array(distinct, table.dtype).T, np.array([number[column] for column in columns], np.int64)


def _distinguished(dfa: Dfa, classes: npt.NDArray[np.int32], count: int) -> Dfa:
    """The automaton with its `Dfa.columns`, given classes 0 to ``count`` - 1 of bytes of which it tells no two of one
    class apart: whole columns lie scattered in memory."""
    few, number = calls.column_classes(np.take(dfa.transitions, first_places(classes, count), axis=1))
    dfa.__dict__["columns"] = (np.take(few, classes), int(number))
    return dfa


def _frozen(transitions: Table, accepting: npt.NDArray[np.uint8]) -> Dfa:
    # Kernels return views, mostly of arrays with many more rows; the others need no copy.
    whole = transitions.base is None or transitions.base.nbytes == transitions.nbytes
    return Dfa(np.ascontiguousarray(transitions) if whole else transitions.copy(), accepting.astype(np.bool_))


def from_class_table(
    table: Table, accepting: npt.NDArray[np.uint8], segments: Sequence[tuple[int, int, int]], max_states: int
) -> Dfa:
    """The Dfa of a table over code-point classes.

    ``segments`` are ``(first, last, class)``, ascending, covering the scalar values (``charset.partition``). Raises
    TooComplexError beyond ``max_states``.
    """
    table, accepting = calls.minimise(table, accepting)
    ascii_class = np.zeros(128, np.int32)
    local: dict[int, int] = {}  # class → its number among the non-ASCII ones, so that trees can be shared
    shape = []
    for low, high, name in segments:
        if low < 128:
            ascii_class[low : min(high, 127) + 1] = name
        if high >= 128:
            shape.append((max(low, 128), high, local.setdefault(name, len(local))))
    tree = utf8_tree(tuple(shape))
    class_of = np.array(list(local), np.int32)
    byte_table, flags, count = calls.expand_utf8(
        table, accepting, ascii_class, tree.children, tree.leaf, tree.uniform, tree.root, class_of, max_states
    )
    if count < 0:
        raise too_complex(max_states, "the expression")
    classes, number = _byte_classes(ascii_class, tree)
    return _distinguished(_frozen(*calls.renumber(byte_table, flags)), classes, number)


def _byte_classes(ascii_class: npt.NDArray[np.int32], tree: Utf8Tree) -> tuple[npt.NDArray[np.int32], int]:
    """Classes of bytes that a table over such a tree does not tell apart, numbered by first appearance."""
    names = list(dict.fromkeys(ascii_class.tolist()))
    number = np.empty(max(names) + 1, np.int32)
    number[names] = np.arange(len(names))
    others, count = tree.byte_classes
    return np.concatenate([number[ascii_class], others + np.int32(len(names))]), len(names) + count


@lru_cache(maxsize=1)
def universal() -> Dfa:
    """All valid UTF-8 texts."""
    table, accepting = np.zeros((1, 1), np.int32), np.ones(1, np.uint8)
    return from_class_table(table, accepting, partition([ANY])[0], MAX_STATES)


@lru_cache(maxsize=1)
def empty() -> Dfa:
    """No text."""
    return _frozen(np.zeros((0, 256), np.int32), np.zeros(0, np.uint8))


def from_strings(words: Iterable[str], max_states: int = MAX_STATES) -> Dfa:
    """Exactly these texts. A word with a lone surrogate has no UTF-8 form and is left out."""
    encoded = sorted({data for word in words if (data := _utf8(word)) is not None})
    if not encoded:
        return empty()
    text = np.frombuffer(b"".join(encoded), np.uint8).copy()
    ends = np.cumsum([len(data) for data in encoded], dtype=np.int64)
    table, accepting, count = calls.word_trie(text, ends, max_states)
    if count < 0:
        raise too_complex(max_states, "the set of words")
    return from_table(table, accepting)


def _utf8(word: str) -> bytes | None:
    try:
        return word.encode()
    except UnicodeEncodeError:
        return None


def product(dfas: Sequence[Dfa], max_states: int = MAX_STATES) -> tuple[Table, npt.NDArray[np.uint64]]:
    """The automata side by side, complete over valid UTF-8.

    Returns transitions ``int32[n, 256]`` (−1 only where the text stops being UTF-8; not trimmed) and labels
    ``uint64[n]``: bit i is set where ``dfas[i]`` accepts. Raises TooComplexError beyond ``max_states``, and
    ValueError for more than 64 automata.
    """
    if len(dfas) > 64:
        raise ValueError(f"a product has at most 64 automata, not {len(dfas)}")
    parts = [*dfas, universal()]
    joint = np.stack([part.columns[0] for part in parts])
    columns, classes = distinct_columns(joint)
    first = np.cumsum([0, *(len(part) for part in parts)], dtype=np.int32)
    table, labels, count = calls.product(
        np.concatenate([_compact(part) for part in parts]),
        np.concatenate([part.accepting for part in parts]).view(np.uint8),
        first,
        np.ascontiguousarray(columns, np.int32),
        max_states,
    )
    if count < 0:
        raise too_complex(max_states, f"a product of {len(dfas)} automata")
    return np.ascontiguousarray(table[:, classes]), labels


def _compact(dfa: Dfa) -> Table:
    """The transitions by byte class, as wide as every other automaton's."""
    classes, _ = dfa.columns
    compact = np.full((len(dfa), 256), -1, np.int32)
    compact[:, classes] = dfa.transitions
    return compact


def combine(
    dfas: Sequence[Dfa], accept: Callable[[npt.NDArray[np.uint64]], npt.NDArray[np.bool_]], max_states: int = MAX_STATES
) -> Dfa:
    """The texts whose product label (bit i: ``dfas[i]`` accepts) satisfies the vectorised test ``accept``."""
    table, labels = product(dfas, max_states)
    boundary = table[:, 0] >= 0  # between characters: only there may a text end
    return from_table(table, (accept(labels) & boundary).astype(np.uint8))


def complement(dfa: Dfa, max_states: int = MAX_STATES) -> Dfa:
    """All valid UTF-8 texts that ``dfa`` does not accept."""
    return combine([dfa], lambda labels: labels == 0, max_states)


def intersect(a: Dfa, b: Dfa, max_states: int = MAX_STATES) -> Dfa:
    """The texts that both accept."""
    return combine([a, b], lambda labels: labels == 3, max_states)


def union(a: Dfa, b: Dfa, max_states: int = MAX_STATES) -> Dfa:
    """The texts that one of them accepts."""
    return combine([a, b], lambda labels: labels != 0, max_states)


def difference(a: Dfa, b: Dfa, max_states: int = MAX_STATES) -> Dfa:
    """The texts that ``a`` accepts and ``b`` does not."""
    return combine([a, b], lambda labels: labels == 1, max_states)


def accepts(dfa: Dfa, text: str) -> bool:
    """Whether the text is in the language (never, if it holds a lone surrogate). O(bytes)."""
    data = _utf8(text)
    if dfa.is_empty or data is None:
        return False
    state = 0
    item = dfa.transitions.item
    for byte in data:
        state = item(state, byte)
        if state < 0:
            return False
    return bool(dfa.accepting[state])


_PREFERENCE = np.array(sorted(range(256), key=lambda byte: (not chr(byte).isalnum(), not 32 <= byte < 127, byte)))


def shortest(dfa: Dfa, state: int = 0) -> bytes | None:
    """A shortest accepted text from ``state`` on (bytes; letters and digits preferred), None if there is none.

    Breadth first, O(256 n).
    """
    if dfa.is_empty:
        return None
    came: dict[int, tuple[int, int]] = {}
    layer = [state]
    seen = {state}
    while True:
        for s in layer:
            if dfa.accepting[s]:
                return _path(came, s)
        following = []
        for s in layer:
            row = dfa.transitions[s]
            for byte in _PREFERENCE[row[_PREFERENCE] >= 0].tolist():
                target = int(row[byte])
                if target not in seen:
                    seen.add(target)
                    came[target] = (s, byte)
                    following.append(target)
        layer = following


def _path(came: dict[int, tuple[int, int]], state: int) -> bytes:
    path = bytearray()
    while state in came:
        state, byte = came[state]
        path.append(byte)
    return bytes(reversed(path))


def count_words(dfa: Dfa, cap: int) -> npt.NDArray[np.int64]:
    """For each state the number of accepted texts from it on, at most ``cap``."""
    counts: npt.NDArray[np.int64] = calls.count_words(dfa.transitions, dfa.accepting.view(np.uint8), cap)
    return counts


Counts = npt.NDArray[np.int64]


def words_everywhere(dfa: Dfa, cap: int) -> Counts:
    """For each state the accepted texts from it on, at most ``cap``; ``cap`` + 1 if that many go on from every state
    that it leads to. O(states × classes of bytes) for each step of the longest way between two states."""
    counts = count_words(dfa, cap)
    table = dfa.transitions[:, first_places(*dfa.columns)]
    everywhere = np.append(counts >= cap, True)  # the last stands for "no state"
    open_states = np.flatnonzero(everywhere[:-1])
    while True:
        lead_on = everywhere[table[open_states]].all(axis=1)
        if lead_on.all():
            return counts + everywhere[:-1]
        everywhere[open_states[~lead_on]] = False
        open_states = open_states[lead_on]


def short_words(dfa: Dfa, points: int, cap: int) -> Counts:
    """For each state the accepted texts from it on of at most ``points`` code points, at most ``cap``.

    In a state inside a character, that one does not count. O(states × classes of bytes × points).
    """
    classes, count = dfa.columns
    lead = first_places(classes, count)
    sizes = np.bincount(classes, minlength=count)
    begins = (lead & 0xC0) != 0x80
    table = dfa.transitions[:, lead]
    first, first_sizes = table[:, begins], sizes[begins]
    later, later_sizes = table[:, ~begins], sizes[~begins]
    counts = np.zeros(len(dfa) + 1, np.int64)  # the last stands for "no state"
    for _ in range(points + 1):
        done = dfa.accepting + (counts[first] * first_sizes).sum(axis=1)
        before = counts[:-1].copy()
        counts[:-1] = 0
        for _ in range(4):  # a character has at most three bytes behind its first
            counts[:-1] = np.minimum(done + (counts[later] * later_sizes).sum(axis=1), cap)
        if (counts[:-1] == before).all():
            break  # more code points add nothing
    return counts[:-1]
