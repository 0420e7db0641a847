"""Existentials of objects: some member whose key is in a class must have a value that satisfies a condition.

That is what ``not: {additionalProperties: ...}`` and its like ask for. An object's members meet its existentials
together: each key has choices, what its value may satisfy and which existentials (bits) it then meets.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import TYPE_CHECKING

from structgen.core.engines.json.value_graph.objects import Choice
from structgen.core.json_schema.formula.language import FALSE, Formula, and_, not_, unordered

if TYPE_CHECKING:
    from structgen.core.engines.json.value_graph.node import ValueNode

MAX_EXISTENTIALS = 6
"""Existentials of one object; the kernel's search for members that meet them is that deep."""
MAX_DECIDED = 16
"""The same where no table is made of the object."""


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
