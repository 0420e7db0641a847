"""The values of nodes that have few, listed: how many distinct items an array may have is a question of counting.

Values are in canonical form (`formula.values`). A list is exact if it is known to hold every value; where the
search for them outgrows its budget, or a value node leads back to itself, it holds some.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from structgen.core.engines.json.value_graph.items import ArraySpec, CountedSpec
from structgen.core.engines.json.value_graph.node import ValueNode
from structgen.core.engines.json.value_graph.objects import Choice, Live, ObjectSpec
from structgen.core.engines.json.value_graph.scalars import CUT
from structgen.core.json_schema.formula.values import Canonical

MAX_STEPS = 20_000
"""Parts of values put together for one question."""

MAX_DEPTH = 20
"""Values within values; deeper ones are left out."""

Values = dict[Canonical, None]


class FewValues:
    """Lists values of nodes, given which have any. For one question: the budget is spent by all lists together."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._steps = MAX_STEPS
        self._visiting: set[ValueNode] = set()

    def of(self, node: ValueNode, limit: int) -> tuple[Values, bool]:
        """Up to ``limit`` values of a node, and whether these are all."""
        if node in self._visiting or not self._live(node):
            return {}, node not in self._visiting
        if len(self._visiting) > MAX_DEPTH:
            return {}, False
        self._visiting.add(node)
        try:
            values, exact = self.scalars(node, limit)
            more, all_listed = self.compounds(node, limit - len(values))
            return values | more, exact and all_listed
        finally:
            self._visiting.discard(node)

    def scalars(self, node: ValueNode, limit: int) -> tuple[Values, bool]:
        """Values that are no object and no array."""
        listed: Values = {}
        exact = True
        constants: list[Canonical] = [None, ("boolean", True), ("boolean", False)]
        listed.update((value, None) for bit, value in enumerate(constants) if node.flags >> bit & 1)
        for choice in node.numbers:
            exact = self._collect(listed, limit, choice.listed()) and exact
        for spec in node.strings:
            exact = self._collect(listed, limit, spec.listed()) and exact
        return dict(islice(listed.items(), limit)), exact and len(listed) <= limit

    def compounds(self, node: ValueNode, limit: int) -> tuple[Values, bool]:
        """Values that are objects or arrays."""
        listed: Values = {}
        exact = True
        for spec in node.objects:
            exact = self._collect(listed, limit, self._objects(spec, limit)) and exact
        for array in node.arrays:
            exact = self._collect(listed, limit, self._arrays(array, limit)) and exact
        return listed, exact and self._steps > 0

    def _collect(self, listed: Values, limit: int, values: Iterable[Canonical]) -> bool:
        """Add values until there are ``limit``; whether there were no more."""
        for value in values:
            self._steps -= 1
            if value is CUT or self._steps < 0:
                return False
            if value not in listed:
                if len(listed) >= limit:
                    return False
                listed[value] = None
        return True

    # --- objects ---
    def _objects(self, spec: ObjectSpec, limit: int) -> Iterator[Canonical]:
        """Objects of declared members; `CUT` where there may be others."""
        most = len(spec.keys) if spec.most is None else spec.most
        names = [name for name in spec.keys if name not in spec.forbidden]

        stack: list[tuple[int, dict[str, Canonical], int]] = [(0, {}, 0)]
        while stack and self._steps >= 0:
            self._steps -= 1
            index, members, met = stack.pop()
            if len(members) > most:
                continue
            if index == len(names):
                if self._is_whole(spec, members, met):
                    yield ("object", frozenset(members.items()))
                continue
            name = names[index]
            for node, bits in self._choices(spec, name):
                values, exact = self.of(node, limit + 1)
                stack += [(index + 1, {**members, name: value}, met | bits) for value in values]
                if not exact:
                    yield CUT
            if name not in spec.required:
                stack.append((index + 1, members, met))
        if spec.others is not None and (spec.most is None or spec.most > len(spec.required)):
            yield CUT

    def _choices(self, spec: ObjectSpec, name: str) -> list[Choice]:
        return [choice for choice in ((spec.keys[name], 0), *spec.choices.get(name, ())) if self._live(choice[0])]

    @staticmethod
    def _is_whole(spec: ObjectSpec, members: dict[str, Canonical], met: int) -> bool:
        needed = set().union(spec.required, *[spec.dependents.get(name, ()) for name in members])
        return len(members) >= spec.least and needed <= members.keys() and met == (1 << spec.existentials) - 1

    # --- arrays ---
    def _arrays(self, spec: ArraySpec | CountedSpec, limit: int) -> Iterator[Canonical]:
        stack: list[tuple[tuple[Canonical, ...], int]] = [((), 0)]
        while stack and self._steps >= 0:
            self._steps -= 1
            items, state = stack.pop()
            if spec.may_close(state) and not (spec.needs_pair and len(set(items)) == len(items)):
                yield ("array", items)
            for node, after in spec.following(state):
                values, exact = self.of(node, limit + 1 + len(items))  # of distinct ones all may be there already
                stack += [((*items, value), after) for value in values if not (spec.distinct and value in items)]
                if not exact:
                    yield CUT
