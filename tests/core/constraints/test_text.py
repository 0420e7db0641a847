"""Grammars, expressions and choices as constraints: compiled once, checked against `re` and plain sets."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

import structgen
from structgen.core.compilers import Syntax, compile_choice, compile_gbnf, compile_lark, compile_regex
from structgen.core.constraints.text import choice, gbnf, lark, regex
from structgen.core.engines.protocols import Grammar
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import ConstraintError, EmptyLanguageError, OptionsError, PatternError

BYTES = Vocabulary([bytes([byte]) for byte in range(256)] + [b"ab", None], eos_token_ids=257)


def accepted(grammar: Grammar, text: str) -> bool:
    matcher = grammar.matcher()
    return matcher.accept_bytes(text.encode()) and matcher.is_accepting()


@pytest.mark.parametrize("pattern", ["(?:ab)*", "a|b+?|", "[^a]b{1,2}", r"(?!aa)[ab]{2}", "a.*?b", ""])
@pytest.mark.parametrize("syntax", ["python", "ecma"])
def test_regex_is_fullmatch(pattern: str, syntax: Syntax) -> None:
    grammar = compile_regex(pattern, BYTES, syntax)
    for word in ("".join(w) for size in range(5) for w in itertools.product("abc", repeat=size)):
        assert accepted(grammar, word) == bool(re.fullmatch(pattern, word)), word


def test_the_syntaxes_differ() -> None:
    assert accepted(compile_regex(r"\d", BYTES), "٣")
    assert not accepted(compile_regex(r"\d", BYTES, "ecma"), "٣")


@pytest.mark.parametrize(
    "options", [["yes", "no"], [""], ["a", "ab", "", "é"], "word", [f"w{i}" for i in range(10_000)]]
)
def test_choice_is_the_set(options: list[str] | str) -> None:
    grammar = compile_choice(options, BYTES)
    words = {options} if isinstance(options, str) else set(options)
    probes = [*sorted(words)[:50], "w", "x", "yesno", "w99999", "abab", ""]
    assert [accepted(grammar, probe) for probe in probes] == [probe in words for probe in probes]


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: compile_regex("a", BYTES, "perl"), OptionsError, "syntax"),  # type: ignore[arg-type]
        (lambda: compile_regex("(", BYTES), PatternError, "unterminated"),
        (lambda: compile_regex("(", BYTES, "ecma"), PatternError, "offset"),
        (lambda: compile_regex("a(?!.)b", BYTES), EmptyLanguageError, "no text"),
        (lambda: compile_choice([], BYTES), ConstraintError, "at least one"),
        (lambda: compile_choice(["a", 1], BYTES), ConstraintError, "not 1"),  # type: ignore[list-item]
        (lambda: compile_gbnf(Path("nowhere.gbnf"), BYTES), ConstraintError, "cannot read"),
    ],
)
def test_errors(build, error, message) -> None:
    with pytest.raises(error, match=message):
        build()


def test_constraints_are_values(tmp_path: Path) -> None:
    pytest.importorskip("lark")
    grammar = 'start: "x" start | "y"'
    path = tmp_path / "g.lark"
    path.write_text(grammar)
    assert lark(grammar) == lark(grammar) and lark(grammar) != lark(grammar, start="other")
    assert lark(grammar).compile(BYTES) is lark(grammar).compile(BYTES)
    for constraint in (lark(grammar), lark(str(path)), lark(path), gbnf('root ::= "x" root | "y"'), regex("x*y")):
        assert accepted(constraint.compile(BYTES), "xxy")
        assert not accepted(constraint.compile(BYTES), "xx")
        assert constraint.parse("xxy") == constraint.parse_partial("xxy") == "xxy"
        assert "y" in constraint.instruction()
    assert "yes\nno" in choice(["yes", "no"]).instruction()
    assert isinstance(choice("a"), structgen.Constraint)
    assert accepted(compile_lark(path, BYTES), "y")
