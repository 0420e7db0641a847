"""Hostile grammars and expressions: each ends, soon, in a typed error that says where, or compiles."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import structgen
from structgen.core.compilers import compile_choice, compile_gbnf, compile_lark, compile_regex
from structgen.core.grammars import limits
from structgen.core.grammars.limits import grammar_refusal, limited
from structgen.core.regex.steps import check_time
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import (
    ConstraintError,
    EmptyLanguageError,
    GrammarError,
    GrammarTooComplexError,
    PatternError,
    PatternTooComplexError,
    TooComplexError,
)

BYTES = Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=256)
A = '"a"'


def nested(opening: str, inner: str, closing: str, depth: int) -> str:
    return opening * depth + inner + closing * depth


def doubling(count: int, sign: str, start: str) -> str:
    """Rules each of which is the one before, twice."""
    lines = [f"{start} {sign} r1 r1", *(f"r{i} {sign} r{i + 1} r{i + 1}" for i in range(1, count))]
    return "\n".join([*lines, f'r{count} {sign} "a"', ""])


GROWING = (
    "start: t0{A}\nA: /a/\n"
    + "".join(f"t{i}{{x}}: t{i + 1}{{x}} t{i + 1}{{t{i}{{x}}}}\n" for i in range(30))
    + "t30{x}: x\n"
)
LARK: dict[str, tuple[str, int, int]] = {  # budget and line of the place
    'start: a{"x"}\na{x}: x a{b{x}}\nb{x}: x "y"\n': ("instances", 2, 0),
    GROWING: ("instances", 13, 0),
    f'start: "{"a" * 1_000_000}"\n': ("characters", 1, 8),
    f'start: A\nA: /{"a" * 1_000_000}/\n': ("characters", 2, 4),
    f"start: {nested('(', A, ')', 3_000)}\n": ("depth", 1, 88),
    f"start: A\nA: {nested('(', A, ')', 100_000)}\n": ("depth", 2, 84),
    f"start: A\nA: /{nested('(', 'a', ')', 3_000)}/\n": ("depth", 2, 105),
    f"start: {nested('[', A + ' ', ']', 300)}\n": ("depth", 1, 88),
    f"start: x\nx: {nested('(', A, ')~0..49', 6)}\n": ("symbols", 2, 1),
    "start: b\nb: " + " ".join(["(A|C|D)"] * 20) + '\nA: "a"\nC: "c"\nD: "d"\n': ("symbols", 2, 1),
    "start: b\nb: " + " ".join(f'["{i}"]' for i in range(24)) + "\n": ("symbols", 2, 1),
    "start: R0\n" + doubling(40, ":", "R0").upper().replace('"A"', '"a"'): ("work", 2, 1),
    "start: T0\n" + "".join(f'T{i}: "a" T{i + 1}\n' for i in range(300)) + 'T300: "b"\n': ("work", 21, 1),
    "start: A\nA: " + "|".join(["(" * 80 + '"a"' + '|"c")' * 80] * 300) + "\n": ("work", 2, 1),
    'start: "a"\n' + "".join(f'r{i}: "a" r{i + 1}\n' for i in range(4_000)) + 'r4000: "b"\n': ("work", 442, 1),
    "start: " + '"a" ' * 200_000 + "\n": ("tokens", 1, 600_000),
    'start: A\nA: ((("a"~1000)~1000)~1000)~1000\n': ("automaton states", 2, 1),
    "start: A\nA: /(a|b)*a(a|b){40}/\n": ("automaton states", 2, 1),
    'start: "a"' + " " * 3_000_000: ("characters", 0, 0),
}  # fmt: skip


SLOW_CASES = (13, 14)  # seconds each


@pytest.mark.parametrize("lexer", ["dynamic", "contextual"])
@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=[pytest.mark.full] if case in SLOW_CASES else []) for case in range(len(LARK))],
)
def test_lark(case: int, lexer: str) -> None:
    text, (budget, line, column) = list(LARK.items())[case]
    with pytest.raises(GrammarTooComplexError) as caught:
        compile_lark(text, BYTES, lexer=lexer)
    error = caught.value
    assert (error.budget, error.line) == (budget, line) and error.limit
    assert not column or error.column == column
    assert not line or "^" in str(error)


@pytest.mark.full
def test_grammars_within_the_limits_compile() -> None:
    for lexer in ("dynamic", "contextual"):
        for text in (
            f"start: {nested('(', A, ')', 79)}\n",
            'start: "a"~1000000\n',
            doubling(100, ":", "start"),
            "start: " + " ".join(["(A|C)"] * 8) + '\nA: "a"\nC: "c"\n',
            'start: l{"x"}\nl{i}: i ("," i)* p{i}\np{i}: "(" i ")" | i\n',
            'start: a{"x"}\na{x}: a{x} x | x\n',  # left recursion of a template
        ):
            compile_lark(text, BYTES, lexer=lexer)
    for text in (f"root ::= {nested('(', A, ')', 80)}", doubling(100, "::=", "root"), f'root ::= "a"{"?" * 80}'):
        compile_gbnf(text, BYTES)
    chain = "".join(f'r{i} ::= "a" r{i + 1}\n' for i in range(3_000)) + 'r3000 ::= "b"'
    matcher = compile_gbnf("root ::= r0\n" + chain, BYTES).matcher()
    assert matcher.accept_bytes(b"a" * 3_000 + b"b") and matcher.is_accepting()
    compile_regex("(((()){1000}){1000}){1000}a", BYTES)


@pytest.mark.first_case
@pytest.mark.parametrize(
    ("text", "budget", "line", "column"),
    [
        (f'root ::= "{"a" * 1_000_000}"', "characters", 1, 10),
        ("root ::=" + "".join(f'\n"{chr(97 + i % 26) * 50_000}"' for i in range(6)), "states", 1, 1),
        (f"root ::=\n [{'a' * 1_000_000}]", "characters", 2, 2),
        (f"root ::= {nested('(', A, ')', 100_000)}", "depth", 1, 90),
        (f'root ::= "b"\n "a"{"*" * 100_000}', "depth", 2, 85),
        ("root ::= x" + " " * 3_000_000, "characters", 0, 0),
    ],
)
def test_gbnf(text: str, budget: str, line: int, column: int) -> None:
    with pytest.raises(GrammarTooComplexError) as caught:
        compile_gbnf(text, BYTES)
    assert (caught.value.budget, caught.value.line, caught.value.column) == (budget, line, column)


@pytest.mark.first_case
@pytest.mark.parametrize(
    "pattern",
    [
        nested("(", "a", ")", 3_000),
        nested("(?:", "a", ")*", 200),
        "a{1000000}",
        "(((a{1000}){1000}){1000}){1000}",
        "(a|b)*a(a|b){40}",
        "|".join(f"w{i}" for i in range(50_000)),
        "".join(chr(0x4E00 + i) for i in range(20_000)) * 2,
    ],
)
@pytest.mark.parametrize("syntax", ["python", "ecma"])
def test_expressions(pattern: str, syntax: str) -> None:
    began = time.process_time()
    with pytest.raises(PatternError) as caught:
        compile_regex(pattern, BYTES, syntax)  # type: ignore[arg-type]
    if not isinstance(caught.value, PatternTooComplexError):
        assert "nested" in str(caught.value) or "look-behind" in str(caught.value)
    assert time.process_time() - began < 10


def test_choices() -> None:
    with pytest.raises(TooComplexError):
        compile_choice(["a" * 1_000_000], BYTES)
    with pytest.raises(TooComplexError):
        compile_choice(["a" * 300_000, "b"], BYTES)
    compile_choice([f"{i:x}" for i in range(400_000)], BYTES)  # as sorted texts


def test_a_rule_without_text_that_is_reduced_for_ever() -> None:
    """Lark's own parser does not return on any text of these: none is accepted."""
    for text in ("start: r1*\nr1.2: \n", "start: r1+\nr1.2: \n"):
        with pytest.raises(EmptyLanguageError):
            compile_lark(text, BYTES, lexer="contextual")
        compile_lark(text, BYTES)
    matcher = compile_lark("start: r1* A\nr1.2: \nA: /a/\n", BYTES, lexer="contextual").matcher()
    assert matcher.accept_bytes(b"a") and matcher.is_accepting()  # as in Lark, where this is no conflict


def test_many_reductions_before_one_terminal() -> None:
    """A right-recursive list is reduced item by item at its end, which is no loop."""
    matcher = compile_lark("start: A start | A\nA: /a/\n", BYTES, lexer="contextual").matcher()
    assert matcher.accept_bytes(b"a" * 10_000) and matcher.is_accepting()


@pytest.mark.full
def test_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Lark is given, and what is ours: an error, and the thread goes on as if nothing had been."""
    monkeypatch.setattr(limits, "MAX_SECONDS", 0.3)
    slow = "start: r0\n" + "".join(f'r{i}: "a" r{i + 1}\n' for i in range(4_000)) + 'r4000: "b"\n'
    for lexer in ("dynamic", "contextual"):
        with pytest.raises(GrammarTooComplexError, match="seconds"):
            compile_lark(slow, BYTES, lexer=lexer)
        assert compile_lark('start: "a"', BYTES, lexer=lexer).matcher().accept_bytes(b"a")


@pytest.mark.parametrize(
    "compile_one",
    [
        lambda: compile_regex("asked|for", BYTES),
        lambda: compile_regex("asked|for", BYTES, "ecma"),
        lambda: compile_regex("(?=a)asked(?!for)", BYTES, "ecma"),
        lambda: compile_gbnf('root ::= "a" root | "b"', BYTES),
        lambda: compile_gbnf('root ::= "a" root | "b"', BYTES, dialect="xgrammar"),
        lambda: compile_lark('start: "a" start | "b"', BYTES),
        lambda: compile_lark('start: "a" start | "b"', BYTES, lexer="contextual"),
        lambda: compile_lark('start: "a" start | "b"', BYTES, dialect="llguidance"),
    ],
)
def test_each_reader_asks_for_the_time(monkeypatch: pytest.MonkeyPatch, compile_one: Callable[[], object]) -> None:
    monkeypatch.setattr(limits, "MAX_SECONDS", -1)
    with pytest.raises((GrammarTooComplexError, PatternTooComplexError), match="more than -1 seconds"):
        compile_one()
    monkeypatch.undo()
    compile_one()


def test_time_of_others_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that waits, or whose processor others use, has all of its own time left."""
    monkeypatch.setattr(limits, "MAX_SECONDS", 0.2)
    with limited(grammar_refusal("")):
        for _ in range(5):
            time.sleep(0.1)
            check_time()
    stop = threading.Event()
    others = [threading.Thread(target=lambda: [None for _ in iter(stop.is_set, True)]) for _ in range(4)]
    for thread in others:
        thread.start()
    try:
        compile_lark('start: A+\nA: /a+/ | "b"', BYTES)
    finally:
        stop.set()
        for thread in others:
            thread.join()


def test_threads_have_times_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_SECONDS", -1)
    with pytest.raises(GrammarTooComplexError), limited(grammar_refusal("")):
        thread = threading.Thread(target=check_time)
        thread.start()
        thread.join()
        check_time()
    check_time()


def test_no_exception_comes_from_outside() -> None:
    """Errors are raised by the loops that take too long, in their own threads."""
    for file in (Path(structgen.__file__).parent).rglob("*.py"):
        assert "PyThreadState_SetAsyncExc" not in file.read_text(encoding="utf-8"), file


def test_limits_of_a_block() -> None:
    def recursion() -> None:
        recursion()

    def too_large() -> None:
        raise TooComplexError("too many", budget="things", limit=3)

    for work, budget in ((recursion, "recursion limit"), (too_large, "things")):
        with (
            pytest.raises(GrammarTooComplexError) as caught,
            limited(grammar_refusal("text", 1, 2)),
            limited(grammar_refusal("inner")),
        ):
            work()
        assert caught.value.budget == budget and caught.value.source == "text"
    with pytest.raises(KeyError), limited(grammar_refusal("")):
        raise KeyError


@pytest.mark.full
def test_words_in_bulk() -> None:
    """A hundred thousand words are one terminal, in each notation."""
    words = [f"w{i}" for i in range(20_000)]
    for grammar in (
        compile_gbnf("root ::= " + " | ".join(f'"{word}"' for word in words), BYTES),
        compile_lark("start: " + " | ".join(f'"{word}"' for word in words), BYTES),
        compile_choice(words, BYTES),
    ):
        matcher = grammar.matcher()
        assert matcher.accept_bytes(b"w19999") and matcher.is_accepting() and not matcher.accept_bytes(b"9")


LARK_PIECES = [
    'start', 'a', 'b', 'A', 'B', ':', '|', '(', ')', '[', ']', '*', '+', '?', '~', '2', '..', '7', '\n', ' ', '"x"',
    '/y+/', '""', '/(/', '{', '}', ',', '.2', '->', '%ignore', '%import', 'common.WS', '%declare', '%json {}', '//c',
    '!', '_a', '\\', 'é', '\x00', '"é"i', '999999999999', '%extend', '%override',
]  # fmt: skip
GBNF_PIECES = [
    'root', 'a', '::=', '|', '(', ')', '*', '+', '?', '{2}', '{,3}', '{1,}', '{', '\n', ' ', '"x"', '"\\x4"',
    '"\\u00e9"', '[a-z]', '[^\\n]', '[\\U00110000]', '[]', '""', '#c', '.', '\\', 'é', '\x00', '{9999999999999}', '"',
    '[',
]  # fmt: skip
EBNF_PIECES = [
    '"a"', '"', '[a-b]', '[', ']', '(', ')', '(=', '|', '*', '{2}', '{2,', '}', '\nroot', '\nx', ' ::= ', '[lazy]',
    '[capture]', '[max_chars=3]', '[max_tokens=', 'x', 'Regex(', 'Regex("a(b|c)*d?")', 'Substring(', 'Token(1)',
    'Token(', 'TagDispatch(("x", x))', 'TagDispatch(', 'TokenTagDispatch((1, x), ', 'excludes=', '("b",)', ',',
    '5', 'true', '#', 'loop_after_dispatch=false', '\r', '\\x', '\\', 'é', '\x00', '\ud800',
]  # fmt: skip
REGEX_PIECES = [
    'a', 'b', '(', ')', '(?:', '(?=', '(?!', '(?<=', '(?<!', '[', ']', '[^a]', '*', '+', '?', '{2}', '{0,3}', '{3,1}',
    '{99999}', '|', '^', '$', '\\b', '\\B', '\\w', '\\D', '\\1', '.', 'é', '\x00', '\\x4', '\\u12', '\\p{L}', '(?i)',
    '\\', '\ud800', '{', '}',
]  # fmt: skip


def texts(pieces: list[str]) -> st.SearchStrategy[str]:
    return st.one_of(st.lists(st.sampled_from(pieces), max_size=30).map("".join), st.text(max_size=40))


def only_typed(compile_one: Callable[[], object]) -> None:
    """Nothing but errors of ours comes out, and soon."""
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile_one()
        except ConstraintError as error:
            assert str(error)
            if isinstance(error, GrammarError) and error.source is not None and error.line:
                assert error.column >= 1 and error.line <= error.source.count("\n") + 2
    assert time.process_time() - began < 10


SLOW = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@SLOW
@given(texts(GBNF_PIECES), st.booleans(), st.sampled_from(["llama.cpp", "xgrammar"]))
def test_any_gbnf(text: str, begin: bool, dialect: str) -> None:
    only_typed(lambda: compile_gbnf("root ::= " + text if begin else text, BYTES, dialect=dialect))  # type: ignore[arg-type]


@SLOW
@given(texts(EBNF_PIECES), st.booleans())
def test_any_ebnf(text: str, begin: bool) -> None:
    only_typed(lambda: compile_gbnf("root ::= " + text if begin else text, BYTES, dialect="xgrammar"))


@SLOW
@given(texts(LARK_PIECES), st.booleans(), st.sampled_from(["dynamic", "contextual"]))
def test_any_lark(text: str, begin: bool, lexer: str) -> None:
    only_typed(lambda: compile_lark("start: " + text if begin else text, BYTES, lexer=lexer))


@SLOW
@given(texts(REGEX_PIECES), st.sampled_from(["python", "ecma"]))
def test_any_expression(text: str, syntax: str) -> None:
    only_typed(lambda: compile_regex(text, BYTES, syntax))  # type: ignore[arg-type]
