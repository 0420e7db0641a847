"""The door to what is private in Python's ``re``: its parser, and which characters it takes for one another.

No other module touches these (``tests/test_fences.py``). They have kept their names from Python 3.11 on; which versions
of Python are allowed stands in pyproject.toml.
"""

from __future__ import annotations

import _sre  # type: ignore[import-not-found]
import re._casefix as _casefix  # type: ignore[import-not-found]
import re._constants as constants  # type: ignore[import-not-found]
import re._parser as _parser  # type: ignore[import-not-found]
import sys
from functools import cache
from typing import Any

__all__ = ["constants", "equal_lower_cases", "lower_cases", "parse_tree"]


def parse_tree(pattern: str, flags: int) -> tuple[Any, int]:
    """Python's parse tree of an expression, nodes (operation of ``constants``, argument), and all flags of it.

    Raises:
        re.error, OverflowError, ValueError, RecursionError: as ``re.compile``.
    """
    tree = _parser.parse(pattern, flags)
    return tree, tree.state.flags


@cache
def lower_cases() -> dict[int, int]:
    """The lower case of every character that has case, as ``re`` compares them."""
    return {
        point: _sre.unicode_tolower(point)
        for point in range(sys.maxunicode + 1)
        if not 0xD800 <= point <= 0xDFFF and _sre.unicode_iscased(point)
    }


def equal_lower_cases(lower: int) -> tuple[int, ...]:
    """Other lower-case characters that ``re`` takes for this one."""
    return tuple(_casefix._EXTRA_CASES.get(lower, ()))
