"""Runs of consecutive pieces of a text: its substrings, where the pieces are its characters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from structgen.automata.dfa import MAX_STATES, Dfa, from_table, too_complex


def substring_dfa(pieces: Sequence[bytes], max_states: int = MAX_STATES) -> Dfa:
    """The texts of consecutive pieces (valid UTF-8), the empty text included. Empty pieces say nothing.

    A suffix automaton over the pieces (Blumer et al., 1985), of at most two states a piece, each of whose steps is
    spelled byte by byte. Where spellings share beginnings, sets of places are followed; for characters there is one.

    Raises:
        TooComplexError: more than ``max_states`` states.
    """
    steps = _suffix_automaton([piece for piece in pieces if piece])
    spelled = [_Spelling.of(of.items()) for of in steps]
    sets: dict[frozenset[tuple[int, int]], int] = {
        frozenset({(0, 0)}): 0
    }  # places: a state, and a node of its spelling
    rows, accepting = [], []
    todo = list(sets)
    for places in todo:
        row = np.full(256, -1, np.int32)
        following: dict[int, set[tuple[int, int]]] = {}
        for state, node in places:
            for byte, child in spelled[state].children[node].items():
                reached = following.setdefault(byte, set())
                if spelled[state].children[child]:
                    reached.add((state, child))
                if child in spelled[state].ends:
                    reached.add((spelled[state].ends[child], 0))
        for byte, reached in following.items():
            key = frozenset(reached)
            if key not in sets:
                sets[key] = len(sets)
                todo.append(key)
                if len(sets) > max_states:
                    raise too_complex(max_states, f"the substrings of {len(pieces)} pieces")
            row[byte] = sets[key]
        rows.append(row)
        accepting.append(any(node == 0 for _, node in places))
    return from_table(np.stack(rows), np.array(accepting, np.uint8))


@dataclass
class _Spelling:
    """The pieces that may follow, as a tree of bytes: children of each node, and the state behind each end."""

    children: list[dict[int, int]] = field(default_factory=lambda: [{}])
    ends: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, steps: Iterable[tuple[bytes, int]]) -> _Spelling:
        found = cls()
        for piece, state in steps:
            node = 0
            for byte in piece:
                if byte not in found.children[node]:
                    found.children[node][byte] = len(found.children)
                    found.children.append({})
                node = found.children[node][byte]
            found.ends[node] = state
        return found


def _suffix_automaton(letters: Sequence[bytes]) -> list[dict[bytes, int]]:
    """Steps of each state by letter; state 0 is the start, and all states accept."""
    steps: list[dict[bytes, int]] = [{}]
    length, link = [0], [-1]  # of the longest text of a state; the state of its longest suffix that is in another
    last = 0
    for letter in letters:
        new = len(steps)
        steps.append({})
        length.append(length[last] + 1)
        link.append(0)
        at = last
        while at >= 0 and letter not in steps[at]:
            steps[at][letter] = new
            at = link[at]
        if at >= 0:
            target = steps[at][letter]
            if length[at] + 1 == length[target]:
                link[new] = target
            else:
                copy = len(steps)
                steps.append(dict(steps[target]))
                length.append(length[at] + 1)
                link.append(link[target])
                while at >= 0 and steps[at].get(letter) == target:
                    steps[at][letter] = copy
                    at = link[at]
                link[target] = link[new] = copy
        last = new
    return steps
