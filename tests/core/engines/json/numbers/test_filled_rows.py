"""Rows of number states in a pool: those of the automaton, filled as far as tokens of digits look."""

from __future__ import annotations

from fractions import Fraction

import pytest

from structgen.core.engines.json.masks.token_index import build_lexicon
from structgen.core.engines.json.numbers.automaton import NumberAutomaton, NumberSpec
from structgen.core.engines.json.tables.pool import AutomatonPool
from structgen.core.kernels.json.layout import ACCEPTING, LAZY
from structgen.core.vocabulary.vocabulary import Vocabulary

SPECS = {
    "integers": NumberSpec(multiples=frozenset({Fraction(1)})),
    "steps": NumberSpec(Fraction(16), maximum=Fraction(4064), multiples=frozenset({Fraction(16)})),
    "open": NumberSpec(Fraction(-1, 8), True, maximum=Fraction(90)),
    "few": NumberSpec(Fraction(7), maximum=Fraction(12), multiples=frozenset({Fraction(1)})),
}


@pytest.mark.parametrize("digits", [1, 2, 3])
@pytest.mark.parametrize("name", SPECS)
def test_rows_are_those_of_the_automaton(name: str, digits: int) -> None:
    automaton, pool = NumberAutomaton(SPECS[name]), AutomatonPool()
    start = pool.add_number(automaton)
    pool.fill_number(start, digits)
    layer, filled = {start}, set()
    for _ in range(digits):
        filled |= layer
        for place in layer:
            row = pool.transitions[256 * place : 256 * place + 256].tolist()
            found = {byte: pool.number_at(after)[1] for byte, after in enumerate(row) if after >= 0}
            assert found == dict(automaton.row(pool.number_at(place)[1]))
        layer = {int(pool.transitions[256 * place + byte]) for place in layer for byte in b"0123456789"} - {-1}
    for place in range(start, pool.count):
        assert bool(pool.flags[place] & LAZY) == (place not in filled)
        assert bool(pool.flags[place] & ACCEPTING) == automaton.accepting(pool.number_at(place)[1])


@pytest.mark.parametrize(("longest", "more", "wanted"), [(1, (), 1), (2, (b"2017",), 2), (3, (b"0" * 30,), 3)])
def test_digits_that_tokens_have_at_once(longest: int, more: tuple[bytes, ...], wanted: int) -> None:
    numbers = [f"{n:0{width}}".encode() for width in range(1, longest + 1) for n in range(10**width)]
    tokens = [bytes([byte]) for byte in range(256) if not chr(byte).isdigit() or byte > 127]
    vocabulary = Vocabulary([*tokens, *numbers, *more, None], eos_token_ids=len(tokens) + len(numbers) + len(more))
    assert build_lexicon(vocabulary, escapes=True).common_digits == wanted
