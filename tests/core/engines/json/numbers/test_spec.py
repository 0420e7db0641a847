"""Decimal arithmetic and the members of one sign, against the definition."""

from __future__ import annotations

from fractions import Fraction as F

from hypothesis import given
from hypothesis import strategies as st

from structgen.core.engines.json.numbers.spec import NumberSpec, decimal_multiple, decimal_parts, lcm, magnitudes


@given(st.integers(1, 10**9), st.integers(-12, 12))
def test_decimal_parts(number: int, power: int) -> None:
    value = number * F(10) ** power
    digits, point = decimal_parts(value)
    assert digits[0] != "0" and digits[-1] != "0"
    assert F(int(digits), 10 ** len(digits)) * F(10) ** point == value


@given(st.fractions(min_value=F(1, 50), max_value=20, max_denominator=60), st.integers(-3000, 3000))
def test_decimal_multiple(step: F, number: int) -> None:
    """A decimal is a multiple of the one iff it is a multiple of the other."""
    value = F(number, 40)
    assert ((value / step).denominator == 1) == ((value / decimal_multiple(step)).denominator == 1)


@given(st.fractions(F(1, 9), 9, max_denominator=12), st.fractions(F(1, 9), 9, max_denominator=12))
def test_lcm(left: F, right: F) -> None:
    common = lcm(left, right)
    assert next(left * k for k in range(1, 10_000) if (left * k / right).denominator == 1) == common


@given(
    st.integers(-30, 30), st.integers(-30, 30), st.booleans(), st.booleans(), st.sampled_from([F(1), F("0.4"), F(7)])
)
def test_bounds_move_to_members(low: int, high: int, low_open: bool, high_open: bool, step: F) -> None:
    spec = NumberSpec(F(low, 2), low_open, F(high, 2), high_open, frozenset({step}))
    for sign in (1, -1):
        found = magnitudes(spec, sign)
        members = {step * k for k in range(1, 60) if spec.contains(sign * step * k)}
        if found.values is not None:
            assert found.values == members
        else:
            assert found.high == max(members)
            assert (found.low or step) == min(members)


def test_hashable_and_integer_only() -> None:
    assert hash(NumberSpec(F(1))) == hash(NumberSpec(F(1)))
    assert NumberSpec(multiples=frozenset({F("1.5"), F("0.4")})).integer_only  # common multiples: 6, 12, ...
    assert not NumberSpec(multiples=frozenset({F("0.5")})).integer_only
    assert NumberSpec(F(2), values=frozenset({F(3), F("0.5")})).integer_only
