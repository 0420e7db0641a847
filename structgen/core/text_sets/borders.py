"""Where quotes may begin and end: at characters, words or lines."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from structgen.core.kernels.sorted import calls as k
from structgen.core.text_sets.sorted_texts import Bytes
from structgen.errors import OptionsError

Boundary = Literal["char", "word", "line"]
BOUNDARIES: tuple[Boundary, ...] = get_args(Boundary)
"""By the kernel's number."""
_NUMBERS = {"char": k.CHAR, "word": k.WORD, "line": k.LINE}
Flags = npt.NDArray[np.bool_]
_OTHER, _SPACE, _LETTER, _END = range(4)
_AFTER_UNICODE = 0x110000  # stands for the end of a document among its code points


def boundary_number(boundary: str) -> int:
    """The kernel's number of a boundary.

    Raises:
        OptionsError: there is no such boundary.
    """
    if boundary not in _NUMBERS:
        names = ", ".join(BOUNDARIES)
        raise OptionsError(f"boundary must be one of {names}, not {boundary!r}", option="boundary", value=boundary)
    return _NUMBERS[boundary]


def starts_and_borders(text: Bytes, documents: list[str], boundary: int) -> tuple[Flags, Bytes]:
    """Of each byte of the text, bool: whether a quote may begin there; as bits: whether one may end before it.

    ``text`` is that of the documents in UTF-8, each with the byte FF behind it. No bits for CHAR.
    """
    heads = (text & 0xC0) != 0x80
    if boundary == k.CHAR:
        return heads & (text != k.END), np.zeros(0, np.uint8)
    points = _code_points(documents)
    begins, ends = (_words if boundary == k.WORD else _lines)(points)
    offsets = np.flatnonzero(heads)
    starts, borders = np.zeros(len(text), np.bool_), np.zeros(len(text), np.bool_)
    starts[offsets[begins]] = True
    borders[offsets[ends]] = True
    return starts, np.packbits(borders, bitorder="little")


def _code_points(documents: list[str]) -> npt.NDArray[np.uint32]:
    parts = []
    for document in documents:
        parts.append(np.frombuffer(document.encode("utf-32-le"), np.uint32))
        parts.append(np.array([_AFTER_UNICODE], np.uint32))
    return np.concatenate(parts)


def _words(points: npt.NDArray[np.uint32]) -> tuple[Flags, Flags]:
    """Words: maximal runs of ``\\w``, of white space, and of what is neither."""
    present = np.zeros(_AFTER_UNICODE + 1, np.bool_)
    present[points] = True
    kinds = np.full(_AFTER_UNICODE + 1, _END, np.uint8)
    for point in np.flatnonzero(present[:_AFTER_UNICODE]).tolist():
        character = chr(point)
        is_letter = character.isalnum() or character == "_"
        kinds[point] = _LETTER if is_letter else _SPACE if character.isspace() else _OTHER
    kind = kinds[points]
    changes = np.ones(len(kind), np.bool_)
    changes[1:] = kind[1:] != kind[:-1]
    return changes & (kind != _SPACE) & (kind != _END), changes


def _lines(points: npt.NDArray[np.uint32]) -> tuple[Flags, Flags]:
    """Lines, which end before a line feed or a carriage return. A quote may hold several."""
    breaks, over = (points == 10) | (points == 13), points == _AFTER_UNICODE
    after = np.ones(len(points), np.bool_)  # whether a line has ended before it
    after[1:] = (breaks | over)[:-1]
    return after & ~breaks & ~over, (breaks & ~after) | over
