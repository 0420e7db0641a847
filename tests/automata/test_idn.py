"""Internationalised host names against the ``idna`` package."""

from __future__ import annotations

import random

import idna
import pytest

from structgen.automata.dfa import accepts
from structgen.automata.formats import format_dfa
from structgen.automata.unicode.properties import property_set

LETTERS = "ab-l1·.אבײة٠۰字ぁァ・क्षéßς͵α\u200d\u200c\u05f3َ"


@pytest.fixture(scope="module")
def names():
    dfa = format_dfa("idn-hostname", "draft2020-12")
    assert dfa is not None
    return dfa


def test_every_accepted_name_is_legal(names):
    valid = property_set("idn", "PVALID")
    assert valid is not None
    rare = [c for low, high in valid for c in range(low, min(high, low + 3) + 1)]
    source = random.Random(0)
    accepted = 0
    for _ in range(8000):
        size = source.randint(1, 6)
        text = "".join(
            source.choice(LETTERS) if source.random() < 0.85 else chr(source.choice(rare)) for _ in range(size)
        )
        if accepts(names, text):
            accepted += 1
            try:
                idna.encode(text)
            except idna.IDNABidiError as error:  # a character newer than the interpreter's Unicode data
                assert "Unknown directionality" in str(error)
    assert accepted > 500


@pytest.mark.parametrize("text", ["a", "WWW.Example.com", "bücher.example", "実例.テスト", "ابجد.com", "l·l", "x" * 63])
def test_common_names(names, text):
    assert accepts(names, text)


@pytest.mark.parametrize(
    "text", ["", ".", "a..b", "-a", "a-", "xn--bcher-kva", "Bücher", "aא", "0a.א", "a\u0301", "x" * 64]
)
def test_illegal_or_left_out(names, text):
    assert not accepts(names, text)
