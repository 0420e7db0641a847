"""ECMA-262 expressions as Python's: by spelling out what the two languages read differently."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

WORD = "A-Za-z0-9_"
SPACE = r"\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_SETS = {"d": "0-9", "w": WORD, "s": SPACE}
_BOUNDARY = f"(?:(?<=[{WORD}])(?![{WORD}])|(?<![{WORD}])(?=[{WORD}]))"
_NO_BOUNDARY = f"(?:(?<=[{WORD}])(?=[{WORD}])|(?<![{WORD}])(?![{WORD}]))"


def to_python(pattern: str) -> str:
    """The same language for ``re.search``. Covers what the fuzzer writes.

    Raises:
        ValueError: an escape that it does not know.
    """
    out, place, inside = [], 0, False
    while place < len(pattern):
        character = pattern[place]
        if character == "\\":
            escape, place = _escape(pattern, place + 1, inside)
            out.append(escape)
            continue
        place += 1
        if inside:
            inside = character != "]"
            out.append("\\" + character if character in "[&~|" else character)
        elif character == "[":
            inside = True
            if pattern.startswith("^]", place):
                out.append(r"[\s\S]")
                place, inside = place + 2, False
            elif pattern.startswith("]", place):
                out.append("(?!)")
                place, inside = place + 1, False
            else:
                out.append("[")
        elif character == "$":
            out.append(r"\Z")
        elif character == ".":
            out.append(r"[^\n\r\u2028\u2029]")
        elif character == "(" and re.match(r"\?<[^=!]", pattern[place:]):
            out.append("(?P<")
            place += 2
        else:
            out.append(character)
    return "".join(out)


def _escape(pattern: str, place: int, inside: bool) -> tuple[str, int]:
    letter = pattern[place]
    if letter in "dws":
        return (_SETS[letter] if inside else f"[{_SETS[letter]}]"), place + 1
    if letter in "DWS":
        return (_complement(letter.lower()) if inside else f"[^{_SETS[letter.lower()]}]"), place + 1
    if letter in "bB" and not inside:
        return (_BOUNDARY if letter == "b" else _NO_BOUNDARY), place + 1
    if letter == "b":
        return r"\x08", place + 1
    if letter == "0":
        return r"\x00", place + 1
    if letter == "u" and pattern.startswith("{", place + 1):
        end = pattern.index("}", place)
        return re.escape(chr(int(pattern[place + 2 : end], 16))), end + 1
    if letter in "ux":
        size = 4 if letter == "u" else 2
        return re.escape(chr(int(pattern[place + 1 : place + 1 + size], 16))), place + 1 + size
    if letter in "tnvfr":
        return "\\" + letter, place + 1
    if letter.isalnum():
        raise ValueError(f"\\{letter} in {pattern!r}")
    return re.escape(letter), place + 1


@cache
def _complement(letter: str) -> str:
    """The characters that a class does not have, as ranges within brackets."""
    matches = re.compile(f"[{_SETS[letter]}]").match
    edges = [-1, *(code for code in range(0x10000) if matches(chr(code))), 0x110000]
    ranges = [(low + 1, high - 1) for low, high in itertools.pairwise(edges) if high - low > 1]
    return "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in ranges)


@lru_cache(maxsize=4096)
def searcher(pattern: str) -> Callable[[str], Any]:
    """``search`` of the expression; `regex` where `re` cannot look behind that far."""
    translated = to_python(pattern)
    try:
        return re.compile(translated).search
    except re.error:
        import regex

        return regex.compile(translated).search
