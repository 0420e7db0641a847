"""Which symbols are captured: their languages are those of the values, and the text around them does not change."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from structgen.core.compilers import compile_lark
from structgen.core.engines.cfg.compiled import compile_grammar
from structgen.core.grammars.dialects.llguidance.endings import split
from structgen.core.grammars.dialects.llguidance.reader import read_llguidance
from structgen.core.regex.dfa import accepts as dfa_accepts
from structgen.core.regex.joining import concatenation, shortest_matches
from structgen.core.regex.pattern import full_match_dfa
from tests.core.grammars.dialects.llguidance.peers import BYTES


def captured(source: str, texts: list[str]) -> dict[str, set[str]]:
    """Which of some texts each name may capture, by the grammars that begin with the captured symbols."""
    grammar = read_llguidance(source).grammar
    found: dict[str, set[str]] = {}
    for symbol, name in grammar.captures:
        assert symbol >= 0 and isinstance(name, str)
        part = compile_grammar(replace(grammar, start=symbol, captures=()), BYTES)
        for text in texts:
            matcher = part.matcher()
            if matcher.accept_bytes(text.encode()) and matcher.is_accepting():
                found.setdefault(name, set()).add(text)
    return found


TEXTS = ["", "foo", "foo<end>", "foo<end>bar", "<end>", "b", "foob", " foo", "foo ", "1", "12", "a1"]
CASES = {
    # grammar: what each name may capture, of TEXTS
    'start: x\nx[capture]: "b"': {"x": {"b"}},
    'start: x\nx[capture="name"]: "b"': {"name": {"b"}},
    'start: x y\nx[capture]: "b"?\ny[capture="n"]: /[0-9]+/': {"x": {"", "b"}, "n": {"1", "12"}},
    # llguidance, docs/syntax.md, "Lazy lexemes"
    'start: with_suffix\nwith_suffix[capture, suffix="<end>"]: /.*/': {
        "with_suffix": {"", "foo", "b", "foob", " foo", "foo ", "1", "12", "a1"},
    },
    'start: x\nx[suffix="<end>", stop_capture="s"]: /.*/': {"s": {"<end>"}},
    'start: x\nx[capture, suffix=/[0-9]+/, stop_capture="s"]: /[a-z]*/': {
        "x": {"", "foo", "b", "foob"},
        "s": {"1"},
    },
    'start: outer\nouter[capture]: x\nx[capture="in", suffix="b"]: /fo*/': {"outer": {"foob"}, "in": {"foo"}},
    'start: outer\nouter[capture]: with_stop "<end>"\nwith_stop[capture, stop="<end>"]: /fo*/': {
        "outer": {"foo<end>"},
        "with_stop": {"foo"},
    },
    "start: with_lazy\nwith_lazy[capture, lazy]: /fo*<end>/": {"with_lazy": {"foo<end>"}},
    # what is ignored is no part of it
    'start: "x" x "x"\nx[capture]: "b" | "foo" "b"?\n%ignore " "': {"x": {"b", "foo", "foob"}},
    'start: "x" x "x"\nx[capture, suffix="b"]: "foo"?\n%ignore " "': {"x": {"", "foo"}},
    # more than one symbol for a name: a rule with a parameter, beside a lazy rule
    'start: x::0\nx::_[capture]: "1" x::incr(_) %if lt(_, 1) | "2" %if eq(_, 1)': {"x": {"12"}},
    'start: t ("." t | l)\nt[capture]: T\nT: /[a-w0-9]*/\nl[lazy]: /[a-w]*;/': {
        "t": {"", "foo", "b", "foob", "1", "12", "a1"}
    },
    'start: %lark {\n start: x\n x[capture="inner"]: "b"\n}': {"inner": {"b"}},
    'start: x\nx[capture="v", max_chars=2]: /[a-z0-9]+/': {"v": {"b", "1", "12", "a1"}},
}


@pytest.mark.parametrize("source", CASES)
def test_what_is_captured(source: str) -> None:
    assert captured(source, TEXTS) == CASES[source]


OUTPUTS = [
    # grammar, text, captures; the first three are those of docs/syntax.md
    ('start: with_suffix\nwith_suffix[capture, suffix="<end>"]: /.*/', "foo<end>", {"with_suffix": "foo"}),
    (
        'start: outer_suffix\nouter_suffix[capture]: with_suffix\nwith_suffix[capture, suffix="<end>"]: /.*/',
        "foo<end>",
        {"outer_suffix": "foo<end>", "with_suffix": "foo"},
    ),
    (
        'start: outer_stop\nouter_stop[capture]: with_stop "<end>"\nwith_stop[capture, stop="<end>"]: /.*/',
        "foo<end>",
        {"outer_stop": "foo<end>", "with_stop": "foo"},
    ),
    (
        'start: x ","? y\nx[capture]: "a"?\ny[capture="z", suffix="!", stop_capture="e"]: /[a-z]*/\n%ignore " "',
        "a, bc!",
        {"x": "a", "z": "bc", "e": "!"},
    ),
    ('start: (x ";")*\nx[capture]: /[a-z]+/\n%ignore " "', "ab; c ;d;", {"x": ["ab", "c", "d"]}),
    ('start: "<" @g ">"', "<x>", {"y": "x"}),
    (
        'start[capture]: x? T?\nx[capture, lazy]: /[a-z]*;/\nT: /[a-z;]*/\n%ignore " "',
        "a; b",
        {"start": "a; b", "x": "a;"},
    ),
    ('start: "<" j ">"\nj[capture]: %json {"type": "integer"}', "<12>", {"j": "12"}),
]


@pytest.mark.parametrize("source,text,expected", OUTPUTS)
def test_captures_of_a_text(source: str, text: str, expected: dict[str, object]) -> None:
    grammars = {"g": 'start: y\ny[capture]: "x"'}
    matcher = compile_lark(source, BYTES, dialect="llguidance", grammars=grammars).matcher()
    assert matcher.accept_bytes(text.encode()) and matcher.is_accepting()
    found = {
        name: [one.text for one in value] if isinstance(value, list) else value.text
        for name, value in matcher.captures().items()
    }
    assert found == expected


def test_captures_are_symbols_that_are_used() -> None:
    for source in CASES:
        grammar = read_llguidance(source).grammar
        used = {symbol for rule in grammar.rules for symbol in rule.rhs} | {grammar.start}
        assert {symbol for symbol, _ in grammar.captures} <= used


def test_nothing_is_captured_unasked() -> None:
    assert read_llguidance('start: x\nx[suffix="<end>"]: /.*/').grammar.captures == ()


PARTS = st.sampled_from(
    ["a*", "[ab]*", "a?", "ab|b", "(ab)*", "[ab]{0,2}", "a", "b+", "[ab]*b", "aa|ab?", "c", "bc|ac"]
)
WORDS = ["".join(letters) for size in range(7) for letters in itertools.product("abc", repeat=size)]


@given(PARTS, PARTS)
def test_values_and_endings(body: str, ending: str) -> None:
    value_dfa, end_dfa = full_match_dfa(body), full_match_dfa(ending)
    whole = shortest_matches(concatenation([value_dfa, end_dfa]))
    assume(not dfa_accepts(end_dfa, ""))
    found = split(whole, value_dfa, end_dfa)
    values = {
        word[:at]
        for word in WORDS
        if dfa_accepts(whole, word)
        for at in range(len(word) + 1)
        if dfa_accepts(value_dfa, word[:at]) and dfa_accepts(end_dfa, word[at:])
    }
    if found is None:  # then some value goes with some ending, but not with all of them
        assert len(values) > 1
        return
    assert concatenation(list(found)).digest == whole.digest
    assert all(dfa_accepts(found[0], value) for value in values)
    assert all(dfa_accepts(value_dfa, word) for word in WORDS[:200] if dfa_accepts(found[0], word))
