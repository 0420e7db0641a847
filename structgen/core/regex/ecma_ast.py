"""The syntax tree of a regular expression, reduced to what decides its language; the tree as text.

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
    """A lookaround: ``body`` matches from here on (``lookbehind``: ending here), or does not if ``negative``."""

    body: Node
    lookbehind: bool
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


NOTHING = "[]"
"""The expression that matches nowhere."""
_PLAIN = frozenset(range(0x21, 0x7F)) - frozenset(map(ord, "^$\\.*+?()[]{}|/-"))


def ecma_source(node: Node) -> str:
    """An expression that `structgen.core.regex.ecma_parser` reads as ``node`` (with the flag u)."""
    if isinstance(node, Chars):
        return _class(node.charset)
    if isinstance(node, Concat):
        return "".join(_grouped(part) if isinstance(part, Alternate) else ecma_source(part) for part in node.parts)
    if isinstance(node, Alternate):
        return "|".join(map(ecma_source, node.options)) if node.options else NOTHING
    if isinstance(node, Repeat):
        return _grouped(node.body) + _count(node.low, node.high)
    if isinstance(node, Anchor):
        return "$" if node.at_end else "^"
    if isinstance(node, Look):
        return f"(?{'<' if node.lookbehind else ''}{'!' if node.negative else '='}{ecma_source(node.body)})"
    assert isinstance(node, Boundary)
    return _grouped(node.as_lookarounds())


def _grouped(node: Node) -> str:
    return ecma_source(node) if isinstance(node, Chars) else f"(?:{ecma_source(node)})"


def _count(low: int, high: int | None) -> str:
    short = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((low, high))
    bound = "" if high is None else str(high)
    return short or "{" + (str(low) if high == low else f"{low},{bound}") + "}"


def _class(charset: CharSet) -> str:
    if len(charset) == 1 and charset[0][0] == charset[0][1]:
        return _character(charset[0][0])
    ranges = (_character(low) + (f"-{_character(high)}" if high > low else "") for low, high in charset)
    return f"[{''.join(ranges)}]"


def _character(code: int) -> str:
    return chr(code) if code in _PLAIN else f"\\u{{{code:X}}}"
