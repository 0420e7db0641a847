"""Which value nodes have a value at all: the least fixpoint over the finished graph.

A value is finite, so a value node that only leads to itself has none.
"""

from __future__ import annotations

from collections.abc import Iterable

from structgen.core.engines.json.value_graph.cardinality import count_values, is_endless
from structgen.core.engines.json.value_graph.items import ArraySpec, CountedSpec
from structgen.core.engines.json.value_graph.node import ValueNode
from structgen.core.engines.json.value_graph.objects import Live, is_live
from structgen.core.json_schema.budget import StepBudget

MAX_LISTED = 2_000
"""Values of a value node that are listed, to see whether there are enough for an array of distinct items."""


def _is_scalar_live(node: ValueNode) -> bool:
    return bool(node.flags or node.strings or node.numbers)


def array_live(spec: ArraySpec | CountedSpec, live: Live) -> bool:
    """Whether an array has a value, given which nodes have."""
    return spec.is_live(live, lambda node, need: _count(node, need, live))


def longest(spec: ArraySpec) -> float:
    """The most items that an array over solved nodes can have."""
    return spec.longest(is_live, lambda node, need: _count(node, need, is_live))


def _count(node: ValueNode, need: int, live: Live) -> tuple[int, bool]:
    visiting: set[ValueNode] = set()

    def endless(node: ValueNode) -> bool:
        if node in visiting or not live(node):
            return False
        visiting.add(node)
        try:
            return is_endless(node, endless)
        finally:
            visiting.discard(node)

    return count_values(node, need, endless, live, MAX_LISTED)


def _alive(node: ValueNode, live: Live) -> bool:
    for spec in node.objects:  # no generator: most have one object or one array
        if spec.is_live(live):
            return True
    return bool(node.arrays) and any(array_live(spec, live) for spec in node.arrays)


def make_distinct(node: ValueNode, *, only_strings: bool) -> None:
    """Read the lists of a value node, which is not solved yet, as if their items had to be distinct, where that leaves
    some: ``JsonOptions.distinct_items``."""
    for spec in node.arrays:
        if isinstance(spec, ArraySpec) and spec.distinct is None and not spec.prefix and spec.equal is None:
            items = spec.remaining
            is_plain = not (items.objects or items.arrays)
            if only_strings and not (is_plain and items.strings and not (items.numbers or items.flags)):
                continue
            if spec.least < 2 or (is_plain and _count(items, spec.least, _is_scalar_live)[0] >= spec.least):
                spec.distinct = True


# --- the fixpoint ---
def solve(nodes: Iterable[ValueNode]) -> list[ValueNode]:
    """Set ``live`` on expanded nodes: the least fixpoint. Linear where no value node waits for a later one.

    Gives back those that are dead, and those that may have objects or arrays without a value: what is left to `prune`.
    """
    open_nodes, unsettled = [], []
    for node in nodes:
        node.live = _is_scalar_live(node)
        if not node.live:
            open_nodes.append(node)
        elif node.objects or node.arrays:
            unsettled.append(node)
    open_nodes.reverse()  # children were mostly created after their parents
    changed = True
    while changed and open_nodes:
        changed = False
        waiting = []
        for node in open_nodes:
            if _alive(node, is_live):
                node.live = changed = True
                if not _is_settled(node):
                    unsettled.append(node)
            else:
                waiting.append(node)
        open_nodes = waiting
    return unsettled + open_nodes


def _is_settled(node: ValueNode) -> bool:
    """Whether a node that was found alive has one way to be, which more live nodes leave as it is."""
    if len(node.objects) + len(node.arrays) > 1:
        return False
    for spec in node.objects:
        return not spec.forbidden and not spec.existentials
    return node.arrays[0].is_settled


def prune(nodes: Iterable[ValueNode]) -> None:
    """Take out the objects and arrays of solved nodes that have no value."""
    for node in nodes:
        if node.live and node.objects:
            node.objects = [spec for spec in node.objects if spec.is_live(is_live)]
        if node.live and node.arrays:
            node.arrays = [spec for spec in node.arrays if array_live(spec, is_live)]


def reachable(root: ValueNode) -> dict[ValueNode, None]:
    """The nodes that a node leads to, itself first."""
    reached: dict[ValueNode, None] = {root: None}
    stack = [root]
    while stack:
        for child in stack.pop().children():
            if child not in reached:
                reached[child] = None
                stack.append(child)
    return reached


def live_nodes(root: ValueNode) -> dict[ValueNode, None]:
    """The live nodes that a live node reaches through such, itself first."""
    reached, waiting = {root: None}, [root]
    for node in waiting:
        for child in node.children():
            if child.live and child not in reached:
                reached[child] = None
                waiting.append(child)
    return reached


def possibly_live(root: ValueNode, active: set[ValueNode], budget: StepBudget) -> bool:
    """Whether a node may have a value, where nodes that are ``active`` (being expanded) are taken to have one."""
    reached = reachable(root)
    budget.spend(len(reached))
    alive = {
        node
        for node in reached
        if not node.expanded or node in active or (node.live if node.shared else _is_scalar_live(node))
    }
    changed = True
    while changed and root not in alive:
        changed = False
        budget.spend(len(reached))
        for node in reversed(list(reached)):
            if node.shared or node in alive:
                continue
            if _alive(node, alive.__contains__) or any(a.uncertain for a in node.arrays):
                alive.add(node)
                changed = True
    return root in alive
