"""Random formulas over objects with many choices, and the objects that tell them apart."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction
from typing import Any

from structgen.core.json_schema.formula.language import (
    FALSE,
    TRUE,
    All,
    Enum,
    Formula,
    Ge,
    Keys,
    Len,
    Pat,
    Type,
    and_,
    not_,
    one,
    or_,
)
from structgen.core.json_schema.formula.values import NULL, NUMBER, OBJECT, STRING

NAMES = ("k", "a", "b")
SCALARS: tuple[Any, ...] = ("p", "q", "pq", 1, 2, None)
OBJECTS: list[dict[str, Any]] = [
    dict(zip(names, values, strict=True))
    for size in range(4)
    for names in itertools.combinations((*NAMES, "c"), size)
    for values in itertools.product(SCALARS, repeat=size)
]


class ObjectFormulas:
    """Formulas of a depth, from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def condition(self) -> Formula:
        """Of the value of a member: mostly lists of values."""
        choose = self.random.choice
        parts = [
            Enum(self.random.sample(SCALARS, self.random.randint(1, 2))),
            Enum(self.random.sample(SCALARS, 1)),
            Type(choice := choose((STRING, NUMBER, STRING | NULL))),
            and_(Type(choice), choose((Pat("p"), Len(2), Ge(Fraction(2))))),
            choose((Pat("^p"), TRUE, FALSE)),
        ]
        found = choose(parts)
        if self.random.random() < 0.2:
            found = or_(found, choose(parts))
        return not_(found) if self.random.random() < 0.2 else found

    def literal(self) -> Formula:
        """A condition on one or some members, or on their number."""
        kind = self.random.random()
        found: Formula
        if kind < 0.6:
            found = All(Enum([self.random.choice(NAMES)]), self.condition())
        elif kind < 0.8:
            found = not_(All(Enum([self.random.choice(NAMES)]), FALSE))
        elif kind < 0.9:
            found = All(not_(Enum(self.random.sample(NAMES, 2))), self.random.choice((FALSE, self.condition())))
        elif kind < 0.95:
            found = All(Enum(self.random.sample(NAMES, 2)), self.condition())
        else:
            found = Keys(self.random.randint(1, 2))
        return not_(found) if self.random.random() < 0.2 else found

    def formula(self, depth: int) -> Formula:
        """A formula over objects, whose branches share literals now and then."""
        if depth == 0:
            return and_(*[self.literal() for _ in range(self.random.randint(1, 3))])
        parts = [self.formula(depth - 1) for _ in range(self.random.randint(2, 4))]
        if self.random.random() < 0.3:
            shared = self.literal()
            parts = [and_(shared, part) for part in parts]
        found = self.random.choice((and_, or_, one, one))(*parts)
        return not_(found) if self.random.random() < 0.2 else found

    def root(self, depth: int = 2) -> Formula:
        """A formula over objects alone."""
        return and_(Type(OBJECT), self.formula(depth))
