"""About how much memory value nodes take, for what keeps them: numbers that were measured, within some 20 %."""

from __future__ import annotations

from typing import Any

from structgen.core.engines.json.value_graph.node import ValueNode
from structgen.core.engines.json.value_graph.specs import CountedSpec, EnumSpec, KeyClasses, NumberChoice, StringSpec
from structgen.core.regex.dfa import Dfa

NODE_BYTES = 1_024  # of a value node with its formula
KEY_BYTES, ITEM_BYTES = 1_024, 192  # of a key with the formulas that speak of it alone; of an item or constant
ARRAY_BYTES = 512  # of an automaton besides its table
POOL_BYTES = 1_024 + 68  # of a state of an automaton in the pool, which grammars keep once it is outgrown


def node_bytes(node: ValueNode, counted: set[int]) -> int:
    """Of a node with its formula, but not of nodes that it leads to. Automata are counted that are not ``counted``
    (their ids) yet, and are then."""
    size = NODE_BYTES
    for string in node.strings:
        size += scalar_bytes(string, counted)
    for number in node.numbers:
        size += scalar_bytes(number, counted)
    for spec in node.objects:
        size += KEY_BYTES * len(spec.keys) + ITEM_BYTES * (len(spec.required) + len(spec.forbidden))
        if isinstance(spec.others, KeyClasses):
            size += 2 * (ARRAY_BYTES + spec.others.automaton.transitions.nbytes)  # as it is, and settled
    for array in node.arrays:
        size += ITEM_BYTES * len(array.states if isinstance(array, CountedSpec) else array.prefix)
    return size


def scalar_bytes(spec: EnumSpec | StringSpec | NumberChoice | Any, counted: set[int]) -> int:
    """Of what is asked of strings or numbers (None: nothing can satisfy it); automata as in `node_bytes`."""
    if isinstance(spec, EnumSpec):
        return ITEM_BYTES * len(spec.values)
    if isinstance(spec, NumberChoice):
        return spec.automaton.memory_bytes if _is_new(spec.automaton, counted) else 0
    if isinstance(spec, StringSpec) and spec.dfa is not None and _is_new(spec.dfa, counted):
        return dfa_bytes(spec.dfa) + (0 if spec.distances is None else spec.distances.nxt.nbytes)
    return 0


def pooled_bytes(node: ValueNode, counted: set[int]) -> int:
    """Of the automata of texts and keys of a value node, as the pool has them; ``counted`` as in `node_bytes`."""
    states = 0
    for string in node.strings:
        if isinstance(string, StringSpec) and string.dfa is not None and _is_new(string.dfa, counted):
            states += len(string.dfa)
    for spec in node.objects:
        if isinstance(spec.others, KeyClasses) and _is_new(spec.others.automaton, counted):
            states += len(spec.others.automaton.transitions)
    return POOL_BYTES * states


def dfa_bytes(dfa: Dfa) -> int:
    """Of an automaton."""
    return ARRAY_BYTES + dfa.transitions.nbytes + dfa.accepting.nbytes


def _is_new(automaton: object, counted: set[int]) -> bool:
    if id(automaton) in counted:
        return False
    counted.add(id(automaton))
    return True
