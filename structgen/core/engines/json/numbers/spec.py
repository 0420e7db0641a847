"""What a number must satisfy, stated exactly.

JSON numbers (RFC 8259, section 6) are decimal fractions without limit, so everything here is a ``Fraction``: no bound
and no multiple is ever rounded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, reduce
from typing import Literal

from structgen.core.json_schema.formula.values import decimal_digits, factors
from structgen.options import OPEN_DIGITS

__all__ = [
    "MANY",
    "NumberSpec",
    "Range",
    "Spelling",
    "decimal_multiple",
    "decimal_parts",
    "decimal_places",
    "lcm",
    "magnitudes",
]

MANY = 1_000_000
"""As good as endlessly many: values that are counted no further."""

Spelling = Literal["any", "plain", "integer", "marked"]


@dataclass(frozen=True)
class NumberSpec:
    """A conjunction of conditions on a number, and how it may be spelled. Hashable.

    ``multiples`` are steps > 0 of each of which the value must be a multiple (an integer is a multiple of 1);
    ``non_multiples`` are steps of none of which it may be one. ``values``, if given, lists the only values allowed,
    which still have to satisfy the rest.

    ``spelling`` "any" allows every JSON spelling of a value (``1.0``, ``1e2``, ``10e-1``, ``-0``, ``1E+007``). "plain"
    allows no exponent and no fraction that ends in a zero, and where every value is an integer (``integer_only``) no
    ``-0`` either. "integer" allows digits only, which makes the value a multiple of 1; "marked" allows all the others:
    a fraction or an exponent. ``max_length`` limits the text, in bytes.

    Raises ``ValueError`` for a step <= 0 and for a bound that has no finite decimal expansion.
    """

    minimum: Fraction | None = None
    exclusive_minimum: bool = False
    maximum: Fraction | None = None
    exclusive_maximum: bool = False
    multiples: frozenset[Fraction] = frozenset()
    non_multiples: frozenset[Fraction] = frozenset()
    excluded: frozenset[Fraction] = frozenset()
    values: frozenset[Fraction] | None = None
    spelling: Spelling = "any"
    max_length: int | None = None

    def __post_init__(self) -> None:
        if self.spelling == "integer":
            object.__setattr__(self, "multiples", self.multiples | {Fraction(1)})
        for step in (*self.multiples, *self.non_multiples):
            if step <= 0:
                raise ValueError(f"a multiple of {step} was asked for; steps must be greater than 0")
        for bound in (self.minimum, self.maximum):
            if bound is not None and prime_to_ten(bound.denominator) != 1:
                raise ValueError(f"the bound {bound} has no finite decimal expansion; give a decimal fraction")

    def contains(self, value: Fraction) -> bool:
        """Whether ``value`` satisfies every condition (spelling and length apart)."""
        low, high = self.minimum, self.maximum
        return (
            (low is None or value > low or (value == low and not self.exclusive_minimum))
            and (high is None or value < high or (value == high and not self.exclusive_maximum))
            and all((value / step).denominator == 1 for step in self.multiples)
            and all((value / step).denominator != 1 for step in self.non_multiples)
            and value not in self.excluded
            and (self.values is None or value in self.values)
        )

    @cached_property
    def step(self) -> Fraction | None:
        """The decimal step whose multiples are the decimals that are multiples of each of ``multiples``."""
        result: Fraction | None = None
        for step in map(decimal_multiple, self.multiples):
            result = step if result is None else lcm(result, step)
        return result

    @property
    def is_endless(self) -> bool:
        """Whether neither listed values nor bounds with a step leave an end of the values (there may be none)."""
        if self.values is not None:
            return False
        if self.minimum is None or self.maximum is None:
            return True
        return self.step is None and self.minimum < self.maximum

    def count(self) -> int:
        """How many numbers satisfy the spec, at least; `MANY` where there are that many or no end."""
        if self.max_length is not None:
            return 1
        if self.values is not None:
            return sum(map(self.contains, self.values))
        if self.minimum is None or self.maximum is None:
            return MANY
        if not self.multiples:
            return MANY if self.minimum < self.maximum else 1
        step = reduce(lcm, self.multiples)
        count = int((self.maximum - self.minimum) / step) - 1 - len(self.excluded)
        if count >= MANY and not self.non_multiples:
            return MANY
        first, last = int(-(-self.minimum // step)), int(self.maximum // step)
        return sum(self.contains(value * step) for value in range(first, min(last, first + MANY // 100) + 1))

    def with_ends(self) -> NumberSpec:
        """The spec with bounds and a step where it is plain and endless: ``OPEN_DIGITS`` before the point and after it,
        beyond those of the numbers that it holds. It has members if the spec has: one more digit lies between any two
        bounds, and a multiple beyond a bound is no further away than the steps together are long.
        """
        if self.spelling != "plain" or not self.is_endless:
            return self
        numbers = [abs(number) for number in (self.minimum, self.maximum, *self.excluded) if number is not None]
        numbers = [number for number in numbers if is_decimal(number)]
        steps = [decimal_multiple(step) for step in (*self.multiples, *self.non_multiples)]
        whole = OPEN_DIGITS + sum(map(_whole_digits, steps)) + max(map(_whole_digits, numbers), default=0)
        places = OPEN_DIGITS + sum(map(decimal_places, steps)) + max(map(decimal_places, numbers), default=0)
        low, high = self.minimum, self.maximum
        return replace(
            self,
            minimum=Fraction(-(10**whole)) if low is None else low,
            exclusive_minimum=self.exclusive_minimum or low is None,
            maximum=Fraction(10**whole) if high is None else high,
            exclusive_maximum=self.exclusive_maximum or high is None,
            multiples=frozenset({Fraction(1, 10**places)}) if self.step is None else self.multiples,
        )

    @cached_property
    def integer_only(self) -> bool:
        """Whether the conditions allow integers only, by ``multiples`` or by ``values``."""
        step = self.step
        if step is not None and step.denominator == 1:
            return True
        return self.values is not None and all(value.denominator == 1 for value in self.values if self.contains(value))


def lcm(left: Fraction, right: Fraction) -> Fraction:
    """The least common multiple of two positive fractions."""
    return Fraction(math.lcm(left.numerator, right.numerator), math.gcd(left.denominator, right.denominator))


def decimal_multiple(step: Fraction) -> Fraction:
    """The step whose multiples are exactly the *decimal* multiples of ``step`` (1/3 gives 1, 0.5 itself)."""
    return step * prime_to_ten(step.denominator)


def is_decimal(value: Fraction) -> bool:
    """Whether ``value`` has a finite decimal expansion, so that a JSON number can spell it."""
    return prime_to_ten(value.denominator) == 1


def decimal_places(value: Fraction) -> int:
    """The number of digits after the point that a decimal fraction needs."""
    twos, fives, _ = factors(value.denominator)
    return max(twos, fives)


def decimal_parts(value: Fraction) -> tuple[str, int]:
    """The digits and the point of a positive decimal fraction: ``value == 0.DIGITS * 10**point``.

    The digits start and end with a nonzero one. Example: 1250 gives ("125", 4), 0.05 gives ("5", -1).
    """
    places = decimal_places(value)
    text = decimal_digits(value.numerator * 10**places // value.denominator)
    return text.rstrip("0"), len(text) - places


def _whole_digits(value: Fraction) -> int:
    """Digits before the point of what is at least 0, none for less than 10."""
    return len(decimal_digits(int(value))) - 1


def prime_to_ten(number: int) -> int:
    """The greatest divisor of a positive integer that has no factor 2 or 5."""
    return factors(number)[2]


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


def magnitudes(spec: NumberSpec, sign: int) -> Range:
    """The magnitudes of the members of one sign (1 or -1), with bounds moved to members where there is a step."""
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
    if spec.step is not None:
        low, high = _to_step(low, low_open, high, high_open, spec.step)
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
