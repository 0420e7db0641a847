"""Threads for work off the event loop, whose time callers share: whoever asks for much waits for it alone."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Generic, TypeVar

from structgen.generation.scheduler.shares import Shares
from structgen.server.errors import overloaded, unavailable

T = TypeVar("T")
LONGEST_PAUSE = 1.0
"""Seconds that a caller pauses at most where others ask too."""
KINDER = 5
"""By how much what may take long gives way to the model's thread and the event loop, see ``os.nice``."""


class PooledWork(Generic[T]):
    """Work that waits for a thread, or goes on in one.

    Attributes:
        result: what comes of it; cancelled where it was given up before it began.
        is_wanted: False once nobody waits for it any more; work that takes long looks at it.
        callers, is_taken: for whom it waits, and whether it waits no longer; the pool's.
    """

    def __init__(self, work: Callable[[PooledWork[T]], T]) -> None:
        self.result: Future[T] = Future()
        self.is_wanted = True
        self.callers: list[_Caller] = []
        self.is_taken = False
        self._work = work

    def run(self) -> None:
        """Do it, in this thread, unless it was given up. Once."""
        if not self.result.set_running_or_notify_cancel():
            return
        try:
            result = self._work(self)
        except BaseException as error:
            self.result.set_exception(error)
        else:
            self.result.set_result(result)


class _Caller:
    """Who has work done: jobs under way and jobs that wait."""

    def __init__(self, who: str) -> None:
        self.who = who
        self.running = 0
        self.waiting: deque[PooledWork[Any]] = deque()


class FairPool:
    """Threads that do work of several callers. Of those who wait, the one goes next who has the least under way, and of
    these the one who has used least time (``Shares``). Thread-safe.

    Where several callers have asked lately, a caller pauses after a job for as long as it took: what others have done
    elsewhere (the model's steps, all that is short) needs processors and Python's lock, too.

    Args:
        threads: how many; they begin with the first job. name: of them.
        each: jobs of one caller that may be under way at once; None: as many as there are threads.
        waiting: jobs that may wait; beyond it the last one of the caller who has most waiting is turned away.
        shares: seconds that callers have used; None: of this pool alone.
        niceness: how far the threads give way to others, see ``os.nice``; Linux has one for each thread, elsewhere
            they do not.
    """

    def __init__(
        self,
        threads: int,
        name: str,
        *,
        each: int | None = None,
        waiting: int,
        shares: Shares | None = None,
        niceness: int = 0,
    ) -> None:
        self._count, self._name, self._each, self._most = threads, name, each or threads, waiting
        self._shares, self._niceness = shares or Shares(), niceness
        self._callers: dict[str, _Caller] = {}  # who has something waiting or under way
        self._paused: dict[str, float] = {}  # until when nothing is begun for a caller
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._closed = False

    @property
    def waiting(self) -> int:
        """Jobs that wait; one that several callers wait for counts for each."""
        return sum(len(caller.waiting) for caller in self._callers.values())

    def submit(self, who: str, work: Callable[[PooledWork[T]], T]) -> PooledWork[T]:
        """Have ``work`` done for a caller; it is given its job.

        Raises:
            RequestError: too much of this caller waits already (429), or the pool is closed (503).
        """
        job = PooledWork(work)
        self.join(who, job)
        while len(self._threads) < self._count:
            thread = threading.Thread(target=self._run, name=f"{self._name}-{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            thread.start()
        return job

    def join(self, who: str, job: PooledWork[Any]) -> None:
        """A further caller waits for a job, which comes when the first of them has a turn. Errors as ``submit``.

        Nothing changes where it was begun.
        """
        with self._changed:
            if self._closed:
                raise unavailable("The server stops.", "stopping")
            caller = self._callers.get(who) or _Caller(who)
            if job.is_taken or caller in job.callers:
                return
            turned_away = self._make_room(caller)
            self._shares.asked(who, time.monotonic())
            if who not in self._callers:
                self._shares.arrive(who, self._callers)
                self._callers[who] = caller
            caller.waiting.append(job)
            job.callers.append(caller)
            self._changed.notify()
        if turned_away is not None and turned_away.result.set_running_or_notify_cancel():
            turned_away.result.set_exception(_full(self._most))

    def give_up(self, job: PooledWork[Any]) -> bool:
        """Nobody wants a job any more. Whether it was not begun, and so never will be."""
        job.is_wanted = False
        with self._changed:
            self._take(job)
        return job.result.cancel()

    def close(self, *, wait: bool = False) -> None:
        """Take on no more, and give up what waits; ``wait`` until what was begun has ended."""
        with self._changed:
            self._closed = True
            left = [job for caller in self._callers.values() for job in caller.waiting]
            self._callers.clear()
            self._changed.notify_all()
        for job in left:
            job.is_wanted = False
            job.result.cancel()
        for thread in self._threads if wait else ():
            if thread is not threading.current_thread():
                thread.join()

    def _make_room(self, caller: _Caller) -> PooledWork[Any] | None:
        """The job that is turned away for another of ``caller``; None: there is room."""
        if self.waiting < self._most:
            return None
        greediest = max(self._callers.values(), key=lambda other: len(other.waiting))
        if len(greediest.waiting) <= len(caller.waiting) + 1:
            raise _full(self._most)
        return self._take(greediest.waiting[-1])

    def _take(self, job: PooledWork[T]) -> PooledWork[T]:
        """A job that waits no longer, for anybody."""
        for caller in job.callers:
            caller.waiting.remove(job)
            self._leave(caller)
        job.callers, job.is_taken = [], True
        return job

    def _leave(self, caller: _Caller) -> None:
        """A caller has one thing less; forgotten where that was all."""
        if not caller.running and not caller.waiting:
            self._callers.pop(caller.who, None)

    def _run(self) -> None:
        if sys.platform == "linux" and self._niceness:
            with suppress(OSError):  # the system's rules forbid it
                usual = os.getpriority(os.PRIO_PROCESS, os.getpid())  # the first thread's: who begins one may give way
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), usual + self._niceness)
        while self._do_next():
            pass

    def _do_next(self) -> bool:
        """Wait for a job and do it; False: the pool is closed. A method, so that a thread that waits holds no job, and
        with it a request."""
        with self._changed:
            while (next_job := self._next()) is None and not self._closed:
                self._changed.wait(self._until_a_pause_ends())
            if next_job is None:
                return False
            caller, job = next_job
        started = time.monotonic()
        job.run()
        with self._changed:
            now = time.monotonic()
            self._shares.charge(caller.who, now - started)
            if self._shares.are_several:
                self._paused[caller.who] = now + min(now - started, LONGEST_PAUSE)
            caller.running -= 1
            self._leave(caller)
            self._changed.notify()
        return True

    def _until_a_pause_ends(self) -> float | None:
        """Seconds; None: nobody pauses."""
        return max(0.0, min(self._paused.values()) - time.monotonic()) if self._paused else None

    def _next(self) -> tuple[_Caller, PooledWork[Any]] | None:
        """Whose turn it is, and the job, which now is under way."""
        now = time.monotonic()
        self._paused = {who: until for who, until in self._paused.items() if until > now}
        asking = [caller for caller in self._callers.values() if caller.waiting and caller.running < self._each]
        may = [caller for caller in asking if caller.who not in self._paused]
        if not may:
            return None
        caller = min(may, key=lambda caller: (caller.running, self._shares.used(caller.who)))
        caller.running += 1
        return caller, self._take(caller.waiting[0])


async def result_of(result: Future[T]) -> T:
    """What comes of a job's ``result``, in a coroutine. Who is cancelled leaves nothing that would report an
    error later.

    Raises:
        RequestError: the server stops (503), or the job was turned away (429). What the work raises.
    """
    loop = asyncio.get_running_loop()
    waiter: asyncio.Future[T] = loop.create_future()

    def settle() -> None:
        if waiter.done():
            return
        if result.cancelled():
            waiter.set_exception(unavailable("The server stops.", "stopping"))
        elif (error := result.exception()) is not None:
            waiter.set_exception(error)
        else:
            waiter.set_result(result.result())

    def done(_: Future[T]) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            loop.call_soon_threadsafe(settle)

    result.add_done_callback(done)
    return await waiter


def _full(most: int) -> Exception:
    return overloaded(f"{most} requests wait already for work on their constraints.", 1.0)
