"""The format regex against the parsers of both languages: Python's ``re`` and our ECMA-262."""

from __future__ import annotations

import random
import re
import warnings

import numpy as np
import pytest

from structgen.automata.dfa import accepts, shortest
from structgen.automata.ecma_parser import parse
from structgen.automata.formats import format_dfa
from structgen.errors import PatternError

DFA = format_dfa("regex")


def test_random_words_are_legal_in_both_languages():
    assert DFA is not None
    source = random.Random(0)
    for _ in range(400):
        state, word = 0, b""
        for _ in range(source.randint(1, 40)):
            printable = np.flatnonzero(DFA.transitions[state, :0x7F] >= 0).tolist()
            if not printable:
                break
            byte = source.choice(printable)
            state, word = int(DFA.transitions[state, byte]), word + bytes([byte])
        text = (word + (shortest(DFA, state) or b"")).decode()
        assert accepts(DFA, text)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # "[[" and "--" may get a meaning one day
            re.compile(text)
        try:
            parse(text)
        except PatternError as error:
            pytest.fail(str(error))


@pytest.mark.parametrize(
    "text",
    [
        r"^[\w.-]+@[\w-]+\.\w{2,4}$",
        r"^(https?://)?[^\s/$.?#].[^\s]*$",
        r"^(?!_)\d{12,20}(\.\d+)?$",
        r"^[\x00-\x7F]*\u00e9$",
        "value1|value2",
        "((((x))))",
        "[a-f][A-F][0-9]",
    ],
)
def test_what_people_write(text):
    assert DFA is not None
    assert accepts(DFA, text)


@pytest.mark.parametrize("low", range(0, 130, 7))
@pytest.mark.parametrize("high", range(0, 130, 6))
def test_repetition_counts(low, high):
    assert DFA is not None
    accepted = accepts(DFA, f"a{{{low},{high}}}")
    if low > high:
        assert not accepted
    elif low < 100:
        assert accepted
