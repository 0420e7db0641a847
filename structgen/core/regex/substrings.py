"""Automata of what stands somewhere in a text, by chunks: characters, words, or other pieces.

The texts are ``chunks[n:m]`` joined, the empty one included. A suffix automaton over chunks knows which chunk may
follow (at most two states a chunk, built in one pass: Blumer et al. 1985); spelling its chunks in bytes and
determinising gives the automaton over bytes.
"""

from __future__ import annotations

import numpy as np

from structgen.core.regex.dfa import Dfa, from_table, too_complex
from structgen.core.regex.dfa_cache import keeps_automata
from structgen.core.regex.steps import check_time

MAX_STATES = 200_000
"""Of the automaton, before it is minimised; each takes a kilobyte."""


@keeps_automata
def substring_dfa(chunks: tuple[str, ...], max_states: int = MAX_STATES) -> Dfa:
    """The texts that some neighbouring chunks are, joined; the empty text among them. Cached for the process.

    Raises:
        TooComplexError: the automaton would exceed ``max_states`` before it is minimised.
    """
    words = [chunk for chunk in chunks if chunk]
    numbers = {word: number for number, word in enumerate(dict.fromkeys(words))}
    follows = _suffix_automaton([numbers[word] for word in words])
    return _spelled(follows, [word.encode() for word in numbers], max_states)


def _suffix_automaton(symbols: list[int]) -> list[dict[int, int]]:
    """The successors of each state by symbol; state 0 is the start, and all states are final. O(symbols)."""
    follows: list[dict[int, int]] = [{}]
    link, length = [-1], [0]
    last = 0
    for symbol in symbols:
        check_time()
        check_time()
        new = len(follows)
        follows.append({})
        link.append(0)
        length.append(length[last] + 1)
        state = last
        while state >= 0 and symbol not in follows[state]:
            follows[state][symbol] = new
            state = link[state]
        if state >= 0:
            old = follows[state][symbol]
            if length[old] == length[state] + 1:
                link[new] = old
            else:
                clone = len(follows)
                follows.append(dict(follows[old]))
                link.append(link[old])
                length.append(length[state] + 1)
                link[old] = link[new] = clone
                while state >= 0 and follows[state].get(symbol) == old:
                    follows[state][symbol] = clone
                    state = link[state]
        last = new
    return follows


def _spelled(follows: list[dict[int, int]], words: list[bytes], max_states: int) -> Dfa:
    """The automaton over bytes of one whose symbols are words.

    A state is a set of places: between words, ``(state, -1, 0)``, or inside one, ``(state behind it, word, offset)``.
    """
    start = frozenset([(0, -1, 0)])
    numbers, todo = {start: 0}, [start]
    edges: list[tuple[int, int, int]] = []
    for number, places in enumerate(todo):  # which grows on the way
        check_time()
        check_time()
        after: dict[int, set[tuple[int, int, int]]] = {}
        for state, word, offset in places:
            inside = [(state, word, offset)] if word >= 0 else [(t, w, 0) for w, t in follows[state].items()]
            for target, w, o in inside:
                ended = o + 1 == len(words[w])
                target_place = (target, -1, 0) if ended else (target, w, o + 1)
                after.setdefault(words[w][o], set()).add(target_place)
        for byte, result in after.items():
            key = frozenset(result)
            if key not in numbers:
                if len(numbers) >= max_states:
                    raise too_complex(max_states, "the automaton of the substrings")
                numbers[key] = len(todo)
                todo.append(key)
            edges.append((number, byte, numbers[key]))
    table = np.full((len(todo), 256), -1, np.int32)
    origins, labels, targets = np.array(edges, np.int64).reshape(-1, 3).T
    table[origins, labels] = targets
    accepting = np.array([any(word < 0 for _, word, _ in places) for places in todo], np.uint8)
    return from_table(table, accepting)
