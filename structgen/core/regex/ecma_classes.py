"""The character classes of ECMA-262: ``\\d \\w \\s .``, control escapes, ``\\p{…}`` and case folding."""

from __future__ import annotations

from functools import lru_cache

from structgen.core.regex.charset import CharSet, complement, normalise, union
from structgen.core.regex.unicode.properties import case_orbits, property_set

DIGIT: CharSet = ((0x30, 0x39),)
WORD: CharSet = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
SPACE: CharSet = (
    (0x09, 0x0D),
    (0x20, 0x20),
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x2028, 0x2029),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
    (0xFEFF, 0xFEFF),
)
LINE_END: CharSet = ((0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029))
NOT_LINE_END = complement(LINE_END)

SHORTHANDS: dict[str, CharSet] = {
    "d": DIGIT,
    "D": complement(DIGIT),
    "w": WORD,
    "W": complement(WORD),
    "s": SPACE,
    "S": complement(SPACE),
}
CONTROLS: dict[str, int] = {"f": 0x0C, "n": 0x0A, "r": 0x0D, "t": 0x09, "v": 0x0B}


@lru_cache(maxsize=256)
def property_class(expression: str) -> CharSet | None:
    """The characters of ``\\p{expression}`` (``Name=Value`` or ``NameOrValue``), None if there is no such property.

    Names are matched exactly, as ECMA-262 table 67 ff. demand: ``\\p{L}``, ``\\p{Letter}``,
    ``\\p{General_Category=Letter}``, ``\\p{sc=Grek}``, ``\\p{Script_Extensions=Greek}``, ``\\p{Alphabetic}``.
    """
    name, equals, value = expression.partition("=")
    if not equals:
        return property_set("gc", name) or property_set("binary", name)
    kind = {
        "General_Category": "gc",
        "gc": "gc",
        "Script": "sc",
        "sc": "sc",
        "Script_Extensions": "scx",
        "scx": "scx",
    }.get(name)
    return property_set(kind, value) if kind else None


@lru_cache(maxsize=256)
def fold(charset: CharSet) -> CharSet:
    """The set closed under simple case folding (the ``i`` flag together with ``u``)."""
    extra = [
        (other, other)
        for orbit in case_orbits()
        if any(_contains(charset, code_point) for code_point in orbit)
        for other in orbit
    ]
    return union(charset, normalise(extra))


def _contains(charset: CharSet, code_point: int) -> bool:
    return any(low <= code_point <= high for low, high in charset)
