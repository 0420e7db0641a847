"""The pattern syntax: a table of meanings, a table of errors, and JavaScript itself as the oracle."""

from __future__ import annotations

import json
import random

import pytest

from structgen.core.regex.dfa import accepts
from structgen.core.regex.ecma_parser import MAX_DEPTH
from structgen.core.regex.pattern import pattern_dfa
from structgen.errors import PatternError
from tests.core.regex import ecma_oracle

MEANINGS = [
    # pattern, found in, not found in
    (r"^\d$", "0", "٠"),
    (r"^\w$", "_", "é"),
    (r"^\s$", "\ufeff\u2003\u2029\t", "\x1c\x85\u200b"),
    (r"^.$", "a\x85😀", "\n\r\u2028\u2029"),
    (r"^[^]$", "\n😀", ""),
    (r"^[^\d]$", "a\n", "7"),
    (r"^\cJ$", "\n", "J"),
    (r"^\x41\u0042\u{43}$", ["ABC"], ["x41"]),
    (r"^\ud83d\ude00$", "😀", "\ufffd"),
    (r"^[\ud83d\ude00-\u{1F602}]$", "😀😂", "😃"),
    (r"^\0$", "\0", "0"),
    (r"^[\b\-\]\\]$", "\b-]\\", "b"),
    (r"^\p{Lu}\P{Lu}$", ["Éa"], ["éa"]),
    (r"^\p{Script=Greek}$", "λ", "l"),
    (r"^\p{scx=Deva}$", "अ\u0964", "a"),
    (r"^\p{Letter}$", "aé字", "1"),
    (r"^\p{General_Category=Decimal_Number}$", "1٠", "a"),
    (r"^[\p{Alphabetic}\d]$", "a9", "-"),
    (r"^\p{Any}$", "a\0😀", ""),
    (r"a$|^b", ["xa", "bx"], ["ax", "xb", "a\n"]),
    (r"(?<year>\d{4})", ["x2024"], ["202"]),
    (r"^(?i:straSSe)\u212a$", ["STRAſſE\u212a", "strasse\u212a"], ["strasse\u212b"]),
    (r"^(?i:[^k])$", "j", "k\u212aK"),
    (r"(?m:^b$)", ["a\nb", "b\r\n"], ["ab"]),
    (r"^(?s:.)(?-s:.)$", ["\na"], ["a\n"]),
    (r"^a*?b+?c??$", ["b", "aabbc"], ["ac"]),
    # Annex B only
    (r"^\:\_\-\é$", [":_-é"], [""]),
    (r"^a{,2}$", ["a{,2}"], ["aa"]),
    (r"^{$", "{", "}"),
    (r"^]}$", ["]}"], ["]"]),
    (r"^[\w-.]$", "a-.", "/"),
    (r"^\101\8$", ["A8"], [""]),
    (r"^\c$", ["\\c"], ["c"]),
    (r"^\:\u{3}$", [":uuu"], [":\x03"]),
    (r"^\k$", "k", ""),
    (r"^(?=a)*b$", "b", "a"),
]

ERRORS = [
    # pattern, position, part of the message
    ("(", 1, "Unterminated group"),
    ("a)", 1, "Unmatched"),
    ("[a", 0, "Unterminated character class"),
    ("*a", 0, "Nothing to repeat"),
    ("a**", 2, "Nothing to repeat"),
    ("^*", 0, "Nothing to repeat"),
    (r"\b+", 0, "Nothing to repeat"),
    ("(?<=a)*", 0, "Nothing to repeat"),
    ("a{3,2}", 0, "Numbers out of order"),
    ("[z-a]", 1, "Range out of order"),
    ("a\\", 1, "end of pattern"),
    ("(?P<n>a)", 0, "Invalid group"),
    ("(?i)a", 0, "Invalid group"),
    ("(?<1a>b)", 3, "Invalid group name"),
    (r"(a)\1", 3, "Backreferences"),
    (r"(?<n>a)\k<n>", 7, "Backreferences"),
    (r"\p{Grek}", 0, "Unknown Unicode property 'Grek'"),
    (r"\p{letter}", 0, "Unknown Unicode property 'letter'"),
    ("(" * (MAX_DEPTH + 1) + ")" * (MAX_DEPTH + 1), MAX_DEPTH, "nested"),
]


@pytest.mark.parametrize(("pattern", "found", "not_found"), MEANINGS)
def test_meaning(pattern, found, not_found):
    dfa = pattern_dfa(pattern)
    assert [text for text in found if not accepts(dfa, text)] == []
    assert [text for text in not_found if accepts(dfa, text)] == []


@pytest.mark.parametrize(("pattern", "position", "message"), ERRORS)
def test_errors_say_what_and_where(pattern, position, message):
    with pytest.raises(PatternError) as error:
        pattern_dfa(pattern)
    assert message in error.value.message
    assert error.value.position == position
    assert error.value.pattern == pattern


PIECES = [
    *"ab-]})({[|^$.*+?,/:=!<>dwsbBpPkux0123é😀", "(?:", "(?=", "(?!", "(?<=", "(?<!", "[^", "\\", "\\d", "\\W", "\\b",
    "[a-b]", "[\\d", "{2}", "{1,2}", "\\u0061", "\\x61", "\\cA", "\\-", "[]", "(a|b)", "\\u{61}",
]  # fmt: skip
ALPHABET = "ab-]}{d1:\n é,\\u\x01kx"


@pytest.mark.skipif(ecma_oracle.node() is None, reason="needs node")
def test_random_patterns_agree_with_javascript():
    source = random.Random(5)
    cases = []
    for _ in range(2500):
        pattern = "".join(source.choice(PIECES) for _ in range(source.randint(1, 7)))
        texts = ["".join(source.choice(ALPHABET) for _ in range(source.randint(0, 5))) for _ in range(12)]
        cases.append((pattern, texts))
    legal = 0
    for (pattern, texts), expected in zip(cases, ecma_oracle.search_all(cases), strict=True):
        try:
            dfa = pattern_dfa(pattern)
        except PatternError as error:
            # Refused on purpose, though legal: what is not regular, and \p of nothing.
            assert expected is None or "Backref" in error.message or "property" in error.message, pattern
            continue
        assert expected is not None, f"{json.dumps(pattern)} is not legal"
        legal += 1
        for text, found in zip(texts, expected, strict=True):
            assert accepts(dfa, text) == found, (pattern, text)
    assert legal > 500
