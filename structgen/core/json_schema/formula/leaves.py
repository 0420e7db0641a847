"""What a formula joins: its atoms."""

from __future__ import annotations

from collections.abc import Iterable

from structgen.core.json_schema.formula.language import And, Formula, Not, One, Or

_JOINS = frozenset({And, Or, One, Not})


def leaves(formula: Formula) -> Iterable[Formula]:
    """The distinct parts that ``and``, ``or``, "exactly one" and ``not`` join, in the order in which they stand.

    Linear in the distinct nodes: parts that are shared, as those that references lead to are, are looked at once.
    """
    if formula.__class__ not in _JOINS:
        return (formula,)
    atoms: list[Formula] = []
    todo, seen = [formula], {formula}
    while todo:
        part = todo.pop()
        cls = part.__class__
        if cls not in _JOINS:
            atoms.append(part)
            continue
        inner = (part.arg,) if cls is Not else part.args[::-1]  # type: ignore[attr-defined]
        for other in inner:
            if other not in seen:
                seen.add(other)
                todo.append(other)
    return atoms
