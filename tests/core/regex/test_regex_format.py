"""The format regex against Node's parser; what Python's ``re`` is asked to read of it against ``re``."""

from __future__ import annotations

import random
import re
import warnings

import numpy as np
import pytest

from structgen.core.regex.dfa import Dfa, accepts, intersect, shortest
from structgen.core.regex.ecma_parser import parse
from structgen.core.regex.formats import format_dfa
from structgen.core.regex.pattern import pattern_dfa
from structgen.core.regex.regex_format import READ_BY_PYTHON
from structgen.errors import UnsupportedPatternError
from tests.core.regex.ecma_oracle import node, search_all

DFA = format_dfa("regex")


STARTS = ["", "", "(?<n>", "(?<x>a)", "^(?<q>[b])c", "(?<=", "x(?<name>", "(a|b)(?<k>.)\\k", "[^"]


def random_words(dfa: Dfa, count: int) -> list[str]:
    """Words of a language, of all its parts."""
    source, words = random.Random(0), []
    for _ in range(count):
        state, word = 0, source.choice(STARTS).encode()
        for byte in word:
            state = int(dfa.transitions[state, byte]) if state >= 0 else -1
        if state < 0:
            continue
        for _ in range(source.randint(1, 40)):
            printable = np.flatnonzero(dfa.transitions[state, :0x7F] >= 0).tolist()
            if not printable:
                break
            wanted = [byte for byte in b"()[]\\k^" if byte in printable]
            byte = source.choice(wanted if wanted and source.random() < 0.4 else printable)
            state, word = int(dfa.transitions[state, byte]), word + bytes([byte])
        words.append((word + (shortest(dfa, state) or b"")).decode())
    return words


@pytest.mark.full
@pytest.mark.skipif(node() is None, reason="needs Node")
def test_random_words_are_legal_in_node():
    assert DFA is not None
    words = random_words(DFA, 4000)
    assert sum("(?<" in word for word in words) > 200 and sum("\\k<" in word for word in words) > 20
    found = search_all([(word, []) for word in words])
    assert [word for word, result in zip(words, found, strict=True) if result is None] == []
    for word in words[:400]:
        try:
            parse(word)
        except UnsupportedPatternError:
            assert "\\k<" in word


def test_python_reads_what_it_is_asked_to_read():
    assert DFA is not None
    shared = intersect(DFA, pattern_dfa(READ_BY_PYTHON))
    for word in random_words(shared, 2000):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # "[[" and "--" may get a meaning one day
            re.compile(word)


@pytest.mark.full
@pytest.mark.skipif(node() is None, reason="needs Node")
def test_what_node_refuses_is_refused():
    """Words of the format with a character changed, left out or put in."""
    assert DFA is not None
    source, texts = random.Random(1), []
    for word in random_words(DFA, 4000):
        at = source.randrange(len(word) + 1)
        texts.append(word[:at] + source.choice(["", *"()[]{}?*\\k<>=!^-1a"]) + word[at + source.randrange(2) :])
    found = search_all([(text, []) for text in texts])
    assert sum(result is None for result in found) > 200
    assert [text for text, result in zip(texts, found, strict=True) if result is None and accepts(DFA, text)] == []


@pytest.mark.parametrize("text", ["(?<name>x)", r"(?<n>a)\k<n>", "(?<=a+)b", "(?<!a)", "[]", "[^]", r"\cA", r"[\cz]"])
def test_what_only_ecma_262_has(text):
    assert DFA is not None
    assert accepts(DFA, text)
    assert not accepts(pattern_dfa(READ_BY_PYTHON), text) or r"\c" not in text


@pytest.mark.parametrize(
    "text",
    [r"\a", "(?P<n>x)", r"\c1", "(?<1>x)", "(?<n>x", r"(?<n>a)\k<x>", r"\k<n>", "(?<n>a)(?<n>b)", "(?<=a)*", "[^"],
)
def test_what_is_none(text):
    assert DFA is not None
    assert not accepts(DFA, text)


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
