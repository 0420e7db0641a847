"""The values, not the texts, that a number under way can still become: how they are listed and counted.

A value has many spellings (``10``, ``10.0``, ``1e1``). `symbols` is what to follow from a state so that every value is
met, in few spellings and without loops that only respell; `value_counts` counts spellings of which no two are equal.
With exponents, every value that goes on from some digits is: further digits that do not end in zero, then a power of
ten. Without, it is digits whose fraction does not end in zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from heapq import heappop, heappush

import numpy as np

from structgen.core.engines.json.numbers.automaton import NumberAutomaton
from structgen.core.engines.json.numbers.states import (
    FRACTION,
    INTEGER,
    NATURAL,
    POINT,
    ZERO,
    Digits,
    End,
    Exponent,
    Power,
    Start,
    State,
    Tail,
    Zero,
)
from structgen.core.regex.dfa import Dfa, count_words
from structgen.core.regex.labelled import reaching

MAX_STATES = 400
"""States looked at for one count; what lies after them is not counted, which makes it a lower bound."""

NEAR = 8
"""Bytes of a shortest text within which members are counted."""

_DIGITS = range(0x30, 0x3A)


def symbols(automaton: NumberAutomaton, state: int) -> set[int]:
    """Bytes to follow from a state so that every value that can still come of it is met."""
    return {byte for byte, _ in _followed(automaton, state)}


def _followed(automaton: NumberAutomaton, state: int) -> Iterator[tuple[int, int]]:
    inner, plain = automaton.inner(state)
    for byte, after in automaton.row(state):
        following, _ = automaton.inner(after)
        needed = byte == ord(".") and not automaton.accepting(state) and not isinstance(inner, Digits)
        if byte != ord("E") and (needed or _is_followed(inner, following, byte, plain)):
            yield byte, after


def _is_followed(state: State, following: State, byte: int, plain: bool) -> bool:
    """Whether a byte leads to values that are not met without it. Where texts are short by limit, all are followed."""
    if byte == ord("+"):
        return False
    match state:
        case Exponent(_, _, zero) | Power(_, _, zero) if zero:
            return byte == ord("0") and isinstance(state, Exponent)
        case Digits(_, phase) | Zero(_, phase, _) | Tail(phase, _):
            if byte == ord("e") and (isinstance(state, Zero) or (isinstance(state, Tail) and state.zero)):
                return False  # still 0
            if byte == ord("."):
                return not isinstance(following, (Tail, End)) and (plain or phase == ZERO)
            if byte == ord("0"):
                if plain and phase == INTEGER:
                    return True
                if not isinstance(following, (Digits, Zero)):
                    return phase == POINT
                return plain or phase == POINT or isinstance(state, Digits)
        case Power(power, _) if power == 0:
            return byte != ord("0")
    return True


def value_texts(automaton: NumberAutomaton) -> Iterator[bytes]:
    """The numbers of an automaton, shortest first; hardly any value twice. Endless where the values are.

    Best first by the length that a text has at least, of equals the longest: what has 600 digits is not looked for
    among all shorter texts.
    """
    heap = [(automaton.missing(automaton.start), 0, b"", automaton.start)]
    while heap:
        _, _, text, state = heappop(heap)
        if automaton.accepting(state) and not (text.startswith(b"-") and _is_zero(text)):
            yield text
        for byte, after in _followed(automaton, state):
            length = len(text) + 1
            heappush(heap, (length + automaton.missing(after), -length, text + bytes([byte]), after))


def _is_zero(text: bytes) -> bool:
    return not text.lower().partition(b"e")[0].strip(b"-0.")


def value_counts(automaton: NumberAutomaton, state: int, limit: int) -> int:
    """How many values go on from a state: at least 1, at most ``limit``, a lower bound.

    Where members are far, those are counted that share all but the end of the shortest text.
    """
    if automaton.is_endless(state):
        return limit
    text = automaton.shortest(state)
    near = state
    for byte in text[:-NEAR]:
        near = dict(automaton.row(near))[byte]
    count = _counted(automaton, near, limit)
    return count if near == state or count == limit else max(count, _counted(automaton, state, limit))


@lru_cache(64)
def _counted(automaton: NumberAutomaton, state: int, limit: int) -> int:
    """The same by what is within `MAX_STATES`."""
    places: dict[tuple[int, bool], int] = {(state, False): 0}
    waiting = list(places)
    rows: list[dict[int, int]] = []
    accepting: list[bool] = []
    for position, padded in waiting:
        if automaton.is_endless(position):
            return limit
        inner, plain = automaton.inner(position)
        ends = _ends_padded(inner, padded, plain)
        accepting.append(automaton.accepting(position) and not ends)
        row: dict[int, int] = {}
        for byte, after in _followed(automaton, position):
            if not _is_counted(inner, byte, ends, plain):
                continue
            zero = byte == 0x30 and isinstance(inner, (Digits, Zero, Tail))
            key = (after, zero)
            if key not in places and len(places) < MAX_STATES:
                places[key] = len(places)
                waiting.append(key)
            if key in places:
                row[byte] = places[key]
        rows.append(row)
    table = np.full((len(rows), 256), -1, np.int32)
    for number, row in enumerate(rows):
        for byte, after in row.items():
            table[number, byte] = after
    final = np.array(accepting)
    live = reaching(table, final)
    table[(table >= 0) & ~live[table]] = -1
    return max(1, int(count_words(Dfa(table, final), limit)[0])) if live[0] else 1


def _ends_padded(state: State, padded: bool, plain: bool) -> bool:
    """Whether the digits end in a zero that says nothing, so that the value is counted without it."""
    if not padded or not isinstance(state, (Digits, Tail, Zero)):
        return False
    return not plain or state.phase in (POINT, FRACTION)


def _is_counted(state: State, byte: int, ends_padded: bool, plain: bool) -> bool:
    """Of the bytes that are followed, those that lead to no value that another spelling is counted for."""
    match state:
        case Exponent(_, _, zero):
            return zero or byte != 0x30
        case Power(power, exponents) if power == 0:
            return exponents == NATURAL
        case Start(sign) if sign < 0:
            return byte != 0x30
        case Zero() if not plain:
            return byte != 0x30  # 0.01e2 is 0.1e1
    return not (ends_padded and byte == ord("e"))
