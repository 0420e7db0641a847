"""Where this library and llguidance differ by intention: each with the reason, a grammar and a text that shows it."""

from __future__ import annotations

import pytest

from structgen.core.compilers import compile_lark
from tests.core.grammars.dialects.llguidance.peers import BYTES, Peer

pytest.importorskip("llguidance")

DIFFERENT = {
    # reason: grammar, text, accepted here, accepted there
    "every split counts, its lexer takes the longest match and never goes back": (
        'start: /[a-z]+/ "b"',
        b"ab",
        True,
        False,
    ),
    "every split counts, its lexer reads on as long as any terminal can": (
        'start: (x | "END")*\nx[lazy]: /[a-zA-Z ]*\\n/',
        b"ENDEND",
        True,
        False,
    ),
    "its documentation has lazy text that may be empty match the empty text only, it takes a character": (
        'start: x "b"\nx[lazy]: /.*/',
        b"b",
        True,
        False,
    ),
    "its documentation ignores text between terminals, it does so at the end too where more could follow": (
        'start: "a"+\n%ignore " "',
        b"a ",
        False,
        True,
    ),
    "it would take the text of stop back and have it written again": (
        'start: with_stop "<end>"\nwith_stop[stop="<end>"]: /.*/',
        b"foo<end>",
        True,
        False,
    ),
}


@pytest.mark.parametrize("reason", DIFFERENT)
def test_the_difference(reason: str) -> None:
    source, text, here, there = DIFFERENT[reason]
    matcher = compile_lark(source, BYTES, dialect="llguidance").matcher()
    assert (matcher.accept_bytes(text) and matcher.is_accepting()) == here
    assert Peer().accepts(source, text) == there
