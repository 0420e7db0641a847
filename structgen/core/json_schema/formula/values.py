"""JSON values in canonical, hashable form: equal exactly when JSON Schema calls the values equal.

JSON Schema's equality (2020-12 core, section 4.2.2): ``1`` equals ``1.0``, ``true`` differs from ``1``, objects are
unordered, and numbers are exact decimals (a float means its shortest spelling, ``Decimal(repr(x))``).

======== ===================================================
null     ``None``
string   the ``str`` itself
number   ``int`` if integral, else ``Fraction`` (lowest terms)
boolean  ``("boolean", b)``
array    ``("array", (item, ...))``
object   ``("object", frozenset of (key, value) pairs)``
======== ===================================================
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

NULL, BOOLEAN, NUMBER, STRING, ARRAY, OBJECT = 1, 2, 4, 8, 16, 32
ANY = 63
TYPE_BITS: Mapping[str, int] = {
    "null": NULL,
    "boolean": BOOLEAN,
    "number": NUMBER,
    "string": STRING,
    "array": ARRAY,
    "object": OBJECT,
}

Canonical = Any  # the table above; recursive, so left to the eye
_TAG_BITS = {"boolean": BOOLEAN, "array": ARRAY, "object": OBJECT}

# 1e100000 has 332,193 bits: exact arithmetic on it still takes microseconds. Beyond it a 12-byte number in a schema
# could ask for gigabytes.
MAX_EXPONENT = 100_000
_MAX_BITS = 332_193
_SHORT_BITS = 14_000  # CPython's str() and int() refuse more than 4,300 digits; Decimal converts any number


def exact_number(number: int | float | Decimal | Fraction) -> int | Fraction:
    """Exact value: ``int`` if integral, else ``Fraction``.

    Raises:
        ValueError: NaN, an infinity, or a decimal exponent or number of digits beyond ``MAX_EXPONENT``.
    """
    if isinstance(number, int):
        if number.bit_length() > _MAX_BITS:
            raise ValueError(f"an integer of more than {MAX_EXPONENT} digits")
        return number
    if isinstance(number, float):
        number = Decimal(repr(number))
    if isinstance(number, Decimal):
        if not number.is_finite():
            raise ValueError(f"{number} is not a JSON number")
        _, digits, exponent = number.as_tuple()
        if abs(exponent) > MAX_EXPONENT or len(digits) > MAX_EXPONENT:  # type: ignore[arg-type]
            raise ValueError(f"the exponent of {number!s:.40} exceeds {MAX_EXPONENT}, or its number of digits does")
    fraction = Fraction(number)
    return fraction.numerator if fraction.denominator == 1 else fraction


def decimal_digits(number: int) -> str:
    """The digits of an integer >= 0, however many there are."""
    return str(number) if number.bit_length() < _SHORT_BITS else str(Decimal(number))


def canonical(value: Any) -> Canonical:
    """Canonical form of a parsed JSON value. Linear in its size.

    Raises:
        TypeError: the value (or a part) is not what ``json.loads`` gives.
        ValueError: a number without exact value (see `exact_number`).
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return ("boolean", value)
    if isinstance(value, (int, float, Decimal, Fraction)):
        return exact_number(value)
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise TypeError("the keys of a JSON object are strings")
        return ("object", frozenset((key, canonical(item)) for key, item in value.items()))
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return ("array", tuple(canonical(item) for item in value))
    raise TypeError(f"{type(value).__name__} is not a JSON value")


def canonical_type(value: Canonical) -> int:
    """Type bit of a canonical value."""
    if isinstance(value, str):
        return STRING
    if value is None:
        return NULL
    if isinstance(value, tuple):
        return _TAG_BITS[value[0]]
    return NUMBER


def type_of(value: Any) -> int:
    """Type bit of a parsed JSON value."""
    if isinstance(value, str):
        return STRING
    if isinstance(value, bool):
        return BOOLEAN
    if value is None:
        return NULL
    if isinstance(value, Mapping):
        return OBJECT
    return NUMBER if isinstance(value, (int, float, Decimal, Fraction)) else ARRAY


def decode(value: Canonical) -> Any:
    """A parsed JSON value with this canonical form; numbers that are not integral become ``Decimal``.

    Object keys come out sorted (code points), since the canonical form has no order.
    """
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, Fraction):
        return decimal_of(value)
    tag, content = value
    if tag == "boolean":
        return content
    if tag == "array":
        return [decode(item) for item in content]
    return {key: decode(item) for key, item in sorted(content, key=lambda pair: pair[0])}


def factors(number: int) -> tuple[int, int, int]:
    """(a, b, remaining) with number == 2**a * 5**b * remaining, for a positive integer."""
    twos = (number & -number).bit_length() - 1
    fives, remaining = _divided(number >> twos, 5)
    return twos, fives, remaining


def _divided(number: int, divisor: int) -> tuple[int, int]:
    """How often ``divisor`` divides, and what remains: by its squares first, so in few divisions."""
    if number % divisor:
        return 0, number
    count, remaining = _divided(number, divisor * divisor)
    quotient, remainder = divmod(remaining, divisor)
    return (2 * count, remaining) if remainder else (2 * count + 1, quotient)


def decimal_of(number: Fraction | int) -> Decimal:
    """The exact decimal of a fraction whose denominator has no prime factor but 2 and 5.

    Raises:
        ValueError: there is no finite decimal.
    """
    numerator, denominator = number.numerator, number.denominator
    twos, fives, remaining = factors(denominator)
    if remaining != 1:
        raise ValueError(f"{number} has no finite decimal spelling")
    places = max(twos, fives)
    scaled = numerator * 2 ** (places - twos) * 5 ** (places - fives)
    return Decimal((int(scaled < 0), tuple(map(int, decimal_digits(abs(scaled)))), -places))
