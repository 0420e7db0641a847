"""Random schemas of one draft, and values that are likely to tell them apart."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

from structgen.core.json_schema.dialects import BY_NAME

TYPES = ["null", "boolean", "integer", "number", "string", "array", "object"]
NAMES = ["a", "b", "ab"]
SCALARS: list[Any] = [None, True, False, 0, 1, 2, 1.0, 1.5, -1, "", "a", "ab"]
DEPTH = 3


class Schemas:
    """Schemas of depth ``DEPTH`` at most from ``keywords`` (all of the draft), up to ``most`` of them together.

    A method for each kind of value.
    """

    def __init__(
        self, dialect: str, seed: int, keywords: Iterable[str] = (), without: Iterable[str] = (), most: int = 3
    ) -> None:
        self.most = most
        self.random = random.Random(f"{dialect} {seed}")
        self.dialect = dialect
        self.keywords = [
            word
            for word in keywords or sorted(BY_NAME[dialect].functions)
            if word in BY_NAME[dialect].functions and word not in without and hasattr(self, f"_{word.strip('$')}")
        ]

    def root(self) -> dict[str, Any]:
        """A whole schema, whose ``#/definitions/one`` is there to be referred to (and refers to nothing)."""
        return {**self.schema(), "definitions": {"one": {"type": self.random.choice(TYPES), "maxItems": 1}}}

    def schema(self, depth: int = 0) -> Any:
        if depth and self.dialect not in ("draft3", "draft4") and self.random.random() < 0.1:
            return self.random.random() < 0.5
        if depth >= DEPTH:
            return {"type": self.random.choice(TYPES)}
        schema: dict[str, Any] = {}
        for word in self.random.sample(self.keywords, self.random.randint(1, self.most)):
            schema[word] = getattr(self, f"_{word.strip('$')}")(depth)
            if word == "if":
                schema |= {branch: self.schema(depth + 1) for branch in ("then", "else") if self.random.random() < 0.7}
            if word == "contains" and self.dialect.startswith("draft20"):
                limits = {"minContains": self._count(0), "maxContains": self._count(0)}
                schema |= {limit: count for limit, count in limits.items() if self.random.random() < 0.4}
        return schema

    def value(self, depth: int = 0) -> Any:
        kind = self.random.random()
        if depth > 1 or kind < 0.3:
            return self.random.choice(SCALARS)
        if kind < 0.6:
            return [self.value(depth + 1) for _ in range(self.random.randint(0, 3))]
        return {
            name: self.value(depth + 1) for name in self.random.sample([*NAMES, "", "c"], self.random.randint(0, 3))
        }

    def _count(self, depth: int) -> int:
        return self.random.randint(0, 2)

    def _child(self, depth: int) -> Any:
        return self.schema(depth + 1)

    def _list(self, depth: int) -> list[Any]:
        return [self.schema(depth + 1) for _ in range(self.random.randint(1, 3))]

    def _map(self, depth: int) -> dict[str, Any]:
        return {name: self.schema(depth + 1) for name in self.random.sample(NAMES, self.random.randint(1, 2))}

    def _names(self, depth: int) -> list[str]:
        return self.random.sample(NAMES, self.random.randint(1, 2))

    def _number(self, depth: int) -> Any:
        return self.random.choice([0, 1, 2, -1, 0.5])

    def _items(self, depth: int) -> Any:
        return (
            self._list(depth) if self.dialect != "draft2020-12" and self.random.random() < 0.5 else self._child(depth)
        )

    def _type(self, depth: int) -> Any:
        return self.random.choice(TYPES) if self.random.random() < 0.7 else self.random.sample(TYPES, 2)

    def _enum(self, depth: int) -> list[Any]:
        return [*self.random.sample(SCALARS, 2), self.value(2)]

    def _const(self, depth: int) -> Any:
        return self.value(1)

    def _dependencies(self, depth: int) -> dict[str, Any]:
        return {self.random.choice(NAMES): self._names(depth) if self.random.random() < 0.5 else self._child(depth)}

    def _dependentRequired(self, depth: int) -> dict[str, Any]:
        return {self.random.choice(NAMES): self._names(depth)}

    def _ref(self, depth: int) -> str:
        return "#/definitions/one"

    def _patternProperties(self, depth: int) -> dict[str, Any]:
        return {self.random.choice(["^a", "b", "^$"]): self._child(depth)}

    def _pattern(self, depth: int) -> str:
        return self.random.choice(["^a", "b$", "^$"])

    def _uniqueItems(self, depth: int) -> bool:
        return True

    def _multipleOf(self, depth: int) -> Any:
        return self.random.choice([1, 2, 0.5])

    _minLength = _maxLength = _minItems = _maxItems = _minProperties = _maxProperties = _count
    _minimum = _maximum = _number
    _additionalProperties = _additionalItems = _not = _if = _contains = _propertyNames = _child
    _unevaluatedProperties = _unevaluatedItems = _child
    _allOf = _anyOf = _oneOf = _prefixItems = _extends = _list
    _properties = _dependentSchemas = _map
    _required = _names
    _disallow, _divisibleBy = _type, _multipleOf
