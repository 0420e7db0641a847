"""Sets of Unicode scalar values as sorted, disjoint, non-adjacent ranges, and their joint partition into classes.

A :data:`CharSet` never holds surrogates (U+D800–U+DFFF): no valid UTF-8 text contains one, so an escape that names a
lone surrogate matches nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from structgen.core.regex.steps import check_time

CharSet: TypeAlias = tuple[tuple[int, int], ...]
"""Inclusive code-point ranges, sorted, disjoint and not adjacent (except across the surrogate gap)."""

MAX_CODE_POINT = 0x10FFFF
SURROGATE_FIRST, SURROGATE_LAST = 0xD800, 0xDFFF

EMPTY: CharSet = ()
ANY: CharSet = ((0, SURROGATE_FIRST - 1), (SURROGATE_LAST + 1, MAX_CODE_POINT))


def normalise(ranges: Iterable[tuple[int, int]]) -> CharSet:
    """The canonical form of a union of inclusive ranges (any order, overlaps allowed), surrogates removed."""
    check_time()
    check_time()
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            if high > merged[-1][1]:
                merged[-1] = (merged[-1][0], high)
        elif low <= high:
            merged.append((low, high))
    if merged and merged[-1][1] < SURROGATE_FIRST:
        return tuple(merged)
    return tuple(piece for low, high in merged for piece in _without_surrogates(low, high))


def _without_surrogates(low: int, high: int) -> list[tuple[int, int]]:
    if high < SURROGATE_FIRST or low > SURROGATE_LAST:
        return [(low, high)]
    pieces = [(low, SURROGATE_FIRST - 1), (SURROGATE_LAST + 1, high)]
    return [piece for piece in pieces if piece[0] <= piece[1]]


@lru_cache(maxsize=4096)
def single(code_point: int) -> CharSet:
    """The set of one character."""
    return normalise([(code_point, code_point)])


def union(*sets: CharSet) -> CharSet:
    """The union of the sets."""
    return normalise(piece for charset in sets for piece in charset)


@lru_cache(maxsize=512)
def complement(charset: CharSet) -> CharSet:
    """All scalar values that are not in the set."""
    gaps = []
    low = 0
    for first, last in charset:
        if first > low:
            gaps.append((low, first - 1))
        low = last + 1
    if low <= MAX_CODE_POINT:
        gaps.append((low, MAX_CODE_POINT))
    return normalise(gaps)


@lru_cache(maxsize=512)
def intersection(a: CharSet, b: CharSet) -> CharSet:
    """The characters in both sets."""
    return complement(union(complement(a), complement(b)))


def partition(sets: Sequence[CharSet]) -> tuple[list[tuple[int, int, int]], list[int]]:
    """Split the scalar values into classes that no set of ``sets`` tells apart.

    Returns the segments ``(first, last, class)`` in ascending order, covering every scalar value, and for each class
    the bit mask of the sets that hold it. O(r log r) in the number of ranges r.
    """
    # A set flips its own bit where one of its ranges begins and just after it ends.
    flips: dict[int, int] = {0: 0, SURROGATE_FIRST: 0, SURROGATE_LAST + 1: 0}
    for index, charset in enumerate(sets):
        bit = 1 << index
        check_time()
        check_time()
        for low, high in charset:
            flips[low] = flips.get(low, 0) ^ bit
            flips[high + 1] = flips.get(high + 1, 0) ^ bit
    flips.pop(MAX_CODE_POINT + 1, None)
    class_of: dict[int, int] = {}
    segments: list[tuple[int, int, int]] = []
    mask = 0
    bounds = sorted(flips)
    for low, past in zip(bounds, [*bounds[1:], MAX_CODE_POINT + 1], strict=True):
        mask ^= flips[low]
        if low == SURROGATE_FIRST:
            continue
        name = class_of.setdefault(mask, len(class_of))
        if segments and segments[-1][2] == name and segments[-1][1] == low - 1:
            segments[-1] = (segments[-1][0], past - 1, name)
        else:
            segments.append((low, past - 1, name))
    return segments, list(class_of)


BLOCK = 1 << 12
"""Characters that are asked about at once; where one of them is not as expected, each half again."""


def corrected(expected: CharSet, only: Callable[[str], bool], some: Callable[[str], bool]) -> CharSet:
    """The characters of which someone else says that they are in a set, whose version of Unicode may be another.

    Args:
        expected: what is likely; the nearer, the fewer questions.
        only: whether all characters of a text are in the set.
        some: whether any is.
    """
    missing = {char for block in _blocks(expected) for char in _odd(block, lambda text: not only(text))}
    further = {char for block in _blocks(complement(expected)) for char in _odd(block, some)}
    if not missing and not further:
        return expected
    changed = normalise((ord(char), ord(char)) for char in missing | further)
    return union(intersection(expected, complement(changed)), intersection(changed, complement(expected)))


def _odd(text: str, is_odd: Callable[[str], bool]) -> Iterator[str]:
    """The characters that are odd, where a text is odd if one of its characters is."""
    if not is_odd(text):
        return
    if len(text) == 1:
        yield text
        return
    half = len(text) // 2
    yield from _odd(text[:half], is_odd)
    yield from _odd(text[half:], is_odd)


def _blocks(charset: CharSet) -> Iterator[str]:
    """All characters of a set, some thousands at a time."""
    points = np.concatenate([np.arange(low, high + 1, dtype="<u4") for low, high in charset] or [np.zeros(0, "<u4")])
    for first in range(0, len(points), BLOCK):
        yield points[first : first + BLOCK].tobytes().decode("utf-32-le")
