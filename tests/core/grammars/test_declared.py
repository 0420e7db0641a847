"""Terminals that a Lark grammar declares, whose texts come from elsewhere, beside literals of the same letters."""

from __future__ import annotations

from typing import Any

import pytest

import structgen

LETTERS = structgen.Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=256)
GIVEN = [structgen.regex("[ab]"), structgen.choice(["a", "b"]), structgen.NameSet.build(["a", "b"])]
DECLARED = [  # grammars that declare X, a text that they take, and one that they do not
    ('start: "x" X', "xa", "xx"),
    ('start: X "x"', "ax", "xx"),
    ('start: "x" X | X "z"', "az", "xz"),
    ('start: "x" X*', "xab", "xxx"),
    ('start: ("x" X)+', "xaxb", "xxxx"),
    ('start: pair{"x"}\npair{first}: first X', "xa", "xx"),
    ('start: "x" X\n%ignore " "', "x a", "xx"),
    ('start: Y X\nY.2: "x"', "xa", "xx"),
    ('start: "x"i X', "Xa", "xx"),
]


@pytest.mark.parametrize(("source", "taken", "refused"), DECLARED)
@pytest.mark.parametrize("given", GIVEN)
def test_a_declared_terminal_is_no_literal_of_its_letters(source: str, taken: str, refused: str, given: Any) -> None:
    grammar = structgen.lark(f"{source}\n%declare X", terminals={"X": given}).compile(LETTERS)
    for text, expected in ((taken, True), (refused, False)):
        matcher = grammar.matcher()
        assert (matcher.accept_bytes(text.encode()) and matcher.is_accepting()) == expected, text


def test_what_took_the_place_of_json_is_no_literal_either() -> None:
    literal = "structgen_json_0"
    source = f'start: "{literal}" %json {{"type": "integer"}}'
    matcher = structgen.lark(source).compile(LETTERS).matcher()
    assert matcher.accept_bytes(f"{literal}7".encode()) and matcher.is_accepting()
