"""Sets of numbers as seen from the digits of a text that is still being written.

A number is written as digits, a point and an exponent. Take the digits without leading zeros as a *significand* and
write the value as ``0.SIGNIFICAND * 10**point``. The exponent can still move the point anywhere, so a prefix is judged
by two things only: how its significand lies to the few significands that matter (bounds, listed and excluded values;
`Magnitudes`), and what it leaves modulo the steps (`Steps`). Both are small however long the text grows, and together
they give the exact set of points, or exponents, at which the number may end, and whether further digits can help.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain

from structgen.machine.number_spec import (
    NumberSpec,
    decimal_multiple,
    decimal_parts,
    decimal_places,
    is_decimal,
    lcm,
)

__all__ = ["Intervals", "Magnitudes", "Place", "Steps", "clip", "magnitudes", "shift", "without"]

Intervals = tuple[tuple[float, float], ...]
"""Integers as sorted, disjoint, closed intervals; the outermost ends may be -inf and inf."""

EVERY: Intervals = ((-math.inf, math.inf),)


def shift(intervals: Intervals, by: float) -> Intervals:
    """Every member moved by ``by``."""
    return tuple((low + by, high + by) for low, high in intervals) if by else intervals


def clip(intervals: Intervals, low: float, high: float) -> Intervals:
    """The members within [low, high]."""
    if len(intervals) == 1:
        first, last = intervals[0]
        if first >= low and last <= high:
            return intervals
    return tuple((max(a, low), min(b, high)) for a, b in intervals if max(a, low) <= min(b, high))


def without(intervals: Intervals, points: Iterable[int]) -> Intervals:
    """The members that are none of ``points``."""
    for point in points:
        intervals = clip(intervals, -math.inf, point - 1) + clip(intervals, point + 1, math.inf)
    return tuple(sorted(intervals))


class Steps:
    """The multiples and non-multiples of a `NumberSpec`, as moduli of the digits.

    ``step = factor * 10**-scale`` with the powers of ten in the scale, so for the integers factor is 1 and scale 0. A
    text with the digits M and the last of them at 10**F is a multiple iff F >= threshold(M), since further powers of
    ten only help; a non-multiple iff F is below the threshold of that step.
    """

    def __init__(self, spec: NumberSpec) -> None:
        self.step = spec.step
        self.never = False
        """No value at all: every multiple is a multiple of some forbidden step."""
        self.factor, self.scale = _split(self.step) if self.step is not None else (1, 0)
        self.forbidden: list[int] = []
        """With a step: moduli that a number of units of 10**-scale must not be divisible by."""
        avoided: list[tuple[int, int]] = []
        for other in map(decimal_multiple, spec.non_multiples):
            if self.step is None:
                avoided.append(_split(other))
                continue
            times = int(lcm(self.step, other) / self.step)
            self.never = self.never or times == 1
            self.forbidden.append(self.factor * times)
            avoided.append((self.factor * times, self.scale))
        required = [(self.factor, self.scale)] if self.step is not None else []
        self.items = required + avoided
        self.modulus = math.lcm(*(modulus for modulus, _ in self.items))
        self._thresholds: dict[int, tuple[float, ...]] = {}

    def thresholds(self, residue: int) -> tuple[float, ...]:
        """The least place (power of ten) of the last digit at which the digits are a multiple of each step.

        ``residue`` is M modulo ``modulus``, where the last digit of M is not 0; inf where no place will do.
        """
        found = self._thresholds.get(residue)
        if found is None:
            if len(self._thresholds) > 10_000:
                self._thresholds.clear()
            found = tuple(_tens(modulus // math.gcd(residue, modulus)) - scale for modulus, scale in self.items)
            self._thresholds[residue] = found
        return found

    def within(self, exponents: Intervals, least: Sequence[float]) -> Intervals:
        """The exponents allowed, given the thresholds relative to the text's own last digit."""
        if self.step is None:
            return clip(exponents, -math.inf, min(least) - 1)
        if least[0] == math.inf:
            return ()
        return clip(exponents, least[0], min(least[1:], default=math.inf) - 1)


def _split(step: Fraction) -> tuple[int, int]:
    """(factor, scale) with step == factor * 10**-scale and factor not divisible by 10."""
    scale = decimal_places(step)
    factor = step.numerator * 10**scale // step.denominator
    while factor % 10 == 0:
        factor, scale = factor // 10, scale - 1
    return factor, scale


def _tens(divisor: int) -> float:
    """The least n >= 0 such that ``divisor`` divides 10**n; inf if none does."""
    number, count = 1, 0
    if math.gcd(divisor, 10 ** divisor.bit_length()) != divisor:
        return math.inf
    while number % divisor:
        number, count = number * 10, count + 1
    return count


@dataclass(slots=True)
class Place:
    """Where a significand lies among the landmarks: on the path of some of them, or in a gap between two."""

    moves: list[int] = field(default_factory=list)
    """Index of the place after each digit."""
    ends: Intervals = ()
    """Points with which the significand itself (zeros behind it) is a member, steps apart."""
    low: float = math.inf
    high: float = -math.inf
    """Points low..high with which every longer significand is within the bounds."""
    tight: tuple[int, ...] = ()
    """Points with which a longer significand may be within the bounds, but its digits must be compared."""
    on_low: bool = False
    on_high: bool = False
    """Whether the lower and the upper bound begin with this significand."""
    longer: dict[int, list[Fraction]] = field(default_factory=dict)
    """The listed (else: the excluded) values that go on with another nonzero digit, by point."""
    marks: frozenset[int] = frozenset()
    """The points of all landmarks that begin with this significand."""
    off: int = 0
    """The gap that this place becomes when no landmark can matter any more."""


@dataclass(frozen=True, eq=False)
class _Mark:
    digits: str
    point: int
    value: Fraction

    def digit(self, depth: int) -> int:
        return int(self.digits[depth]) if depth < len(self.digits) else 0


@dataclass(frozen=True)
class Range:
    """Magnitudes > 0 of one sign: ``values`` alone, or an interval without ``excluded``. Bounds are exact."""

    low: Fraction | None
    low_open: bool
    high: Fraction | None
    high_open: bool
    excluded: frozenset[Fraction] = frozenset()
    values: frozenset[Fraction] | None = None


NOTHING = Range(None, False, None, False, values=frozenset())


def magnitudes(spec: NumberSpec, sign: int, steps: Steps) -> Range:
    """The magnitudes of the members of one sign (1 or -1), with bounds moved to members where there is a step."""
    if steps.never:
        return NOTHING
    if spec.values is not None:
        chosen = (sign * value for value in spec.values if value * sign > 0 and spec.contains(value))
        return Range(None, False, None, False, values=frozenset(filter(is_decimal, chosen)))
    low, low_open, high, high_open = spec.minimum, spec.exclusive_minimum, spec.maximum, spec.exclusive_maximum
    if sign < 0:
        low, high = (-high if high is not None else None), (-low if low is not None else None)
        low_open, high_open = high_open, low_open
    if high is not None and high <= 0:
        return NOTHING
    if low is not None and low <= 0:
        low, low_open = None, False
    if steps.step is not None:
        low, high = _to_step(low, low_open, high, high_open, steps.step)
        low_open = high_open = False
    bottom = low or Fraction(0)
    if high is not None and (high <= 0 or high < bottom or (high == bottom and (low_open or high_open))):
        return NOTHING
    if high is not None and high == bottom:
        return Range(None, False, None, False, values=frozenset({high} if spec.contains(sign * high) else ()))
    unlisted = _without_excluded(spec)
    inside = (sign * x for x in spec.excluded if x * sign > 0 and is_decimal(x) and unlisted.contains(x))
    return Range(low, low_open, high, high_open, excluded=frozenset(inside))


def _without_excluded(spec: NumberSpec) -> NumberSpec:
    return NumberSpec(
        spec.minimum, spec.exclusive_minimum, spec.maximum, spec.exclusive_maximum, spec.multiples, spec.non_multiples
    )


def _to_step(
    low: Fraction | None, low_open: bool, high: Fraction | None, high_open: bool, step: Fraction
) -> tuple[Fraction | None, Fraction | None]:
    """The bounds moved inwards to multiples of ``step``; a lower bound that only says "> 0" is dropped."""
    if high is not None:
        count = high / step
        high = step * (math.ceil(count) - 1 if high_open else math.floor(count))
    if low is not None:
        count = low / step
        least = math.floor(count) + 1 if low_open else math.ceil(count)
        low = step * least if least > 1 else None
    return low, high


class Magnitudes:
    """The members of one sign as a trie of landmarks (bounds, listed and excluded values) over significands.

    ``places[0]`` is the empty significand; places -4 to -1 are the gaps, numbered -4 + [above the lower bound's
    significand] + 2 * [below the upper bound's]. Size: the digits of all landmarks.
    """

    def __init__(self, members: Range, steps: Steps) -> None:
        self.members = members
        self.steps = steps
        low, high = members.low, members.high
        self._low = _Mark(*decimal_parts(low), low) if low is not None else None
        self._high = _Mark(*decimal_parts(high), high) if high is not None else None
        listed = members.excluded if members.values is None else members.values
        self._listed = [_Mark(*decimal_parts(value), value) for value in sorted(listed)]
        self.low_point: float = self._low.point if self._low else -math.inf
        self.high_point: float = self._high.point if self._high else math.inf
        self.free_point: float = next((mark.point for mark in (self._low, self._high) if mark), 0)
        """A point with which the last gap is within the bounds."""
        self.bounded = low is not None or high is not None
        marks = [mark for mark in (self._low, self._high) if mark] + self._listed
        self.least_point: float = min((mark.point for mark in marks), default=math.inf)
        crowd = steps.factor * 2 ** len(steps.forbidden) * (len(members.excluded) + 1)
        self._enough = len(str(crowd)) + 1
        self._unit_low = int(low * Fraction(10) ** steps.scale) if low is not None and steps.step else 0
        self._unit_high = int(high * Fraction(10) ** steps.scale) if high is not None and steps.step else 0
        self.places = self._build(marks)

    def _build(self, marks: list[_Mark]) -> list[Place]:
        places: list[Place] = []
        todo = [(marks, 0, 0 if self._low else 1, 0 if self._high else -1)]
        while len(places) < len(todo):
            here, depth, low, high = todo[len(places)]
            place = self._place(here, depth, low, high)
            groups: dict[int, list[_Mark]] = {}
            for mark in here:
                groups.setdefault(mark.digit(depth), []).append(mark)
            ended = all(len(mark.digits) <= depth for mark in here)
            for digit in range(10):
                sides = self._beside(self._low, low, digit, depth), self._beside(self._high, high, digit, depth)
                if digit not in groups:
                    place.moves.append(_gap(*sides))
                elif ended:
                    place.moves.append(len(places))
                else:
                    place.moves.append(len(todo))
                    todo.append((groups[digit], depth + 1, *sides))
            places.append(place)
        for flags in range(4):
            places.append(self._place([], 0, flags % 2 or -1, -(flags // 2) or 1))
            places[-1].moves = [flags - 4] * 10
        return places

    @staticmethod
    def _beside(bound: _Mark | None, side: int, digit: int, depth: int) -> int:
        """The side of a bound's significand (-1 below, 0 on it, 1 above) after one more digit."""
        if side or bound is None:
            return side
        other = bound.digit(depth)
        return (digit > other) - (digit < other)

    def _place(self, here: list[_Mark], depth: int, low: int, high: int) -> Place:
        """The place of a significand of ``depth`` digits with which the landmarks ``here`` begin."""
        members = self.members
        done = [mark for mark in here if len(mark.digits) <= depth]
        listed = [mark for mark in here if mark is not self._low and mark is not self._high]
        ended = [mark.point for mark in listed if mark in done]
        place = Place(off=_gap(low or 1, high or -1), marks=frozenset(mark.point for mark in here))
        for mark in listed:
            if mark not in done:
                place.longer.setdefault(mark.point, []).append(mark.value)
        if members.values is not None:
            place.ends = tuple((point, point) for point in sorted(ended))
            return place
        first, last = self.low_point, self.high_point
        at_low, at_high = self._low in done, self._high in done
        reaches = low > 0 or (low == 0 and at_low and not members.low_open)
        stays = high < 0 or (high == 0 and not (at_high and members.high_open))
        place.ends = without(clip(EVERY, first if reaches else first + 1, last if stays else last - 1), ended)
        place.low, place.high = (first if low > 0 else first + 1), (last if high < 0 else last - 1)
        place.on_low, place.on_high = low == 0, high == 0
        top = last if high < 0 or (high == 0 and not at_high) else last - 1
        bottom = first if low >= 0 else first + 1
        bounds = {int(point) for point, side in ((first, low), (last, high)) if side == 0}
        place.tight = tuple(sorted(point for point in bounds if bottom <= point <= top))
        return place

    def grows(self, index: int, residue: int, count: int, first: float, last: float) -> bool:
        """Whether further digits, not all 0, can lead to a member with a point in [first, last].

        ``count`` is the number of digits of the significand so far (used with a step only), ``residue`` their residue.
        """
        place = self.places[index]
        if self.members.values is not None:
            return any(first <= point <= last for point in place.longer)
        low, high = max(place.low, first), min(place.high, last)
        if self.steps.step is None:
            return low <= high or any(first <= point <= last for point in place.tight)
        if low <= high and high + self.steps.scale - count >= self._enough:
            return True
        return self.find(index, residue, count, first, last) is not None

    def find(self, index: int, residue: int, count: int, first: float, last: float) -> tuple[int, str] | None:
        """Where there is a step: a point in [first, last] and further digits that lead to a member; None if none do.

        O(log step) tries of exact integer arithmetic on numbers of the size of the bounds.
        """
        place = self.places[index]
        start = max(first, count - self.steps.scale + 1)
        low = max(start, place.low)
        high = min(last, place.high, low + self._enough)
        tight = [point for point in place.tight if start <= point <= last]
        free = range(int(low), int(high) + 1) if low <= high else ()
        for point in chain(free, tight):
            length = int(point + self.steps.scale - count)
            number = self._suffix(place, point, length, residue, count == 0)
            if number is not None:
                return point, str(number).zfill(length)
        return None

    def _suffix(self, place: Place, point: int, length: int, residue: int, leading: bool) -> int | None:
        """The least number of ``length`` digits that completes the significand to a member with this point."""
        steps, power = self.steps, 10**length
        least, most = (power // 10 if leading else 1), power - 1
        if place.on_low and point == self.low_point:
            least = max(least, self._unit_low % power)
        if place.on_high and point == self.high_point:
            most = self._unit_high % power
        base = residue * power
        taken = {int(value * Fraction(10) ** steps.scale) % power for value in place.longer.get(point, ())}
        for number in range(least + -(base + least) % steps.factor, most + 1, steps.factor):
            if number not in taken and all((base + number) % modulus for modulus in steps.forbidden):
                return number
        return None


def _gap(low: int, high: int) -> int:
    return -4 + (low > 0) + 2 * (high < 0)
