"""Accepted lengths in code points against enumeration."""

from __future__ import annotations

import itertools

import pytest

from structgen.core.regex.dfa import empty, universal
from structgen.core.regex.lengths import distances
from structgen.core.regex.pattern import full_match_dfa
from structgen.errors import TooComplexError

EXPRESSIONS = ["", "a", "a*", "(?:aa)*", "(?:aaa)*|(?:aa)*b", "a{3,5}"]
EXPRESSIONS += ["é{2}|€{4}", "(?:😀a)+", "a{2}(?:bbb)*c?", ".{0,4}"]


def lengths_from(dfa, state, limit):
    """All accepted lengths up to ``limit``: lead bytes counted along every path, by sets of states."""
    found = []
    layer = {state}
    for length in range(limit + 1):
        closed = set(layer)  # continuation bytes belong to a character already counted
        todo = list(layer)
        while todo:
            row = dfa.transitions[todo.pop()]
            new = {int(t) for t in row[0x80:0xC0] if t >= 0} - closed
            closed |= new
            todo += new
        if any(dfa.accepting[s] for s in closed):
            found.append(length)
        leads = itertools.chain(range(0x80), range(0xC0, 0x100))
        layer = {int(dfa.transitions[s, b]) for b in leads for s in closed if dfa.transitions[s, b] >= 0}
    return found


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_lengths_agree_with_enumeration(expression):
    dfa = full_match_dfa(expression)
    table = distances(dfa)
    for state in range(len(dfa)):
        lengths = lengths_from(dfa, state, 40)
        for low in range(20):
            expected = min((n for n in lengths if n >= low), default=None)
            assert table.next_length(state, low) == expected
            for high in (low, low + 2, None):
                alive = any(low <= n and (high is None or n <= high) for n in lengths)
                assert table.alive(state, low, high) == alive


def test_large_lengths_are_reduced():
    table = distances(full_match_dfa("(?:aaa)+"))
    assert table.next_length(0, 10**9) == 10**9 + 2
    assert table.alive(0, 10**9, 10**9 + 1) is False


def test_extremes():
    assert distances(universal()).period == 1
    assert distances(empty()).nxt.shape == (0, 1)
    with pytest.raises(TooComplexError) as error:
        distances(full_match_dfa("(?:a{17})*|(?:a{19})*b|(?:a{23})*c"), cap=10_000)
    assert error.value.budget is None
