"""Who is next: keys that take turns; of a key, classes of priority, and time that makes up for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from structgen.generation.scheduler.request import Handle
from structgen.generation.scheduler.shares import Shares


class Queue:
    """Requests that wait for room.

    The key first that has the fewest rows, and of these the one that was given the fewest tokens (``Shares``): a class
    is what a request says of itself, and no key comes before others by it. Of a key the lowest class, one being gained
    for every ``patience`` seconds, then the oldest.
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._waiting: list[Handle] = []
        self._given = Shares()

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Handle]:
        return iter(self._waiting)

    def add(self, handle: Handle, active: Iterable[str] = ()) -> None:
        """Let a request wait; ``active``: keys that are being written for."""
        key = handle.request.key
        present = {*active, *(other.request.key for other in self._waiting)}
        if key not in present:
            self._given.arrive(key, present)
        self._waiting.append(handle)

    def charge(self, key: str, tokens: int) -> None:
        """A key was given so many tokens."""
        self._given.charge(key, tokens)

    def remove(self, handle: Handle) -> None:
        """It waits no longer."""
        self._waiting.remove(handle)

    def waiting_keys(self) -> set[str]:
        """Of all that wait."""
        return {handle.request.key for handle in self._waiting}

    def ordered(self, now: float, rows: Mapping[str, int]) -> list[Handle]:
        """All that wait, the next one first; ``rows``: how many each key has, of those that have any."""

        def place(handle: Handle) -> tuple[int, float, int, float]:
            key = handle.request.key
            return rows.get(key, 0), self._given.used(key), self.rank(handle, now), handle.submitted

        return sorted(self._waiting, key=place)

    def rank(self, handle: Handle, now: float) -> int:
        """The class of a request at a time."""
        return handle.request.priority - int((now - handle.submitted) / self._patience)
