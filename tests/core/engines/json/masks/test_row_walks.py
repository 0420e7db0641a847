"""Rows of strings against a plain reading of each token, by automata that see much, little and odd things of it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pytest

from structgen.core.engines.bitmask import unpacked
from structgen.core.engines.json.masks.bitmask_rows import MaskRows
from structgen.core.engines.json.masks.token_index import build_lexicon
from structgen.core.kernels.json import layout
from structgen.core.regex.dfa import Dfa
from structgen.core.regex.formats import format_dfa
from structgen.core.regex.pattern import pattern_dfa
from structgen.core.vocabulary.vocabulary import Vocabulary

SIMPLE = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
MUST = frozenset([*map(chr, range(0x20)), '"', "\\"])


LENGTHS = ((0x00, 0x80, 0x00), (0xC0, 0xE0, 0x80), (0xE0, 0xF0, 0x800), (0xF0, 0xF5, 0x10000))
"""By the length of a character's UTF-8: the first bytes (from, to), and the first character that is written so."""


class Reader:
    """An automaton that reads the inside of a JSON string, by the grammar of RFC 8259, one token at a time."""

    def __init__(self, dfa: Dfa, escapes: bool) -> None:
        self.table, self.escapes = dfa.transitions, escapes
        self.live = lru_cache(None)(self._live)
        self.between_characters = lru_cache(None)(self._between_characters)

    def _live(self, state: int) -> npt.NDArray[np.bool_]:
        """bool[0x110000]: the characters that may come next and that an escape may spell."""
        total = np.vstack([np.where(self.table < 0, len(self.table), self.table), np.full((1, 256), len(self.table))])
        found = np.zeros(0x110000, bool)
        for more, (first, last, least) in enumerate(LENGTHS):
            places = total[state, first:last]
            for _ in range(more):
                places = total[places, 0x80:0xC0].ravel()
            found[least : len(places)] = places[least : len(found)] < len(self.table)
        found[0xD800:0xE000] = False  # surrogates are no characters
        if not self.escapes:
            allowed = np.zeros(0x110000, bool)
            allowed[[ord(ch) for ch in MUST]] = True
            found &= allowed
        return found

    def _between_characters(self, state: int) -> bool:
        return any(0xC2 <= b < 0xF5 or b < 0x80 for b in np.flatnonzero(self.table[state] >= 0).tolist())

    def feed(self, state: int, data: bytes) -> int:
        for byte in data:
            state = int(self.table[state, byte]) if state >= 0 else -1
        return state

    def stays(self, state: int, token: bytes, behind_backslash: bool) -> bool:
        """Whether the string goes on with the token and is not closed by it."""
        text = (b"\\" if behind_backslash else b"") + token
        place = 0
        while place < len(text):
            if text[place] != 0x5C:
                if text[place] in (*range(0x20), 0x22):
                    return False
                state = self.feed(state, text[place : place + 1])
                place += 1
            else:
                if not self.between_characters(state):
                    return False
                step = self._escape(state, text[place + 1 :])
                if isinstance(step, bool):
                    return step
                state, place = step[0], place + 1 + step[1]
            if state < 0:
                return False
        return True

    def _escape(self, state: int, text: bytes) -> bool | tuple[int, int]:
        """Behind a backslash: whether it may go on if the token ends here, else the state behind it and its length."""
        live = self.live(state)
        if not text:
            return bool(live.any())
        if text[0:1] != b"u":
            character = SIMPLE.get(chr(text[0]))
            if character is None or (character == "/" and not self.escapes):
                return False
            return self.feed(state, character.encode()), 1
        digits = text[1:5]
        if digits.strip(b"0123456789abcdefABCDEF"):
            return False
        first = int(digits or b"0", 16) << 4 * (4 - len(digits))
        units = range(first, first + (1 << 4 * (4 - len(digits))))
        ways = live[units.start : units.stop].any()
        high = [unit for unit in (units.start, units.stop - 1) if 0xD800 <= unit <= 0xDBFF]
        if high or units.start <= 0xD800 < units.stop:
            low, last = max(units.start, 0xD800), min(units.stop - 1, 0xDBFF)
            ways |= live[0x10000 + (low - 0xD800 << 10) : 0x10000 + (last - 0xD800 << 10) + 0x400].any()
        if len(digits) < 4 or not ways:
            return bool(ways) if len(text) == 1 + len(digits) else False
        if not 0xD800 <= first <= 0xDBFF:
            return self.feed(state, chr(first).encode()), 5
        rest = text[5:11]
        if not b"\\u".startswith(rest[:2]) or rest[2:].strip(b"0123456789abcdefABCDEF"):
            return False
        low = int(rest[2:] or b"0", 16) << 4 * (4 - len(rest[2:]))
        lows = range(max(low, 0xDC00), min(low + (1 << 4 * (4 - len(rest[2:]))), 0xE000))
        start = 0x10000 + (first - 0xD800 << 10) - 0xDC00
        if not len(lows) or not live[start + lows.start : start + lows.stop].any():
            return False
        return True if len(rest) < 6 else (self.feed(state, chr(start + low).encode()), 11)


def vocabulary() -> Vocabulary:
    random = np.random.default_rng(3)
    words = [
        b"a",
        b"ab",
        b"push",
        b"the",
        b"Zeta",
        b"0",
        b"12",
        b"777",
        b"-",
        b"--",
        b"_",
        b".",
        b"/",
        b":",
        b"@",
        b" ",
    ]
    odd = [
        b"\\", b"\\n", b"\\u", b"\\u0", b"\\u00e9", b"\\ud8", b"\\ud83d\\ud", b'\\"', b'"', b"\xe2", b"\xe2\x80",
        b"\x80", b"\xf0\x9f", b"\xff", b"\x00", b"\n", b"\x7f", "é".encode(), "€".encode(), "😀".encode(),
        "\u00a0".encode(), "\u2028".encode(), "\u3000".encode(), "\ufeff".encode(), "名前".encode(), b",", b"(", b"<b>",
    ]  # fmt: skip
    tokens = [bytes([byte]) for byte in range(256)] + words + odd
    for _ in range(1500):
        pieces = [words[i] for i in random.integers(0, len(words), random.integers(1, 9))]
        if random.random() < 0.4:
            pieces.insert(int(random.integers(0, len(pieces) + 1)), odd[random.integers(0, len(odd))])
        tokens.append(b"".join(pieces))
    for hexadecimal in (b"u", b"ud", b"udc00", b"u12", b"uD8", b"uE", b"u00A0", b"n", b"nab", b"t ", b"/push", b"uzz"):
        tokens.append(hexadecimal)
    tokens += [b" " * 40, b"-" * 50, b"a" * 70, "é".encode() * 20, b"ab " * 30]
    return Vocabulary([*tokens, None], eos_token_ids=len(tokens))


VOCABULARY = vocabulary()
PATTERNS = [
    "push", "^push", "[0-9a-f]{4}-[0-9]{2}", r"^\S+@\S+$", r"^(?:\S+\s+){0,4}\S+$", r"^(?:\S+\s+){0,60}\S+$",
    r"^[a-z0-9]+(-[a-z0-9]+)*$", r"^[\w./:-]{1,9}$", "^.*$", "^.{0,12}$", "^[^,]*$", r"^\s*$", "^[^ab]*$", "^(ab)*$",
    r"^p([0-9]+)|t$", r"^(\d+\.\d+\.\d+.*)$", "^[^é]+$", "^[\u00a0-\u3000]*$", r"^[\s\S]{3,}$", "^(?!.*--).*$", "^$",
    r'^["\\/\n]*$', "^[\ud83d-\uffff]{2}$", "^(a|b|[^a]{5}){2,6}$", r"^\W+$", "^[😀-😎]+$", "a.{7}$",
    r"^[\w é-ü-]{1,90}$", r"^([ab]|-{3}|[^\x00-\x2c]{1,60})$",
]  # fmt: skip


@pytest.fixture(scope="module", params=[False, True], ids=["minimal", "any"])
def rows(request: pytest.FixtureRequest) -> MaskRows:
    return MaskRows(build_lexicon(VOCABULARY, request.param))


@pytest.mark.first_case
@pytest.mark.parametrize("pattern", PATTERNS)
def test_rows_are_those_of_a_plain_reading(rows: MaskRows, pattern: str) -> None:
    dfa = pattern_dfa(pattern)
    check_rows(rows, dfa, range(len(dfa)) if len(dfa) < 12 else [*range(4), *range(4, len(dfa), len(dfa) // 8)])


def test_rows_of_an_automaton_of_which_a_search_sees_a_part(rows: MaskRows) -> None:
    """Of that of regular expressions: behind a character of a class each other one leads to a state of its own."""
    dfa = format_dfa("regex")
    assert dfa is not None
    reader = Reader(dfa, rows.lexicon.escapes)
    check_rows(rows, dfa, [reader.feed(0, text) for text in (b"^[", b"^[a", b"[a-z", b"a{1", b"(?:a")])


def check_rows(rows: MaskRows, dfa: Dfa, states: Iterable[int]) -> None:
    start = rows.pool.add_dfa(dfa)
    reader = Reader(dfa, rows.lexicon.escapes)
    for state in states:
        for place in (layout.BODY, layout.ESCAPE):
            inside = rows.pool.flags[start + state] & layout.PARTIAL
            if place == layout.ESCAPE and (inside or not reader.live(state).any()):
                continue  # no escape begins here
            rows.compute(start + state, place)
            bits = unpacked(rows.row(rows.pool.slots[2 * (start + state) + place]))
            expected = [
                bool(token) and reader.stays(state, token, place == layout.ESCAPE) for token in VOCABULARY.tokens
            ]
            wrong = [VOCABULARY.tokens[i] for i in np.flatnonzero(bits[: len(expected)] != expected)]
            assert wrong == [], (state, place)
            assert not bits[len(expected) :].any()
