"""Example texts of grammars, expressions and choices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from structgen.core.answers.picking.picks import Picks
from structgen.core.answers.texts.differences import TextSide
from structgen.core.answers.texts.drawing import TextDrawing

FUTILE = 200
"""Texts one after another that give nothing new, after which there are no more."""


def text_examples(constraint: Any, picks: Picks, size: int) -> Iterator[str]:
    """Different texts of a constraint; in the manner "plain" one, a shortest.

    Raises:
        ConstraintError: it cannot be compiled, or has parts without rules.
    """
    side = TextSide(constraint)
    if picks.manner == "plain":
        return iter([side.shortest()])
    return _distinct(side, TextDrawing(side.plain, picks, size))


def _distinct(side: TextSide, drawing: TextDrawing) -> Iterator[str]:
    seen, futile = set[str](), 0
    while futile < FUTILE:
        text = drawing.text()
        if text in seen or not (side.is_exact or side.takes(text.encode())):
            futile += 1
            continue
        futile = 0
        seen.add(text)
        yield text
