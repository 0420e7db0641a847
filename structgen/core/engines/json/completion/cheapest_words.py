"""Shortest texts of string automata, by the bytes that JSON needs to spell them.

Texts here are decoded: UTF-8 of what the string stands for. `spelled` writes them as JSON does.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

import numpy as np
import numpy.typing as npt

from structgen.core.engines.json.value_graph.scalars import NEVER
from structgen.core.regex.dfa import Dfa, universal
from structgen.core.regex.lengths import Distances

_SHORT = {0x22: b'\\"', 0x5C: b"\\\\", 0x08: b"\\b", 0x0C: b"\\f", 0x0A: b"\\n", 0x0D: b"\\r", 0x09: b"\\t"}
_SPELLING = {**{byte: b"\\u%04x" % byte for byte in range(0x20)}, **_SHORT}
_MUST_ESCAPE = re.compile(rb'["\\\x00-\x1f]')

WEIGHTS = np.array([len(_SPELLING.get(byte, b".")) for byte in range(256)], np.int64)
"""int64[256]: bytes that JSON needs for a byte of a string."""
# The same for the whole character that a byte begins.
_CHARACTER_WEIGHTS = WEIGHTS + np.repeat([0, 1, 2, 3], [0xC2, 0xE0 - 0xC2, 0xF0 - 0xE0, 0x100 - 0xF0])
# Of equally short texts, letters and digits read best.
_PREFERENCE = np.array(sorted(range(256), key=lambda b: (not chr(b).isalnum() or b > 127, not 32 <= b < 127, b)))


def spelled(text: bytes) -> bytes:
    """A text (or the rest of one, from any byte on) as it stands between the quotes of a JSON string (RFC 8259)."""
    return _MUST_ESCAPE.sub(lambda match: _SPELLING[match[0][0]], text)


class Words:
    """The texts of an automaton, cheapest first. A text costs its bytes in JSON and ``final`` of the state it ends in.

    Attributes:
        cost: int list, the least cost from each state on; `NEVER` where no text ends.
    """

    def __init__(self, transitions: npt.NDArray[np.int32], final: npt.NDArray[np.int64]) -> None:
        self._rows = transitions
        self._final: list[int] = final.tolist()
        classes, count = Dfa(transitions, final < NEVER).columns
        # The first byte of each class in order of weight and preference, so that ties fall to the nicer one.
        order = _PREFERENCE[np.argsort(WEIGHTS[_PREFERENCE], kind="stable")]
        lead = order[np.sort(np.unique(classes[order], return_index=True)[1])]
        assert len(lead) == count
        table = transitions[:, lead]
        cost = final
        while True:  # as many sweeps as the longest of the shortest texts has bytes
            through = np.append(cost, NEVER)[table] + WEIGHTS[lead]
            better = np.minimum(final, through.min(axis=1))
            if (better == cost).all():
                break
            cost = better
        best = through.argmin(axis=1)
        self.cost: list[int] = np.minimum(cost, NEVER).tolist()
        self._byte: list[int] = lead[best].tolist()
        self._next: list[int] = table[np.arange(len(table)), best].tolist()
        self._cheapest: dict[int, list[tuple[int, bytes, int]]] = {}

    def suffix(self, state: int) -> bytes:
        """The cheapest text from ``state`` on."""
        text = bytearray()
        while self._final[state] > self.cost[state]:
            text.append(self._byte[state])
            state = self._next[state]
        return bytes(text)

    def end(self, state: int, text: bytes) -> int:
        """The state after ``text``, or -1."""
        for byte in text:
            state = int(self._rows[state, byte])
            if state < 0:
                break
        return state

    def cheapest(self, state: int, count: int) -> list[tuple[int, bytes, int]]:
        """The first of `by_cost`, ``count`` of them or more, if there are. They are kept: ask for few."""
        words = self._cheapest.get(state, [])
        if len(words) < count:
            words = self._cheapest[state] = list(islice(self.by_cost(state), count))
        return words

    def by_cost(self, state: int) -> Iterator[tuple[int, bytes, int]]:
        """All (cost, text, state where it ends), cheapest first.

        A* with the exact remaining cost: a text costs one expansion of a row for each of its bytes.
        """
        if self.cost[state] >= NEVER:
            return
        # (least cost through here, 0 if the text ends here, minus its length, rank, cost so far, state, text):
        # of equal costs the longest first, else all beginnings of equally good texts would be tried.
        heap: list[tuple[int, int, int, int, int, int, bytes]] = [(self.cost[state], 1, 0, 0, 0, state, b"")]
        rank = 0
        while heap:
            total, going, _, _, spent, position, text = heapq.heappop(heap)
            if not going:
                yield total, text, position
                continue
            if self._final[position] < NEVER:
                ending = (spent + self._final[position], 0, 0, 0, spent, position, text)
                if ending[0] == total:
                    yield total, text, position
                else:
                    heapq.heappush(heap, ending)
            row = self._rows[position]
            for byte in _PREFERENCE[row[_PREFERENCE] >= 0].tolist():
                after = int(row[byte])
                if self.cost[after] < NEVER:
                    rank += 1
                    now = spent + int(WEIGHTS[byte])
                    item = (now + self.cost[after], 1, -len(text) - 1, rank, now, after, text + bytes([byte]))
                    heapq.heappush(heap, item)


def shortest_of_length(dfa: Dfa, distances: Distances, state: int, least: int) -> bytes:
    """A text from ``state`` on with at least ``least`` more code points, and as few as the automaton has.

    Byte by byte along `Distances`: O(length × byte classes).
    """
    words = distances.next_length(state, least)
    if words is None:
        raise ValueError(f"no text with {least} code points or more leads from state {state}")
    left = words
    classes = np.unique(dfa.columns[0][_PREFERENCE], return_index=True)[1]
    order = _PREFERENCE[np.sort(classes)]
    order = order[np.argsort(_CHARACTER_WEIGHTS[order], kind="stable")]
    begins = (order & 0xC0) != 0x80
    text = bytearray()
    while left or not dfa.accepting[state]:
        row = dfa.transitions[state, order]
        fits = row >= 0
        for starts in (True, False):
            after = left - starts
            shift = max(0, after - distances.pre) // distances.period * distances.period
            exact = (distances.nxt[row, after - shift] + shift == after) if after >= 0 else np.False_
            fits &= exact | (begins != starts)
        choice = int(fits.argmax())
        left -= int(begins[choice])
        state = int(row[choice])
        text.append(int(order[choice]))
    return bytes(text)


def code_points(text: bytes) -> int:
    """How many code points begin in a text."""
    return sum((byte & 0xC0) != 0x80 for byte in text)


@lru_cache(64)
def any_text(price: int) -> Words:
    """All texts, each at this price more."""
    dfa = universal()
    return Words(dfa.transitions, np.where(dfa.accepting, price, NEVER))
