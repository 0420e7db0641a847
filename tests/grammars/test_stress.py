"""Large and unpleasant grammars from text to matcher: choices, empty rules in circles, ambiguity, depth, length."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("lark")

from structgen import Vocabulary, compile_choice, compile_gbnf, compile_lark
from structgen.core.engines.cfg.compiled import CfgGrammar
from structgen.core.kernels.cfg import machine as k
from tests.grammars.shipped import BYTES, accepts, grammar
from tests.many import cases

WORDS = [f"option {number * 7919 % 10_000}" for number in range(10_000)]
LEXERS = ("dynamic", "contextual")


@pytest.mark.full
@pytest.mark.parametrize(
    "compiled",
    [
        pytest.param(lambda: compile_lark("start: " + "|".join(f'"{word}"' for word in WORDS), BYTES), id="lark"),
        pytest.param(lambda: compile_gbnf("root ::= " + " | ".join(f'"{word}"' for word in WORDS), BYTES), id="gbnf"),
        pytest.param(lambda: compile_choice(WORDS, BYTES), id="choice"),
        pytest.param(
            lambda: compile_lark("start: WORD\nWORD: " + "|".join(f'"{word}"' for word in WORDS), BYTES), id="terminal"
        ),
    ],
)
def test_ten_thousand_choices(compiled: Callable[[], CfgGrammar]) -> None:
    matcher = compiled().matcher()
    assert matcher.forced_bytes() == b"option "
    assert matcher.accept_bytes(b"option 77") and matcher.is_accepting()
    assert len(np.flatnonzero(matcher.next_bytes())) == 10
    assert matcher.accept_bytes(b"77") and not matcher.next_bytes().any()


EMPTY = {  # empty rules that lead to themselves, and to nothing else but "x"
    "itself": 'start: start start | "x" |',
    "circle": 'start: a\na: b |\nb: c |\nc: a a | "x"',
    "chain": "start: r0\n" + "".join(f"r{n}: r{n + 1} r{n + 1} |\n" for n in range(40)) + 'r40: "x" r0 |',
    "hidden": 'start: e start e | "x" start | e\ne: e e |',
}


@pytest.mark.parametrize("name", EMPTY)
def test_empty_rules_in_circles(name: str) -> None:
    compiled = compile_lark(EMPTY[name], BYTES)
    for length in range(12):
        assert accepts(compiled, "x" * length), length
    assert not accepts(compiled, "xxy")


@pytest.mark.first_case
@pytest.mark.parametrize("lexer", LEXERS)
@pytest.mark.parametrize(
    ("name", "left", "middle", "right"),
    [("json", '[{"a":', "1", "}]"), ("s_expression", "(a ", "b", ")"), ("arithmetic", "-(1+", "x", ")")],
)
def test_deep_brackets(name: str, left: str, middle: str, right: str, lexer: str) -> None:
    """3,000 levels: byte by byte, back by one step, and the shortest way out."""
    matcher, depth = grammar(name, lexer).matcher(), 3_000
    for byte in (left * depth).encode():
        assert matcher.accept_bytes(bytes([byte]))
    fork = matcher.fork()
    assert fork.accept_bytes(middle.encode()) and fork.accept_bytes((right * depth).encode()) and fork.is_accepting()
    assert not fork.accept_bytes(right.encode())
    rest = matcher.shortest_completion()
    assert len(rest) <= len(middle) + len(right) * depth + 1 and matcher.accept_bytes(rest) and matcher.is_accepting()
    matcher.rollback(len(left) * depth + 1)
    assert not matcher.is_accepting() and matcher.accept_bytes(middle.encode())


LONG = {  # grammar, text repeated, and rows that 2,000 more may add
    "left": ('start: start "a" | "a"', "a", 0),
    "right": ('start: "a" start | "a"', "a", 0),
    "both": ('start: start start | "a"', "a", 0),
    "list": ('start: ("a" ","?)+', "a,", 0),
    "nested": ('start: "(" start ")" start |', "(()())", 0),
}


@pytest.mark.parametrize("name", LONG)
def test_long_texts_take_no_more_rows(name: str) -> None:
    text, unit, more = LONG[name]
    compiled = compile_lark(text, BYTES)
    assert isinstance(compiled, CfgGrammar)
    matcher = compiled.matcher()
    assert matcher.accept_bytes(unit.encode() * 500)
    used = int(compiled.machine().heap[k.H_TOP])
    assert matcher.accept_bytes(unit.encode() * 2_000) and matcher.is_accepting()
    assert int(compiled.machine().heap[k.H_TOP]) - used <= more


@pytest.mark.full
def test_masks_of_long_texts_agree_with_acceptance() -> None:
    """Tokens of many characters over an ambiguous grammar, far into a text."""
    vocabulary = Vocabulary(
        [b"a", b"aa", b"aaa", b"ab", b"b", b"ba", b"(", b"((", b")a", b"a)", None], eos_token_ids=10
    )
    matcher = compile_lark('start: start start | "a" | "(" start ")"', vocabulary).matcher()
    bitmask = np.zeros(1, np.int32)
    for step in cases(400, 120):
        matcher.fill_next_token_bitmask(bitmask)
        allowed = [token for token in range(11) if bitmask[0] >> token & 1]
        assert allowed == [token for token in range(11) if matcher.fork().accept_token(token)]
        assert matcher.accept_token(allowed[step * 7 % len(allowed)]) or matcher.is_terminated()
        if matcher.is_terminated():
            matcher.rollback()
            assert matcher.accept_token(0)
