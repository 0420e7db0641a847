"""Short texts that complete an output of an intersection: a search through its states, byte by byte."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import numpy as np

from structgen.core.kernels.heap_layout import ENDS
from structgen.core.regex.dfa import Dfa

if TYPE_CHECKING:
    from structgen.core.engines.cfg.pairs import PairMachine

MAX_EXPANDED = 4_000
"""States that a search goes on from: about a second."""
MAX_KEPT = 1 << 14
_PLAIN = sorted(range(256), key=lambda byte: (not chr(byte).isalnum() or byte > 127, not 32 <= byte < 127, byte))
_RANK = [_PLAIN.index(byte) for byte in range(256)]


class PairCompletions:
    """Completions of the states of one machine.

    Best first, by the bytes so far, those that the grammar still needs and those that the automaton does. What the
    automaton demands may be met while the grammar's text is written, so the text need not be a shortest one; where the
    automaton accepts already, it mostly is. No state that is reached is a dead end.
    """

    def __init__(self, machine: PairMachine, dfa: Dfa) -> None:
        self._to_go = _distances(dfa)
        self._machine = machine
        self._known: dict[int, bytes | None] = {}

    def text(self, state: int) -> bytes | None:
        """A text after which a state may stop; None where none was found in time."""
        if state not in self._known:
            if len(self._known) > MAX_KEPT:
                self._known.clear()
            self._search(state)
        return self._known[state]

    def _search(self, start: int) -> None:
        """Enter the completion of a state, and of those on its path."""
        machine = self._machine
        came: dict[int, tuple[int, int]] = {start: (0, 0)}  # the state before, and the byte between
        queue, expanded = [(0, 0, start)], 0  # about the length of the text, less the bytes so far, the state
        while queue and expanded < MAX_EXPANDED:
            _, depth, state = heapq.heappop(queue)
            if machine.call(ENDS, state):
                return self._enter(start, state, came)
            expanded += 1
            plainest: dict[int, int] = {}
            for byte, after in machine.after_bytes(state):
                if after not in came and _RANK[byte] < _RANK[plainest.get(after, _PLAIN[-1])]:
                    plainest[after] = byte
            for after, byte in plainest.items():
                came[after] = state, byte
                to_go = machine.bound(after) + self._to_go[machine.automaton_state(after)]
                heapq.heappush(queue, (1 - depth + to_go, depth - 1, after))
        self._known[start] = None

    def _enter(self, start: int, state: int, came: dict[int, tuple[int, int]]) -> None:
        text = b""
        self._known[state] = text
        while state != start:
            state, byte = came[state]
            text = bytes([byte]) + text
            self._known[state] = text


def _distances(dfa: Dfa) -> list[int]:
    """Bytes of a shortest accepted text from each state."""
    far = len(dfa) + 1
    lengths = np.append(np.where(dfa.accepting, 0, far), far)  # the last one for bytes that lead nowhere
    while True:
        shorter = np.minimum(lengths[:-1], lengths[dfa.transitions].min(axis=1) + 1)
        if np.array_equal(shorter, lengths[:-1]):
            return shorter.tolist()
        lengths[:-1] = shorter
