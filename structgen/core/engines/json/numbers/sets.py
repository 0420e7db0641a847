"""Sets of numbers as seen from the digits of a text that is still being written.

A number is written as digits, a point and an exponent. Take the digits without leading zeros as a *significand* and
write the value as ``0.SIGNIFICAND * 10**point``. The exponent can still move the point anywhere, so a prefix is judged
by two things only: how its significand lies to the few significands that matter (bounds, listed and excluded values;
`Magnitudes`), and what it leaves modulo the steps (`NumberSteps`). Both are small however long the text grows, and
together they give the exact set of points, or exponents, at which the number may end, and whether further digits can
help.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain

from structgen.core.engines.json.numbers.spec import (
    NumberSpec,
    Range,
    decimal_multiple,
    decimal_parts,
    decimal_places,
    lcm,
    prime_to_ten,
)
from structgen.core.json_schema.formula.values import decimal_digits, factors

__all__ = ["EVERY", "ROOT", "Intervals", "Magnitudes", "NumberPlace", "NumberSteps", "clip", "moved"]

Intervals = tuple[tuple[float, float], ...]
"""Integers as sorted, disjoint, closed intervals; the outermost ends may be -inf and inf."""

EVERY: Intervals = ((-math.inf, math.inf),)


def moved(intervals: Intervals, by: float, low: float, high: float) -> Intervals:
    """Every member moved by ``by``, as far as it then lies within [low, high]."""
    if len(intervals) == 1:
        first, last = intervals[0]
        first, last = first + by, last + by
        first, last = first if first > low else low, last if last < high else high
        return ((first, last),) if first <= last and first != math.inf else ()
    parts = ((max(first + by, low), min(last + by, high)) for first, last in intervals)
    return tuple((first, last) for first, last in parts if first <= last and first != math.inf)


def clip(intervals: Intervals, low: float, high: float) -> Intervals:
    """The members within [low, high]."""
    return moved(intervals, 0, low, high)


def without(intervals: Intervals, points: Iterable[int]) -> Intervals:
    """The members that are none of ``points``."""
    for point in sorted(points):
        intervals = clip(intervals, -math.inf, point - 1) + clip(intervals, point + 1, math.inf)
    return intervals


class NumberSteps:
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
        self.unit = Fraction(10) ** -self.scale
        self.odd = prime_to_ten(self.factor)
        self.items = required + avoided
        self.modulus = math.lcm(*(modulus for modulus, _ in self.items))
        self._thresholds: dict[int, tuple[float, ...]] = {}
        self.last: float = math.inf
        """Without a step: no last digit of a non-multiple lies higher (power of ten); inf: it may lie anywhere."""
        if self.step is None:
            self.last = min((_tens(modulus) - scale - 1 for modulus, scale in self.items), default=math.inf)

    def thresholds(self, residue: int) -> tuple[float, ...]:
        """The least place (power of ten) of the last digit at which the digits are a multiple of each step.

        ``residue`` is M modulo ``modulus``, where the last digit of M is not 0; inf where no place will do.
        """
        result = self._thresholds.get(residue)
        if result is None:
            if len(self._thresholds) > 10_000:
                self._thresholds.clear()
            result = tuple(_tens(modulus // math.gcd(residue, modulus)) - scale for modulus, scale in self.items)
            self._thresholds[residue] = result
        return result

    def limits(self, least: Sequence[float]) -> tuple[float, float]:
        """The least and greatest exponent allowed, given the thresholds relative to the text's own last digit."""
        if self.step is None:
            return -math.inf, min(least, default=math.inf) - 1
        return least[0], (min(least[1:]) - 1 if len(least) > 1 else math.inf)


def _split(step: Fraction) -> tuple[int, int]:
    """(factor, scale) with step == factor * 10**-scale and factor not divisible by 10."""
    scale = decimal_places(step)
    factor = step.numerator * 10**scale // step.denominator
    tens = min(factors(factor)[:2])
    return factor // 10**tens, scale - tens


def _tens(divisor: int) -> float:
    """The least n >= 0 such that ``divisor`` divides 10**n; inf if none does."""
    twos, fives, remaining = factors(divisor)
    return max(twos, fives) if remaining == 1 else math.inf


@dataclass(frozen=True, eq=False, slots=True)
class _Mark:
    """A landmark ``value == 0.DIGITS * 10**point``."""

    digits: str
    point: int
    value: Fraction

    def digit(self, depth: int) -> int:
        return ord(self.digits[depth]) - 48 if depth < len(self.digits) else 0


@dataclass(slots=True)
class NumberPlace:
    """Where a significand lies among the landmarks: on the path of some of them, or in a gap between two."""

    here: list[_Mark]
    depth: int
    low_side: int
    high_side: int
    """The landmarks that begin with the significand; its length; whether it is below (-1) or above (1) the bounds'
    significands or one begins with it (0)."""
    ends: Intervals = ()
    """Points with which the significand itself (zeros after it) is a member, steps apart."""
    low: float = math.inf
    high: float = -math.inf
    """Points low..high with which every longer significand is within the bounds."""
    tight: tuple[int, ...] = ()
    """Points with which a longer significand may be within the bounds, but its digits must be compared."""
    longer: dict[int, list[Fraction]] = field(default_factory=dict)
    """The listed (else: the excluded) values that go on with another nonzero digit, by point."""
    moves: list[int] = field(default_factory=list)
    """Index of the place after each digit."""
    groups: list[tuple[bytes, int]] = field(default_factory=list)
    """The digits 1 to 9 by the place after them."""

    @property
    def off(self) -> int:
        """The gap that this place becomes when no landmark can matter any more."""
        return _gap(self.low_side or 1, self.high_side or -1)


ROOT = 4
"""Index of the place of the empty significand. The gaps come before it: [above the lower bound's significand] +
2 * [below the upper bound's]."""


def _gap(low: int, high: int) -> int:
    return (low > 0) + 2 * (high < 0)


class Magnitudes:
    """The members of one sign as a trie of landmarks (bounds, listed and excluded values) over significands.

    The trie is made as it is walked: each place costs time in the number of landmarks that it is on the path of.
    """

    def __init__(self, members: Range, steps: NumberSteps) -> None:
        self.members, self.steps = members, steps
        low, high = members.low, members.high
        self._low = _Mark(*decimal_parts(low), low) if low is not None else None
        self._high = _Mark(*decimal_parts(high), high) if high is not None else None
        listed = members.excluded if members.values is None else members.values
        marks = [mark for mark in (self._low, self._high) if mark]
        self.bounded = bool(marks)
        self.free_point: float = marks[0].point if marks else 0
        """A point with which the last gap is within the bounds."""
        marks += [_Mark(*decimal_parts(value), value) for value in listed]
        self.low_point: float = self._low.point if self._low else -math.inf
        self.high_point: float = self._high.point if self._high else math.inf
        self.least_point: float = min((mark.point for mark in marks), default=math.inf)
        crowd = steps.factor * 2 ** len(steps.forbidden) * (len(members.excluded) + 1)
        self._enough = len(decimal_digits((10 * crowd - 1) // 9))
        """This many further digits, not compared with any bound, can always lead to a member (the first one not 0)."""
        unit = steps.unit if steps.step is not None else None
        self._unit_low = int(low / unit) if low is not None and unit else 0
        self._unit_high = int(high / unit) if high is not None and unit else 0
        self._places = {ROOT: self._place(marks, 0, 0 if self._low else 1, 0 if self._high else -1)}

    def place(self, index: int) -> NumberPlace:
        """The place of a number: a gap (0 to 3), ``ROOT`` or one that `after` gave."""
        landmark = self._places.get(index)
        if landmark is None:
            landmark = self._places[index] = self._place([], 0, index % 2 or -1, -(index // 2) or 1)
        return landmark

    def after(self, index: int) -> NumberPlace:
        """The same with ``moves`` and ``groups`` filled in."""
        landmark = self.place(index)
        if not landmark.moves:
            moves = [index] * 10 if index < ROOT else self._moves(index, landmark)
            groups: dict[int, bytes] = {}
            for digit in range(1, 10):
                groups[moves[digit]] = groups.get(moves[digit], b"") + b"0123456789"[digit : digit + 1]
            landmark.groups = [(digits, target) for target, digits in groups.items()]
            landmark.moves = moves
        return landmark

    def _moves(self, index: int, landmark: NumberPlace) -> list[int]:
        depth, low, high = landmark.depth, landmark.low_side, landmark.high_side
        groups: dict[int, list[_Mark]] = {}
        for mark in landmark.here:
            groups.setdefault(mark.digit(depth), []).append(mark)
        if all(len(mark.digits) <= depth for mark in landmark.here):
            groups = {}
        least = self._low.digit(depth) if self._low and not low else None
        most = self._high.digit(depth) if self._high and not high else None
        moves = []
        for digit in range(10):
            below = low if least is None else (digit > least) - (digit < least)
            above = high if most is None else (digit > most) - (digit < most)
            if digit in groups:
                moves.append(ROOT + len(self._places))
                self._places[moves[-1]] = self._place(groups[digit], depth + 1, below, above)
            else:
                moves.append(_gap(below, above))
        if landmark.here and not groups:
            moves[0] = index
        return moves

    def _place(self, here: list[_Mark], depth: int, low: int, high: int) -> NumberPlace:
        landmark = NumberPlace(here, depth, low, high)
        ended = []
        for mark in here:
            if mark is not self._low and mark is not self._high:
                if len(mark.digits) > depth:
                    landmark.longer.setdefault(mark.point, []).append(mark.value)
                else:
                    ended.append(mark.point)
        if self.members.values is not None:
            landmark.ends = tuple((point, point) for point in sorted(ended))
            return landmark
        first, last = self.low_point, self.high_point
        at_low = low == 0 and self._low is not None and len(self._low.digits) <= depth
        at_high = high == 0 and self._high is not None and len(self._high.digits) <= depth
        reaches = low > 0 or (at_low and not self.members.low_open)
        stays = high < 0 or (high == 0 and not (at_high and self.members.high_open))
        ends: Intervals = ((first if reaches else first + 1, last if stays else last - 1),)
        landmark.ends = without(ends, ended) if ended else ends
        landmark.low, landmark.high = (first if low > 0 else first + 1), (last if high < 0 else last - 1)
        if low == 0 or high == 0:
            top = last - 1 if high > 0 or at_high else last
            bottom = first + 1 if low < 0 else first
            points = {int(point) for point, side in ((first, low), (last, high)) if side == 0}
            landmark.tight = tuple(sorted(point for point in points if bottom <= point <= top))
        return landmark

    def grows(self, index: int, residue: int, count: int, first: float, last: float) -> bool:
        """Whether further digits, not all 0, can lead to a member with a point in [first, last].

        ``count`` is the number of digits of the significand so far (used with a step only), ``residue`` their residue.
        """
        landmark = self.place(index)
        if self.members.values is not None:
            return any(first <= point <= last for point in landmark.longer)
        low, high = max(landmark.low, first), min(landmark.high, last)
        if self.steps.step is None:
            return low <= high or any(first <= point <= last for point in landmark.tight)
        if low <= high and high + self.steps.scale - count >= self._enough:
            return True
        return next(self._members(index, residue, count, first, last), None) is not None

    def find(self, index: int, residue: int, count: int, first: float, last: float) -> tuple[int, str] | None:
        """Where there is a step: a point in [first, last] and further digits that lead to a member; None if none do.

        O(log step) tries of exact integer arithmetic on numbers of the size of the bounds.
        """
        for point, length, number in self._members(index, residue, count, first, last):
            return point, decimal_digits(number).zfill(length)
        return None

    def _members(
        self, index: int, residue: int, count: int, first: float, last: float
    ) -> Iterator[tuple[int, int, int]]:
        """Of each point that has one: the least further digits that lead to a member, how many and as a number."""
        landmark = self.place(index)
        start = max(first, count - self.steps.scale + 1)
        low = max(start, landmark.low)
        high = min(last, landmark.high, low + self._enough)
        tight = [point for point in landmark.tight if start <= point <= last]
        free = range(int(low), int(high) + 1) if low <= high else ()
        for point in chain(free, tight):
            length = int(point + self.steps.scale - count)
            number = self._suffix(landmark, point, length, residue, index == ROOT)
            if number is not None:
                yield point, length, number

    def _suffix(self, landmark: NumberPlace, point: int, length: int, residue: int, leading: bool) -> int | None:
        """The least number of ``length`` digits that completes the significand to a member with this point."""
        steps, power = self.steps, 10**length
        least, most = (power // 10 if leading else 1), power - 1
        if not landmark.low_side and point == self.low_point:
            least = max(least, self._unit_low % power)
        if not landmark.high_side and point == self.high_point:
            most = self._unit_high % power
        base = residue * power
        listed = landmark.longer.get(point)
        taken = {int(value / steps.unit) % power for value in listed} if listed else ()
        for number in range(least + -(base + least) % steps.factor, most + 1, steps.factor):
            if number not in taken and all((base + number) % modulus for modulus in steps.forbidden):
                return number
        return None
