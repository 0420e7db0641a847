"""Python's regular expressions: `re` and interegular are the oracles."""

from __future__ import annotations

import random
import re

import pytest

from structgen.core.grammars.python_regex import parse, python_regex_dfa, terminal_dfa
from structgen.core.regex.dfa import accepts
from structgen.core.regex.ecma_ast import Chars
from structgen.errors import PatternError

PATTERNS = [
    r"a|ab",
    r"a*(ab)?",
    r"a?(ab)?",
    r"(a|ab)(c|bcd)",
    r'".*?"',
    r'".*?(?<!\\)(\\\\)*?"',
    r"/\*(.|\n)*?\*/",
    r"\/(?!\/)(\\\/|\\\\|[^\/])*?\/[imslux]*",
    r"""(?i:([ubf]?r?|r[ubf])("(?!"").*?(?<!\\)(\\\\)*?"))""",
    r"a(?!b)|ab",
    r"\bab\b|a",
    r"a(?=b)|abc|b",
    r"(?:a|b)??(ab)*?c",
    r"(a*)*b",
    r"(a|)+?b|(?<=a)b",
    r"a{2,3}?b{0,2}?",
    r"(?!ab|ba)[ab]+",
    r"(a(?!b)|ab)*",
    r"(?s).a|(?-s:.)b",
    r"(?i)[a-b]C|ſ",
    r"(?m)^a$\n^b$",
    r"(?x) a b # comment",
    r"(?a)\w\d\s|\W\D\S",
    r"(?a)(?u:\w)\w|(?u:\D\b)",
    r"(?a:(?iu:\w.))",
    r"\w+\s?\d*",
    r"[^ab]\n?",
    r"(?!(ab|a|cb)\b)[abc]+",
    r"(?!(?:a[bc]|b)(?![abc]))[abc]+(?![abc])b?",
    r"(?!ab$|c\Z)[abc]+",
    r"a(?!\Z)b?|(?!b(c|(?!a)))b",
]
FULL_ONLY = [r"a$|ab", r"a(?=b\b|c)[abc]", r"a(?!b*c)[abc]*", r"\Aab\Z", r"(?<=ab)c|abc", r"a(?!.*b)[abc]*"]


def texts(pattern: str, seed: int, count: int = 1500) -> list[str]:
    """Random short texts over the pattern's own characters and a few that are like them."""
    rng = random.Random(seed)
    alphabet = sorted({c for c in pattern if c in 'ab"\\/*crubCx d3'} | set('ab \n"')) + list("ſKÉé٣_")
    common = alphabet[:6]
    return ["".join(rng.choice(rng.choice([alphabet, common])) for _ in range(rng.randrange(8))) for _ in range(count)]


@pytest.mark.parametrize("pattern", PATTERNS + FULL_ONLY)
def test_the_language_is_that_of_fullmatch(pattern: str) -> None:
    dfa, judge = python_regex_dfa(pattern), re.compile(pattern)
    for text in texts(pattern, 1):
        assert accepts(dfa, text) == bool(judge.fullmatch(text)), text


@pytest.mark.parametrize("pattern", PATTERNS)
def test_terminals_are_what_match_takes_whole(pattern: str) -> None:
    (dfa, remark), judge = terminal_dfa(pattern), re.compile(pattern)
    assert "all that" not in remark
    for text in texts(pattern, 2):
        match = judge.match(text)
        assert accepts(dfa, text) == (match is not None and match.end() == len(text)), text


def random_pattern(rng: random.Random, depth: int) -> str:
    kind = rng.randrange(8 if depth else 2)
    if kind < 2:
        return rng.choice(["a", "b", "[ab]", "[^a]", ".", "c"])
    if kind < 4:
        return random_pattern(rng, depth - 1) + random_pattern(rng, depth - 1)
    if kind < 6:
        return f"(?:{random_pattern(rng, depth - 1)}|{random_pattern(rng, depth - 1)})"
    return f"(?:{random_pattern(rng, depth - 1)})" + rng.choice(["*", "?", "+", "*?", "??", "{1,2}", "{2}?"])


def test_random_patterns() -> None:
    rng = random.Random(3)
    for _ in range(300):
        pattern = random_pattern(rng, 4)
        judge = re.compile(pattern)
        whole, (first, remark) = python_regex_dfa(pattern), terminal_dfa(pattern)
        assert not remark
        for _ in range(60):
            text = "".join(rng.choice("abcd") for _ in range(rng.randrange(7)))
            match = judge.match(text)
            assert accepts(whole, text) == bool(judge.fullmatch(text)), (pattern, text)
            assert accepts(first, text) == (match is not None and match.end() == len(text)), (pattern, text)


@pytest.mark.parametrize("pattern", [r"a|ab", r"(a|b)*c{2,3}", r"a(?!b)[abc]", r"[^a]b?", r"(?i:ab)+"])
def test_interegular_reads_the_same(pattern: str) -> None:
    interegular = pytest.importorskip("interegular")
    fsm, dfa = interegular.parse_pattern(pattern).to_fsm(), python_regex_dfa(pattern)
    for text in texts(pattern, 4, 400):
        assert accepts(dfa, text) == fsm.accepts(text), text


@pytest.mark.parametrize(
    ("pattern", "message", "position"),
    [
        ("(", "unterminated subpattern", 0),
        ("ab(?P=x)", "unknown group name", 6),
        (r"(a)\1", "backreference", 0),
        ("a++", "possessive", 0),
        ("[b-a]", "bad character range", 1),
    ],
)
def test_refused(pattern: str, message: str, position: int) -> None:
    with pytest.raises(PatternError, match=message) as caught:
        python_regex_dfa(pattern)
    assert caught.value.position == position


@pytest.mark.first_case
@pytest.mark.parametrize("flags", [0, re.ASCII])
@pytest.mark.parametrize("expression", [r"\d", r"\D", r"\s", r"\S", r"\w", r"\W"])
def test_classes_are_those_of_re(expression: str, flags: re.RegexFlag) -> None:
    node = parse(expression, flags)
    assert isinstance(node, Chars)
    inside = {point for low, high in node.charset for point in range(low, high + 1)}
    points = [*range(0xD800), *range(0xE000, 0x110000)]
    found = re.finditer(expression, "".join(map(chr, points)), flags)
    assert inside == {points[match.start()] for match in found}
