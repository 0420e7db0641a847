"""Interval arithmetic against sets of integers, and thresholds against exact division."""

from __future__ import annotations

from fractions import Fraction as F

from hypothesis import given
from hypothesis import strategies as st

from structgen.core.engines.json.numbers.sets import EVERY, Intervals, NumberSteps, clip, moved, without
from structgen.core.engines.json.numbers.spec import NumberSpec

POINTS = st.sets(st.integers(-9, 9))


def members(intervals: Intervals) -> set[int]:
    return {number for number in range(-40, 41) if any(low <= number <= high for low, high in intervals)}


@given(POINTS, st.integers(-9, 9), st.integers(-15, 15), st.integers(-15, 15))
def test_intervals(points: set[int], by: int, low: int, high: int) -> None:
    intervals = without(EVERY, points)
    assert members(intervals) == set(range(-40, 41)) - points
    expected = {number + by for number in set(range(-60, 61)) - points if low <= number + by <= high}
    assert members(moved(intervals, by, low, high)) == expected
    assert all(first <= last for first, last in clip(intervals, low, high))


@given(st.sampled_from(["1", "7", "0.25", "60", "0.003", "12.5", "1024"]), st.integers(1, 10**6))
def test_thresholds(step: str, number: int) -> None:
    """The threshold is the least power of ten with which the digits are a multiple."""
    steps = NumberSteps(NumberSpec(multiples=frozenset({F(step)})))
    number += number % 10 == 0
    (least,) = steps.thresholds(number % steps.modulus)
    found = [power for power in range(-12, 13) if (number * F(10) ** power / F(step)).denominator == 1]
    assert found == [power for power in range(-12, 13) if power >= least]
