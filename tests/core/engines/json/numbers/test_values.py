"""Counts of the values that a number can still become are lower bounds; what is followed meets them all."""

from __future__ import annotations

from fractions import Fraction

import pytest

from structgen.core.engines.json.numbers.automaton import NumberAutomaton
from structgen.core.engines.json.numbers.spec import NumberSpec
from structgen.core.engines.json.numbers.values import symbols, value_counts, value_texts

ONE = frozenset({Fraction(1)})
SPECS = {
    "one": NumberSpec(values=ONE),
    "zero": NumberSpec(values=frozenset({Fraction(0)})),
    "few": NumberSpec(values=frozenset(map(Fraction, ("0", "1", "-1", "10", "1/2", "5", "100")))),
    "decimals": NumberSpec(values=frozenset(map(Fraction, ("1/20", "1/2", "3/2", "105/100", "15")))),
    "digits": NumberSpec(Fraction(0), maximum=Fraction(12), multiples=ONE),
    "halves": NumberSpec(Fraction(-1), maximum=Fraction(2), multiples=frozenset({Fraction(1, 2)})),
    "marked": NumberSpec(values=frozenset(map(Fraction, ("0", "1", "1/2"))), spelling="marked"),
    "plain": NumberSpec(values=frozenset(map(Fraction, ("0", "1", "-1", "10", "1/2", "1/20"))), spelling="plain"),
}
LENGTH = 5


def reached(automaton: NumberAutomaton, state: int, text: bytes, left: int) -> set[Fraction]:
    """The values of all texts with ``left`` more bytes at most."""
    found = {Fraction(text.decode())} if automaton.accepting(state) else set()
    if left:
        for byte, after in automaton.row(state):
            if byte not in b"E+":
                found |= reached(automaton, after, text + bytes([byte]), left - 1)
    return found


def followed(automaton: NumberAutomaton, state: int, text: bytes, left: int) -> set[Fraction]:
    """The same along `symbols` only."""
    found = {Fraction(text.decode())} if automaton.accepting(state) else set()
    if left:
        rows, led = dict(automaton.row(state)), symbols(automaton, state)
        for byte in led:
            found |= followed(automaton, rows[byte], text + bytes([byte]), left - 1)
    return found


@pytest.mark.parametrize("name", SPECS)
def test_counts_and_what_is_followed(name: str) -> None:
    automaton = NumberAutomaton(SPECS[name])
    texts = {b"": automaton.start}
    for _ in range(3):
        texts |= {t + bytes([b]): s for t, state in texts.items() for b, s in automaton.row(state) if b not in b"E+"}
    for text, state in texts.items():
        met = followed(automaton, state, text, 9)
        assert reached(automaton, state, text, LENGTH - len(text)) <= met, text
        if text:  # a start is counted by its spec
            assert 1 <= value_counts(automaton, state, 1000) <= len(met), text


@pytest.mark.parametrize("name", SPECS)
def test_texts_are_all_values(name: str) -> None:
    spec = SPECS[name]
    texts = list(value_texts(NumberAutomaton(spec)))
    wanted = {Fraction(n, 2) for n in range(-300, 300) if spec.contains(Fraction(n, 2))} | set(spec.values or ())
    assert {Fraction(text.decode()) for text in texts} == wanted
