"""About how much memory nodes take, for what keeps them: numbers that were measured, within some 20 %."""

from __future__ import annotations

from structgen.core.engines.json.value_graph.node import ValueNode

NODE_BYTES = 1_024  # of a node with its formula
POOL_BYTES = 1_024 + 68  # of a state of an automaton in the pool, which grammars keep once it is outgrown


def node_bytes(node: ValueNode, counted: set[int]) -> int:
    """Of a node with its formula, but not of nodes that it leads to. Automata are counted that are not ``counted``
    (their ids) yet, and are then."""
    return NODE_BYTES + sum([spec.memory_bytes(counted) for spec in node.specs()])


def pooled_bytes(node: ValueNode, counted: set[int]) -> int:
    """Of the automata of texts and keys of a node, as the pool has them; ``counted`` as in `node_bytes`."""
    return POOL_BYTES * sum([spec.pooled_states(counted) for spec in (*node.strings, *node.objects)])
