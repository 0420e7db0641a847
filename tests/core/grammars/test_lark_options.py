"""What users of Lark try first: its options, its lexers, grammars of indentation. Each error shows the form here,
and that form works."""

from __future__ import annotations

import re
from typing import Any

import pytest

import structgen
from structgen import GrammarError, OptionsError, Vocabulary, compile_lark, lark
from structgen.core.grammars.lark_options import INDENTATION

lark_package = pytest.importorskip("lark")

BYTES = Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=256)
BLOCKS = """
start: (statement | _NL)*
statement: "pass" _NL | "if" NAME ":" block
block: _NL _INDENT statement+ _DEDENT
NAME: /[a-z]+/
_NL: /(\\r?\\n[\\t ]*)+/
%ignore " "
"""
DECLARED = BLOCKS + "%declare _INDENT _DEDENT\n"
FORM = ['lexer="contextual"', "%declare _INDENT _DEDENT", "_NL: /(\\r?\\n[\\t ]*)+/"]


class TreeIndenter:
    """As users derive from ``lark.indenter.Indenter``."""


def accepts(grammar: Any, text: str) -> bool:
    matcher = grammar.matcher()
    return matcher.accept_bytes(text.encode()) and matcher.is_accepting()


def test_the_form_that_errors_show_works() -> None:
    shown = "\n".join(line.strip() for line in INDENTATION.splitlines() if re.match(r"\s+(_NL|%|block)", line))
    text = f'start: "if" block\nstatement: "pass" _NL\n{shown}\n%ignore " "'
    grammar = compile_lark(text, BYTES, lexer="contextual")
    assert accepts(grammar, "if\n  pass\n  pass\n") and not accepts(grammar, "if\n  pass\n   pass\n")
    assert all(part in INDENTATION for part in FORM)
    declared = compile_lark(DECLARED, BYTES, lexer="contextual")
    assert accepts(declared, "if x:\n  pass\npass\n") and not accepts(declared, "if x:\npass\n")


OPTIONS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "postlex": ({"postlex": TreeIndenter()}, FORM),
    "parser and postlex": ({"parser": "lalr", "postlex": TreeIndenter()}, ['lexer="contextual"']),
    "parser": ({"parser": "lalr"}, ['lexer="contextual" takes what parser="lalr" takes', 'lexer="dynamic"']),
    "earley": ({"parser": "earley"}, ['lexer="dynamic"']),
    "indenter": ({"indenter": TreeIndenter()}, FORM),
    "lexer, an indenter": ({"lexer": TreeIndenter()}, FORM),
    "lexer, by its class": ({"lexer": TreeIndenter}, FORM),
    "lexer, by a name": ({"lexer": "indentation"}, FORM),
    "lexer basic": ({"lexer": "basic"}, ['lexer="contextual"']),
    "lexer dynamic_complete": ({"lexer": "dynamic_complete"}, ['lexer="dynamic" is it']),
    "flags": ({"g_regex_flags": re.IGNORECASE}, ["/[a-z]+/i"]),
    "trees": ({"propagate_positions": True}, ["parse the output with Lark"]),
    "imports": ({"import_paths": ["."]}, ["pathlib.Path"]),
    "a slip": ({"stat": "start"}, ["did you mean 'start'"]),
    "nothing near": ({"zzz": 1}, ["there are start, lexer"]),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options_of_larks_constructor(name: str) -> None:
    options, parts = OPTIONS[name]
    for call in (lambda: lark('start: "a"', **options), lambda: compile_lark('start: "a"', BYTES, **options)):
        with pytest.raises(OptionsError) as caught:
            call()
        assert all(part in str(caught.value) for part in parts), str(caught.value)
        assert caught.value.option in options


GRAMMARS: dict[str, tuple[str, dict[str, Any]]] = {
    "declared, for the default lexer": (DECLARED, {}),
    "not declared": (BLOCKS, {}),
    "not declared, contextual": (BLOCKS, {"lexer": "contextual"}),
    "other names": (DECLARED.replace("_INDENT", "INDENT").replace("_DEDENT", "DEDENT"), {"lexer": "contextual"}),
    "other names, for the default lexer": (DECLARED.replace("_INDENT", "INDENT").replace("_DEDENT", "DEDENT"), {}),
    "only one of them": (BLOCKS + "%declare _INDENT", {"lexer": "contextual"}),
    "another newline": (DECLARED.replace("_NL", "_NEW_LINE"), {"lexer": "contextual"}),
    "no newline": (
        'start: "a" _INDENT "b" _DEDENT\n%declare _INDENT _DEDENT', {"lexer": "contextual"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GRAMMARS)
def test_grammars_of_indentation_that_are_not_written_so(name: str) -> None:
    text, options = GRAMMARS[name]
    with pytest.raises(GrammarError) as caught:
        structgen.compile_lark(text, BYTES, **options)
    assert all(part in str(caught.value) for part in FORM), str(caught.value)


def test_llguidances_dialect_says_where_indentation_is() -> None:
    with pytest.raises(GrammarError, match="lexer='contextual'"):
        compile_lark(DECLARED, BYTES, dialect="llguidance")
