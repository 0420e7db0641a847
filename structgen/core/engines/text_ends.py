"""Where a text of a grammar can end inside a longer one."""

from __future__ import annotations

from typing import NamedTuple

from structgen.core.engines.protocols import Grammar


class TextEnds(NamedTuple):
    """Where a text can end: places, ascending, and whether it may go on after the end of the data."""

    ends: list[int]
    is_open: bool


def text_ends(grammar: Grammar, data: bytes, begin: int) -> TextEnds:
    """Where a text of a grammar that begins at ``begin`` can end. A step of its matcher for each byte."""
    matcher, ends = grammar.matcher(), list[int]()
    for at in range(begin, len(data) + 1):
        if matcher.is_accepting():
            ends.append(at)
        if at < len(data) and not matcher.accept_bytes(data[at : at + 1]):
            return TextEnds(ends, False)
    return TextEnds(ends, bool(matcher.next_bytes().any()))
