"""Where a text of a grammar can end inside a longer one, and sets of such places, as bits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from structgen.core.engines.protocols import Grammar


class TextEnds(NamedTuple):
    """Where a text can end: places, ascending, and whether it may go on after the end of the data."""

    ends: list[int]
    is_open: bool


def text_ends(grammar: Grammar, data: bytes, begin: int) -> TextEnds:
    """Where a text of a grammar that begins at ``begin`` can end. A step of its matcher for each byte."""
    matcher, ends = grammar.matcher(), list[int]()
    for offset in range(begin, len(data) + 1):
        if matcher.is_accepting():
            ends.append(offset)
        if offset < len(data) and not matcher.accept_bytes(data[offset : offset + 1]):
            return TextEnds(ends, False)
    return TextEnds(ends, bool(matcher.next_bytes().any()))


Ends = tuple[int, int, int]
"""The lowest place where a part can end, a bit for each from there on, and how it can be open where it stops."""
NONE: Ends = (0, 0, 0)
INSIDE, BETWEEN = 1, 2
"""A part that goes on after the end of the text, which ends inside a terminal, or between two."""


def places(ends: Ends) -> Iterator[int]:
    """The places of a set, ascending."""
    low, bits, _ = ends
    if bits == 1:
        yield low
    elif bits:
        text = f"{bits:b}"[::-1]
        bit = text.find("1")
        while bit >= 0:
            yield low + bit
            bit = text.find("1", bit + 1)


def places_down(ends: Ends, highest: int | None = None) -> Iterator[int]:
    """The places of a set up to a highest, descending."""
    low, bits, _ = ends
    if highest is not None:
        bits &= (1 << max(0, highest - low + 1)) - 1
    while bits:
        size = bits.bit_length() - 1
        yield low + size
        bits ^= 1 << size


def has_place(ends: Ends, offset: int) -> bool:
    """Whether a set holds a place."""
    return offset >= ends[0] and bool(ends[1] >> (offset - ends[0]) & 1)


def joined(one: Ends, other: Ends) -> Ends:
    """Both; one of the two itself if that is all."""
    if not other[1] or one is other:
        return one if one[2] | other[2] == one[2] else (one[0], one[1], one[2] | other[2])
    if not one[1]:
        return other if one[2] | other[2] == other[2] else (other[0], other[1], one[2] | other[2])
    if one[0] <= other[0]:
        low, bits = one[0], one[1] | other[1] << (other[0] - one[0])
    else:
        low, bits = other[0], one[1] << (one[0] - other[0]) | other[1]
    if low == one[0] and bits == one[1] and one[2] | other[2] == one[2]:
        return one
    return low, bits, one[2] | other[2]


def without(ends: Ends, seen: Ends) -> Ends:
    """The places that were not seen; what was seen is among the ends."""
    if not seen[1]:
        return ends
    bits = ends[1] & ~(seen[1] << (seen[0] - ends[0]))
    return ends[0], bits, ends[2]
