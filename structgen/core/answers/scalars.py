"""Numbers and strings that read well, of specs of the value graph."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from fractions import Fraction
from functools import cache

from structgen.core.answers.picks import Picks
from structgen.core.engines.json.completion.cheapest_values import Values
from structgen.core.engines.json.completion.cheapest_words import spelled
from structgen.core.engines.json.numbers.spec import NumberSpec
from structgen.core.engines.json.value_graph.scalars import NEVER, NumberChoice, StringSpec
from structgen.core.json_schema.formula.values import decimal_of
from structgen.core.regex.dfa import Dfa, accepts

USUAL = [0, 1, 2, 3, 5, 7, 10, 12, 20, 25, 42, 50, 60, 99, 100, 120, 256, 500, 1000, 2024, -1, -10]
TRIES = 8
LONGEST = 4_096
"""Characters of a string that are drawn one by one; longer ones are ended as soon as they may."""
WISHES = (0, 1, 2, 5, 9, 14)
"""Characters beyond the fewest that a string may be wished to have."""
NAMED = {
    "city": ("Lisbon", "Oslo", "Nairobi", "Quito", "Kyoto"),
    "country": ("Portugal", "Norway", "Kenya", "Ecuador", "Japan"),
    "name": ("Ada Lovelace", "Alan Turing", "Grace Hopper", "Emmy Noether", "Niels Abel"),
    "email": ("ada@example.org", "alan@example.com", "grace@example.net"),
    "phone": ("+1 555 0100", "+44 20 7946 0958"),
    "street": ("12 Main Street", "5 Harbour Road"),
    "title": ("Notes on a journey", "A short report", "Minutes of the meeting"),
    "description": ("A short description of what this is about.", "Blue, about this large."),
    "language": ("en", "de", "pt", "sw"),
    "currency": ("EUR", "USD", "JPY"),
    "color": ("red", "green", "blue"),
    "path": ("/tmp/data.csv", "docs/index.md"),
    "query": ("weather in Oslo", "open tickets of this week"),
}
FORMATTED = (
    "2024-05-17", "1999-12-31", "2031-02-28", "2024-05-17T09:30:00Z", "1999-12-31T23:59:59+01:00", "09:30:00Z",
    "12:00:00+02:00", "P3DT4H", "ada@example.org", "example.org", "www.example.com", "192.0.2.17", "198.51.100.4",
    "2001:db8::17", "https://example.org/a/b?c=d", "https://example.com", "/items/0/name", "0/name",
    "2eb8aa08-aa98-41ea-b4aa-73b441d16380", "9f2d2a6e-6c3e-4b0a-9d57-0c6a1f0b7c11", "https://example.org/{id}",
    "1.2.3", "v1.0", "a1b2c3", "#1f77b4", "en-US", "application/json",
)  # fmt: skip
WORDS = (
    "alpha", "blue", "cedar", "delta", "east", "field", "garden", "harbour", "island", "juniper", "kite", "lantern",
    "maple", "north", "orchid", "paper", "quartz", "river", "stone", "tower", "umbra", "valley", "willow", "yellow",
    "zephyr", "report", "summary", "first", "second", "example", "value", "item", "note", "x", "y1",
)  # fmt: skip


def number_text(choice: NumberChoice, picks: Picks, values: Values) -> bytes:
    """A number of an automaton: a usual one, one between the bounds, or a shortest."""
    spec = choice.automaton.spec
    for candidate in _candidates(spec, picks):
        if spec.contains(candidate):
            text = format(decimal_of(candidate), "f").encode()
            return text if b"." not in text else text.rstrip(b"0").rstrip(b".")
    return choice.automaton.shortest(choice.automaton.start)


def _candidates(spec: NumberSpec, picks: Picks) -> Iterator[Fraction]:
    if spec.values is not None:
        listed = sorted(spec.values)
        yield from (listed[picks.one(("values", id(spec)), len(listed))] for _ in range(TRIES))
        return
    step = spec.step
    if picks.manner == "corners":
        yield from _corners(spec, picks)
    for _ in range(TRIES):
        low = spec.minimum if spec.minimum is not None else None
        high = spec.maximum if spec.maximum is not None else None
        unit = step or Fraction(1, 10) ** picks.number(0, 2)
        if low is None and high is None:
            yield Fraction(USUAL[picks.number(0, len(USUAL) - 1)]) * (step or 1)
            continue
        least = math.ceil((low if low is not None else high - 1000 * unit) / unit)  # type: ignore[operator]
        most = math.floor((high if high is not None else low + 1000 * unit) / unit)  # type: ignore[operator]
        if least <= most:
            yield picks.number(least, most) * unit


def _corners(spec: NumberSpec, picks: Picks) -> Iterator[Fraction]:
    """The bounds, and what is next to them."""
    unit = spec.step or Fraction(1, 10)
    bounds = [(bound, sign) for bound, sign in ((spec.minimum, 1), (spec.maximum, -1)) if bound is not None]
    if bounds:
        bound, sign = bounds[picks.one(("corner", spec), len(bounds))]
        first = (math.ceil(bound / unit) if sign > 0 else math.floor(bound / unit)) * unit
        later = picks.number(0, 1)
        yield from (first + sign * unit * more for more in (later, 1 - later, 2))


def string_text(spec: StringSpec, picks: Picks, values: Values, member: str) -> bytes:
    """A string of a spec, spelled, without quotes: a word for the member's name, a usual word, or a walk."""
    for word in _words_for(member, spec.dfa, picks) if picks.manner == "readable" else ():
        if _fits(spec, word):
            return spelled(word.encode())
    return _walked(spec, picks, values)


def _words_for(member: str, dfa: Dfa | None, picks: Picks) -> Iterator[str]:
    for key in re.findall("[a-z]+", re.sub("([A-Z])", r" \1", member).lower())[::-1]:
        if key in NAMED:
            yield NAMED[key][picks.number(0, len(NAMED[key]) - 1)]
    if dfa is not None:
        usual = usual_words(dfa)
        if usual:
            yield usual[picks.number(0, len(usual) - 1)]
        return
    for _ in range(2):
        count = picks.number(1, 2)
        yield " ".join(WORDS[picks.number(0, len(WORDS) - 1)] for _ in range(count))
    yield "x"


_KNOWN_USUAL: dict[bytes, tuple[str, ...]] = {}
MAX_USUAL = 500


def usual_words(dfa: Dfa) -> tuple[str, ...]:
    """The usual texts in the language of an automaton."""
    usual = _KNOWN_USUAL.get(dfa.digest)
    if usual is None:
        if len(_KNOWN_USUAL) >= MAX_USUAL:
            _KNOWN_USUAL.clear()
        listed = [*FORMATTED, *WORDS, *(word for words in NAMED.values() for word in words), *map(str, USUAL)]
        usual = _KNOWN_USUAL[dfa.digest] = tuple([word for word in listed if accepts(dfa, word)])
    return usual


def _fits(spec: StringSpec, word: str) -> bool:
    if not (spec.least <= len(word) and (spec.most is None or len(word) <= spec.most)):
        return False
    return spec.dfa is None or accepts(spec.dfa, word)


def _walked(spec: StringSpec, picks: Picks, values: Values) -> bytes:
    """A walk through the automaton, ended by its cheapest words when it is long enough."""
    if spec.dfa is None:
        length = _wished(spec, picks)
        letters = bytes(ord("a") + picks.number(0, 25) for _ in range(min(length, LONGEST)))
        return letters + b"a" * (length - len(letters))
    words, dfa = values.words(spec.dfa), spec.dfa
    state, text, length, wish = 0, bytearray(), 0, min(_wished(spec, picks), LONGEST)
    while length < wish or (text and not _is_whole(text)):
        options = [
            (byte, after)
            for byte, after in readable_steps(dfa, state)
            if words.cost[after] < NEVER and _may_end(spec, after, length + ((byte & 0xC0) != 0x80))
        ]
        if not options:
            break
        byte, state = options[picks.one(("byte", dfa.digest, state), len(options))]
        text.append(byte)
        length += (byte & 0xC0) != 0x80
    return spelled(bytes(text)) + values.string_rest(spec, state, length)


def _may_end(spec: StringSpec, state: int, length: int) -> bool:
    if spec.distances is None:
        return True
    return spec.distances.alive(state, spec.least - length, None if spec.most is None else spec.most - length)


def _wished(spec: StringSpec, picks: Picks) -> int:
    if picks.manner == "corners":
        most = spec.least + WISHES[-1] if spec.most is None else min(spec.most, LONGEST)
        corners = sorted({spec.least, min(spec.least + 1, most), max(most - 1, spec.least), max(most, spec.least)})
        return corners[picks.one(("length", id(spec)), len(corners))]
    wish = spec.least + (picks.number(0, WISHES[-1]) if picks.manner == "plain" else _wish(picks))
    return wish if spec.most is None else min(wish, spec.most)


def _wish(picks: Picks) -> int:
    return WISHES[picks.number(0, len(WISHES) - 1)]


def _is_whole(text: bytearray) -> bool:
    """Whether UTF-8 does not break off within a character."""
    try:
        text[-4:].decode("utf-8")
    except UnicodeDecodeError as error:
        return error.reason != "unexpected end of data"
    return True


_ORDER = (*b"aeiou", *b"bcdfghjklmnpqrstvwxyz", *b"0123456789", *b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", *b" -_.,:/@")


@cache
def _rank(byte: int) -> int:
    return _ORDER.index(byte) if byte in _ORDER else len(_ORDER) + byte


def readable_steps(dfa: Dfa, state: int) -> list[tuple[int, int]]:
    """The transitions of a state by how well their bytes read; the readable ones only, where there are any."""
    transitions = dfa.transitions[state].tolist()
    bytes_there = sorted((byte for byte in range(256) if transitions[byte] >= 0), key=_rank)
    readable = [byte for byte in bytes_there if _rank(byte) < len(_ORDER)]
    return [(byte, transitions[byte]) for byte in (readable or bytes_there)[:64]]
