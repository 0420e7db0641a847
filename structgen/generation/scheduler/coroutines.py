"""The scheduler with threads: requests of coroutines, written together while their loops go on.

Two threads, each there only while it has something to do: one makes requests (which reads prompts into tokens and
compiles constraints), one steps the scheduler. What comes is handed to the loop that asked.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from structgen.generation.scheduler.request import Event, Handle, Request
from structgen.generation.scheduler.scheduler import Scheduler

_Seen = TypeVar("_Seen")


class WorkThread:
    """Does pieces of work one after the other, in a thread that lives while there are some. They raise nothing."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()  # of the two below
        self._work: deque[Callable[[], None]] = deque()
        self._is_running = False

    def do(self, work: Callable[[], None]) -> None:
        """Have this done, after what is there already. From any thread."""
        with self._lock:
            self._work.append(work)
            if not self._is_running:
                threading.Thread(target=self._run, name=self._name, daemon=True).start()
                self._is_running = True

    @property
    def has_more(self) -> bool:
        """Whether there is something to do beside what is being done."""
        return bool(self._work)

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._work:
                    self._is_running = False
                    return
                work = self._work.popleft()
            work()


@dataclass(eq=False)
class _Asked(Generic[_Seen]):
    """A request of a coroutine, and what came of it for its loop."""

    loop: asyncio.AbstractEventLoop
    arrived: asyncio.Queue[tuple[Event, _Seen] | BaseException]
    see: Callable[[Event], _Seen]
    handle: Handle | None = None
    is_left: bool = False  # nobody waits for it any more

    def bring(self, happened: Event | BaseException) -> None:
        """Hand this to the loop."""
        brought: tuple[Event, _Seen] | BaseException
        try:
            brought = happened if isinstance(happened, BaseException) else (happened, self.see(happened))
        except Exception as error:  # the thread must not end by it
            brought = error
        try:
            self.loop.call_soon_threadsafe(self.arrived.put_nowait, brought)
        except RuntimeError:  # the loop is closed: nobody reads
            self.is_left = True


class CoroutineWriter:
    """Writes requests of coroutines of any loop; those that are there at one time share the model's calls.

    Sequences that are read apart join at any step. Others are read together from start to end, so those that are asked
    for in one moment are made first, and begun together.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._joins = scheduler.reader.reads_apart
        self._making, self._writing = WorkThread("structgen-requests"), WorkThread("structgen-model")
        self._made: list[tuple[_Asked[Any], Request]] = []  # of the thread that makes requests
        self._open: dict[Handle, _Asked[Any]] = {}  # of the thread that writes, as is the next
        self._is_stepping = False

    async def events(
        self, make: Callable[[], Request], see: Callable[[Event], _Seen]
    ) -> AsyncGenerator[tuple[Event, _Seen], None]:
        """What comes of a request: events with text if it streams, and the last one. Leaving it cancels the request:
        within a step the model no longer works on it.

        Args:
            make: makes the request, beside the loop.
            see: what comes with each event; called where the output is at rest.

        Raises:
            Exception: what ``make`` raised, or what the request failed with.
        """
        asked = _Asked(asyncio.get_running_loop(), asyncio.Queue[tuple[Event, _Seen] | BaseException](), see)
        in_context = partial(copy_context().run, make)  # for progress, which goes to whom the caller has named
        self._making.do(partial(self._make, asked, in_context))
        is_over = False
        try:
            while not is_over:
                arrived = await asked.arrived.get()
                is_over = isinstance(arrived, BaseException) or arrived[0].is_last
                if isinstance(arrived, BaseException):
                    raise arrived
                if arrived[0].error is not None:
                    raise arrived[0].error
                yield arrived
        finally:
            if not is_over:
                asked.is_left = True
                self._writing.do(partial(self._leave, asked))

    def _make(self, asked: _Asked[Any], make: Callable[[], Request]) -> None:
        try:
            if not asked.is_left:
                self._made.append((asked, make()))
        except BaseException as error:
            asked.bring(error)
        if self._made and (self._joins or not self._making.has_more):
            made, self._made = self._made, []
            self._writing.do(partial(self._enter, made))

    # --- in the thread that writes ---

    def _enter(self, made: list[tuple[_Asked[Any], Request]]) -> None:
        for asked, request in made:
            if asked.is_left:
                continue
            try:
                asked.handle = self._scheduler.submit(request)
            except Exception as error:
                asked.bring(error)
                continue
            self._open[asked.handle] = asked
        self._go_on()

    def _leave(self, asked: _Asked[Any]) -> None:
        if asked.handle is not None and self._open.pop(asked.handle, None) is not None:
            self._scheduler.cancel(asked.handle)
            self._go_on()

    def _go_on(self) -> None:
        """Have another step made, if there is something to write."""
        if not self._is_stepping and not self._scheduler.is_idle:
            self._is_stepping = True
            self._writing.do(self._step)

    def _step(self) -> None:
        self._is_stepping = False
        try:
            events = self._scheduler.step()
        except BaseException as error:  # no sequence's: all that is being written is lost
            lost, self._open = self._open, {}
            for asked in lost.values():
                asked.bring(error)
            with suppress(Exception):
                self._scheduler.close()
            return
        for event in events:
            asked_for = self._open.get(event.handle)
            if asked_for is None or not (event.text or event.is_last):
                continue
            asked_for.bring(event)
            if event.is_last:
                del self._open[event.handle]
        for asked in [asked for asked in self._open.values() if asked.is_left or asked.loop.is_closed()]:
            self._leave(asked)  # nobody reads it
        self._go_on()
