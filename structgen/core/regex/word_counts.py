"""How many texts go on from each state of an automaton: all, short ones, and after whatever may come."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from structgen.core.regex.dfa import Dfa, count_words, first_places

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
    found = np.zeros(len(dfa) + 1, np.int64)  # the last stands for "no state"
    for _ in range(points + 1):
        done = dfa.accepting + (found[first] * first_sizes).sum(axis=1)
        before = found[:-1].copy()
        found[:-1] = 0
        for _ in range(4):  # a character has at most three bytes behind its first
            found[:-1] = np.minimum(done + (found[later] * later_sizes).sum(axis=1), cap)
        if (found[:-1] == before).all():
            break  # more code points add nothing
    return found[:-1]
