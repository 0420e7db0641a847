"""Which object conjunctions exclude each other on their face: by what they require, forbid and list.

Most branches of a ``oneOf`` do: a key that one requires, another does not allow, or both require it with other values.
Each branch is outlined once; of branches that allow only some keys, those that require another key are never looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from structgen.core.engines.json.value_graph.object_choices import about_key
from structgen.core.json_schema.budget import StepBudget
from structgen.core.json_schema.formula.language import FALSE, TRUE, All, And, Enum, Formula, Not, Type, spelled
from structgen.core.json_schema.formula.values import ANY, Canonical, canonical_type


@dataclass(slots=True)
class Outline:
    """What a conjunction plainly says of its members: required keys, the keys allowed (None: any), types and values."""

    required: set[str] = field(default_factory=set)
    allowed: frozenset[Canonical] | None = None
    types: dict[str, int] = field(default_factory=dict)
    values: dict[str, frozenset[Canonical]] = field(default_factory=dict)


def outline(formula: Formula) -> Outline:
    """The outline of a formula over objects; what it says beyond plain literals is left out."""
    made = Outline()
    for literal in formula.args if isinstance(formula, And) else (formula,):
        name, value = about_key(literal)
        if name is None:
            if isinstance(literal, All) and literal.value is FALSE:
                _allow(made, literal.keys)
        elif value is None:
            made.required.add(name)
        else:
            value = spelled(value)
            for part in value.args if isinstance(value, And) else (value,):
                _limit(made, name, part)
    return made


def _allow(made: Outline, forbidden: Formula) -> None:
    if forbidden is TRUE:
        made.allowed = frozenset()
    elif isinstance(forbidden, Not) and isinstance(forbidden.arg, Enum):
        names = forbidden.arg.members
        made.allowed = names if made.allowed is None else made.allowed & names


def _limit(made: Outline, name: str, value: Formula) -> None:
    if isinstance(value, Type):
        made.types[name] = made.types.get(name, ANY) & value.mask
    elif isinstance(value, Enum):
        made.values[name] = made.values.get(name, value.members) & value.members


def exclude(one: Outline, two: Outline) -> bool:
    """Whether no object satisfies both. False is not certain."""
    for side, other in ((one, two), (two, one)):
        if other.allowed is not None and not side.required <= other.allowed:
            return True
        if any(_is_impossible(name, side, other) for name in side.required):
            return True
    return False


def _is_impossible(name: str, one: Outline, two: Outline) -> bool:
    """Whether no value of a member satisfies both."""
    mask = one.types.get(name, ANY) & two.types.get(name, ANY)
    values, others = one.values.get(name), two.values.get(name)
    if values is not None and others is not None:
        values &= others
    listed = others if values is None else values
    return mask == 0 if listed is None else not any(canonical_type(value) & mask for value in listed)


def candidates(parts: Sequence[Formula], budget: StepBudget) -> Iterator[tuple[int, int]]:
    """Pairs of places whose parts do not exclude each other on their face, the greater first."""
    outlines = [outline(part) for part in parts]
    uses = Counter(name for described in outlines for name in described.required)
    rarest: dict[str | None, list[int]] = {}
    for number, described in enumerate(outlines):
        rarest.setdefault(min(described.required, key=uses.__getitem__, default=None), []).append(number)
    open_ones = [number for number, described in enumerate(outlines) if described.allowed is None]
    for first, described in enumerate(outlines):
        if described.allowed is None:
            near = open_ones
        else:
            near = [number for name in (None, *described.allowed) for number in rarest.get(name, ())]
        budget.spend(len(near))
        for second in near:
            closed = outlines[second].allowed is not None
            # two closed ones may meet twice, one closed and one open one only here
            seen = second >= first if described.allowed is None or closed else second == first
            if not seen and not exclude(described, outlines[second]):
                yield max(first, second), min(first, second)
