"""Existentials of objects: some member whose key is in a class must have a value that satisfies a condition.

That is what ``not: {additionalProperties: ...}`` and its like ask for. An object's members meet its existentials
together: each key has choices, what its value may satisfy and which existentials (bits) it then meets.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import TYPE_CHECKING

from structgen.core.engines.json.value_graph.specs import Choice, ObjectSpec
from structgen.core.json_schema.formula.language import FALSE, Formula, and_, not_, unordered

if TYPE_CHECKING:
    from structgen.core.engines.json.value_graph.node import ValueNode

MAX_EXISTENTIALS = 6
"""Existentials of one object; the kernel's search for members that meet them is that deep."""

Live = Callable[["ValueNode"], bool]


def choices(
    base: Formula,
    conditions: list[tuple[int, Formula]],
    node: Callable[[Formula], ValueNode],
    possible: Callable[[Formula], bool],
) -> list[Choice]:
    """The ways in which a member with values ``base`` can meet some of its existentials (bit, condition)."""
    certain, open_conditions = 0, []
    for bit, condition in conditions:
        if possible(and_(base, condition)):
            if possible(and_(base, not_(unordered(condition)))):
                open_conditions.append((bit, condition))
            else:
                certain |= bit
    found = [(node(base), certain)] if certain else []
    for size in range(1, len(open_conditions) + 1):
        for chosen in combinations(open_conditions, size):
            value = and_(base, *[condition for _, condition in chosen])
            if value is not FALSE and possible(value):
                found.append((node(value), certain | sum(bit for bit, _ in chosen)))
    return found


def coverable(spec: ObjectSpec, live: Live) -> bool:
    """Whether members of the object can meet all existentials, as the kernel will decide it for an empty one."""
    room = 1 << 30 if spec.most is None else spec.most - len(spec.required)
    declared = {
        name: [bits for node, bits in ways if live(node)]
        for name, ways in spec.choices.items()
        if name not in spec.forbidden
    }
    classes = [[bits for node, bits in ways if live(node)] for ways in spec.other_choices]

    def search(unmet: int, room: int, taken: frozenset[str]) -> bool:
        if room < 0:
            return False
        if not unmet:
            return True
        existential = unmet & -unmet
        for name, ways in declared.items():
            if name not in taken:
                cost = 0 if name in spec.required else 1
                for bits in ways:
                    if bits & existential and search(unmet & ~bits, room - cost, taken | {name}):
                        return True
        return any(bits & existential and search(unmet & ~bits, room - 1, taken) for ways in classes for bits in ways)

    return search((1 << spec.existentials) - 1, room, frozenset())
