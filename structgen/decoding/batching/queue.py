"""Who is next: classes of priority, keys that take turns, and time that makes up for both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from structgen.decoding.batching.request import Handle


class Queue:
    """Requests that wait for room.

    The lowest class first, a class being gained for every ``patience`` seconds; within a class the key that was given
    the fewest tokens; of a key the oldest. A key that was away does not bring along the turns that it missed.
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._waiting: list[Handle] = []
        self._given: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Handle]:
        return iter(self._waiting)

    def add(self, handle: Handle, active: Iterable[str] = ()) -> None:
        """Let a request wait; ``active``: keys that are being written for."""
        key = handle.request.key
        present = {*active, *(other.request.key for other in self._waiting)}
        if key not in present:
            self._given = {other: given for other, given in self._given.items() if other in present}
            self._given[key] = min(self._given.values(), default=0.0)
        self._waiting.append(handle)

    def charge(self, key: str, tokens: int) -> None:
        """A key was given so many tokens."""
        self._given[key] = self._given.get(key, 0.0) + tokens

    def remove(self, handle: Handle) -> None:
        """It waits no longer."""
        self._waiting.remove(handle)

    def ordered(self, now: float) -> list[Handle]:
        """All that wait, the next one first."""

        def place(handle: Handle) -> tuple[int, float, float]:
            return self.rank(handle, now), self._given[handle.request.key], handle.submitted

        return sorted(self._waiting, key=place)

    def rank(self, handle: Handle, now: float) -> int:
        """The class of a request at a time."""
        return handle.request.priority - int((now - handle.submitted) / self._patience)
