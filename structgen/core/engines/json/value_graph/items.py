"""What an array must satisfy, as a plain conjunction or as an automaton over what its items satisfy.

Both kinds are read as automata: the empty array is in state 0, `following` gives the nodes that the next item may
have with the state after it, `may_close` tells where the array may end. The state of an `ArraySpec` is how many items
there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

from structgen.core.engines.json.value_graph.objects import Live
from structgen.core.engines.json.value_graph.scalars import ITEM_BYTES, NEVER

if TYPE_CHECKING:
    from structgen.core.engines.json.value_graph.node import ValueNode

MAX_ITEMS = 1 << 14
"""Arrays that need more items are not written to complete an output."""

Count: TypeAlias = "Callable[[ValueNode, int], tuple[int, bool]]"
"""How many values a node has at least, up to a number; and whether that is exact."""


@dataclass(slots=True)
class ArraySpec:
    """An array: nodes of the first items, of all later ones, and how many items there may be.

    ``distinct``: no two items are equal (True), or two must be (False); None: either. ``equal``: two places whose items
    are equal, of the same node; only where a graph decides.
    """

    prefix: list[ValueNode]
    remaining: ValueNode
    least: int
    most: int | None
    distinct: bool | None = None
    uncertain: bool = False  # whether enough distinct items exist is not known; set when solved
    equal: tuple[int, int] | None = None

    def item(self, index: int) -> ValueNode:
        """The node of an item."""
        return self.prefix[index] if index < len(self.prefix) else self.remaining

    def children(self) -> list[ValueNode]:
        """The nodes that it leads to, with repetition."""
        return [*self.prefix, self.remaining]

    def may_close(self, state: int) -> bool:
        """Whether the array may end in a state."""
        return state >= self.least

    def following(self, state: int) -> list[tuple[ValueNode, int]]:
        """The nodes that the next item may have, each with the state after it."""
        return [(self.item(state), state + 1)] if self.most is None or state < self.most else []

    # --- whether it has values ---
    def is_live(self, live: Live, count: Count) -> bool:
        """Whether the array has a value, given which nodes have. Sets ``uncertain``."""
        if self.least and self.least > self.longest(live, count):
            return False
        if self.distinct is not True or self.least < 2:
            return True
        exact_so_far = True
        for index in range(min(self.least, len(self.prefix) + 1)):
            need = index + 1 if index < len(self.prefix) else self.least
            distinct_values, exact = count(self.item(index), need)
            if distinct_values < need:
                self.uncertain = not exact or bool(self.prefix)
                return False
            exact_so_far = exact_so_far and exact
        self.uncertain = False
        return True

    def longest(self, live: Live, count: Count) -> float:
        """The most items that the array can have."""
        limit = math.inf if self.most is None else self.most
        for index, node in enumerate(self.prefix):
            if not live(node):
                return min(limit, index)
        if not live(self.remaining):
            return min(limit, len(self.prefix))
        if self.distinct is True and not self.prefix and limit == math.inf:
            number_of_values, exact = count(self.remaining, 1 << 20)
            return number_of_values if exact and number_of_values < 1 << 20 else limit
        return limit

    @property
    def needs_comma(self) -> bool:
        """Whether some array of two items or more may have to be finished."""
        return self.least > 1 or self.distinct is False

    @property
    def needs_pair(self) -> bool:
        """Whether two items must be equal."""
        return self.distinct is False

    @property
    def is_settled(self) -> bool:
        """Whether more live nodes leave it as it is, once it is live."""
        return not self.distinct

    def is_endless(self, endless: Live) -> bool:
        """Whether it has endlessly many values, given which nodes have."""
        if not all(node.live for node in self.prefix[: self.least]):
            return False
        if self.most is None and self.remaining.live and all(node.live for node in self.prefix):
            return self.distinct is not True or endless(self.remaining)
        places = len(self.prefix) + 1 if self.most is None else min(self.most, len(self.prefix) + 1)
        for index in range(places):
            node = self.item(index)
            if not node.live:
                return False
            if endless(node):
                return True
        return False

    # --- what completes it ---
    def needed(self) -> list[ValueNode]:
        """The nodes that the least that completes it may depend on."""
        return self.prefix[: self.least] + [self.remaining] * (self.least > len(self.prefix))

    def completion(self, state: int, cost: Callable[[ValueNode], int], separator: int) -> tuple[ValueNode, ...] | None:
        """The nodes of the fewest items that lead from a state to where it may close; None: too many."""
        if self.least - state > MAX_ITEMS:
            return None
        return tuple([self.item(index) for index in range(state, self.least)])

    # --- what it takes ---
    def memory_bytes(self, counted: set[int]) -> int:
        """About what the spec takes; its nodes apart."""
        return ITEM_BYTES * len(self.prefix)

    def encoded(self, number: dict[ValueNode, int]) -> dict[str, Any]:
        """As plain JSON, for files; ``number``: of each node."""
        items = [[number[node] for node in self.prefix], number[self.remaining]]
        return {"items": items, "counts": [self.least, self.most], "distinct": self.distinct}


UNREACHED = 1 << 30


@dataclass(slots=True)
class CountedState:
    """A state of a counted array: whether the array may close, and (node of the next item, state after it).

    ``needs``: for each choice how many values its node must have so that, of distinct items, one is surely new.
    """

    closes: bool
    choices: list[tuple[ValueNode, int]]
    needs: list[int]


@dataclass(slots=True)
class CountedSpec:
    """An array as an automaton over what its items satisfy; state 0 is the empty array. Methods: see `ArraySpec`."""

    states: list[CountedState]
    distinct: bool = False
    live: list[bool] = field(default_factory=list)  # which states have completions; set when solved
    uncertain: bool = False

    def children(self) -> list[ValueNode]:
        return [child for state in self.states for child, _ in state.choices]

    def may_close(self, state: int) -> bool:
        return self.states[state].closes

    def following(self, state: int) -> list[tuple[ValueNode, int]]:
        return self.states[state].choices

    def live_choices(self, state: int) -> list[tuple[ValueNode, int]]:
        """Those of `following` that have a value and lead on."""
        return [choice for choice in self.states[state].choices if choice[0].live and self.live[choice[1]]]

    # --- whether it has values ---
    def is_live(self, live: Live, count: Count) -> bool:
        """Whether the array has a value, given which nodes have. Sets ``live`` (a state may close, or an item leads to
        a live one) and ``uncertain``."""
        distance = self.distances(live)
        self.live = [far < UNREACHED for far in distance]
        self.uncertain = self.distinct and self.live[0] and not self._enough_distinct(distance, live, count)
        return self.live[0] and not self.uncertain

    def distances(self, live: Live) -> list[int]:
        """The fewest items that lead from each state to one that may close, given which nodes have a value."""
        distance = [0 if state.closes else UNREACHED for state in self.states]
        changed = True
        while changed:
            changed = False
            for number in range(len(distance) - 1, -1, -1):
                nearest = min(
                    (distance[after] for node, after in self.following(number) if live(node)), default=UNREACHED
                )
                if nearest + 1 < distance[number]:
                    distance[number] = nearest + 1
                    changed = True
        return distance

    def _enough_distinct(self, distance: list[int], live: Live, count: Count) -> bool:
        """Whether every state surely leads to its end by new items, whatever items there are already."""
        for number, state in enumerate(self.states):
            if self.live[number] and distance[number]:
                nearer = [
                    (node, need)
                    for (node, after), need in zip(state.choices, state.needs, strict=True)
                    if distance[after] < distance[number] and live(node)
                ]
                if not any(count(node, need)[0] >= need for node, need in nearer):
                    return False
        return True

    @property
    def needs_comma(self) -> bool:
        return True

    @property
    def needs_pair(self) -> bool:
        return False

    @property
    def is_settled(self) -> bool:
        return False

    def is_endless(self, endless: Live) -> bool:
        return bool(self.live) and self.endless_states(endless)[0]

    def endless_states(self, endless: Live) -> list[bool]:
        """Which states have endlessly many completions. Cycles are loops, since counts only grow."""
        states = [False] * len(self.states)
        for number in range(len(states) - 1, -1, -1):
            if self.live[number]:
                for node, after in self.live_choices(number):
                    loops = after == number and not self.distinct
                    states[number] |= loops or endless(node) or (after != number and states[after])
        return states

    # --- what completes it ---
    def needed(self) -> list[ValueNode]:
        return self.children()

    def completion(self, state: int, cost: Callable[[ValueNode], int], separator: int) -> tuple[ValueNode, ...] | None:
        """The nodes of the cheapest items (Dijkstra's algorithm); what stands around one costs ``separator``."""
        heap: list[tuple[int, int, int, tuple[ValueNode, ...]]] = [(0, 0, state, ())]
        order = count()
        done: set[int] = set()
        while heap:
            price, _, state, nodes = heappop(heap)
            if state in done:
                continue
            done.add(state)
            if self.may_close(state):
                return nodes
            for node, after in self.live_choices(state):
                step = cost(node)
                if step < NEVER and after not in done:
                    heappush(heap, (price + step + separator, next(order), after, (*nodes, node)))
        return None

    # --- what it takes ---
    def memory_bytes(self, counted: set[int]) -> int:
        return ITEM_BYTES * len(self.states)

    def encoded(self, number: dict[ValueNode, int]) -> dict[str, Any]:
        states = [
            [state.closes, [(number[node], after) for node, after in state.choices], state.needs]
            for state in self.states
        ]
        return {"states": states, "distinct": self.distinct, "live": self.live}
