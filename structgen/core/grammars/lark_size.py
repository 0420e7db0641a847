"""How large Lark would make a grammar, told before it does: templates, alternatives multiplied out, terminals put in.

Lark's loader multiplies choices out (``(a|b) (c|d)`` becomes four alternatives), copies rules for repetitions and
templates, and puts terminals into terminals as text, so a line can ask for more memory than there is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from structgen.core.grammars.python_regex import MAX_DEPTH as MAX_GROUPS
from structgen.core.grammars.python_regex import first_too_deep
from structgen.errors import GrammarTooComplexError

MAX_DEPTH = 80
"""Brackets may be nested this deep: Lark's loader is recursive."""
MAX_SYMBOLS = 250_000
"""Symbols in all rules, once multiplied out."""
MAX_INSTANCES = 5_000
"""Instances of templates."""
MAX_NAMES = 1_000_000
"""Characters of their names together: an instance in an instance has a longer name."""
MAX_PATTERN = 250_000
"""Characters of a terminal's expression, once the terminals in it are put in."""
MAX_PATTERNS = 1_000_000
"""The same of all terminals together."""
_REPEAT_BREAK = 50  # Lark's threshold: repetitions below it are written out
_TOKENS = re.compile(r'//[^\n]*|#[^\n]*|"(?:\\.|[^"\\\n])*"|/(?!/)(?:\\.|[^/\\\n])+/|[(\[{)\]}]')

Refuse = Callable[[str, str, int, str], Exception]
"""Makes an error of what is too much, the budget, its limit, and the name of the rule or terminal."""
Size = tuple[float, float]
"""Alternatives, and symbols in all of them."""


def check_depth(text: str) -> None:
    """Raises GrammarTooComplexError at the first bracket that is nested too deeply. O(text)."""
    depth = 0
    for found in _TOKENS.finditer(text):
        if len(found.group()) > MAX_PATTERN and found.group()[0] in '"/' and not found.group().startswith("//"):
            line = text.count("\n", 0, found.start()) + 1
            column = found.start() - text.rfind("\n", 0, found.start())
            raise GrammarTooComplexError(
                "a literal is too long", budget="characters", limit=MAX_PATTERN, line=line, column=column, source=text
            )
        if found.group()[0] == "/" and (deep := first_too_deep(found.group())) is not None:
            offset = found.start() + deep
            raise GrammarTooComplexError(
                "groups of an expression are nested too deeply",
                budget="depth",
                limit=MAX_GROUPS,
                line=text.count("\n", 0, offset) + 1,
                column=offset - text.rfind("\n", 0, offset),
                source=text,
            )
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(found.group(), 0)
        if depth > MAX_DEPTH:
            line = text.count("\n", 0, found.start()) + 1
            column = found.start() - text.rfind("\n", 0, found.start())
            raise GrammarTooComplexError(
                "brackets are nested too deeply", budget="depth", limit=MAX_DEPTH, line=line, column=column, source=text
            )


def check_size(grammar: Any, refuse: Refuse) -> None:
    """Check what Lark's loader gives (``lark.load_grammar.Grammar``) before it is compiled. Linear in what it holds.

    Raises what ``refuse`` makes for the first rule, template or terminal that is too much.
    """
    _check_terminals(grammar.term_defs, refuse)
    bodies = {str(name): (tuple(map(str, params)), tree) for name, params, tree, _ in grammar.rule_defs}
    instances = _Templates(bodies, refuse).count()
    total = 0.0
    for name, (_, tree) in bodies.items():
        total += _rule_size(tree) * instances.get(name, 1)
        if total > MAX_SYMBOLS:
            raise refuse(
                f"with the rule {name!r}, multiplied out, the rules have too many symbols", "symbols", MAX_SYMBOLS, name
            )


def _check_terminals(definitions: Sequence[tuple[Any, tuple[Any, int]]], refuse: Refuse) -> None:
    lengths: dict[int, float] = {}
    total = 0.0
    for name, (tree, _) in definitions:
        if tree is None:
            continue
        length = _measure(tree, _pattern_length, lengths)
        total += length
        if length > MAX_PATTERN:
            raise refuse(f"the expression of the terminal {name} is too long", "characters", MAX_PATTERN, str(name))
        if total > MAX_PATTERNS:
            raise refuse(f"the terminals up to {name} are too long in sum", "characters", MAX_PATTERNS, str(name))


def _measure(root: Any, measure: Callable[[Any, list[Any]], Any], known: dict[int, Any]) -> Any:
    """A measure of a tree, from that of its children; what is shared is measured once."""
    stack = [root]
    while stack:
        node = stack[-1]
        children = _children(node)
        waiting = [child for child in children if id(child) not in known]
        if waiting:
            stack += waiting
            continue
        stack.pop()
        known[id(node)] = measure(node, [known[id(child)] for child in children])
    return known[id(root)]


def _children(node: Any) -> list[Any]:
    return node.children if hasattr(node, "children") else []


def _pattern_length(node: Any, parts: list[float]) -> float:
    if not hasattr(node, "children"):
        return len(node) if isinstance(node, str) else len(str(node))
    joined = len(parts) + 4 if node.data == "expansions" and len(parts) > 1 else 8 if node.data == "expr" else 0
    return min(sum(parts) + joined, 1e18)


def _rule_size(tree: Any) -> float:
    """Symbols of a rule and of the rules that its repetitions become."""
    extra = [0.0]

    def measure(node: Any, parts: list[Size]) -> Size:
        kind = getattr(node, "data", None)
        if kind == "expansions":
            size = sum(e for e, _ in parts), sum(s for _, s in parts)
        elif kind == "expansion":
            size = _product(parts)
        elif kind == "maybe":
            size = parts[0][0] + 1, 2 * parts[0][1]
        elif kind == "expr":
            size = _repeated(node, parts[0], extra)
        elif kind == "alias":
            size = parts[0]
        else:
            size = 1.0, 1.0
        return min(size[0], 1e18), min(size[1], 1e18)

    alternatives, symbols = _measure(tree, measure, {})
    return float(alternatives + symbols + extra[0])


def _product(parts: list[Size]) -> Size:
    alternatives, symbols = 1.0, 0.0
    for more, size in parts:
        symbols = symbols * more + size * alternatives
        alternatives *= more
        if alternatives + symbols > 1e18:
            return 1e18, 1e18
    return alternatives, symbols


def _repeated(node: Any, body: Size, extra: list[float]) -> Size:
    """The size of ``body`` repeated; the size of rules that are made for it goes to ``extra``."""
    operator = str(node.children[1])
    if operator == "?":
        return body[0] + 1, body[1]
    if operator in ("*", "+"):
        extra[0] += 2 * (body[0] + body[1]) + 2
        return 2.0, 1.0
    low, high = _bounds(node.children[2:])
    if high < _REPEAT_BREAK:
        sizes = [_product([body] * count) for count in range(low, high + 1)]
        return sum(e for e, _ in sizes), sum(s for _, s in sizes)
    rules = 8.0 * len(bin(high))  # small factors, each a rule with up to five copies of the body
    copies = _product([body] * 5)
    extra[0] += rules * sum(copies) * 5
    return 10.0, 20.0


def _bounds(counts: Sequence[Any]) -> tuple[int, int]:
    """From and to; what Lark will refuse counts as nothing."""
    try:
        low, high = int(counts[0]), int(counts[-1])
    except ValueError:
        return 0, 0
    return max(low, 0), max(high, 0)


class _Templates:
    """Follows the uses of templates as Lark does: an instance for each name and arguments, which are names again."""

    def __init__(self, bodies: Mapping[str, tuple[tuple[str, ...], Any]], refuse: Refuse) -> None:
        self._bodies = bodies
        self._refuse = refuse
        self._known: set[str] = set()
        self._waiting: list[tuple[str, dict[str, str]]] = []
        self._length = 0

    def count(self) -> dict[str, int]:
        """How many instances there are of each template."""
        found = {name: 0 for name, (params, _) in self._bodies.items() if params}
        if not found:
            return {}
        for params, tree in self._bodies.values():
            if not params:
                self._scan(tree, {})
        for name, names in self._waiting:  # which grows
            found[name] += 1
            self._scan(self._bodies[name][1], names)
        return found

    def _scan(self, tree: Any, names: Mapping[str, str]) -> None:
        for node in _uses(tree):
            self._name(node, names)

    def _name(self, node: Any, names: Mapping[str, str]) -> str:
        """The name of an argument or a use; a use that is new waits to be looked into."""
        kind = getattr(node, "data", None)
        if kind == "value":
            return self._name(node.children[0], names)
        if kind != "template_usage":
            name = str(node.name) if hasattr(node, "name") else "".join(map(str, _children(node)))
            return names.get(name, name)
        first, *rest = node.children
        name = names.get(str(first.name), str(first.name))
        arguments = [self._name(argument, names) for argument in rest]
        result = f"{name}{{{','.join(arguments)}}}"
        if result not in self._known and name in self._bodies:
            self._known.add(result)
            self._length += len(result)
            if len(self._known) > MAX_INSTANCES or self._length > MAX_NAMES:
                raise self._too_many()
            self._waiting.append((name, dict(zip(self._bodies[name][0], arguments, strict=False))))
        return result

    def _too_many(self) -> Exception:
        counts: dict[str, int] = {}
        for instance in self._known:
            name = instance.partition("{")[0]
            counts[name] = counts.get(name, 0) + 1
        # Of those that make each other, the one that is defined first.
        name = next(name for name in self._bodies if 2 * counts.get(name, 0) >= max(counts.values()))
        message = f"the template {name!r} has too many instances, or instances without end"
        return self._refuse(message, "instances", MAX_INSTANCES, name)


def _uses(tree: Any) -> Iterator[Any]:
    """The uses of templates in a tree, but not those in others' arguments."""
    stack = [tree]
    while stack:
        node = stack.pop()
        if getattr(node, "data", None) == "template_usage":
            yield node
        else:
            stack += _children(node)
