"""GBNF: XGrammar's own reading of its EBNF is the oracle where it is installed."""

from __future__ import annotations

import itertools
import time

import pytest

from structgen.core.compilers import compile_gbnf
from structgen.core.engines.cfg.compiled import CfgGrammar
from structgen.core.engines.protocols import Grammar as CompiledGrammar
from structgen.core.grammars import ebnf_writer
from structgen.core.grammars.gbnf import read_gbnf
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import EmptyLanguageError, GrammarError, GrammarWarning, OptionsError

BYTES = Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=256)
GRAMMARS = {
    "choice": ('root ::= "a" b* [c-e] | ("d" | "ab"){2,3} # comment\nb ::= "b"', "abcd"),
    "recursive": ('root ::= "(" root ")" | [a-b]+ | ""', "()ab"),
    "left": ('root ::= root "+" item | item\nitem ::= "a" | "(" root ")"', "a+()"),
    "counts": ('root ::= "a"{2} "b"{1,} ("c" root2){0,2}\nroot2 ::= "d"?', "abcd"),
    "negated": ('root ::= [^ab]* "a"\n', "abcd"),
    "empty": ('root ::= x x\nx ::= "a" | ""', "ab"),
    "escapes": (r'root ::= "\x41\n" [\]\-a] | "\u0042\\"', "A\nB]-a\\"),
    "lines": ('root ::=\n  # a comment\n  "a" |\n  "b"\n  x\nx ::= "c"', "abc"),
}


def accepted(grammar: CompiledGrammar, text: str) -> bool:
    matcher = grammar.matcher()
    return matcher.accept_bytes(text.encode()) and matcher.is_accepting()


@pytest.mark.parametrize("name", GRAMMARS)
def test_short_texts_as_xgrammar(name: str) -> None:
    testing = pytest.importorskip("xgrammar.testing")
    text, alphabet = GRAMMARS[name]
    grammar = compile_gbnf(text, BYTES)
    judge = __import__("xgrammar").Grammar.from_ebnf(text)
    words = ["".join(word) for size in range(5) for word in itertools.product(alphabet, repeat=size)][:500]
    ours = {word for word in words if accepted(grammar, word)}
    assert ours
    assert ours == {word for word in words if testing._is_grammar_accept_string(judge, word)}


def test_regular_rules_are_terminals() -> None:
    grammar = read_gbnf('root ::= "[" (value ("," ws value)*)? "]"\nvalue ::= [0-9]+ ws | root\nws ::= [ \\t]*')
    assert len(grammar.terminals) < 8
    assert all(not terminal.dfa.accepting[0] for terminal in grammar.terminals)


def test_large_regular_parts_become_rules() -> None:
    grammar = compile_gbnf('root ::= ("ab" [c-d]){1,2000} "e"{2000}', BYTES)
    assert isinstance(grammar, CfgGrammar) and len(grammar.source.rules) > 1
    assert accepted(grammar, "abc" * 1999 + "abd" + "e" * 2000)
    assert not accepted(grammar, "abc" * 2001 + "e" * 2000)
    assert not accepted(grammar, "abc" + "e" * 1999)


def test_hidden_left_recursion_and_mutual_recursion_stay_rules() -> None:
    grammar = compile_gbnf('root ::= a | "x"\na ::= b "1" | "p"\nb ::= a "2" | c\nc ::= "q" | root', BYTES)
    assert [accepted(grammar, text) for text in ("x", "q1", "x1", "p21", "q2", "p2")] == [True] * 4 + [False] * 2


@pytest.mark.parametrize(
    ("text", "message", "line", "column"),
    [
        ("root ::= x", "'x' is not defined", 1, 10),
        ('root ::= "a" ) x', "expected a rule", 1, 14),
        ('root ::= ("a"', "not closed", 1, 10),
        ('root ::= "a\n', "not expected here", 1, 10),
        ('root ::= "a"\nroot ::= "b"', "defined twice", 2, 1),
        ("root ::= [b-a]", "must go up", 1, 10),
        ('root ::= "a"{3,1}', "must go up", 1, 13),
        ('root ::= "a"{}', "needs a number", 1, 13),
        ("root ::= *", "not expected here", 1, 10),
        ('main ::= "a"', "no rule 'root'", 0, 0),
        ('root ::= "ab\\x4"', r"\\x needs 2 hexadecimal digits, not '4'", 1, 13),
        ('root ::=\n "\\u12g4"', r"\\u needs 4 hexadecimal digits, not '12'", 2, 3),
        ('root ::= "\\U0001F60"', r"\\U needs 8 hexadecimal digits", 1, 11),
        ('root ::= "\\U00110000"', "above the last code point", 1, 11),
        ("root ::= [a-\\U00110000]", "above the last code point", 1, 13),
        ('root ::= "a"{' + "9" * 10_000 + "}", "at most 2000", 1, 13),
        ('root ::= "a"{2001}', "max_repetitions", 1, 13),
        (r'root ::= "a\q"', r"no escape \\q; there are", 1, 12),
        (r"root ::= [a\d]", r"no escape \\d", 1, 12),
        (r'root ::= "\x"', r"\\x needs 2", 1, 11),
        (r'root ::= "a" -b', "'-b' is not defined", 1, 14),
        (r'root ::= "a" 1', "'1' is not defined", 1, 14),
    ],
)
def test_errors_say_where(text: str, message: str, line: int, column: int) -> None:
    with pytest.raises(GrammarError, match=message) as caught:
        read_gbnf(text)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_unused_rules_are_reported() -> None:
    with pytest.warns(GrammarWarning, match=r"'b' is never used \(line 2\)"):
        read_gbnf('root ::= "a" root | c\nb ::= c b\nc ::= "c"')


def test_empty_language() -> None:
    with pytest.raises(EmptyLanguageError):
        compile_gbnf('root ::= "a" root', BYTES)


def test_a_class_without_characters_matches_nothing() -> None:
    """Neither the empty text nor any other, wherever it stands."""
    for nothing in (r"[\uD800]", "[]", r"[\uD800-\uDFFF]", r'"\uD800"', r"[^\x00-\U0010FFFF]"):
        grammar = compile_gbnf(f'root ::= {nothing} | "a"', BYTES)
        assert accepted(grammar, "a") and not accepted(grammar, "")
        with pytest.raises(EmptyLanguageError):
            compile_gbnf(f'root ::= "b" {nothing}', BYTES)
        optional = compile_gbnf(f'root ::= "b" {nothing}* ("c" {nothing})? | {nothing} root', BYTES)
        assert accepted(optional, "b") and not accepted(optional, "bc") and not accepted(optional, "")


def test_escapes_take_so_many_digits() -> None:
    """As in llama.cpp: exactly two, four or eight, and what follows is text again."""
    grammar = compile_gbnf(r'root ::= "\x411" "\u00e9f" [\x410-\x39] "\U0001F600a"', BYTES)
    assert accepted(grammar, "A1éf5\U0001f600a") and accepted(grammar, "A1éfA\U0001f600a")
    assert not accepted(grammar, "A1éf:\U0001f600a")


def test_names_begin_with_any_of_their_characters() -> None:
    """As in llama.cpp, whose names are of letters, digits and dashes."""
    grammar = compile_gbnf(
        'root ::= -a|1-b _c -*\n-a ::= "a"\n1-b ::= "b"{2}\n_c ::= "c"\n- ::= "d" 0\n0 ::= "e"', BYTES
    )
    texts = ("a", "bbc", "bbcde", "bbcdede", "b", "bb", "bbcd")
    assert [accepted(grammar, text) for text in texts] == [True] * 4 + [False] * 3


@pytest.mark.parametrize("number", [2_001, 30_000, 10_000_000])
def test_repetitions_by_option(number: int) -> None:
    """Many of them compile to few rules, or are refused by name; both at once."""
    started = time.monotonic()
    count = f"{{{number}}}"
    for text in (f'root ::= "a"{count}', f'root ::= "a"{{0,{number}}} "b"', f'root ::= ("a" root "b" | "c"){count}'):
        grammar = compile_gbnf(text, BYTES, max_repetitions=number)
        assert grammar.matcher().next_bytes().sum() in (1, 2)
    assert time.monotonic() - started < 20
    with pytest.raises(GrammarError, match=f"at most {number}"):
        compile_gbnf(f'root ::= "a"{{{number + 1},}}', BYTES, max_repetitions=number)


def test_the_limit_of_repetitions_is_a_count() -> None:
    assert accepted(compile_gbnf('root ::= "a"{3}', BYTES, max_repetitions=3), "aaa")
    for wrong in (-1, 2.5, "3"):
        with pytest.raises(OptionsError, match="max_repetitions"):
            compile_gbnf('root ::= "a"{3}', BYTES, max_repetitions=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(("low", "high"), [(0, 1), (3, 3), (0, 7), (2, 13), (5, 21), (0, 16), (1, 33)])
def test_very_many_repetitions_by_powers_of_two(low: int, high: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same counts as one by one."""
    text = f'root ::= item{{{low},{high}}} ";"\nitem ::= "a" | "(" root ")"'
    monkeypatch.setattr(ebnf_writer, "MAX_COPIES", 0)
    grammar = compile_gbnf(text, BYTES, max_repetitions=100)
    nested = max(low, 1)
    for count in range(high + 3):
        assert accepted(grammar, "a" * count + ";") == (low <= count <= high), count
    inner = "(" + "a" * nested + ";)"
    assert accepted(grammar, inner * nested + ";") and not accepted(grammar, inner * (high + 1) + ";")
