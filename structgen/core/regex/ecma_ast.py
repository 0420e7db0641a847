"""The syntax tree of a regular expression, reduced to what decides its language.

Captures, laziness and group names are gone; the multiline anchors are written with lookarounds.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from structgen.core.regex.charset import CharSet


class Chars(NamedTuple):
    """One character of a set."""

    charset: CharSet


class Concat(NamedTuple):
    """The parts one after the other; none of them: the empty text."""

    parts: tuple[Node, ...]


class Alternate(NamedTuple):
    """One of the options; none of them: no text."""

    options: tuple[Node, ...]


class Repeat(NamedTuple):
    """``low`` to ``high`` times (None: any number)."""

    body: Node
    low: int
    high: int | None


class Anchor(NamedTuple):
    """The start of the text, or its end."""

    at_end: bool


class Look(NamedTuple):
    """A lookaround: ``body`` matches from here on (``behind``: ending here), or does not if ``negative``."""

    body: Node
    behind: bool
    negative: bool


class Boundary(NamedTuple):
    """``\\b``: exactly one of the characters on both sides is in ``word``; ``negative`` (``\\B``): both or none."""

    word: CharSet
    negative: bool

    def as_lookarounds(self) -> Node:
        """The same, written with lookarounds."""
        word = Chars(self.word)
        return Alternate(
            tuple(
                Concat((Look(word, True, not before), Look(word, False, before is not self.negative)))
                for before in (True, False)
            )
        )


Node: TypeAlias = Chars | Concat | Alternate | Repeat | Anchor | Look | Boundary

START, END = Anchor(False), Anchor(True)
