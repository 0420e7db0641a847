"""Accepted lengths of an automaton, in code points, from each of its states."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from structgen.core.kernels.automata import calls
from structgen.core.regex.dfa import Dfa
from structgen.errors import TooComplexError

MAX_ENTRIES = 4_000_000
"""Default of ``cap``: table entries (4 bytes each)."""


@dataclass(frozen=True, eq=False)
class Distances:
    """Which lengths are accepted from each state.

    A length is the number of code points still to begin: in a mid-character state the current one already counts.
    ``nxt[state, k]`` for ``k < pre + period`` is the smallest accepted length ≥ k, −1 if there is none. Lengths from
    ``pre`` on repeat with ``period``.
    """

    nxt: npt.NDArray[np.int32]
    pre: int
    period: int

    def next_length(self, state: int, low: int) -> int | None:
        """The smallest accepted length ≥ ``low`` from ``state`` on, None if there is none. O(1)."""
        shift = max(0, low - self.pre) // self.period * self.period
        length = int(self.nxt[state, low - shift])
        return None if length < 0 else length + shift

    def alive(self, state: int, low: int, high: int | None) -> bool:
        """Whether some accepted continuation has between ``low`` and ``high`` code points (None: no upper limit)."""
        length = self.next_length(state, max(low, 0))
        return length is not None and (high is None or length <= high)


def distances(dfa: Dfa, cap: int = MAX_ENTRIES) -> Distances:
    """The accepted lengths of ``dfa``. O(edges × (pre + period)).

    Raises TooComplexError if the table would have more than ``cap`` entries (states × (pre + period)); the
    period is the least common multiple of the automaton's loop lengths, so it can be large.
    """
    if dfa.is_empty:
        return Distances(np.zeros((0, 1), np.int32), 0, 1)
    nxt, pre, period = calls.distances(dfa.transitions, dfa.accepting.view(np.uint8), cap)
    if pre < 0:
        raise TooComplexError(f"the accepted lengths of {dfa} need a table of more than {cap} entries", limit=cap)
    return Distances(nxt, int(pre), int(period))
