"""Strings as quotes spell them: as automata of the spelled texts, and as texts."""

from __future__ import annotations

import ast
import re
from functools import lru_cache

import numpy as np

from structgen.core.regex.dfa import Dfa, Table, from_table, too_complex
from structgen.core.tool_calls.patterns import Quotes, fixed
from structgen.core.tool_calls.values import raw_strings

_SHORT = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


@lru_cache(16)
def escapes(mark: str) -> dict[str, str]:
    """What Python's escapes are written for between such marks: themselves, backslashes and control characters."""
    control = {chr(code): f"\\x{code:02x}" for code in (*range(32), 127)}
    return {**control, **_SHORT, mark: f"\\{mark}"}


def spelled_strings(strings: Dfa, quotes: Quotes, max_states: int) -> Dfa:
    """The strings of a language as they stand between quotes.

    Raises:
        TooComplexError: the automaton has more states.
    """
    if not quotes.escaped:
        return raw_strings(strings, fixed(quotes.mark), 0, max_states)
    return _replaced(strings, escapes(fixed(quotes.mark)), max_states)


def _replaced(strings: Dfa, texts: dict[str, str], max_states: int) -> Dfa:
    """The texts of a language, with characters of ASCII replaced. All that replaces begins with a character that is
    replaced itself, and nothing of it with another."""
    table: list[list[int]] = strings.transitions.tolist()
    for state in range(len(table)):
        targets = {text: table[state][ord(character)] for character, text in texts.items()}
        for character in texts:
            table[state][ord(character)] = -1
        for text, target in targets.items():
            if target >= 0:
                _add(table, state, text.encode(), target)
        if len(table) > 256 * max_states:
            raise too_complex(max_states, "what strings are spelled as")
    accepting = np.zeros(len(table), np.uint8)
    accepting[: len(strings.accepting)] = strings.accepting
    transitions: Table = np.array(table, np.int32).reshape(-1, 256)
    return from_table(transitions, accepting)


def _add(table: list[list[int]], state: int, text: bytes, target: int) -> None:
    for byte in text[:-1]:
        if table[state][byte] < 0:
            table[state][byte] = len(table)
            table.append([-1] * 256)
        state = table[state][byte]
    table[state][text[-1]] = target


def lost(words: tuple[str, ...], quotes: tuple[Quotes, ...]) -> list[str]:
    """Those of some strings that none of the quotes can hold."""
    return [word for word in words if all(not q.escaped and fixed(q.mark) in word for q in quotes)]


def written_string(text: str, quotes: Quotes) -> str:
    """A string in quotes."""
    mark = fixed(quotes.mark)
    replaced = escapes(mark) if quotes.escaped else {}
    return mark + "".join(replaced.get(character, character) for character in text) + mark


def read_string(text: str, position: int, quotes: Quotes) -> tuple[str, int | None] | None:
    """The string that begins at a place, and where it ends: None if the text ends before. None: there is none."""
    mark = fixed(quotes.mark)
    if not text.startswith(mark, position):
        return None
    if not quotes.escaped:
        start = position + len(mark)
        end = text.find(mark, start)
        return (_without_begun(text[start:], mark), None) if end < 0 else (text[start:end], end + len(mark))
    whole = _literal(mark).match(text, position)
    if whole is None:
        return None
    if whole[2] != mark:
        return (_evaluated(mark + whole[1] + mark) or "", None) if whole.end() == len(text) else None
    value = _evaluated(whole[0])
    return None if value is None else (value, whole.end())


@lru_cache(16)
def _literal(mark: str) -> re.Pattern[str]:
    escape = r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|N\{[^}\n]*\}|[0-7]{1,3}|[^xuUN0-7])"
    mark = re.escape(mark)
    return re.compile(rf"{mark}((?:[^\\\n{mark}]|{escape})*)({mark}|\\?[^\\{mark}\n]*)", re.DOTALL)


def _evaluated(literal: str) -> str | None:
    try:  # a backslash before another character stands for itself; Python warns of it
        value = ast.literal_eval(_ESCAPE.sub(lambda escape: ("" if escape[1] in _MEANT else "\\") + escape[0], literal))
    except (ValueError, SyntaxError):
        return None
    return value if isinstance(value, str) and not _HALVES.search(value) else None


_ESCAPE, _MEANT = re.compile(r"\\(.)", re.DOTALL), frozenset("\\'\"abfnrtvxuUN01234567\n")
_HALVES = re.compile("[\ud800-\udfff]")


def _without_begun(text: str, closing: str) -> str:
    """A text without what may be the beginning of what closes it."""
    for length in range(min(len(text), len(closing) - 1), 0, -1):
        if text.endswith(closing[:length]):
            return text[:-length]
    return text
