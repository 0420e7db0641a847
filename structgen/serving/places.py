"""Places of requests that wait: where there is none left, who has most of them makes room."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from structgen.serving.errors import RequestError

_T = TypeVar("_T")


class WaitingPlace:
    """A request that is being prepared, in the loop in which this was made.

    Attributes:
        turned_away: fails where the request has to go for another caller's sake.
    """

    def __init__(self) -> None:
        self.turned_away: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.turned_away.add_done_callback(lambda done: done.cancelled() or done.exception())  # told elsewhere, or not


class WaitingPlaces:
    """Requests that are being prepared, by caller.

    Args:
        room: how many there may be now if a caller is to have one more.
        full: the error for one for which there is no place.
    """

    def __init__(self, room: Callable[[str], int], full: Callable[[], RequestError]) -> None:
        self._room, self._full = room, full
        self._held: dict[str, list[WaitingPlace]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._held.values()))

    def check(self, who: str) -> None:
        """Raise RequestError where a caller would be given no place."""
        if len(self) >= self._room(who) and self._greediest(who) is None:
            raise self._full()

    @contextmanager
    def held(self, who: str) -> Iterator[WaitingPlace]:
        """Within, a request of a caller has a place; if need be the last one of the caller who has most.

        Raises:
            RequestError: there is none.
        """
        self.check(who)
        if len(self) >= self._room(who) and (greediest := self._greediest(who)) is not None:
            victim = self._held[greediest][-1]
            self._leave(greediest, victim)
            if not victim.turned_away.done():
                victim.turned_away.set_exception(self._full())
        place = WaitingPlace()
        self._held.setdefault(who, []).append(place)
        try:
            yield place
        finally:
            self._leave(who, place)

    def _greediest(self, who: str) -> str | None:
        """Who has most places, at least two more than this caller."""
        found = max(self._held, key=lambda other: len(self._held[other]), default=None)
        own = len(self._held.get(who, ()))
        return found if found is not None and len(self._held[found]) > own + 1 else None

    def _leave(self, who: str, place: WaitingPlace) -> None:
        places = self._held.get(who, [])
        if place in places:
            places.remove(place)
        if not places:
            self._held.pop(who, None)


class UnbegunOutputs(Generic[_T]):
    """Requests whose outputs nobody has begun to write, by caller. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sizes: dict[str, dict[_T, int]] = {}
        self._owners: dict[_T, str] = {}

    def add(self, who: str, request: _T, outputs: int) -> None:
        """A caller's request with so many outputs waits."""
        with self._lock:
            self._sizes.setdefault(who, {})[request] = outputs
            self._owners[request] = who

    def discard(self, request: _T) -> None:
        """It waits no longer."""
        with self._lock:
            self._discard(request)

    def excess(self, who: str) -> int:
        """How many outputs could make way for one of a caller."""
        with self._lock:
            own = sum(self._sizes.get(who, {}).values()) + 1
            return sum(max(0, sum(sizes.values()) - own) for caller, sizes in self._sizes.items() if caller != who)

    def make_way(self, who: str, outputs: int) -> list[_T]:
        """Take out the last requests of callers who have more outputs here than this one would have, until so many
        outputs are out; none if there are not as many."""
        with self._lock:
            sums = {caller: sum(sizes.values()) for caller, sizes in self._sizes.items()}
            order = {caller: list(sizes.items()) for caller, sizes in self._sizes.items()}
            own, found, freed = sums.get(who, 0) + outputs, list[_T](), 0
            while freed < outputs:
                greediest = max((caller for caller in sums if caller != who), key=sums.__getitem__, default=None)
                if greediest is None or sums[greediest] <= own:
                    return []
                request, size = order[greediest].pop()
                found.append(request)
                freed += size
                sums[greediest] -= size
            for request in found:
                self._discard(request)
            return found

    def _discard(self, request: _T) -> None:
        who = self._owners.pop(request, None)
        if who is not None:
            sizes = self._sizes[who]
            del sizes[request]
            if not sizes:
                del self._sizes[who]
