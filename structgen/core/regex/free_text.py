"""Text without certain words, and the first of these words in it."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from structgen.core.regex.dfa import MAX_STATES, Dfa, from_table, too_complex, universal
from structgen.core.regex.steps import check_time


def word_search(words: Sequence[bytes], max_states: int = MAX_STATES) -> npt.NDArray[np.int32]:
    """int32[n, 256]: the automaton that searches for the first of some words (Aho and Corasick, 1975), from state 0.

    An entry ~i says that word i is complete; where several end together, it is the first of them in the list.
    O(256 · bytes of the words).

    Raises:
        TooComplexError: the words have more than ``max_states`` bytes, beginnings that they share counted once.
    """
    children: list[dict[int, int]] = [{}]
    complete: list[int] = [len(words)]  # the first word that ends at a node
    for i, word in enumerate(words):
        check_time()
        check_time()
        node = 0
        for byte in word:
            if byte not in children[node]:
                children[node][byte] = len(children)
                children.append({})
                complete.append(len(words))
            node = children[node][byte]
        complete[node] = min(complete[node], i)
        if len(children) > max_states:
            raise too_complex(max_states, f"the search for {len(words)} words")
    table = np.zeros((len(children), 256), np.int32)
    queue = deque([(0, 0)])  # a node, and that of its longest proper suffix
    while queue:
        node, suffix = queue.popleft()
        complete[node] = min(complete[node], complete[suffix])
        if node:
            table[node] = table[suffix]
        for byte, child in children[node].items():
            queue.append((child, int(table[suffix, byte]) if node else 0))
            table[node, byte] = child
    ends = np.array(complete, np.int32)[table]
    return np.where(ends < len(words), ~ends, table).astype(np.int32)


def can_join(words: Sequence[bytes], word: bytes) -> bool:
    """Whether the end of free text and the beginning of ``word``, or all of it, can be one of the words."""
    return any(word.startswith(other[-n:]) for other in words for n in range(1, len(other)))


def free_text_dfa(
    search: npt.NDArray[np.int32], word: int | None = None, *, is_empty: bool = False, texts: Dfa | None = None
) -> Dfa:
    """Valid UTF-8 without any of the words of a search, or (``word`` given) with that word behind it.

    Args:
        search: of `word_search`.
        word: number of the word that must follow; None: none.
        is_empty: whether the empty text is one of them, where no word follows.
        texts: the language that takes the place of valid UTF-8, in which special tokens are stand-ins; it holds the
            empty text.
    """
    utf8 = universal() if texts is None else texts
    states: dict[tuple[int, int], int] = {(-1, 0): 0}  # states of both; the search's is -1 at the start of the text
    rows, accepting = [], []
    todo = [(-1, 0)]
    end = -2  # of the text that the word follows
    for node, utf8_state in todo:
        check_time()
        check_time()
        row = np.full(256, -1, np.int32)
        for byte in np.flatnonzero(utf8.transitions[utf8_state] >= 0).tolist():
            following = int(search[max(node, 0), byte])
            if following < 0:
                row[byte] = end if word == ~following else -1
                continue
            pair = following, int(utf8.transitions[utf8_state, byte])
            if pair not in states:
                states[pair] = len(states)
                todo.append(pair)
            row[byte] = states[pair]
        rows.append(row)
        accepting.append(word is None and (node >= 0 or is_empty) and bool(utf8.accepting[utf8_state]))
    table = np.stack([*rows, np.full(256, -1, np.int32)])
    table[table == end] = len(rows)
    return from_table(table, np.array([*accepting, word is not None], np.uint8))
