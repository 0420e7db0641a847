"""Rust's regular expressions: Python's ``re`` is the oracle, by the same expression or by one that says the same."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from structgen.core.grammars.rust_classes import ASCII_CLASSES, ascii_class, property_by_name
from structgen.core.grammars.rust_regex import parse_rust_regex
from structgen.core.regex.dfa import Dfa, accepts
from structgen.core.regex.ecma_ast import END, START, Concat
from structgen.core.regex.pattern import search_dfa
from structgen.errors import PatternError

WORDS = ["".join(letters) for size in range(4) for letters in itertools.product("abAB1_- \né", repeat=size)]


def dfa_of(pattern: str, flags: str = "") -> Dfa:
    return search_dfa(Concat((START, parse_rust_regex(pattern, flags).node, END)))


ATOMS = [
    "a",
    "b",
    ".",
    "[ab]",
    "[^a]",
    r"\w",
    r"\d",
    r"[\s\-]",
    "[a-b1]",
    "(?:)",
    "(?i:a)",
    "(?s:.)",
    r"\x41",
    r"[^\W]",
]
TREES = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda p: f"(?:{p[0]}{p[1]})"),
        st.tuples(inner, inner).map(lambda p: f"(?:{p[0]}|{p[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{1,}", "*?"])).map(
            lambda p: f"(?:{p[0]}){p[1]}"
        ),
    ),
    max_leaves=6,
)


@given(TREES)
def test_as_pythons_where_both_read_it(pattern: str) -> None:
    dfa, judge = dfa_of(pattern), re.compile(pattern)
    wrong = [word for word in WORDS if accepts(dfa, word) != (judge.fullmatch(word) is not None)]
    assert not wrong


ONLY_RUST = {
    # Rust: the same in Python
    "[a-z&&[^b]]": "[ac-z]",
    "[a-b--b]": "a",
    "[a-b~~b-c]": "[ac]",
    "[[ab]1]": "[ab1]",
    "[]a]": "[]a]",
    "[[:alpha:]_]": "[a-zA-Z_]",
    "[[:^digit:]]": "[^0-9]",
    r"\u{41}": "A",
    r"\x{e9}": "é",
    "(?P<x>a)(?<y>b)": "ab",
    "a{2}{2}": "(?:aa){2}",
    "(?U)a*": "a*",
    "^a$": "a",
    "(^a|b)$": "a|b",
    r"\Aa\z": "a",
    "(?i)é": "é|É",
    "(?-u)\\w": "[a-zA-Z0-9_]",
    "(?i-u)a": "[aA]",
    "(?x) a b # c": "ab",
    r"\pN": "[0-9]",
    r"\p{Latin}": "[a-zA-Zé]",
    r"\p{sc=latin}": "[a-zA-Zé]",
    r"\P{gc:Letter}": "[^a-zA-Zé]",
    r"\p{is_alphabetic}": "[a-zA-Zé]",
    "a||b": "a?|b",
}


@pytest.mark.parametrize("pattern", ONLY_RUST)
def test_what_only_rust_writes(pattern: str) -> None:
    judge = re.compile(ONLY_RUST[pattern])
    dfa = dfa_of(pattern)
    assert [word for word in WORDS if accepts(dfa, word) != (judge.fullmatch(word) is not None)] == []


def test_flags_behind_the_slash() -> None:
    assert accepts(dfa_of("a .", "isx"), "A\n") and not accepts(dfa_of("a."), "A\n")


WRONG = {
    # pattern: offset
    "(a": 0, "a)": 1, "[a": 0, "[]": 0, "*a": 0, "a{": 1, "a{3,2}": 1, "(?=a)": 0, "(?<=a)b": 0, "(?<!a)b": 0,
    r"a\b": 1, r"\1": 0, r"\e": 0,
    r"\p{Nope}": 0, r"\p{age=3}": 0, "a^": 1, "[^a]^b": 4, "(?y)a": 2, "(?m)^a": 4,
    r"\u12": 0, r"\x{110000}": 0, "[b-a]": 2, r"[\d-z]": 3,
    "(?-u).": 5, "(?-u)[^a]": 5, r"(?-u)\xff": 5, "a\\": 1, "(?P=n)": 0, r"\<a": 0,
}  # fmt: skip


@pytest.mark.parametrize("pattern", WRONG)
def test_refused(pattern: str) -> None:
    with pytest.raises(PatternError) as caught:
        parse_rust_regex(pattern)
    assert caught.value.pattern == pattern
    assert caught.value.position == WRONG[pattern]


def test_laziness_is_noted() -> None:
    assert parse_rust_regex("a*?b??").lazy == [2, 5]


def test_properties_and_ascii_classes() -> None:
    assert property_by_name("Lu") == property_by_name("uppercase letter") and property_by_name("x") is None
    for name in ASCII_CLASSES:
        if name not in ("ascii", "word"):
            python = {
                "alnum": str.isalnum,
                "alpha": str.isalpha,
                "digit": str.isdigit,
                "lower": str.islower,
                "upper": str.isupper,
            }
            members = {chr(c) for low, high in ascii_class(name) for c in range(low, high + 1)}
            assert name not in python or members == {chr(c) for c in range(128) if python[name](chr(c))}
