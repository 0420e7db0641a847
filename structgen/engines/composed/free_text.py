"""Free text: any text without some strings, and up to the first of them, as automata."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from structgen.automata.dfa import Dfa, from_table, universal


def word_search(words: Sequence[bytes]) -> npt.NDArray[np.int32]:
    """int32[n, 256]: the automaton that searches for the first of some words (Aho and Corasick, 1975), from state 0.

    An entry ~i says that word i is complete. No word may hold another. O(256 · bytes of the words).
    """
    children: list[dict[int, int]] = [{}]
    for i, word in enumerate(words):
        node = 0
        for byte in word[:-1]:
            if byte not in children[node]:
                children[node][byte] = len(children)
                children.append({})
            node = children[node][byte]
        children[node][word[-1]] = ~i
    table = np.zeros((len(children), 256), np.int32)
    queue = deque([(0, 0)])  # a state, and that of its longest proper suffix
    while queue:
        node, suffix = queue.popleft()
        if node:
            table[node] = table[suffix]
        for byte, child in children[node].items():
            if child > 0:
                queue.append((child, int(table[suffix, byte]) if node else 0))
            table[node, byte] = child
    return table


def free_text_dfa(search: npt.NDArray[np.int32], word: int | None = None) -> Dfa:
    """Valid UTF-8 without any of the words of a search: not empty, or (``word`` given) with that word behind it."""
    utf8 = universal()
    states: dict[tuple[int, int], int] = {(-1, 0): 0}  # states of both; the search's is -1 at the start of the text
    rows, accepting = [], []
    todo = [(-1, 0)]
    end = -2  # of the text that the word follows
    for node, place in todo:
        row = np.full(256, -1, np.int32)
        for byte in np.flatnonzero(utf8.transitions[place] >= 0).tolist():
            following = int(search[max(node, 0), byte])
            if following < 0:
                row[byte] = end if word == ~following else -1
                continue
            pair = following, int(utf8.transitions[place, byte])
            if pair not in states:
                states[pair] = len(states)
                todo.append(pair)
            row[byte] = states[pair]
        rows.append(row)
        accepting.append(word is None and node >= 0 and bool(utf8.accepting[place]))
    table = np.stack([*rows, np.full(256, -1, np.int32)])
    table[table == end] = len(rows)
    return from_table(table, np.array([*accepting, word is not None], np.uint8))
