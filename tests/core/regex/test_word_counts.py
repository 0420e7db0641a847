"""Numbers of texts that go on from the states of an automaton, against texts that are written out."""

from __future__ import annotations

from collections import Counter
from functools import cache

import numpy as np
import pytest

from structgen.core.regex.dfa import Dfa, count_words, short_words, words_everywhere
from structgen.core.regex.pattern import pattern_dfa

PATTERNS = [
    "^$", "^[ab]{0,3}$", "^a*$", "^(ab?|[é€]{1,2}|😀)$", "^.{0,3}$", "^[^a]{2,40}$", "^(x|ab*c|a.{3})$", "^a+b{2,7}$",
    "^([0-9]{2}|z+y)$",
]  # fmt: skip


def written(dfa: Dfa, points: int) -> list[int]:
    """How many texts of at most so many characters (begun ones do not count) are accepted from each state on."""
    steps = [
        Counter((after, (byte & 0xC0) != 0x80) for byte, after in enumerate(row) if after >= 0)
        for row in dfa.transitions.tolist()
    ]

    @cache
    def ways(state: int, left: int) -> int:
        found = int(dfa.accepting[state])
        return found + sum(n * ways(after, left - leads) for (after, leads), n in steps[state].items() if left >= leads)

    return [ways(state, points) for state in range(len(dfa))]


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize(("points", "cap"), [(0, 100), (2, 3), (3, 10**6), (16, 50)])
def test_short_words(pattern: str, points: int, cap: int) -> None:
    dfa = pattern_dfa(pattern)
    assert short_words(dfa, points, cap).tolist() == [min(cap, found) for found in written(dfa, points)]


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("cap", [1, 3, 1000])
def test_words_everywhere(pattern: str, cap: int) -> None:
    dfa = pattern_dfa(pattern)
    counts = count_words(dfa, cap)
    for state, found in enumerate(words_everywhere(dfa, cap).tolist()):
        reached, todo = {state}, [state]
        while todo:
            behind = set(np.unique(dfa.transitions[todo.pop()]).tolist()) - reached - {-1}
            reached |= behind
            todo += behind
        assert found == counts[state] + all(counts[place] >= cap for place in reached)
