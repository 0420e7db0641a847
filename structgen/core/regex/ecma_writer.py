"""Syntax trees as expressions of ECMA-262, the language of JSON Schema's ``pattern``."""

from __future__ import annotations

from structgen.core.regex.charset import CharSet
from structgen.core.regex.ecma_ast import Alternate, Anchor, Boundary, Chars, Concat, Look, Node, Repeat

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
        return f"(?{'<' if node.behind else ''}{'!' if node.negative else '='}{ecma_source(node.body)})"
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
