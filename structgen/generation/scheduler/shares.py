"""Whose turn it is where callers share something: who has used least of it goes next."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection

KEPT_CALLERS = 1_000
"""Callers whose use is remembered while they ask for nothing."""
LATELY = 30.0
"""Seconds for which a caller counts after a request."""


class CallersOfLate:
    """Who has asked for something in the last ``LATELY`` seconds. Not for several threads at once."""

    def __init__(self) -> None:
        self._asked: dict[str, float] = {}  # when a caller asked last, in this order

    def arrived(self, who: str, now: float) -> None:
        """A request of a caller came."""
        self._asked.pop(who, None)
        self._asked[who] = now
        while now - next(iter(self._asked.values())) > LATELY:
            del self._asked[next(iter(self._asked))]

    @property
    def are_several(self) -> bool:
        """Whether there are more than one, as of the latest request."""
        return len(self._asked) > 1


class Shares:
    """What callers have used of what they share: seconds of threads, tokens of a model. Thread-safe.

    Every use counts by its weight, whatever it was for. Who comes, for the first time or again, begins no lower than
    who is there: the turns that he did not ask for are not owed to him. Where nobody is there, all begin alike: what
    nobody else wanted is held against nobody.
    """

    def __init__(self) -> None:
        self._used: OrderedDict[str, float] = OrderedDict()
        self._level = 0.0  # below which nobody begins
        self._most = 0.0  # what anybody has used
        self._lately = CallersOfLate()
        self._lock = threading.Lock()

    def asked(self, who: str, now: float) -> None:
        """A request of a caller came."""
        with self._lock:
            self._lately.arrived(who, now)

    @property
    def are_several(self) -> bool:
        """See ``CallersOfLate``."""
        return self._lately.are_several

    def arrive(self, who: str, present: Collection[str] = ()) -> None:
        """A caller who asked for nothing asks for something. O(present).

        Args:
            present: all who ask for something or are served.
        """
        with self._lock:
            others = [self._used.get(other, 0.0) for other in present if other != who]
            self._level = max(self._level, min(others, default=self._most))
            self._used[who] = max(self._used.get(who, 0.0), self._level)
            self._used.move_to_end(who)
            self._forget(present)

    def charge(self, who: str, amount: float) -> None:
        """A caller has used so much."""
        with self._lock:
            self._used[who] = used = self._used.get(who, 0.0) + amount
            self._most = max(self._most, used)

    def used(self, who: str) -> float:
        """What a caller counts as having used: who has least is next."""
        with self._lock:
            return self._used.get(who, 0.0)

    def _forget(self, present: Collection[str]) -> None:
        """Drop those who came longest ago and are not here."""
        if len(self._used) <= KEPT_CALLERS:
            return
        gone = [who for who in self._used if who not in present][: len(self._used) - KEPT_CALLERS]
        for who in gone:
            del self._used[who]
