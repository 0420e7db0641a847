"""Numbers and strings that read well, of specs of the value graph."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache

from structgen.core.answers.picking.picks import Picks
from structgen.core.answers.picking.readable import NAMED, USUAL, WORDS, readable_steps, usual_words
from structgen.core.engines.json.completion.cheapest_values import Values
from structgen.core.engines.json.completion.cheapest_words import spelled
from structgen.core.engines.json.numbers.spec import NumberSpec
from structgen.core.engines.json.value_graph.scalars import NEVER, NumberChoice, StringSpec
from structgen.core.json_schema.formula.values import decimal_of
from structgen.core.regex.dfa import Dfa, accepts

TRIES = 8
LONGEST = 4_096
"""Characters of a string that are drawn one by one; longer ones are ended as soon as they may."""
WISHES = (0, 1, 2, 5, 9, 14)
"""Characters beyond the fewest that a string may be wished to have."""


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
    for listed in _words_named(member):
        yield listed[picks.number(0, len(listed) - 1)]
    if dfa is not None:
        usual = usual_words(dfa)
        if usual:
            yield usual[picks.number(0, len(usual) - 1)]
        return
    for _ in range(2):
        count = picks.number(1, 2)
        yield " ".join(WORDS[picks.number(0, len(WORDS) - 1)] for _ in range(count))
    yield "x"


@lru_cache(4_096)
def _words_named(member: str) -> tuple[tuple[str, ...], ...]:
    """Lists of words for the words of a member's name, the last first."""
    words = re.findall("[a-z]+", re.sub("([A-Z])", r" \1", member).lower())[::-1]
    return tuple([NAMED[word] for word in words if word in NAMED])


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
    return spelled(bytes(text)) + values.string_remainder(spec, state, length)


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
