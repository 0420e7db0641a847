"""Internationalised host names against the ``idna`` package."""

from __future__ import annotations

import random

import idna
import pytest

from structgen.core.regex.dfa import accepts
from structgen.core.regex.formats import format_dfa
from structgen.core.regex.unicode.properties import property_set
from tests.many import nightly

LETTERS = "ab-l1·.אבײة٠۰字ぁァ・क्षéßς͵α\u200d\u200c\u05f3َبيدا\u07ca\u0713"


DOTS = {0x3002, 0xFF0E, 0xFF61}  # a dot at the end is none of JSON Schema's
MOVED = {0x1B3A, 0x1B3C, 0x1B42, 0x1171E}
"""Characters whose bidirectional class is another since Unicode 14."""


def is_legal(text: str) -> bool:
    """What the package ``idna`` says, by the interpreter's Unicode version."""
    try:
        idna.encode(text)
    except idna.IDNAError:
        return False
    return True


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
    accepted = joiners = 0
    for _ in range(12000):
        size = source.randint(1, 6)
        text = "".join(
            source.choice(LETTERS) if source.random() < 0.85 else chr(source.choice(rare)) for _ in range(size)
        )
        if source.random() < 0.1:
            text = "".join(source.choice("بيدا\u07ca\u0713\u200c\u0660אa") for _ in range(size))
        if accepts(names, text):
            accepted += 1
            joiners += "\u200c" in text
            assert is_legal(text), ascii(text)
    assert accepted > 500 and joiners > 5


@pytest.mark.full
@pytest.mark.parametrize("form", ["{}", "a{}b", "ब{}", "ا{}ب"])
def test_every_character(names, form):
    points = [point for point in range(0x80, 0x40000) if not 0xD800 <= point <= 0xDFFF]
    taken = [text for text in (form.format(chr(point)) for point in points) if accepts(names, text)]
    assert len(taken) > 100 and [ascii(text) for text in taken if not is_legal(text)] == []


@pytest.mark.full
@nightly
def test_what_is_left_out_of_short_names(names):
    """Names of one character and a letter: what ``idna`` takes besides are the marks and letters that form C joins."""
    joined = property_set("idn", "NFC")
    assert joined is not None
    stable = {c for low, high in joined for c in range(low, high + 1)}
    left_out = [
        point
        for point in range(0x80, 0x40000)
        if not 0xD800 <= point <= 0xDFFF and is_legal("q" + chr(point)) and not accepts(names, "q" + chr(point))
    ]
    assert [hex(point) for point in left_out if point in stable - MOVED - DOTS] == []


@pytest.mark.parametrize(
    "text",
    ["a", "WWW.Example.com", "bücher.example", "実例.テスト", "ابجد.com", "l·l", "x" * 63, "بي\u200cبي", "د.بي\u200cب"],
)
def test_common_names(names, text):
    assert accepts(names, text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "a..b",
        "-a",
        "a-",
        "xn--bcher-kva",
        "Bücher",
        "aא",
        "0a.א",
        "a\u0301",
        "x" * 64,
        "د\u200cب",
        "ب\u200ca",
        "ب\u200c",
        "\u200cب",
    ],
)
def test_illegal_or_left_out(names, text):
    assert not accepts(names, text)
