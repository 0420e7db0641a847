"""How large Lark would make a grammar, and what work it would have, known before it begins: it cannot be stopped.

Lark's loader multiplies choices out (``(a|b) (c|d)`` becomes four alternatives), copies rules for repetitions and
templates, and puts terminals into terminals as text, so a line can ask for more memory and time than there is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

from structgen.core.grammars.limits import grammar_refusal
from structgen.core.grammars.python_regex import MAX_DEPTH as MAX_GROUPS
from structgen.core.grammars.python_regex import first_too_deep

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
MAX_TOKENS = 150_000
"""Of a grammar's text: names, literals, signs. Lark takes up to 0.1 ms for each."""
MAX_WORK = 5_000_000
"""What Lark looks at again and again, altogether: nodes of terminals in terminals, characters of their expressions,
symbols of rules while it leaves out those that are never used. About a microsecond each."""
_REPEAT_BREAK = 50  # Lark's threshold: repetitions below it are written out
_TOKENS = re.compile(r'(?P<comment>//[^\n]*|#[^\n]*)|"(?:\\.|[^"\\\n])*"|/(?!/)(?:\\.|[^/\\\n])+/|\w+|[^\s]')

Refuse = Callable[[str, str, int, str], Exception]
"""Makes an error of what is too much, the budget, its limit, and the name of the rule or terminal."""
Size = tuple[float, float]
"""Alternatives, and symbols in all of them."""


def check_depth(text: str) -> None:
    """Raises GrammarTooComplexError at the first bracket that is nested too deeply, at a literal that is too long, and
    at the first token that is too many. O(text)."""
    depth = count = 0
    for match in _TOKENS.finditer(text):
        if match["comment"]:
            continue
        count += 1
        token = match.group()
        if count > MAX_TOKENS:
            _refuse_at(text, match.start(), "the grammar has too many names, literals and signs", "tokens", MAX_TOKENS)
        if token[0] in '"/' and len(token) > MAX_PATTERN:
            _refuse_at(text, match.start(), "a literal is too long", "characters", MAX_PATTERN)
        if token[0] == "/" and (deep := first_too_deep(token)) is not None:
            message = "groups of an expression are nested too deeply"
            _refuse_at(text, match.start() + deep, message, "depth", MAX_GROUPS)
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(token, 0)
        if depth > MAX_DEPTH:
            _refuse_at(text, match.start(), "brackets are nested too deeply", "depth", MAX_DEPTH)


def _refuse_at(text: str, offset: int, message: str, budget: str, limit: int) -> NoReturn:
    line, column = text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)
    raise grammar_refusal(text, line, column)(message, budget, limit)


def check_terminals(trees: Mapping[str, Any], refuse: Refuse) -> None:
    """Check terminals, by name (a declared one is None), before Lark puts them into each other. Linear in their nodes.

    Raises what ``refuse`` makes for the terminal that is too much, and Lark's error for the first that holds itself.
    """

    def children(node: Any) -> list[Any]:
        named = (trees.get(str(child.name)) if hasattr(child, "name") else None for child in _children(node))
        return [tree or child for tree, child in zip(named, _children(node), strict=True)]

    measured: dict[int, tuple[float, float]] = {}
    total = 0.0
    for name, tree in trees.items():
        if tree is None:
            continue
        try:
            total += _measure(tree, _expanded_work, measured, children)[1]
        except _Cycle as cycle:
            culprit = next(name for name, tree in trees.items() if id(tree) in cycle.nodes)
            from lark.exceptions import GrammarError

            raise GrammarError(
                f"Recursion in terminal '{culprit}' (recursion is only allowed in rules, not terminals)"
            ) from None
        if total > MAX_WORK:
            raise refuse(f"the terminals in {name}, each put in its place, are too many", "work", MAX_WORK, name)


def _expanded_work(node: Any, parts: list[tuple[float, float]]) -> tuple[float, float]:
    """Nodes of a tree, and those that Lark looks at to find names in it: all below each sequence."""
    nodes = 1 + sum(count for count, _ in parts)
    return min(nodes, 1e18), min(
        sum(work for _, work in parts) + nodes * (getattr(node, "data", "") == "expansion"), 1e18
    )


def check_size(grammar: Any, start: str, refuse: Refuse) -> None:
    """Check what Lark's loader gives (``lark.load_grammar.Grammar``) before it is compiled. Linear in what it holds.

    Raises what ``refuse`` makes for the first rule, template or terminal that is too much.
    """
    _check_patterns(grammar.term_defs, refuse)
    bodies = {str(name): (tuple(map(str, params)), tree) for name, params, tree, _ in grammar.rule_defs}
    instances = _Templates(bodies, refuse).count()
    if sum(instances.values()) * len(bodies) > 10 * MAX_WORK:  # each is looked for among all rules, which is quick
        name = max(instances, key=lambda name: instances[name])
        raise refuse(
            f"the template {name!r} has too many instances for so many rules", "instances", MAX_INSTANCES, name
        )
    sizes: dict[str, float] = {}
    for name, (_, tree) in bodies.items():
        sizes[name] = _rule_size(tree) * instances.get(name, 1)
        if sum(sizes.values()) > MAX_SYMBOLS:
            raise refuse(
                f"with the rule {name!r}, multiplied out, the rules have too many symbols", "symbols", MAX_SYMBOLS, name
            )
    _check_unused({name: tree for name, (_, tree) in bodies.items()}, sizes, start, refuse)


def _check_unused(trees: Mapping[str, Any], sizes: Mapping[str, float], start: str, refuse: Refuse) -> None:
    """Lark looks at all rules to leave out those that none uses, and then again, as others may be no longer used."""
    uses = {name: _names_in(tree) & trees.keys() - {name} for name, tree in trees.items()}
    users = Counter(used for names in uses.values() for used in names)
    unused = [name for name in uses if not users[name] and name != start]
    left, work = sum(sizes.values()), 0.0
    while unused:
        work += left
        if work > MAX_WORK:
            message = f"rules that are never used, such as {unused[0]!r}, use too many others"
            raise refuse(message, "work", MAX_WORK, unused[0])
        left -= sum(sizes[name] for name in unused)
        users.subtract(used for name in unused for used in uses[name])
        unused = [
            name for name in {used: None for gone in unused for used in uses[gone]} if not users[name] and name != start
        ]


def _names_in(tree: Any) -> set[str]:
    names, stack, seen = set(), [tree], set()
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            stack += _children(node)
            if hasattr(node, "name"):
                names.add(str(node.name))
    return names


def _check_patterns(definitions: Sequence[tuple[Any, tuple[Any, int]]], refuse: Refuse) -> None:
    lengths: dict[int, tuple[float, float]] = {}
    total = work = 0.0
    for name, (tree, _) in definitions:
        if tree is None:
            continue
        length, more = _measure(tree, _pattern_length, lengths)
        total += length
        work += more
        if length > MAX_PATTERN:
            raise refuse(f"the expression of the terminal {name} is too long", "characters", MAX_PATTERN, str(name))
        if total > MAX_PATTERNS:
            raise refuse(f"the terminals up to {name} are too long in sum", "characters", MAX_PATTERNS, str(name))
        if work > MAX_WORK:
            raise refuse(f"choices in choices up to the terminal {name} are too long", "work", MAX_WORK, str(name))


class _Cycle(Exception):
    """A tree holds itself. ``nodes``: the ids of those that hold each other."""

    def __init__(self, nodes: set[int]) -> None:
        self.nodes = nodes


def _children(node: Any) -> list[Any]:
    return node.children if hasattr(node, "children") else []


def _measure(
    root: Any,
    measure: Callable[[Any, list[Any]], Any],
    measured: dict[int, Any],
    children_of: Callable[[Any], list[Any]] = _children,
) -> Any:
    """A measure of a tree, from that of its children; what is shared is measured once."""
    stack = [root]
    begun: dict[int, None] = {}
    while stack:
        node = stack[-1]
        children = children_of(node)
        waiting = [child for child in children if id(child) not in measured]
        if waiting:
            begun[id(node)] = None
            for child in waiting:
                if id(child) in begun:
                    path = list(begun)
                    raise _Cycle(set(path[path.index(id(child)) :]))
            stack += waiting
            continue
        stack.pop()
        begun.pop(id(node), None)
        measured[id(node)] = measure(node, [measured[id(child)] for child in children])
    return measured[id(root)]


def _pattern_length(node: Any, parts: list[tuple[float, float]]) -> tuple[float, float]:
    """Characters of the expression of a tree, and those that Lark reads to make it: all of each choice."""
    if not hasattr(node, "children"):
        return len(str(node)), 0
    extra = len(parts) + 4 if node.data == "expansions" and len(parts) > 1 else 8 if node.data == "expr" else 0
    length = sum(length for length, _ in parts) + extra
    return min(length, 1e18), min(sum(work for _, work in parts) + length * (node.data == "expansions"), 1e18)


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
        uses = {name: 0 for name, (params, _) in self._bodies.items() if params}
        if not uses:
            return {}
        for params, tree in self._bodies.values():
            if not params:
                self._scan(tree, {})
        for name, names in self._waiting:  # which grows
            uses[name] += 1
            self._scan(self._bodies[name][1], names)
        return uses

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
        first, *remaining = node.children
        name = names.get(str(first.name), str(first.name))
        arguments = [self._name(argument, names) for argument in remaining]
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
