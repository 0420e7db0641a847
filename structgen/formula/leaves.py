"""What a formula joins: its atoms."""

from __future__ import annotations

from collections.abc import Iterator

from structgen.formula.language import And, Formula, Not, One, Or


def leaves(formula: Formula) -> Iterator[Formula]:
    """The distinct parts that ``and``, ``or``, "exactly one" and ``not`` join, in the order in which they stand.

    Linear in the distinct nodes: parts that are shared, as those behind references are, are looked at once.
    """
    todo, seen = [formula], {formula}
    while todo:
        part = todo.pop()
        if isinstance(part, Not):
            inner: tuple[Formula, ...] = (part.arg,)
        elif isinstance(part, (And, Or, One)):
            inner = part.args[::-1]
        else:
            yield part
            continue
        for other in inner:
            if other not in seen:
                seen.add(other)
                todo.append(other)
