"""Ranges of numbers and of texts of one shape (dates, clock times) as regular expressions (ECMA-262)."""

from __future__ import annotations

import re
from collections.abc import Iterator


def integers(low: int | None, high: int | None) -> str:
    """Integers from ``low`` to ``high`` (None: unbounded) in plain decimal spelling, no ``-0``."""
    options = []
    if low is None or low < 0:
        start = 1 if high is None or high >= 0 else -high
        options += [f"-{text}" for text in _naturals(start, None if low is None else -low)]
    if high is None or high >= 0:
        options += list(_naturals(max(0, low or 0), high))
    return f"(?:{'|'.join(options)})" if options else "[^\\s\\S]"


def _naturals(low: int, high: int | None) -> Iterator[str]:
    if high is None:
        width = len(str(low))
        yield from _naturals(low, 10**width - 1)
        yield f"[1-9][0-9]{{{width},}}"
        return
    while low <= high:
        top = min(high, 10 ** len(str(low)) - 1)
        yield from _of_width(str(low), str(top))
        low = top + 1


def _of_width(low: str, high: str) -> Iterator[str]:
    """Digits of one width, from one to another."""
    if low == high:
        yield low
    elif low[0] == high[0]:
        yield from (low[0] + digits for digits in _of_width(low[1:], high[1:]))
    else:
        width = len(low) - 1
        first, last = int(low[0]), int(high[0])
        if low[1:].strip("0"):
            yield from (low[0] + digits for digits in _of_width(low[1:], "9" * width))
            first += 1
        ragged = high[1:].strip("9")
        if first <= (last - 1 if ragged else last):
            yield f"[{first}-{last - 1 if ragged else last}]" + "[0-9]" * width
        if ragged:
            yield from (high[0] + digits for digits in _of_width("0" * width, high[1:]))


def at_least(text: str) -> str:
    """Texts of the same shape (digits where it has digits) that are not before it."""
    return _beyond(text, lambda digit: (digit + 1, 9))


def at_most(text: str) -> str:
    """Texts of the same shape that are not after it."""
    return _beyond(text, lambda digit: (0, digit - 1))


def _beyond(text: str, others) -> str:  # type: ignore[no-untyped-def]
    options = [re.escape(text).replace("\\-", "-")]
    for index, character in enumerate(text):
        if character.isdigit():
            low, high = others(int(character))
            if low <= high:
                shape = "".join("[0-9]" if c.isdigit() else re.escape(c).replace("\\-", "-") for c in text[index + 1 :])
                options.append(re.escape(text[:index]).replace("\\-", "-") + f"[{low}-{high}]" + shape)
    return f"(?:{'|'.join(options)})"
