"""Write ``tables.npz``: the Unicode properties that ECMA-262 regular expressions can name.

Run by hand when the Unicode version is to change, with the packages ``regex`` (the data), ``fonttools`` (the spelling
of script names) and ``idna`` (RFC 5892): ``python structgen/core/regex/unicode/generate.py 18.0.0``. Nothing needs them
at run time. Besides, the table holds what the rules for internationalised host names ask for (kind ``idn``).
"""

from __future__ import annotations

import argparse
import sys
import unicodedata
from itertools import pairwise
from pathlib import Path

import numpy as np
import regex
from fontTools.unicodedata import Scripts
from idna import idnadata

GENERAL_CATEGORIES = """
C=Other Cc=Control,cntrl Cf=Format Cn=Unassigned Co=Private_Use Cs=Surrogate L=Letter LC=Cased_Letter
Ll=Lowercase_Letter Lm=Modifier_Letter Lo=Other_Letter Lt=Titlecase_Letter Lu=Uppercase_Letter M=Mark,Combining_Mark
Mc=Spacing_Mark Me=Enclosing_Mark Mn=Nonspacing_Mark N=Number Nd=Decimal_Number,digit Nl=Letter_Number No=Other_Number
P=Punctuation,punct Pc=Connector_Punctuation Pd=Dash_Punctuation Pe=Close_Punctuation Pf=Final_Punctuation
Pi=Initial_Punctuation Po=Other_Punctuation Ps=Open_Punctuation S=Symbol Sc=Currency_Symbol Sk=Modifier_Symbol
Sm=Math_Symbol So=Other_Symbol Z=Separator Zl=Line_Separator Zp=Paragraph_Separator Zs=Space_Separator
"""
"""ECMA-262 (15th edition) table 68."""

BINARY = """
ASCII ASCII_Hex_Digit=AHex Alphabetic=Alpha Any Assigned Bidi_Control=Bidi_C Bidi_Mirrored=Bidi_M Case_Ignorable=CI
Cased Changes_When_Casefolded=CWCF Changes_When_Casemapped=CWCM Changes_When_Lowercased=CWL
Changes_When_NFKC_Casefolded=CWKCF Changes_When_Titlecased=CWT Changes_When_Uppercased=CWU Dash
Default_Ignorable_Code_Point=DI Deprecated=Dep Diacritic=Dia Emoji Emoji_Component=EComp Emoji_Modifier=EMod
Emoji_Modifier_Base=EBase Emoji_Presentation=EPres Extended_Pictographic=ExtPict Extender=Ext Grapheme_Base=Gr_Base
Grapheme_Extend=Gr_Ext Hex_Digit=Hex IDS_Binary_Operator=IDSB IDS_Trinary_Operator=IDST ID_Continue=IDC ID_Start=IDS
Ideographic=Ideo Join_Control=Join_C Logical_Order_Exception=LOE Lowercase=Lower Math Noncharacter_Code_Point=NChar
Pattern_Syntax=Pat_Syn Pattern_White_Space=Pat_WS Quotation_Mark=QMark Radical Regional_Indicator=RI
Sentence_Terminal=STerm Soft_Dotted=SD Terminal_Punctuation=Term Unified_Ideograph=UIdeo Uppercase=Upper
Variation_Selector=VS White_Space=space XID_Continue=XIDC XID_Start=XIDS
"""
"""ECMA-262 (15th edition) table 67: the name and its alias."""

DERIVED = {"Any": r"[\s\S]", "ASCII": r"[\x00-\x7f]", "Assigned": r"\P{gc=Cn}"}
OLDEST = "14.0.0"
"""The Unicode version of the oldest supported Python, with whose tables the package ``idna`` judges host names."""
SCRIPT_ALIASES = {"Coptic": "Qaac", "Inherited": "Qaai"}

TEXT = "".join(map(chr, range(0xD800))) + "".join(map(chr, range(0xE000, 0x110000)))


def bounds(expression: str) -> list[int]:
    """The characters that match, as low, past, low, past …"""
    result: list[int] = []
    for match in regex.finditer(f"(?:{expression})+", TEXT):
        low, high = ord(match[0][0]), ord(match[0][-1])
        spans = [(low, 0xD7FF), (0xE000, high)] if low < 0xD800 <= 0xDFFF < high else [(low, high)]
        for first, last in spans:
            result += [first, last + 1]
    return result


def nfkc_casefold_changes() -> list[int]:
    """Changes_When_NFKC_Casefolded, which ``regex`` lacks: the characters that are not their own NFKC_Casefold.

    From ``unicodedata`` and ``str.casefold``, so of the interpreter's Unicode version.
    """
    ignorable = regex.compile(r"\p{Default_Ignorable_Code_Point}")

    def nfkc_casefold(text: str) -> str:
        for _ in range(3):
            text = unicodedata.normalize("NFKC", ignorable.sub("", unicodedata.normalize("NFKC", text).casefold()))
        return text

    return edges([nfkc_casefold(char) != char for char in TEXT])


def edges(marks: list[bool]) -> list[int]:
    """The characters that are marked, as low, past, low, past …"""
    ends = [0, *(i for i, (a, b) in enumerate(pairwise(marks), 1) if a != b), len(marks)]
    return [ord(TEXT[i]) if i < len(TEXT) else 0x110000 for a, b in pairwise(ends) if marks[a] for i in (a, b)]


def collect() -> dict[str, list[int]]:
    """Bounds by ``kind/name``; names of one property share one list."""
    sets: dict[str, list[int]] = {}

    def enter(kind: str, names: list[str], points: list[int]) -> None:
        sets.update((f"{kind}/{name}", points) for name in names)

    for entry in GENERAL_CATEGORIES.split():
        names = entry.replace("=", ",").split(",")
        enter("gc", names, [] if names[0] == "Cs" else bounds(rf"\p{{gc={names[0]}}}"))
    for entry in BINARY.split():
        names = entry.split("=")
        if names[0] == "Changes_When_NFKC_Casefolded":
            enter("binary", names, nfkc_casefold_changes())
        else:
            enter("binary", names, bounds(DERIVED.get(names[0], rf"\p{{{names[0]}}}")))
    for short, long in Scripts.NAMES.items():
        names = [short, long, SCRIPT_ALIASES.get(long, short)]
        for kind in ("sc", "scx"):
            try:
                enter(kind, names, bounds(rf"\p{{{kind}={long}}}"))
            except regex.error:
                print(f"regex does not know the {kind} {long}", file=sys.stderr)
    enter("idn", ["PVALID"], pvalid())
    enter("idn", ["Starter"], bounds(r"\p{ccc=0}"))
    enter("idn", ["Virama"], bounds(r"\p{ccc=9}"))
    enter("idn", ["NFC"], bounds(r"\p{NFC_Quick_Check=Yes}"))
    for value in ["L", "R", "AL", "AN", "EN", "NSM"]:
        enter("idn", [f"Bidi_{value}"], bounds(rf"\p{{Bidi_Class={value}}}"))
    for value in ["L", "R", "D", "T"]:
        enter("idn", [f"Joining_{value}"], bounds(rf"\p{{Joining_Type={value}}}"))
    enter("idn", ["Known"], known())
    return sets


def known() -> list[int]:
    """The characters that the interpreter's Unicode version, the oldest in use, has and reads as the newest does."""
    assert unicodedata.unidata_version == OLDEST, f"run this with a Python whose Unicode version is {OLDEST}"

    def same(char: str) -> bool:
        bidi, order = unicodedata.bidirectional(char), unicodedata.combining(char)
        return bidi != "" and regex.match(rf"[\p{{bc={bidi}}}&&\p{{ccc={order}}}]", char, regex.V1) is not None

    marks = [unicodedata.category(char) != "Cn" and same(char) for char in TEXT]
    return edges(marks)


def pvalid() -> list[int]:
    """The characters that RFC 5892 allows without context."""
    return [n for span in idnadata.codepoint_classes["PVALID"] for n in (span >> 32, span & 0xFFFFFFFF)]


def orbits() -> list[int]:
    """Groups of characters with equal simple case folding: size, members, size, members …"""
    cased = "".join(regex.findall(r"[\p{Cased}\p{CWCM}\p{CWCF}]", TEXT))
    groups = {"".join(sorted(set(regex.findall(f"(?i){char}", cased)))) for char in cased}
    # `regex` holds the Turkic letters for equal to i and I, simple case folding does not.
    ordered = sorted(("".join(sorted({*group} - {*"ıİ"})) for group in groups), key=lambda group: group[:1])
    return [n for group in dict.fromkeys(ordered) if len(group) > 1 for n in (len(group), *map(ord, group))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("version", help="the Unicode version of the installed regex package")
    version = parser.parse_args().version
    sets = collect()
    unique: dict[tuple[int, ...], int] = {}
    set_of_name = [unique.setdefault(tuple(points), len(unique)) for points in sets.values()]
    steps = [np.diff(points, prepend=0) for points in unique]
    np.savez_compressed(
        Path(__file__).with_name("tables.npz"),
        names=np.array(list(sets)),
        set_of_name=np.array(set_of_name, np.int32),
        first=np.cumsum([0, *map(len, unique)], dtype=np.int32),
        steps=np.concatenate(steps).astype(np.int32),
        orbits=np.diff(orbits(), prepend=0).astype(np.int32),
        version=np.array(version),
    )


if __name__ == "__main__":
    main()
