"""Ways from the root of a value graph to each of its alternatives, so that drawn documents meet them all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Literal, NamedTuple, TypeAlias

from structgen.core.engines.json.value_graph.node import ValueNode

MAX_ALTERNATIVES = 20_000
"""Alternatives that are gone to."""
TRIES = 3
"""How often one is gone to."""
Slot: TypeAlias = "tuple[Literal['key', 'other', 'item'], int] | tuple[Literal['states'], tuple[int, ...]]"
"""Where in an object or array the next node of a route stands: a declared key by its bit, a class of other keys by its
label, an item by its index, or the choices that lead there in a counted array."""


class RouteStep(NamedTuple):
    """What to take at a node: an alternative by its index, and where in it the route goes on (None: anywhere)."""

    option: int
    slot: Slot | None


class Routes:
    """The alternatives that were not met yet, and how each is reached: breadth first, so on a shortest way.

    Args:
        listed: the alternatives of a node.
        slots: the nodes in an alternative, each with its slot.
        met: alternatives, by node and index, that were met before.
    """

    def __init__(
        self,
        root: ValueNode,
        listed: Callable[[ValueNode], list[object]],
        slots: Callable[[object], Iterator[tuple[Slot | None, ValueNode]]],
        met: set[tuple[ValueNode, int]],
    ) -> None:
        self._came: dict[ValueNode, tuple[ValueNode, RouteStep]] = {}
        self.unmet: dict[tuple[ValueNode, int], int] = {}  # and how often it was gone to
        nodes = [root]
        for node in nodes:  # which grows
            for index, option in enumerate(listed(node)):
                if (node, index) not in met:
                    self.unmet[node, index] = 0
                for slot, child in slots(option):
                    if child not in self._came and child is not root:
                        self._came[child] = node, RouteStep(index, slot)
                        nodes.append(child)
            if len(self.unmet) > MAX_ALTERNATIVES:
                break

    @property
    def is_open(self) -> bool:
        """Whether there are alternatives that were not gone to often enough to be given up."""
        return any(tries < TRIES for tries in self.unmet.values())

    def next(self) -> Mapping[ValueNode, RouteStep]:
        """What to take at the nodes on the way to an alternative that was not met; empty: there is none any more."""
        for (node, index), tries in self.unmet.items():
            if tries < TRIES:
                self.unmet[node, index] = tries + 1
                route = {node: RouteStep(index, None)}
                while node in self._came:
                    node, step = self._came[node]
                    route[node] = step
                return route
        return {}
