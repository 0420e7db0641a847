"""Lark's bundled grammars: lark.lark over grammars, python.lark over modules of the standard library, the terminals."""

from __future__ import annotations

import re
import sched
import stat
import token
import warnings
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("lark")
import lark
from lark.indenter import PythonIndenter

from structgen import GrammarWarning, compile_lark
from tests.grammars.shipped import BYTES, JUDGES, accepts, mutants, parses, walk

BUNDLED = Path(lark.__file__).parent / "grammars"
SMALL = [
    'start: "a"+ // comment\n',
    "a: b | c -> d\nB.2: /x/i\n",
    "%import common (A, B)\n%ignore WS\n",
    '?a{b, c}: (b c)~2..3 | [b] "x".."z"\n',
]


@cache
def source(name: str, lexer: str) -> str:
    """A bundled grammar; without comments for the dynamic lexer, which may end one where Lark's does not."""
    text = (BUNDLED / name).read_text()
    return text.replace("%ignore COMMENT\n", "") if lexer == "dynamic" else text


@cache
def compiled(name: str, start: str, lexer: str) -> Any:
    with warnings.catch_warnings(action="ignore", category=GrammarWarning):  # of what looks beyond itself
        return compile_lark(source(name, lexer), BYTES, start=start, lexer=lexer)


@cache
def judge(text: str, start: str, lexer: str) -> Any:
    indented = {"postlex": PythonIndenter()} if "\n%declare" in text else {}
    return lark.Lark(text, start=start, **JUDGES[lexer], **indented)


@pytest.mark.parametrize("lexer", JUDGES)
def test_lark_reads_grammars(lexer: str) -> None:
    ours, theirs = compiled("lark.lark", "start", lexer), judge(source("lark.lark", lexer), "start", lexer)
    for text in SMALL[lexer == "dynamic" :]:
        assert accepts(ours, text) and parses(theirs, text), text
    for text in mutants(SMALL, 60, lexer):
        assert accepts(ours, text) == parses(theirs, text), text
    for seed in range(15):
        text = walk(ours, seed)
        assert parses(theirs, text), text


@pytest.mark.parametrize("path", [*BUNDLED.glob("*.lark"), *Path(__file__).parents[2].glob("grammars/*.lark")], ids=str)
def test_grammars_are_read_by_lark_in_lark(path: Path) -> None:
    """Whole grammars, which may be too long for the Earley parser. (lark.lark knows no ``~n`` of strings.)"""
    theirs = judge(source("lark.lark", "contextual"), "start", "contextual")
    text = path.read_text()
    assert accepts(compiled("lark.lark", "start", "contextual"), text) == parses(theirs, text)


@pytest.mark.full
@pytest.mark.parametrize("module", [sched, stat, token], ids=lambda module: str(module.__name__))
def test_python_reads_the_standard_library(module: ModuleType) -> None:
    text = Path(str(module.__file__)).read_text()
    ours = compiled("python.lark", "file_input", "contextual")
    theirs = judge(source("python.lark", "contextual"), "file_input", "contextual")
    assert accepts(ours, text) and parses(theirs, text)
    lines = text.splitlines(keepends=True)
    for mutant in mutants(["".join(lines[n : n + 12]) for n in range(0, len(lines), 12)], 20, module.__name__):
        assert accepts(ours, mutant) == parses(theirs, mutant), mutant


@pytest.mark.first_case
@pytest.mark.parametrize("lexer", JUDGES)
def test_library_terminals(lexer: str) -> None:
    """Every terminal of common and unicode between two signs."""
    samples = ["a", "Zz9", "-3.5e7", '"a\\"b"', "_x", " \t", "\r\n", "// c", "/* c */", "# c", "\xa0", "0x1", "1."]
    for library in ("common", "unicode"):
        for name in re.findall(r"^(\w+)\s*:", (BUNDLED / f"{library}.lark").read_text(), re.MULTILINE):
            # inner parts may be empty; comments to the end of a line swallow the second sign, a line end stops them
            if not name.endswith("_INNER"):
                close = "\\n" if name in ("SH_COMMENT", "CPP_COMMENT", "SQL_COMMENT") else ">"
                text = f'start: "<" {name} "{close}"\n%import {library}.{name}\n'
                ours, theirs = compile_lark(text, BYTES, lexer=lexer), judge(text, "start", lexer)
                texts = [f"<{sample}{end}" for sample in samples for end in (">", "\n")]
                for sample in [*texts, *(walk(ours, seed, 8) for seed in range(4))]:
                    assert accepts(ours, sample) == parses(theirs, sample), (name, sample)
