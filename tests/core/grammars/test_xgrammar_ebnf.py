"""XGrammar's EBNF: attributes, errors, and where the meaning differs from XGrammar's by design."""

from __future__ import annotations

import pytest

from structgen.core.compilers import compile_gbnf
from structgen.core.constraints.cache import content_key
from structgen.core.constraints.text import gbnf
from structgen.core.grammars.gbnf import read_gbnf
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import EmptyLanguageError, GrammarError, GrammarTooComplexError, GrammarWarning, OptionsError

BYTES = Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=256)


def accepted(source: str, *texts: str) -> list[bool]:
    found = []
    grammar = compile_gbnf(source, BYTES, dialect="xgrammar")
    for text in texts:
        matcher = grammar.matcher()
        found.append(matcher.accept_bytes(text.encode()) and matcher.is_accepting())
    return found


def test_dialects_differ() -> None:
    """The same text, read in two ways."""
    text = r'root ::= "\x1F600" a.b' + '\na.b ::= "é"'
    assert accepted(text, "\U0001f600é", "\x1f600é") == [True, False]
    with pytest.raises(GrammarError):
        compile_gbnf(text, BYTES)
    both = r'root ::= "\x411"'  # two digits in llama.cpp, all of them in XGrammar
    assert accepted(both, "\u0411", "A1") == [True, False]
    matcher = compile_gbnf(both, BYTES).matcher()
    assert matcher.accept_bytes(b"A1") and matcher.is_accepting()
    assert content_key(gbnf(both)) != content_key(gbnf(both, dialect="xgrammar"))
    assert "XGrammar" in gbnf(both, dialect="xgrammar").instruction()
    with pytest.raises(OptionsError, match=r"'llama\.cpp' or 'xgrammar'"):
        compile_gbnf(both, BYTES, dialect="lark")  # type: ignore[arg-type]


def test_captures_are_in_the_normal_form() -> None:
    text = 'root[capture] ::= x "," y x\nx[capture="the x"] ::= [a-b]+\ny[lazy, capture, max_chars=9] ::= [c]+ "."'
    grammar = read_gbnf(text, dialect="xgrammar")
    named = {(grammar.nonterminals[symbol], name) for symbol, name in grammar.captures}
    assert named == {("root", "root"), ("x", "the x"), ("y", "y")}


def test_repetitions_are_not_limited() -> None:
    grammar = compile_gbnf('root ::= "a"{5000} [b-c]{0,3000000}', BYTES, dialect="xgrammar")
    assert grammar.matcher().accept_bytes(b"a" * 5000 + b"bc")
    with pytest.raises(GrammarError, match="at most 10 "):
        compile_gbnf('root ::= "a"{11}', BYTES, dialect="xgrammar", max_repetitions=10)
    with pytest.raises(GrammarError, match="at most 2147483647"):
        compile_gbnf('root ::= "a"{2147483648}', BYTES, dialect="xgrammar")


@pytest.mark.parametrize(
    ("text", "message", "line", "column"),
    [
        ("root ::= x", "'x' is not defined", 1, 10),
        ('root ::= "a"\nx ::= "b" (= y)', "'y' is not defined", 2, 14),
        ("root ::=", "the grammar ends", 1, 9),
        ('root ::= "a" | | "b"', "expected an element .* not '|'", 1, 16),
        ('root ::= "a"{2}{3}', "needs parentheses", 1, 16),
        ('root ::= "a"{,4}', "a repetition is", 1, 13),
        ('root ::= "a"{1,2,3}', "a repetition is", 1, 13),
        ('root ::= "a"{3,1}', "must go up", 1, 13),
        ('root ::= "a"{2', "a repetition is", 1, 13),
        ('root ::= "a" x ::= "b"', "must be the first in its line", 1, 14),
        ('root ::= "a"\nroot ::= "b"', "defined twice", 2, 1),
        ('true ::= "a"', "expected a name before", 1, 1),
        ("root ::= false", "is no name", 1, 10),
        ('::= "a"', "expected a name before", 1, 1),
        ('"a" ::= "a"', "expected a name before", 1, 1),
        ('root ::= ("a"', "not closed", 1, 10),
        ('root ::= "a" (= "b"', "not closed", 1, 14),
        ('root ::= "a")', "expected a rule", 1, 13),
        ('root ::= "a" = "b"', "expected an element", 1, 14),
        ('root ::= "a\n"', "does not end in its line", 1, 10),
        ("root ::= [a\n]", "does not end in its line", 1, 10),
        ("root ::= <think>", "'<' is not expected", 1, 10),
        (r"root ::= [a\d]", r"no escape \\d", 1, 12),
        (r'root ::= "\["', r"no escape \\\[", 1, 11),
        (r'root ::= "a\x"', r"\\x needs hexadecimal digits", 1, 12),
        (r'root ::= "a\u12"', r"\\u needs four", 1, 12),
        (r'root ::= "\U00110000"', "above the last code point", 1, 11),
        (r'root ::= "\x1234567890"', "above the last code point", 1, 11),
        ("root ::= [b-a]", "must go up", 1, 10),
        ('main ::= "a"', "no rule 'root'", 0, 0),
        # attributes
        ('root[max_tokens=0] ::= "a"', "max_tokens must be", 1, 6),
        ('root[temperature=-1] ::= "a"', "expected attributes", 1, 6),
        ('root[lazy, stop_capture="x"] ::= "a"', "stop_capture belongs to", 1, 12),
        ('root[capture_hidden_stop_bytes=2] ::= "a"', "capture_hidden_stop_bytes belongs to", 1, 6),
        ('root[suffix="x"] ::= "a"', "no attribute suffix", 1, 6),
        ('root[] ::= "a"', "expected attributes", 1, 6),
        ('root[capture=3] ::= "a"', "is written capture or", 1, 6),
        ('root[capture=""] ::= "a"', "is written capture or", 1, 6),
        ('root[lazy=true] ::= "a"', "expected attributes", 1, 6),
        ('root[max_chars] ::= "a"', "is written max_chars=100", 1, 6),
        ('root[lazy, lazy] ::= "a"', "given twice", 1, 12),
        ('root[lazy] ::= "a" root?', "lazy is for regular rules", 1, 1),
        ('root ::= a\na[max_chars=3] ::= "(" a ")" | "x"', "max_chars is for regular rules", 2, 1),
        # macros
        ("root ::= Regex", "is a macro", 1, 10),
        ('root ::= Regex("a", "b")', "Regex: expected one argument", 1, 10),
        ("root ::= Regex(a)", "Regex: expected texts", 1, 16),
        ('root ::= Regex("a(")', "Regex: Unterminated group", 1, 16),
        (r'root ::= Regex("(a)\\1")', "Backreferences", 1, 16),
        ('root ::= Regex("a", lazy=true)', "Regex: there is no argument lazy", 1, 26),
        ('root ::= Regex("a", flags="m")', "the flags are i, s and u", 1, 27),
        ('root ::= Regex("a", json_string=1)', "json_string=true or", 1, 33),
        ('root ::= Regex("a",)', "expected an argument", 1, 20),
        ('root ::= Regex("a" "b")', "expected , or \\)", 1, 20),
        ('root ::= Substring("a", 5)', "Substring: expected texts", 1, 25),
        ('root ::= TagDispatch(("x", y))', "'y' is not defined", 1, 28),
        ('root ::= TagDispatch(("x", "y"))', r"expected \(text, rule\)", 1, 22),
        ('root ::= TagDispatch(("", root))', "an empty text would match everywhere", 1, 10),
        ("root ::= TagDispatch((5, root))", "expected texts", 1, 23),
        ('root ::= TagDispatch("x")', r"expected \(text, rule\)", 1, 22),
        ('root ::= TagDispatch(("x", root), stop="y")', "there is no argument stop; there are", 1, 40),
        ('root ::= TagDispatch(("x", root), excludes="y")', "expected excludes=", 1, 44),
        ('root ::= TagDispatch(("xy", root), ("y", root))', "'xy' holds 'y'", 1, 10),
        ('root ::= TagDispatch(("xy", root), excludes=("x",))', "'xy' holds 'x'", 1, 10),
        ('root ::= TagDispatch(("xy", root), excludes=("xy",))', "is excluded", 1, 10),
        ("root ::= Token()", "expected ids", 1, 10),
        ('root ::= Token("a")', "expected an id of a token", 1, 16),
        ("root ::= Token(-1)", "expected an id of a token", 1, 16),
        ("root ::= Token(99999999999999999999)", "ids that no vocabulary has", 1, 10),
        ("root ::= TokenTagDispatch((1, root), excludes=(1,))", "cannot be a trigger", 1, 48),
    ],
)
def test_errors_say_where(text: str, message: str, line: int, column: int) -> None:
    with pytest.raises(GrammarError, match=message) as caught:
        read_gbnf(text, dialect="xgrammar")
    assert (caught.value.line, caught.value.column) == (line, column), str(caught.value)


def test_too_much_is_refused() -> None:
    with pytest.raises(GrammarTooComplexError, match="too deeply"):
        read_gbnf("root ::= " + "(" * 100 + '"a"' + ")" * 100, dialect="xgrammar")
    with pytest.raises(GrammarTooComplexError, match="too deeply"):
        read_gbnf("root ::= TagDispatch" + "(" * 1000, dialect="xgrammar")
    with pytest.raises(GrammarTooComplexError, match="too long"):
        read_gbnf(f'root ::= "{"a" * 100_001}"', dialect="xgrammar")
    words = ", ".join(f'"{number}"' for number in range(10**5, 10**5 + 30_000))
    with pytest.raises(GrammarTooComplexError, match="the search for 30000 words") as caught:
        read_gbnf(f'root ::= "a" TagDispatch(excludes=({words}))', dialect="xgrammar")
    assert (caught.value.line, caught.value.column) == (1, 14)
    with pytest.raises(GrammarTooComplexError):
        read_gbnf("root[max_chars=999999999] ::= [a-zé]*", dialect="xgrammar")


def test_unused_rules_are_reported() -> None:
    with pytest.warns(GrammarWarning, match=r"'b' is never used \(line 2\)"):
        read_gbnf('root ::= TagDispatch(("x", a))\nb ::= "b"\na ::= "a"', dialect="xgrammar")


def test_lazy_rules_may_use_rules() -> None:
    """Of which XGrammar refuses all but plain ones."""
    text = 'root ::= a "c"\na[lazy] ::= b Regex("[bc]+a") | "x" b{1,2}\nb[lazy] ::= [ab]* "b"'
    assert accepted(text, "abbac", "bcac", "xbc", "xaabc") == [True] * 4
    assert accepted(text, "xbbc", "bac", "abbabac") == [False] * 3


# --- differences by design: what XGrammar 0.2.8 does is in the comments ---
def test_max_chars_is_a_limit() -> None:
    """There it is relaxed where the rule cannot end in time."""
    assert accepted('root[max_chars=1] ::= "ab" | "x"', "x", "ab") == [True, False]


def test_expressions_are_read_as_they_are() -> None:
    """There lookaheads, and anchors in the middle, are left out with a warning; lookbehinds are refused."""
    assert accepted('root ::= Regex("(?!ab)[ab]+") | "c"', "ba", "ab", "c") == [True, False, True]
    assert accepted('root ::= Regex("[ab]+(?<!b)")', "ba", "ab") == [True, False]
    with pytest.raises(EmptyLanguageError):
        compile_gbnf('root ::= Regex("a^b")', BYTES, dialect="xgrammar")


def test_case_is_that_of_unicode() -> None:
    """There only ASCII letters have a case."""
    assert accepted('root ::= Regex("(?i)é")', "É", "é") == [True, True]


def test_no_text_has_half_a_character() -> None:
    """There \\uD800 is written as the three bytes that UTF-8 forbids, and free text may be any bytes."""
    assert accepted(r'root ::= "\uD800" | "a"', "a") == [True]
    matcher = compile_gbnf("root ::= TagDispatch()", BYTES, dialect="xgrammar").matcher()
    assert not matcher.accept_bytes(b"\xff")
