"""Which value nodes have a value at all: the least fixpoint over the finished graph.

A value is finite, so a value node that only leads to itself has none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet

from structgen.core.engines.json.value_graph.cardinality import count_values, is_endless
from structgen.core.engines.json.value_graph.existentials import coverable
from structgen.core.engines.json.value_graph.node import ValueNode
from structgen.core.engines.json.value_graph.specs import ArraySpec, CountedSpec, KeyClasses, ObjectSpec
from structgen.core.json_schema.budget import StepBudget
from structgen.core.regex.labelled import MANY_WORDS

Live = Callable[[ValueNode], bool]
_NO_NAMES: frozenset[str] = frozenset()
MAX_LISTED = 2_000
"""Values of a value node that are listed, to see whether there are enough for an array of distinct items."""


def children(node: ValueNode) -> list[ValueNode]:
    """The nodes that a node's objects and arrays lead to, with repetition."""
    found: list[ValueNode] = []
    for spec in node.objects:
        found += spec.keys.values()
        if spec.existentials:
            for choices in (*spec.choices.values(), *spec.other_choices):
                found += [child for child, _ in choices]
        if isinstance(spec.others, KeyClasses):
            found += spec.others.nodes
        elif spec.others is not None:
            found.append(spec.others)
    for array in node.arrays:
        if isinstance(array, CountedSpec):
            for state in array.states:
                found += [child for child, _ in state.choices]
        else:
            found += array.prefix
            found.append(array.rest)
    return found


def _is_scalar_live(node: ValueNode) -> bool:
    return bool(node.flags or node.strings or node.numbers)


# --- objects ---
def object_live(spec: ObjectSpec, live: Live) -> bool:
    """Whether the object has a value, given which nodes have. Sets ``spec.forbidden``."""
    forbidden: AbstractSet[str] = _NO_NAMES
    for node in spec.keys.values():
        if not (node.live if live is is_live else live(node)):
            forbidden = {name for name, node in spec.keys.items() if not live(node)}
            break
    while spec.dependents:
        blocked = {
            name
            for name, names in spec.dependents.items()
            if name not in forbidden and (names & forbidden or _too_many(spec, names | {name}))
        }
        if not blocked:
            break
        forbidden |= blocked
    spec.forbidden = forbidden
    if forbidden and not forbidden.isdisjoint(spec.required):
        return False
    if spec.most is not None and len(spec.required) > spec.most:
        return False
    if spec.existentials and not coverable(spec, live):
        return False
    if not spec.least:
        return True
    others, undeclared = spec.others, 0
    if isinstance(others, KeyClasses):
        undeclared = sum(words for node, words in zip(others.nodes, others.words, strict=True) if live(node))
    elif others is not None and live(others):
        undeclared = MANY_WORDS
    return undeclared >= MANY_WORDS or len(spec.keys) - len(forbidden) + undeclared >= spec.least


def _too_many(spec: ObjectSpec, names: set[str]) -> bool:
    return spec.most is not None and len(spec.required | names) > spec.most


# --- arrays ---
def array_live(spec: ArraySpec | CountedSpec, live: Live) -> bool:
    """Whether the array has a value, given which nodes have. Sets ``spec.uncertain``, and ``live`` of counted ones."""
    if isinstance(spec, CountedSpec):
        return _counted_live(spec, live)
    if spec.least and spec.least > longest(spec, live):
        return False
    if spec.distinct is not True or spec.least < 2:
        return True
    known = True
    for place in range(min(spec.least, len(spec.prefix) + 1)):
        node = spec.prefix[place] if place < len(spec.prefix) else spec.rest
        need = place + 1 if place < len(spec.prefix) else spec.least
        count, exact = _count(node, need, live)
        if count < need:
            spec.uncertain = not exact or bool(spec.prefix)
            return False
        known = known and exact
    spec.uncertain = False
    return True


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


def _counted_live(spec: CountedSpec, live: Live) -> bool:
    """Liveness of each state: it may close, or an item leads to a live one."""
    found = [state.closes for state in spec.states]
    distance = [0 if state.closes else 1 << 30 for state in spec.states]
    changed = True
    while changed:
        changed = False
        for number in range(len(found) - 1, -1, -1):
            steps = [distance[after] + 1 for node, after in spec.states[number].choices if found[after] and live(node)]
            if steps and min(steps) < distance[number]:
                distance[number] = min(steps)
                found[number] = changed = True
    spec.live = found
    spec.uncertain = spec.distinct and found[0] and not _enough_distinct(spec, distance, live)
    return found[0] and not spec.uncertain


def _enough_distinct(spec: CountedSpec, distance: list[int], live: Live) -> bool:
    """Whether every state surely leads to its end by new items, whatever items there are already."""
    for number, state in enumerate(spec.states):
        if spec.live[number] and distance[number]:
            nearer = [
                (node, need)
                for (node, after), need in zip(state.choices, state.needs, strict=True)
                if distance[after] < distance[number] and live(node)
            ]
            if not any(_count(node, need, live)[0] >= need for node, need in nearer):
                return False
    return True


def longest(spec: ArraySpec, live: Live) -> float:
    """The most items that the array can have."""
    limit = math.inf if spec.most is None else spec.most
    for index, node in enumerate(spec.prefix):
        if not live(node):
            return min(limit, index)
    if not live(spec.rest):
        return min(limit, len(spec.prefix))
    if spec.distinct is True and not spec.prefix and limit == math.inf:
        count, exact = _count(spec.rest, 1 << 20, live)
        return count if exact and count < 1 << 20 else limit
    return limit


def _alive(node: ValueNode, live: Live) -> bool:
    for spec in node.objects:  # no generator: most have one object or one array
        if object_live(spec, live):
            return True
    return bool(node.arrays) and any(array_live(spec, live) for spec in node.arrays)


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
    return isinstance(node.arrays[0], ArraySpec) and not node.arrays[0].distinct


def prune(nodes: Iterable[ValueNode]) -> None:
    """Take out the objects and arrays of solved nodes that have no value."""
    for node in nodes:
        if node.live and node.objects:
            node.objects = [spec for spec in node.objects if object_live(spec, is_live)]
        if node.live and node.arrays:
            node.arrays = [spec for spec in node.arrays if array_live(spec, is_live)]


def is_live(node: ValueNode) -> bool:
    """The answer that `solve` has found."""
    return node.live


def reachable(root: ValueNode) -> dict[ValueNode, None]:
    """The nodes that a node leads to, itself first."""
    reached: dict[ValueNode, None] = {root: None}
    stack = [root]
    while stack:
        for child in children(stack.pop()):
            if child not in reached:
                reached[child] = None
                stack.append(child)
    return reached


def live_nodes(root: ValueNode) -> dict[ValueNode, None]:
    """The live nodes that a live node reaches through such, itself first."""
    found, waiting = {root: None}, [root]
    for node in waiting:
        for child in children(node):
            if child.live and child not in found:
                found[child] = None
                waiting.append(child)
    return found


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
