"""Which characters a class of pydantic-core's regular expressions matches: its Unicode version is not ours.

Asked of pydantic-core itself, so that a mask lets through what the installed version takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np
from pydantic_core import SchemaError, SchemaValidator, core_schema

from structgen.core.regex.charset import CharSet, complement, intersection, normalise, union
from structgen.errors import PatternError

BLOCK = 1 << 12
"""Characters that are asked about at once; where one of them is not as expected, each half again."""


@lru_cache(maxsize=256)
def as_pydantic_reads(atom: str, expected: CharSet) -> CharSet:
    """The characters that an expression of one character matches in the installed pydantic-core.

    Takes some ten milliseconds, and nothing when asked again.

    Args:
        atom: the expression, as Rust's crate ``regex`` writes it.
        expected: what it is likely to match; the nearer, the fewer questions.

    Raises:
        PatternError: pydantic-core does not read the expression.
    """
    try:
        only, some = _judge(rf"^{atom}*\z"), _judge(atom)
    except SchemaError as error:
        raise PatternError(f"pydantic-core does not read {atom!r}: {error}", pattern=atom) from None
    missing = {char for block in _blocks(expected) for char in _odd(block, lambda text: not only(text))}
    further = {char for block in _blocks(complement(expected)) for char in _odd(block, some)}
    if not missing and not further:
        return expected
    changed = normalise((ord(char), ord(char)) for char in missing | further)
    return union(intersection(expected, complement(changed)), intersection(changed, complement(expected)))


def _judge(pattern: str) -> Callable[[str], bool]:
    """Whether pydantic-core takes a string."""
    return SchemaValidator(core_schema.str_schema(pattern=pattern)).isinstance_python


def _odd(text: str, is_odd: Callable[[str], bool]) -> Iterator[str]:
    """The characters that are odd, where a text is odd if one of its characters is."""
    if not is_odd(text):
        return
    if len(text) == 1:
        yield text
        return
    half = len(text) // 2
    yield from _odd(text[:half], is_odd)
    yield from _odd(text[half:], is_odd)


def _blocks(charset: CharSet) -> Iterator[str]:
    """All characters of a set, some thousands at a time."""
    points = np.concatenate([np.arange(low, high + 1, dtype="<u4") for low, high in charset] or [np.zeros(0, "<u4")])
    for first in range(0, len(points), BLOCK):
        yield points[first : first + BLOCK].tobytes().decode("utf-32-le")
