"""Python's regular expressions (module ``re``) as automata over UTF-8 bytes.

Python's own parser reads them, so syntax, flags, classes and case folding are those of ``re``. The result is the set
of texts that match *as a whole*: greedy and lazy repetition say the same there, and lookarounds see no further than
the text itself.

No other module touches what is private in ``re``: its parser, and which characters it takes for one another
(``tests/test_fences.py``). These names have stayed from Python 3.11 on.
"""

from __future__ import annotations

import _sre  # type: ignore[import-not-found]
import re
import re._casefix as _casefix  # type: ignore[import-not-found]
import re._constants as c  # type: ignore[import-not-found]
import re._parser as _parser  # type: ignore[import-not-found]
import sys
from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np

from structgen.core.grammars.first_match import LazyRepeat, first_match_dfa
from structgen.core.regex import charset
from structgen.core.regex.charset import CharSet
from structgen.core.regex.dfa import MAX_STATES, Dfa
from structgen.core.regex.dfa_cache import keeps_automata
from structgen.core.regex.ecma_ast import (
    END,
    START,
    Alternate,
    Boundary,
    Chars,
    Concat,
    Look,
    Node,
    Repeat,
)
from structgen.core.regex.pattern import search_dfa
from structgen.core.regex.steps import check_time
from structgen.errors import PatternError, PatternTooComplexError, UnsupportedPatternError

NEWLINE = charset.single(10)
MAX_DEPTH = 100
"""Groups and repetitions may be nested this deep."""
CHARACTER_SETS = re.ASCII | re.UNICODE
BEYOND = "looks beyond its own text (lookaround or anchor at its edge): what stands before and after it is not seen"
_CATEGORIES = {
    c.CATEGORY_DIGIT: r"\d",
    c.CATEGORY_NOT_DIGIT: r"\D",
    c.CATEGORY_SPACE: r"\s",
    c.CATEGORY_NOT_SPACE: r"\S",
    c.CATEGORY_WORD: r"\w",
    c.CATEGORY_NOT_WORD: r"\W",
}


@keeps_automata
def python_regex_dfa(pattern: str, flags: int = 0, max_states: int = MAX_STATES) -> Dfa:
    """The texts that ``re.fullmatch(pattern, text, flags)`` accepts. Cached for the process.

    Raises:
        PatternError: not a legal expression, not regular (backreferences, conditional groups), or nested too deeply.
        TooComplexError: an automaton would exceed ``max_states`` states.
    """
    return search_dfa(Concat((START, parse(pattern, flags), END)), max_states)


@keeps_automata
def terminal_dfa(pattern: str) -> tuple[Dfa, str]:
    """The texts that ``re.match(pattern, text)`` takes whole, as Lark's lexers do, and a remark where they differ.

    Cached for the process.

    Raises:
        PatternError, TooComplexError: as ``python_regex_dfa``.
    """
    verdict = first_match_dfa(parse(pattern))
    if verdict is None:
        return python_regex_dfa(pattern), (
            "is all that its expression matches, not only what Lark's lexer finds first: its lookarounds are too "
            "involved, or it is too large"
        )
    dfa, looks_beyond = verdict
    return dfa, BEYOND if looks_beyond else ""


def parse(pattern: str, flags: int = 0) -> Node:
    """The syntax tree of an expression. Raises PatternError."""
    try:
        tree, flags = parse_tree(pattern, flags)
    except re.error as error:
        raise PatternError(
            f"not a Python regular expression: {error.msg}", pattern=pattern, position=error.pos or 0
        ) from None
    except OverflowError as error:
        raise PatternError(f"not a usable regular expression: {error}", pattern=pattern) from None
    except ValueError:
        raise PatternError("not a usable regular expression: a number has too many digits", pattern=pattern) from None
    except RecursionError:
        raise nested_too_deeply(pattern) from None
    return _Converter(pattern).sequence(tree, flags)


def first_too_deep(pattern: str) -> int | None:
    """The offset of the first group that is nested too deeply; None if there is none."""
    depth = 0
    for match in re.finditer(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[()]", pattern, re.DOTALL):
        depth += {"(": 1, ")": -1}.get(match.group(), 0)
        if depth > MAX_DEPTH:
            return match.start()
    return None


def nested_too_deeply(pattern: str) -> PatternTooComplexError:
    """The error for an expression whose groups or repetitions are nested too deeply."""
    return PatternTooComplexError(
        "groups and repetitions are nested too deeply",
        budget="depth",
        limit=MAX_DEPTH,
        pattern=pattern,
        position=first_too_deep(pattern) or 0,
    )


class _Converter:
    """From Python's parse tree to ours."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._depth = 0

    def sequence(self, tree: Iterable[tuple[Any, Any]], flags: int) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise nested_too_deeply(self._pattern)
        parts = tuple([self._node(op, value, flags) for op, value in tree])
        self._depth -= 1
        return parts[0] if len(parts) == 1 else Concat(parts)

    def _node(self, op: Any, value: Any, flags: int) -> Node:
        check_time()
        check_time()
        if op is c.LITERAL:
            return Chars(cased([(value, value)], flags))
        if op is c.NOT_LITERAL:
            return Chars(charset.complement(cased([(value, value)], flags)))
        if op is c.ANY:
            return Chars(charset.ANY if flags & re.DOTALL else charset.complement(NEWLINE))
        if op is c.IN:
            return Chars(self._class(value, flags))
        if op is c.BRANCH:
            return Alternate(tuple(self.sequence(option, flags) for option in value[1]))
        if op is c.SUBPATTERN:
            _, added, removed, body = value
            if added & CHARACTER_SETS:  # one takes the place of the other
                flags &= ~CHARACTER_SETS
            return self.sequence(body, (flags | added) & ~removed)
        if op in (c.MAX_REPEAT, c.MIN_REPEAT):
            low, high, body = value
            kind = Repeat if op is c.MAX_REPEAT else LazyRepeat
            return kind(self.sequence(body, flags), low, None if high == c.MAXREPEAT else high)
        if op in (c.ASSERT, c.ASSERT_NOT):
            direction, body = value
            return Look(self.sequence(body, flags), direction < 0, op is c.ASSERT_NOT)
        if op is c.AT:
            return self._at(value, flags)
        names = {c.GROUPREF: "a backreference", c.GROUPREF_EXISTS: "a conditional group"}
        names |= {c.ATOMIC_GROUP: "an atomic group", c.POSSESSIVE_REPEAT: "a possessive repetition"}
        raise UnsupportedPatternError(f"{names.get(op, str(op))} is not supported", pattern=self._pattern)

    def _at(self, anchor: Any, flags: int) -> Node:
        if anchor is c.AT_BEGINNING_STRING or (anchor is c.AT_BEGINNING and not flags & re.MULTILINE):
            return START
        if anchor is c.AT_BEGINNING:
            return Alternate((START, Look(Chars(NEWLINE), True, False)))
        if anchor is c.AT_END_STRING:
            return END
        if anchor is c.AT_END and flags & re.MULTILINE:
            return Alternate((END, Look(Chars(NEWLINE), False, False)))
        if anchor is c.AT_END:
            return Alternate((END, Look(Concat((Chars(NEWLINE), END)), False, False)))
        return Boundary(_category(r"\w", bool(flags & re.ASCII)), anchor is c.AT_NON_BOUNDARY)

    def _class(self, items: list[tuple[Any, Any]], flags: int) -> CharSet:
        negated = bool(items) and items[0][0] is c.NEGATE
        ranges: list[tuple[int, int]] = []
        sets: list[CharSet] = []
        for op, value in items[1:] if negated else items:
            if op is c.LITERAL:
                ranges.append((value, value))
            elif op is c.RANGE:
                ranges.append(value)
            elif op is c.CATEGORY:
                sets.append(_category(_CATEGORIES[value], bool(flags & re.ASCII)))
            else:
                raise PatternError(f"{op} in a class is not supported", pattern=self._pattern)
        members = charset.union(cased(ranges, flags), *sets)
        return charset.complement(members) if negated else members


@cache
def _category(expression: str, ascii_only: bool) -> CharSet:
    """The characters of a class, asked of ``re`` itself."""
    if expression.isupper():
        return charset.complement(_category(expression.lower(), ascii_only))
    matches = re.finditer(f"{expression}+", _characters(), re.ASCII if ascii_only else 0)
    return charset.normalise((match.start(), match.end() - 1) for match in matches)


def word_characters() -> CharSet:
    """The characters of ``\\w``."""
    return _category(r"\w", False)


UNASSIGNED = 0x40000
"""From here on there are no characters but tags, variation selectors and those for private use: of none of the classes
that are asked for."""


@cache
def _characters() -> str:
    """All before, surrogates included: they are in no class either."""
    return np.arange(UNASSIGNED, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")


@cache
def _upper_cases() -> dict[int, list[int]]:
    """What has each lower case."""
    upper: dict[int, list[int]] = {}
    for point, low in lower_cases().items():
        upper.setdefault(low, []).append(point)
    return upper


def cased(ranges: list[tuple[int, int]], flags: int) -> CharSet:
    """The characters of some ranges, with those that differ from them by case if the flags ignore it."""
    members = charset.normalise(ranges)
    if not flags & re.IGNORECASE:
        return members
    if flags & re.ASCII:
        letters = [p for low, high in members for p in range(max(low, 65), min(high, 122) + 1) if chr(p).isalpha()]
        return charset.union(members, *(charset.single(ord(chr(p).swapcase())) for p in letters))
    lower, upper = lower_cases(), _upper_cases()
    wanted: set[int] = set()
    for low, high in members:
        inside = range(low, high + 1) if high - low < len(lower) else [p for p in lower if low <= p <= high]
        for point in inside:
            lowest = lower.get(point, point)
            wanted.add(lowest)
            wanted.update(equal_lower_cases(lowest))
    points = [point for low in wanted for point in upper.get(low, ())]
    return charset.union(members, charset.normalise((p, p) for p in points))


def parse_tree(pattern: str, flags: int) -> tuple[Any, int]:
    """Python's parse tree of an expression, nodes (operation of ``re._constants``, argument), and all flags of it.

    Raises:
        re.error, OverflowError, ValueError, RecursionError: as ``re.compile``.
    """
    tree = _parser.parse(pattern, flags)
    return tree, tree.state.flags


@cache
def lower_cases() -> dict[int, int]:
    """The lower case of every character that has case, as ``re`` compares them."""
    return {
        point: _sre.unicode_tolower(point)
        for point in range(sys.maxunicode + 1)
        if not 0xD800 <= point <= 0xDFFF and _sre.unicode_iscased(point)
    }


def equal_lower_cases(lower: int) -> tuple[int, ...]:
    """Other lower-case characters that ``re`` takes for this one."""
    return tuple(_casefix._EXTRA_CASES.get(lower, ()))
