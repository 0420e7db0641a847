"""Number automata: JSON numbers read byte by byte, exactly, against a `NumberSpec`.

With exponents, the numbers that satisfy even ``{"type": "integer"}`` are not a regular language (``1000e-3``), so the
automaton is built lazily and may grow without end; each state is small, and what common specs visit stays few.

    >>> port = automaton(NumberSpec(Fraction(0), maximum=Fraction(65535), multiples=frozenset({Fraction(1)})))
    >>> sorted(chr(byte) for byte, _ in port.row(port.start))
    ['-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']
"""

from __future__ import annotations

import threading
from collections.abc import Hashable
from dataclasses import replace
from fractions import Fraction
from heapq import heappop, heappush
from itertools import count
from typing import Any, Protocol

from structgen.core.bounded_cache import BoundedCache
from structgen.core.engines.json.numbers.spec import NumberSpec, Spelling
from structgen.core.engines.json.numbers.states import NumberReader, State

__all__ = ["NumberAutomaton", "NumberSpec", "Spelling", "automaton"]

SEARCH_LIMIT = 500
"""With steps, and so with residues: states that `NumberAutomaton.shortest` looks at before it settles for a completion
that may not be the shortest."""

CACHE_BYTES = 8 << 20
"""What automata that are kept for the process may take."""
RECOUNTED = 32  # so many new ones until it is counted what all take: they grow where they are used
LEAST_BYTES, STATE_BYTES, ROW_BYTES = 4_096, 384, 640  # of an automaton, a state of it, a state with its row; measured


class _Reader(Protocol):
    """What the automaton numbers: live states, their successors and which of them accept."""

    @property
    def start(self) -> Any: ...
    @property
    def crowded(self) -> bool: ...
    def moves(self, state: Any, /) -> list[tuple[bytes, Any]]: ...
    def accepts(self, state: Any, /) -> bool: ...
    def suffix(self, state: Any, /) -> bytes | None: ...
    def is_endless(self, state: Any, /) -> bool: ...
    def known(self, state: Any, /) -> bytes | None: ...
    def missing(self, state: Any, /) -> int: ...
    def inner(self, state: Any, /) -> tuple[State, bool]: ...


class NumberAutomaton:
    """A lazily built deterministic automaton for the JSON numbers that satisfy a spec.

    States are integers from 0 in order of discovery. Every state is live: some text from it is accepted. (If
    ``is_empty``, the start state is the exception.) Safe to share between threads.
    """

    start = 0

    def __init__(self, spec: NumberSpec) -> None:
        self.spec = spec
        self._lock = threading.RLock()
        self._reader: _Reader = NumberReader(spec) if spec.max_length is None else _LimitedReader(spec)
        self.is_empty: bool = self._reader.start is None
        self._states: list[Hashable] = []
        self._numbers: dict[Hashable, int] = {}
        self._rows: list[list[tuple[int, int]] | None] = []
        self._filled = 0  # of these
        self._accepting: list[bool] = []
        self._completions: dict[int, bytes] = {}
        self._number(self._reader.start)

    def __len__(self) -> int:
        """The number of states discovered so far."""
        return len(self._states)

    @property
    def memory_bytes(self) -> int:
        """About what it takes now."""
        return LEAST_BYTES + STATE_BYTES * len(self._states) + ROW_BYTES * self._filled

    def row(self, state: int) -> list[tuple[int, int]]:
        """The live successors of a state as (byte, state) pairs; creates them on the first call. Do not change it."""
        row = self._rows[state]
        if row is None:
            with self._lock:
                moves = [] if self.is_empty else self._reader.moves(self._states[state])
                numbered = [(symbols, self._number(after)) for symbols, after in moves]
                row = [(byte, number) for symbols, number in numbered for byte in symbols]
                self._filled += self._rows[state] is None
                self._rows[state] = row
        return row

    def accepting(self, state: int) -> bool:
        """Whether the number may end in this state."""
        return self._accepting[state]

    def inner(self, state: int) -> tuple[State, bool]:
        """What a state stands for, and whether numbers have no exponents."""
        return self._reader.inner(self._states[state])

    def is_endless(self, state: int) -> bool:
        """Whether endlessly many values go on from a state by their exponents alone."""
        return self._reader.is_endless(self._states[state])

    def contains(self, value: Fraction) -> bool:
        """Whether ``value`` satisfies the spec, however it is spelled."""
        return self.spec.contains(value)

    def shortest(self, state: int) -> bytes:
        """A shortest completion from a state (b"" if it accepts).

        Where there are steps and more than ``SEARCH_LIMIT`` states are nearer, one that may be longer. Raises
        ``ValueError`` if the automaton is empty.
        """
        if self.is_empty:
            raise ValueError("no number satisfies the spec, so nothing completes it; check is_empty first")
        completion = self._completions.get(state)
        if completion is None:
            completion = self._reader.known(self._states[state])
            if completion is None:
                completion = self._search(state, SEARCH_LIMIT if self._reader.crowded else None)
            if completion is None:
                completion = self._descend(state)
            self._completions[state] = completion
        return completion

    def reaches(self, state: int, length: int) -> bool:
        """Whether some completion from a state has at most ``length`` bytes. Exact."""
        if self._reader.suffix(self._states[state]) is None and len(self.shortest(state)) <= length:
            return True
        if not self._reader.crowded:
            return False
        return len(self._descend(state)) <= length or self._search(state, None, length) is not None

    def _number(self, state: Hashable) -> int:
        number = self._numbers.get(state)
        if number is None:
            number = self._numbers[state] = len(self._states)
            self._states.append(state)
            self._rows.append(None)
            self._accepting.append(state is not None and self._reader.accepts(state))
        return number

    def _search(self, start: int, states: int | None, length: int | None = None) -> bytes | None:
        """Best-first search (A*) for a shortest completion, within a number of states or a length.

        What is nearest to a member by the lower bound comes first, of equals the longest: where the bound is exact, as
        with digits that must be there, nothing else is looked at. Hart, Nilsson, Raphael (1968).
        """
        came: dict[int, tuple[int, int]] = {start: (-1, 0)}
        depths, done = {start: 0}, set()
        heap = [(self.missing(start), 0, 0, start)]
        while heap:
            _, _, _, state = heappop(heap)
            if state in done:
                continue
            done.add(state)
            if self._accepting[state]:
                return self._spell(came, state, length is None)
            if states is not None and len(came) > states:
                return None
            depth = depths[state] + 1
            for byte, after in self.row(state):
                if depth >= depths.get(after, depth + 1):
                    continue
                least = depth + self.missing(after)
                if length is None or least <= length:
                    came[after], depths[after] = (state, byte), depth
                    heappush(heap, (least, -depth, len(came), after))
        return None

    def missing(self, state: int) -> int:
        """A lower bound of the bytes that a number still needs, that of each successor at most one less. O(1)."""
        return self._reader.missing(self._states[state])

    def _spell(self, came: dict[int, tuple[int, int]], state: int, is_shortest: bool) -> bytes:
        """The text to a state, kept for the states that it passes where it is a shortest."""
        text = bytearray()
        while came[state][0] >= 0:
            state, byte = came[state]
            text.append(byte)
            if is_shortest:
                self._completions[state] = bytes(reversed(text))
        return bytes(reversed(text))

    def _descend(self, state: int) -> bytes:
        """A completion found by arithmetic: the next multiple's digits, then the nearest exponent."""
        inner = self._states[state]
        text = self._reader.suffix(inner)
        if text is None:
            byte, after = self.row(state)[-1]
            return bytes([byte]) + self.shortest(after)
        for byte in text:
            state = dict(self.row(state))[byte]
        return text if self._accepting[state] else text + b"e" + self.shortest(dict(self.row(state))[ord("e")])


class _LimitedReader:
    """A reader whose states are those of the unlimited automaton with the bytes that are left."""

    crowded = True

    def __init__(self, spec: NumberSpec) -> None:
        self._inner = automaton(replace(spec, max_length=None))
        limit = spec.max_length or 0
        possible = not self._inner.is_empty and self._inner.reaches(self._inner.start, limit)
        self.start = (self._inner.start, limit) if possible else None

    def moves(self, state: tuple[int, int]) -> list[tuple[bytes, tuple[int, int]]]:
        inner, left = state
        left -= 1
        live = (pair for pair in self._inner.row(inner) if left >= 0 and self._inner.reaches(pair[1], left))
        return [(bytes([byte]), (after, left)) for byte, after in live]

    def accepts(self, state: tuple[int, int]) -> bool:
        return self._inner.accepting(state[0])

    def known(self, state: tuple[int, int]) -> bytes | None:
        text = self._inner.shortest(state[0])
        return text if len(text) <= state[1] else None

    def suffix(self, state: tuple[int, int]) -> bytes | None:
        return None

    def is_endless(self, state: tuple[int, int]) -> bool:
        return False

    def missing(self, state: tuple[int, int]) -> int:
        return 0

    def inner(self, state: tuple[int, int]) -> tuple[State, bool]:
        return self._inner.inner(state[0])


NUMBERS: BoundedCache[NumberSpec, NumberAutomaton] = BoundedCache(CACHE_BYTES, lambda automaton: automaton.memory_bytes)
_MADE = count(1)


def automaton(spec: NumberSpec) -> NumberAutomaton:
    """The automaton of a spec, shared in the process (least recently used ones are dropped). Thread-safe."""
    made = NUMBERS.get(spec)
    if made is None:
        made = NUMBERS.put(spec, NumberAutomaton(spec))
        if next(_MADE) % RECOUNTED == 0:
            NUMBERS.recount()
    return made
