"""Places of requests that are being read and compiled: where there is none left, who has most of them makes room."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from structgen.serving.errors import RequestError


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
        room: how many there may be now.
        full: the error for one for which there is no place.
    """

    def __init__(self, room: Callable[[], int], full: Callable[[], RequestError]) -> None:
        self._room, self._full = room, full
        self._held: dict[str, list[WaitingPlace]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._held.values()))

    def check(self, who: str) -> None:
        """Raise RequestError where a caller would be given no place."""
        if len(self) >= self._room() and self._greediest(who) is None:
            raise self._full()

    @contextmanager
    def held(self, who: str) -> Iterator[WaitingPlace]:
        """Within, a request of a caller has a place; if need be the last one of the caller who has most.

        Raises:
            RequestError: there is none.
        """
        self.check(who)
        if len(self) >= self._room() and (greediest := self._greediest(who)) is not None:
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
