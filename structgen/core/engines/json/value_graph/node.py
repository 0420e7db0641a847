"""The node of one value: what is allowed of each JSON type; about how much memory it takes (measured, within 20 %)."""

from __future__ import annotations

from collections.abc import Sequence

from structgen.core.engines.json.value_graph.items import ArraySpec, CountedSpec
from structgen.core.engines.json.value_graph.objects import ObjectSpec
from structgen.core.engines.json.value_graph.scalars import EnumSpec, NumberChoice, QuoteSpec, StringSpec
from structgen.core.json_schema.formula.language import Formula

StringAlternative = EnumSpec | StringSpec | QuoteSpec
Spec = StringAlternative | NumberChoice | ObjectSpec | ArraySpec | CountedSpec


class ValueNode:
    """What is allowed for one value: flags for null, true and false, and alternatives for the other types.

    ``live``: some value satisfies it (set by `liveness.solve`). ``shared``: it is solved and may be part of other
    schemas' graphs, too (`shared`); it is not changed any more. ``steps``: what its expansion has cost.
    """

    __slots__ = (
        "arrays", "expanded", "flags", "formula", "live", "numbers", "objects", "shared", "steps", "strings",
    )  # fmt: skip

    def __init__(self, formula: Formula) -> None:
        self.formula = formula
        self.flags = self.steps = 0
        self.strings: Sequence[StringAlternative] = ()
        self.numbers: Sequence[NumberChoice] = ()
        self.objects: Sequence[ObjectSpec] = ()
        self.arrays: Sequence[ArraySpec | CountedSpec] = ()
        self.expanded = self.live = self.shared = False

    def specs(self) -> list[Spec]:
        """All alternatives."""
        return [*self.strings, *self.numbers, *self.objects, *self.arrays]

    def children(self) -> list[ValueNode]:
        """The nodes that objects and arrays lead to, with repetition."""
        nodes: list[ValueNode] = []
        for spec in self.objects:
            nodes += spec.children()
        for array in self.arrays:
            nodes += array.children()
        return nodes


NODE_BYTES = 1_024  # of a node with its formula
POOL_BYTES = 1_024 + 68  # of a state of an automaton in the pool, which grammars keep once it is outgrown


def node_bytes(node: ValueNode, counted: set[int]) -> int:
    """Of a node with its formula, but not of nodes that it leads to. Automata are counted that are not ``counted``
    (their ids) yet, and are then."""
    return NODE_BYTES + sum([spec.memory_bytes(counted) for spec in node.specs()])


def pooled_bytes(node: ValueNode, counted: set[int]) -> int:
    """Of the automata of texts and keys of a node, as the pool has them; ``counted`` as in `node_bytes`."""
    return POOL_BYTES * sum([spec.pooled_states(counted) for spec in (*node.strings, *node.objects)])
