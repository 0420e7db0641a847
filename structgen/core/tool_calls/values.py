"""The value of one argument where arguments are written one by one: a string as it is, anything else as JSON.

Where a schema allows strings and other types, the text itself tells which it is: **text that reads as JSON of another
type that the schema allows is that, all other text is the string**. Reads as: ``null``, ``true``, ``false`` and numbers
as a whole (in any JSON spelling, with blanks around), arrays and objects by their first character ``[`` or ``{``. So
the string ``"12"`` cannot be written where 12 could be meant, and a reader needs the schema's types only. No string can
hold what closes the value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any

from structgen.core.json_schema.formula.values import ARRAY, BOOLEAN, NULL, NUMBER, OBJECT, STRING
from structgen.core.regex.dfa import Dfa, difference, union
from structgen.core.regex.pattern import BYTE_STATES, full_match_dfa, pattern_dfa

BLANKS = "[ \\t\\n\\r]*"
_BEGINNINGS = {
    NULL: "null",
    BOOLEAN: "(?:true|false)",
    NUMBER: "-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?(?:[eE][+\\-]?[0-9]+)?",
}
_BRACKETS = {ARRAY: "\\[", OBJECT: "\\{"}


@lru_cache(128)
def expression_of_json(kinds: int) -> str | None:
    """What texts match, as a whole, that read as JSON of some types (but strings); None for no types."""
    whole = [expression for kind, expression in _BEGINNINGS.items() if kinds & kind]
    begun = [bracket for kind, bracket in _BRACKETS.items() if kinds & kind]
    parts = [f"{BLANKS}(?:{'|'.join(whole)}){BLANKS}"] if whole else []
    parts += [f"{BLANKS}[{''.join(begun)}][^]*"] if begun else []
    return "|".join(f"(?:{part})" for part in parts) or None


@lru_cache(128)
def _json_dfa(kinds: int) -> Dfa | None:
    expression = expression_of_json(kinds)
    return None if expression is None else full_match_dfa(expression)


@lru_cache(128)
def _reads_as_json(kinds: int) -> Callable[[str], Any]:
    expression = expression_of_json(kinds)
    if expression is None:
        return lambda text: None
    return re.compile(expression.replace("[^]", "[\\s\\S]")).fullmatch


def is_json(text: str, kinds: int) -> bool:
    """Whether a text is JSON where values of these types are allowed; else it is a string."""
    return not kinds & STRING or bool(_reads_as_json(kinds & ~STRING)(text))


@lru_cache(128)
def _unwritable(closing: str, kinds: int, excluded: tuple[str, ...] = (), misread: str = "") -> Dfa:
    """Texts that a string cannot be: with what closes it inside, or excluded texts, or read as something else."""
    held = pattern_dfa("|".join(map(_escaped, [closing, *excluded] if closing else excluded)) or "[]")
    held = union(held, full_match_dfa(misread)) if misread else held
    other = _json_dfa(kinds & ~STRING)
    return held if other is None else union(held, other)


def _escaped(text: str) -> str:
    return "".join(f"\\u{{{ord(c):X}}}" for c in text)


def raw_strings(
    strings: Dfa, closing: str, kinds: int, max_states: int, excluded: tuple[str, ...] = (), misread: str = ""
) -> Dfa:
    """The strings of a language that can be written as they are.

    Args:
        strings: the language.
        closing: what they cannot hold; "": nothing.
        kinds: all types that a value in their place can have; 0 where strings are marked as such.
        max_states: the most states of the automaton between characters; all together may be twice as many.
        excluded: what they do not hold besides.
        misread: an expression of what they are not besides.

    Raises:
        TooComplexError: it has more.
    """
    return difference(strings, _unwritable(closing, kinds, excluded, misread), BYTE_STATES * max_states)


def lost_words(words: tuple[str, ...], closing: str, kinds: int, misread: str = "") -> list[str]:
    """Those of some strings that cannot be written as they are."""

    def is_lost(word: str) -> bool:
        other = bool(misread) and re.fullmatch(misread, word) is not None
        return other or bool(closing and closing in word) or bool(kinds & ~STRING and is_json(word, kinds | STRING))

    return list(filter(is_lost, words))


def json_text(value: Any) -> str:
    """JSON as chat templates write it, with a space after commas and colons.

    Raises:
        TypeError, ValueError: the value is none of JSON.
    """
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)}: {json_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(json_text, value)) + "]"
    if isinstance(value, Decimal) and value.is_finite():
        return str(value)
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise TypeError(f"the key {key!r:.100} of an object is {type(key).__name__}, not a string")
    return json.dumps(key, ensure_ascii=False)
