"""Slots of requests that wait: where there is none left, who has most of them makes room."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from structgen.server.errors import RequestError

_T = TypeVar("_T")


class WaitingSlot:
    """A request that is being prepared, in the loop in which this was made.

    Attributes:
        turned_away: fails where the request has to go for another caller's sake.
    """

    def __init__(self) -> None:
        self.turned_away: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.turned_away.add_done_callback(
            lambda done: done.cancelled() or done.exception()
        )  # reported elsewhere, or not


class Holdings(Generic[_T]):
    """What callers hold of what there is little of, by caller. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sizes: dict[str, dict[_T, int]] = {}
        self._owners: dict[_T, str] = {}

    def __len__(self) -> int:
        """The sum of all sizes."""
        with self._lock:
            return sum(sum(sizes.values()) for sizes in self._sizes.values())

    def add(self, who: str, held: _T, size: int = 1) -> None:
        """A caller holds one thing more."""
        with self._lock:
            self._sizes.setdefault(who, {})[held] = size
            self._owners[held] = who

    def discard(self, held: _T) -> None:
        """Nobody holds it any longer."""
        with self._lock:
            self._discard(held)

    def excess(self, who: str) -> int:
        """How much could make way for a thing of size 1 of a caller."""
        with self._lock:
            size_of_caller = sum(self._sizes.get(who, {}).values()) + 1
            return sum(
                max(0, sum(sizes.values()) - size_of_caller) for caller, sizes in self._sizes.items() if caller != who
            )

    def make_room(self, who: str, size: int = 1) -> list[_T]:
        """Take out the last things of callers who hold more than this one would, until so much is out; nothing if there
        is not as much."""
        with self._lock:
            sums = {caller: sum(sizes.values()) for caller, sizes in self._sizes.items()}
            order = {caller: list(sizes.items()) for caller, sizes in self._sizes.items()}
            size_of_caller, victims, freed = sums.get(who, 0) + size, list[_T](), 0
            while freed < size:
                greediest = max((caller for caller in sums if caller != who), key=sums.__getitem__, default=None)
                if greediest is None or sums[greediest] <= size_of_caller:
                    return []
                held, freed_here = order[greediest].pop()
                victims.append(held)
                freed += freed_here
                sums[greediest] -= freed_here
            for held in victims:
                self._discard(held)
            return victims

    def _discard(self, held: _T) -> None:
        who = self._owners.pop(held, None)
        if who is not None:
            sizes = self._sizes[who]
            del sizes[held]
            if not sizes:
                del self._sizes[who]


class WaitingSlots:
    """Requests that are being prepared, by caller.

    Args:
        room: how many there may be now if a caller is to have one more.
        full: the error for one for which there is no slot.
    """

    def __init__(self, room: Callable[[str], int], full: Callable[[], RequestError]) -> None:
        self._room, self._full = room, full
        self._slots = Holdings[WaitingSlot]()

    def __len__(self) -> int:
        return len(self._slots)

    def check(self, who: str) -> None:
        """Raise RequestError where a caller would be given no slot."""
        if len(self) >= self._room(who) and not self._slots.excess(who):
            raise self._full()

    @contextmanager
    def held(self, who: str) -> Iterator[WaitingSlot]:
        """Within, a request of a caller has a slot; if need be the last one of the caller who has most.

        Raises:
            RequestError: there is none.
        """
        self.check(who)
        for victim in self._slots.make_room(who) if len(self) >= self._room(who) else ():
            if not victim.turned_away.done():
                victim.turned_away.set_exception(self._full())
        slot = WaitingSlot()
        self._slots.add(who, slot)
        try:
            yield slot
        finally:
            self._slots.discard(slot)
