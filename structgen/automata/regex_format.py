"""The format ``regex`` as an automaton: expressions that both ECMA-262 and Python's ``re`` read.

Brackets nest, so the whole language is not regular, and a counted repetition or a range compares two numbers. What is
accepted is therefore a subset of ECMA-262, such that validators of either kind agree that it is valid:

- groups ``( )`` and ``(?: )`` nest up to `DEPTH` deep; lookaheads stand outside of groups and hold no groups;
- ``{n,m}`` with n below 100 or m with more digits than n; repetition counts of at most four digits;
- ranges of a class within the digits, the upper or the lower case letters, or from ``!``, space or ``\\x00``,
  ``\\u0000`` and the like; a literal ``-`` only at either end of a class;
- no named groups, back-references, lookbehinds, flags, ``\\c``, ``\\p``, empty classes or literal ``{``.
"""

from __future__ import annotations

import string

DEPTH = 4
"""How deep groups nest."""

_HEX = "[0-9A-Fa-f]"
_CODE = rf"(?:\\x{_HEX}{{2}}|\\u{_HEX}{{4}})"
_ESCAPE = rf"(?:\\[dDwWsStnrfv]|{_CODE}|\\[!-/:-@\[-`{{-~])"  # in classes and outside


def _not_above() -> str:
    """Two numbers ``n,m`` with n <= m: of one or two digits each, or m with more digits."""
    ones = [f"{n},[{n}-9]" for n in range(10)]
    tens = [f"{n}(?:[0-9],[{n + 1}-9][0-9]|{'|'.join(f'{k},{n}[{k}-9]' for k in range(10))})" for n in range(1, 9)]
    tens.append(f"9(?:{'|'.join(f'{k},9[{k}-9]' for k in range(10))})")
    more = ["[0-9],[1-9][0-9]{1,3}", "[1-9][0-9],[1-9][0-9]{2,3}", "[1-9][0-9]{2},[1-9][0-9]{3}"]
    return "|".join(ones + tens + more)


_COUNT = "(?:0|[1-9][0-9]{0,3})"
_QUANTIFIER = rf"(?:[*+?]|\{{(?:{_COUNT},?|{_not_above()})\}})\??"


def _ranges() -> str:
    """Ranges of a class whose ends are plainly in order."""
    same = [
        f"{low}-[{low}-{letters[-1]}]"
        for letters in (string.digits, string.ascii_uppercase, string.ascii_lowercase)
        for low in letters
    ]
    zero = r"\\(?:x00|u0000)"
    return "|".join([*same, r"!-[!-Z_a-~]", r" -[ -Z_a-~]", rf"{zero}-{_CODE}"])


_CLASS_ITEM = rf"(?:{_ranges()}|[^\\\[\]\-\^]|{_ESCAPE}|\\b)"
_CLASS = rf"\[\^?(?:-?{_CLASS_ITEM}+-?|-)\]"
_ATOM = rf"(?:[^\^$\\.*+?()\[\]{{}}|]|[\]}}.]|{_ESCAPE}|{_CLASS})"
_ASSERTION = r"(?:[\^$]|\\[bB])"


def _expression(depth: int, lookaheads: bool = False) -> str:
    """Alternatives of terms with groups nested up to ``depth`` deep."""
    group = rf"|\((?:\?:)?{_expression(depth - 1)}\)" if depth else ""
    look = rf"|\(\?[=!]{_expression(0)}\)" if lookaheads else ""
    return rf"(?:(?:{_ATOM}{group})(?:{_QUANTIFIER})?|{_ASSERTION}{look}|\|)*"


REGEX = _expression(DEPTH, lookaheads=True)
"""The format as an expression that describes its whole text."""
