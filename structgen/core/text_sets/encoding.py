"""Texts of constraints as the bytes that an output has."""

from __future__ import annotations

from structgen.errors import ConstraintError


def encoded(value: object, what: str) -> bytes:
    """A text in UTF-8.

    Raises:
        ConstraintError: it is no text, or has half of a surrogate pair.
    """
    if not isinstance(value, str):
        raise ConstraintError(f"{what} is {type(value).__name__} {value!r:.100}; expected a text")
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise ConstraintError(
            f"{what} holds half of a surrogate pair at character {error.start}, which no output can have: "
            f"{value[max(error.start - 20, 0) : error.start + 20]!r}"
        ) from None
