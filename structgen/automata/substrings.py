"""Runs of consecutive pieces of a text: its substrings, where the pieces are its characters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from structgen.automata.dfa import MAX_STATES, Dfa, from_table, too_complex


def substring_dfa(pieces: Sequence[bytes], max_states: int = MAX_STATES) -> Dfa:
    """The texts of consecutive pieces (valid UTF-8), the empty text included. Empty pieces say nothing.

    A suffix automaton over the pieces (Blumer et al., 1985), of at most two states a piece, each of whose steps is
    spelled byte by byte. Where spellings share beginnings, sets of places are followed; for characters there is one.

    Raises:
        TooComplexError: more than ``max_states`` states before the automaton is minimised.
    """
    numbers = {piece: number for number, piece in enumerate(dict.fromkeys(pieces)) if piece}
    steps = _suffix_automaton([numbers[piece] for piece in pieces if piece])
    words = list(dict.fromkeys(pieces))
    start = frozenset([(0, -1, 0)])
    # A place is a state between pieces, (state, -1, 0), or inside of one, (state behind it, the piece, bytes of it).
    sets: dict[frozenset[tuple[int, int, int]], int] = {start: 0}
    todo = [start]
    edges: list[tuple[int, int, int]] = []
    for number, places in enumerate(todo):  # which grows on the way
        following: dict[int, set[tuple[int, int, int]]] = {}
        for state, piece, done in places:
            inside = [(state, piece, done)] if piece >= 0 else [(t, p, 0) for p, t in steps[state].items()]
            for target, word, at in inside:
                ended = at + 1 == len(words[word])
                reached = (target, -1, 0) if ended else (target, word, at + 1)
                following.setdefault(words[word][at], set()).add(reached)
        for byte, found in following.items():
            key = frozenset(found)
            if key not in sets:
                if len(sets) >= max_states:
                    raise too_complex(max_states, f"the substrings of {len(pieces)} pieces")
                sets[key] = len(todo)
                todo.append(key)
            edges.append((number, byte, sets[key]))
    table = np.full((len(todo), 256), -1, np.int32)
    origins, labels, targets = np.array(edges, np.int64).reshape(-1, 3).T
    table[origins, labels] = targets
    accepting = np.array([any(piece < 0 for _, piece, _ in places) for places in todo], np.uint8)
    return from_table(table, accepting)


def _suffix_automaton(letters: Sequence[int]) -> list[dict[int, int]]:
    """Steps of each state by letter; state 0 is the start, and all states accept."""
    steps: list[dict[int, int]] = [{}]
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
