r"""Regular expressions of XGrammar's ``Regex``: ECMA-262, but for what its engine reads in another way.

``.`` is any character, or any but a line feed where flags are given without ``s``; ``\s`` is ASCII's whitespace, ``\a``
and ``\e`` are BEL and ESC, ``(?P<name>...)`` is a group, and ``(?i)`` at the beginning ignores case.
"""

from __future__ import annotations

import re

from structgen.core.grammars.ebnf_tree import AutomatonUse
from structgen.core.regex.dfa import Dfa
from structgen.core.regex.ecma_ast import Alternate, Anchor, Boundary, Concat, Look, Node, Repeat
from structgen.core.regex.ecma_parser import parse
from structgen.core.regex.pattern import search_dfa

_PIECE = re.compile(r"\\u\{(?P<point>[0-9a-fA-F]{1,6})\}|\\(?P<escaped>.)|\(\?P<|\[\^?|.", re.DOTALL)
_SPACE = r"\t-\r "
_NOT_SPACE = r"\0-\x08\x0e-\x1f!-" + chr(0x10FFFF)
_ESCAPES = {"a": r"\x07", "e": r"\x1b"}
_KNOWN = frozenset("^$\\.*+?()[]{}|/-0123456789dDwWbBfnrtvcxukpP")  # others stand for themselves


def regex_tree(pattern: str, flags: str | None = None) -> Node | AutomatonUse:
    """A tree for the texts that a pattern matches as a whole.

    Args:
        pattern: the expression.
        flags: of ``i``, ``s`` and ``u``; None: none are given.

    Raises:
        PatternError: not legal, or not regular.
        TooComplexError: its automaton is too large.
    """
    node = parse(_as_ecma(pattern, flags))
    if isinstance(node, Concat) and node.parts:  # anchors that say what is so anyway
        begin, end = node.parts[0] == Anchor(False), node.parts[-1] == Anchor(True)
        node = Concat(node.parts[begin : len(node.parts) - end])
    return node if _is_plain(node) else AutomatonUse(_dfa(node))


def regex_dfa(pattern: str, flags: str | None = None) -> Dfa:
    """The automaton of the same texts."""
    return _dfa(parse(_as_ecma(pattern, flags)))


def _dfa(node: Node) -> Dfa:
    return search_dfa(Concat((Anchor(False), node, Anchor(True))))


def _is_plain(node: Node) -> bool:
    """Whether a tree looks at no text but its own."""
    if isinstance(node, Concat):
        return all(map(_is_plain, node.parts))
    if isinstance(node, Alternate):
        return all(map(_is_plain, node.options))
    if isinstance(node, Repeat):
        return _is_plain(node.body)
    return not isinstance(node, Anchor | Look | Boundary)


def _as_ecma(pattern: str, flags: str | None) -> str:
    """The expression that says the same in ECMA-262."""
    ignores_case = pattern.startswith("(?i)")
    pattern = pattern.removeprefix("(?i)")
    dot = "[^]" if flags is None or "s" in flags else r"[^\n]"
    found, in_class = [], False
    for piece in _PIECE.finditer(pattern):
        text, escaped = piece.group(), piece["escaped"]
        if piece["point"]:  # without braces, which are not read so in all expressions
            point = int(piece["point"], 16)
            text = f"\\u{point:04x}" if point < 0x10000 else chr(min(point, 0x10FFFF))
        elif escaped in ("s", "S"):
            inside = _SPACE if escaped == "s" else _NOT_SPACE
            text = inside if in_class else f"[{_SPACE}]" if escaped == "s" else f"[^{_SPACE}]"
        elif escaped is not None:
            stands = escaped in _KNOWN and (in_class or escaped != "-")
            text = _ESCAPES.get(escaped, text if stands else escaped)
        elif text == "(?P<" and not in_class:
            text = "(?<"
        elif text.startswith("["):
            in_class = True
        elif text == "]":
            in_class = False
        elif text == "." and not in_class:
            text = dot
        found.append(text)
    joined = "".join(found)
    return f"(?i:{joined})" if ignores_case or "i" in (flags or "") else joined
