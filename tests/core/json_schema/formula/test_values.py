"""Canonical values: equal exactly when JSON Schema calls the values equal."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema._utils import equal  # the equality of an independent validator

from structgen.core.json_schema.formula.values import (
    canonical,
    canonical_type,
    decimal_of,
    decode,
    exact_number,
    type_of,
)

SCALARS = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.0, 1.0, 0.5, "", "a"])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
)


@given(VALUES, VALUES)
def test_equality_is_that_of_json_schema(one: Any, other: Any) -> None:
    assert (canonical(one) == canonical(other)) is equal(one, other)
    assert hash(canonical(one)) == hash(canonical(decode(canonical(one))))


@given(VALUES)
def test_decode_gives_an_equal_value_of_the_same_type(value: Any) -> None:
    again = decode(canonical(value))
    assert canonical(again) == canonical(value)
    assert type_of(again) == type_of(value) == canonical_type(canonical(value))


@pytest.mark.parametrize(
    ("number", "exact"),
    [
        (0.1, Fraction(1, 10)),
        (Decimal("0.10"), Fraction(1, 10)),
        (1e2, 100),
        (Decimal("1E+2"), 100),
        (-0.0, 0),
        (2**70, 2**70),
    ],
)
def test_numbers_are_exact(number: Any, exact: Any) -> None:
    result = exact_number(number)
    assert result == exact
    assert type(result) is type(exact)


@pytest.mark.parametrize(
    "number", [float("nan"), float("inf"), Decimal("NaN"), Decimal("1e100001"), Decimal("1e-100001")]
)
def test_numbers_without_exact_value_are_refused(number: Any) -> None:
    with pytest.raises(ValueError, match=r"not a JSON number|exponent"):
        exact_number(number)


@pytest.mark.parametrize("value", [object(), b"bytes", {1: 2}, {"a": {1}}])
def test_what_is_not_json_is_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        canonical(value)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=6))
def test_decimal_of_inverts_exact_number(number: Decimal) -> None:
    assert decimal_of(Fraction(number)) == number


def test_decimal_of_a_third_is_refused() -> None:
    with pytest.raises(ValueError, match="no finite decimal"):
        decimal_of(Fraction(1, 3))
