"""Who chooses while a document is drawn: at random, or the test library hypothesis."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Hashable
from typing import Literal, Protocol

Manner = Literal["readable", "corners", "plain"]
"""How scalars are drawn: usual words and numbers; bounds and what is next to them; whatever is simplest."""


class Picks(Protocol):
    """Choices in a manner. ``key`` names where in the graph one is made: what was chosen often becomes rare there."""

    manner: Manner

    def one(self, key: Hashable, count: int) -> int:
        """One of ``count`` options; the first is the cheapest."""

    def chance(self, key: Hashable, share: float) -> bool:
        """Whether something optional is written, in this share of cases."""

    def number(self, low: int, high: int) -> int:
        """A whole number from ``low`` to ``high``, both included."""


class RandomPicks:
    """At random, least visited first: an option weighs 1 / (1 + visits)^1.5, so that all are met soon."""

    def __init__(self, seed: int, manner: Manner = "readable") -> None:
        self.manner = manner
        self._random = random.Random(seed)
        self._visits: Counter[tuple[Hashable, int]] = Counter()

    def one(self, key: Hashable, count: int) -> int:
        """See `Picks`."""
        if count < 2:
            return 0
        visits = self._visits
        weights = [(1 + visits[key, index]) ** -1.5 for index in range(count)]
        index = self._random.choices(range(count), weights)[0]
        visits[key, index] += 1
        return index

    def chance(self, key: Hashable, share: float) -> bool:
        """See `Picks`."""
        yes, no = 1 + self._visits[key, 1], 1 + self._visits[key, 0]
        taken = self._random.random() < share * no / (share * no + (1 - share) * yes)
        self._visits[key, int(taken)] += 1
        return taken

    def number(self, low: int, high: int) -> int:
        """See `Picks`."""
        return self._random.randint(low, high)
