"""The shipped property tables against ``unicodedata`` and ``regex``."""

from __future__ import annotations

import unicodedata

import pytest
import regex

from structgen.core.regex.ecma_classes import fold, property_class
from structgen.core.regex.unicode.properties import case_orbits, property_set, unicode_version

SAMPLE = [c for c in range(0x30000) if not 0xD800 <= c <= 0xDFFF and (c < 0x3000 or c % 37 == 0)]


MOVED = {0x295, 0x1734, 0x1B44}
"""Characters whose category changed after the interpreter's Unicode version; unassigned ones aside."""


def members(charset) -> set[int]:
    return {c for low, high in charset for c in range(low, high + 1)}


@pytest.mark.parametrize("category", ["Lu", "Ll", "Nd", "Zs", "Mn", "Sc", "Pd"])
def test_general_categories_agree_with_unicodedata(category):
    found = members(property_set("gc", category))
    for c in SAMPLE:
        known = unicodedata.category(chr(c))
        if known != "Cn" and c not in MOVED:
            assert (c in found) == (known == category), hex(c)


@pytest.mark.parametrize(
    "expression", ["Script=Cyrillic", "sc=Hani", "scx=Latn", "Alphabetic", "White_Space", "ID_Start", "L", "Emoji"]
)
def test_properties_agree_with_regex(expression):
    found = property_class(expression)
    assert found is not None
    compiled = regex.compile(rf"\p{{{expression}}}")
    assert {c for c in SAMPLE if compiled.match(chr(c))} == members(found) & set(SAMPLE)


def test_names_are_exact():
    assert property_class("Lu") == property_class("gc=Uppercase_Letter") == property_class("General_Category=Lu")
    assert property_class("Script=Greek") == property_class("sc=Grek")
    for wrong in ("lu", "Greek", "sc=Greek ", "Script", "gc=Greek", "Block=Latin", ""):
        assert property_class(wrong) is None


def test_case_folding():
    assert all(len(orbit) > 1 for orbit in case_orbits())
    assert members(fold(((0x6B, 0x6B),))) == {0x4B, 0x6B, 0x212A}
    assert members(fold(((0x31, 0x31),))) == {0x31}
    assert members(fold(((0xDF, 0xDF),))) == {0xDF, 0x1E9E, 0x1DF95}
    assert members(fold(((0x264, 0x264),))) == {0x264, 0xA7CB}  # of the same version as the other tables


def test_version_is_pinned():
    assert unicode_version() == "18.0.0"
