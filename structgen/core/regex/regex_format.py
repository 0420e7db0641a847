"""The format ``regex`` as an automaton: regular expressions of ECMA-262.

Brackets nest, so the whole language is not regular; a counted repetition or a range compares two numbers, and a name is
compared with others. What is accepted is therefore a subset of ECMA-262:

- groups ``( )`` and ``(?: )`` nest up to `DEPTH` deep; lookarounds stand outside of groups and hold no groups;
- ``{n,m}`` with n below 100 or m with more digits than n; repetition counts of at most four digits;
- ranges of a class within the digits, the upper or the lower case letters, or from ``!``, space or ``\\x00``,
  ``\\u0000`` and the like; a literal ``-`` only at either end of a class;
- one named group, outside of groups; in it and after it neither groups nor ``{n,m}``, and of ranges those of all digits
  or letters; ``\\k`` names it if its name is one of the letters `REFERRED`, and neither counts nor escapes but ``\\d``,
  ``\\w`` and ``\\s`` stand in it and after it;
- no numbered back-references, flags, ``\\p`` or literal ``{``.

Python's ``re`` reads them too, but for named groups, lookbehinds, ``[]``, ``[^]`` and ``\\c``: see `READ_BY_PYTHON`.
"""

from __future__ import annotations

import string

DEPTH = 4
"""How deep groups nest."""
REFERRED = "knqrtx"
"""Names of a group that a back-reference may name: each has a part of the automaton of its own."""

_HEX = "[0-9A-Fa-f]"
_CODE = rf"(?:\\x{_HEX}{{2}}|\\u{_HEX}{{4}})"
_ESCAPE = rf"(?:\\[dDwWsStnrfv]|\\c[A-Za-z]|{_CODE}|\\[!-/:-@\[-`{{-~])"  # in classes and outside


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
_CLASS = rf"\[\^?(?:-?{_CLASS_ITEM}+-?|-)?\]"
_ATOM = rf"(?:[^\^$\\.*+?()\[\]{{}}|]|[\]}}.]|{_ESCAPE}|{_CLASS})"
_ASSERTION = r"(?:[\^$]|\\[bB])"


def _expression(depth: int, lookarounds: str = "") -> str:
    """Alternatives of terms with groups nested up to ``depth`` deep, and lookarounds that begin so."""
    group = rf"|\((?:\?:)?{_expression(depth - 1)}\)" if depth else ""
    look = rf"|\({lookarounds}{_expression(0)}\)" if lookarounds else ""
    return rf"(?:(?:{_ATOM}{group})(?:{_QUANTIFIER})?|{_ASSERTION}{look}|\|)*"


_PLAIN = r"[^\^$\\.*+?()\[\]{}|]"
_KIND = r"\\[dDwWsS]"


def _named() -> str:
    """A named group and what follows it."""
    chars = rf"(?:[^\\\[\]\-\^]|a-z|A-Z|0-9|{_ESCAPE})"
    term = rf"(?:{_PLAIN}|\.|{_ESCAPE}|\[\^?{chars}*\])(?:(?:[*+?]|\{{{_COUNT},?\}})\??)?"
    some = rf"(?:{term}|{_ASSERTION}|\|)*"
    return rf"\(\?<[A-Za-z_$][A-Za-z0-9_$]*>{some}\)(?:[*+?]\??)?{some}"


def _referred(letter: str) -> str:
    """A group named by one letter, and what follows it: references too."""
    char = "[ -#%&',/0-9:;<=>@A-Z_`a-z~]"  # of ASCII, as each letter has its own part of the automaton
    body = rf"(?:{char}|\.|{_KIND}|\[\^?(?:{char}|{_KIND})*\])"
    some = rf"(?:{body}(?:[*+?]\??)?|[\^$]|\|)*"
    return rf"\(\?<{letter}>{some}\)(?:(?:{body}|\\k<{letter}>)(?:[*+?]\??)?|[\^$]|\|)*"


def _whole() -> str:
    named = "|".join([_named(), *map(_referred, REFERRED)])
    return _expression(DEPTH, r"\?<?[=!]") + f"(?:{named})?"


REGEX = _whole()
"""The format as an expression that describes its whole text."""

REGEX_DRAFT3 = _expression(DEPTH, r"\?[=!]")
"""The same of ECMA-262 as draft 3 knew it, without named groups and lookbehinds."""

NO_REGEX = r"^[*+?]|^[^\\\[(]*\)|(?:^|[^\\])(?:\\\\)*\\$"
"""An expression found in texts that no reader takes for one: they begin with a repetition, close a group before any
could be open, or end within an escape."""

READ_BY_PYTHON = r"^(?:\\[^ck]|\[\^?(?:[^\\\]\^]|\\[^c])+\]|\((?!\?<)|[^\\\[(])*$"
"""What to ask of a text of the format besides, so that Python's ``re`` reads it."""
