"""Lark grammars: Lark's Earley parser with the complete dynamic lexer is the oracle."""

from __future__ import annotations

import itertools
import random
import time
from pathlib import Path

import pytest

from structgen.core.compilers import compile_lark
from structgen.core.engines.cfg.compiled import CfgGrammar, compile_grammar
from structgen.core.engines.protocols import Grammar
from structgen.core.grammars.lark_reader import read_lark
from structgen.core.regex.dfa import accepts
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import ConstraintError, EmptyLanguageError, GrammarError, GrammarWarning, OptionsError
from structgen.options import JsonOptions

lark = pytest.importorskip("lark")
BYTES = Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=256)
GRAMMARS = {
    # name: grammar, alphabet
    "operators": ('start: "a"? "b"* "c"+ ["d"]', "abcd"),
    "groups": ('start: ("a" | "b" ("c" | "d"))~2', "abcd"),
    "range": ('start: "a"~1..3 ("b" "c")~0..2', "abc"),
    "big_range": ('start: "a"~0..60', "ab"),
    "template": ('start: pair{"a", B}\npair{x, y}: x y | "(" pair{x, y} ")"\nB: "b"+', "ab()"),
    "alias": ('start: "a" -> one\n  | "b" start -> two', "ab"),
    "inline": ('start: _x ?y\n_x: "a" | "b"\n?y: "c" | "d" _x'.replace("?y\n_x", "y\n_x"), "abcd"),
    "flags": ('start: "ab"i | /c.d/is', "abABcC"),
    "terminals": ('start: A B\nA: "a" | "b" "c"\nB: ("a".."c")+ | A~2', "abc"),
    "priorities": ("start: A | B\nA.2: /a+/\nB.1: /[ab]+/", "ab"),
    "lazy": ('start: /".*?"/ start | "a"', '"ab'),
    "first_match": ('start: /a|ab/ "c" | "d"', "abcd"),
    "ignored": ('start: "a" "b"+\n%ignore " "\n%ignore "#"', "ab #"),
    "lookahead": ("start: /a(?!b)[abc]/ /[abc]/", "abc"),
    "many_words": ("start: " + "|".join(f'"{x}{y}"' for x in "abcde" for y in "abcd") + '| "(" start ")"', "abe()"),
    "extend": ('start: x\nx: "a"\n%extend x: "b" x', "ab"),
    "override": ("start: INT\n%import common.INT\n%override INT: /[ab]/", "ab1"),
    "imports": ("start: INT (WS INT)*\n%import common (INT, WS)", "1 \n"),
    "nested_empty": ('start: x x\nx: "a" |\n', "ab"),
}


def accepted(grammar: Grammar, text: str) -> bool:
    matcher = grammar.matcher()
    return matcher.accept_bytes(text.encode()) and matcher.is_accepting()


def by_lark(parser: object, text: str) -> bool:
    try:
        parser.parse(text)  # type: ignore[attr-defined]
    except lark.exceptions.LarkError:
        return False
    return True


@pytest.mark.parametrize("name", GRAMMARS)
def test_short_texts_as_lark(name: str) -> None:
    text, alphabet = GRAMMARS[name]
    grammar = compile_grammar(read_lark(text).grammar, BYTES)
    judge = lark.Lark(text, parser="earley", lexer="dynamic_complete")
    words = ["".join(word) for size in range(5) for word in itertools.product(alphabet, repeat=size)]
    wrong = [word for word in words[:400] if accepted(grammar, word) != by_lark(judge, word)]
    assert not wrong
    assert any(accepted(grammar, word) for word in words)


def test_escaped_strings_end_at_the_first_quote() -> None:
    (terminal,) = read_lark("start: ESCAPED_STRING\n%import common.ESCAPED_STRING").grammar.terminals
    expected = {'"a"': True, r'"\""': True, r'"\\"': True, '"a"b"': False, r'"\\""': False, '"': False, '"\n"': False}
    assert {text: accepts(terminal.dfa, text) for text in expected} == expected


@pytest.mark.parametrize(
    "name", ["INT", "SIGNED_NUMBER", "FLOAT", "CNAME", "WS", "NEWLINE", "C_COMMENT", "SQL_COMMENT"]
)
def test_common_terminals(name: str) -> None:
    """Against re.match with the pattern that Lark makes."""
    import re

    text = f"start: {name}\n%import common.{name}"
    (terminal,) = read_lark(text).grammar.terminals
    (definition,) = [t for t in lark.Lark(text, parser="lalr").terminals if t.name == name]
    judge, rng = re.compile(definition.pattern.to_regexp()), random.Random(1)
    for _ in range(2000):
        word = "".join(rng.choice("+-1.eE a_\n\r/*b") for _ in range(rng.randrange(7)))
        match = judge.match(word)
        assert accepts(terminal.dfa, word) == (match is not None and match.end() == len(word)), word


@pytest.mark.filterwarnings("ignore::structgen.errors.GrammarWarning")
def test_lark_reads_its_own_grammars() -> None:
    folder = Path(lark.__file__).parent / "grammars"
    grammar = compile_lark(folder / "lark.lark", BYTES)
    for file in sorted(folder.glob("*.lark")):
        text = file.read_text(encoding="utf-8")
        assert accepted(grammar, text), file.name
        assert not accepted(grammar, text + "\n)")


@pytest.mark.parametrize(
    ("text", "message", "line", "column"),
    [
        ("start: b", "'b' used but not defined", 1, 8),
        ('start: "a"\n  | B', "'B' used but not defined", 2, 5),
        ("start: /(/", "unterminated subpattern", 1, 8),
        ('start: "a" | )', "Unexpected token", 1, 14),
        ('start: "a', "Unexpected input", 1, 8),
        ('begin: "a"', "no rule 'start'", 0, 0),
        ("start: A\n%declare A", "declared, but has no pattern", 1, 8),
        ('start: "a" _INDENT\n%declare _INDENT', "declared, but has no pattern", 1, 12),
        ("start: A\nA: /a*/", "matches the empty text", 2, 1),
        ('start: A\nA: A "x"', "Recursion in terminal 'A'", 2, 1),
        ('start: "a"\nstart: "b"', "defined more than once", 1, 1),
        ("start: X\nX: /a(b)(?P=x)/", "unknown group name", 2, 1),
        ("start: X\nX: /(b)\\1/", "backreference", 2, 1),
        ('start: "a"\n%import nowhere.X', "nowhere", 2, 9),
        ('start: foo{"a"}\nfoo{x,y}: x y', "template arguments", 0, 0),
        ('start: %json {"a": ]} "x"', "not followed by a JSON Schema", 1, 20),
        ("start: X\nX: /a(?!a)(?=a)a/", "matches no text", 2, 1),
    ],
)
def test_errors_say_where(text: str, message: str, line: int, column: int) -> None:
    with pytest.raises(GrammarError, match=message.replace("(", r"\(")) as caught:
        read_lark(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    if line:
        assert str(caught.value).splitlines()[2].endswith("^")


def test_empty_language() -> None:
    with pytest.raises(EmptyLanguageError):
        compile_lark('start: start "a"', BYTES)


def test_missing_file() -> None:
    with pytest.raises(ConstraintError, match="cannot read"):
        read_lark(Path("nowhere.lark"))


def test_unknown_lexer() -> None:
    with pytest.raises(OptionsError, match="lexer"):
        compile_lark('start: "a"', BYTES, lexer="basic")


def test_unused_rules_are_reported() -> None:
    assert read_lark('start: t{"a"}\nt{x}: x _y\n_y: "b"').warnings == ()
    assert read_lark('start: "a"\n\nother: "b"').warnings == ("rule 'other' is never used (line 3)",)
    with pytest.warns(GrammarWarning, match="other"):
        compile_lark('start: "a"\nother: "b"', BYTES)


def test_involved_lookarounds_are_reported() -> None:
    (warning,) = read_lark("start: X\nX: /a(?=.*b)[abc]*/").warnings
    assert "X is all" in warning and "line 2" in warning
    (warning,) = read_lark("start: X /./\nX: /a(?!b)/").warnings
    assert "X looks beyond its own text" in warning


@pytest.mark.parametrize(
    ("pattern", "beyond"),
    [
        ("a(?!b)", True),
        (r"\ba", True),
        ("^a", True),
        ("(?<!x)a", True),
        (r"a\b", True),
        ("a(?!b)c", False),
        (r"a(?<!b)\bc|d", False),
        ("(?!b)[ab]", False),
        ("(?:a|(?=b))b?c", False),
    ],
)
def test_terminals_that_look_around_are_reported(pattern: str, beyond: bool) -> None:
    assert bool(read_lark(f"start: X\nX: /{pattern}/").warnings) == beyond


def test_imports_from_files(tmp_path: Path) -> None:
    (tmp_path / "words.lark").write_text('pair: "<" WORD ">"\nWORD: /[a-z]+/\n')
    (tmp_path / "main.lark").write_text("start: pair+\n%import .words.pair\n")
    grammar = compile_lark(tmp_path / "main.lark", BYTES)
    assert accepted(grammar, "<ab><c>")
    assert not accepted(grammar, "<ab")
    elsewhere = read_lark("start: pair\n%import words.pair", import_paths=[tmp_path])
    assert accepted(compile_grammar(elsewhere.grammar, BYTES), "<ab>")


def test_schemas_inside() -> None:
    read = read_lark('start: "%json {" %json {"const": "}"} | X // %json {\nX: /%json {/ ')
    ((number, embedded),) = read.embedded.items()
    assert embedded == ({"const": "}"}, JsonOptions())
    assert read.grammar.terminals[number].dfa.is_empty
    assert accepted(compile_lark('start: "<" %json {"const": "}"} ">"', BYTES), '<"}">')


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::structgen.errors.GrammarWarning")
def test_large_grammars_are_read_fast() -> None:
    started = time.process_time()
    options = "|".join(f'"w{i}x"' for i in range(3000))
    grammar = compile_lark(f"start: word~2 NUMBER~5000\nword: {options}\nNUMBER: {options}", BYTES)
    assert isinstance(grammar, CfgGrammar) and len(grammar.source.terminals) == 2
    assert time.process_time() - started < 10


def test_a_byte_order_mark_is_named() -> None:
    with pytest.raises(GrammarError, match="byte order mark"):
        read_lark('\ufeffstart: "a"')
