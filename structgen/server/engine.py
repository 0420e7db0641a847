"""``AsyncEngine``: a model in a thread of its own, written to and read from by coroutines."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from structgen.core.constraints.base import Constraint
from structgen.core.engines.protocols import Grammar
from structgen.errors import GenerationError, QueueError, StructgenError
from structgen.generation.decoding.output import Output
from structgen.generation.decoding.prompts import longest_prompt
from structgen.generation.generator import Generator
from structgen.generation.prepared_model import unbudgeted
from structgen.generation.scheduler.budget import SchedulerLimits
from structgen.generation.scheduler.request import Handle
from structgen.generation.scheduler.shares import Shares
from structgen.progress import ProgressCallback, report_progress
from structgen.server.async_compiler import AsyncCompiler, Compiling, PlainCompiling
from structgen.server.coroutine_outputs import AsyncWriting
from structgen.server.errors import RequestError, overloaded, unavailable
from structgen.server.fair_pool import KINDER, FairPool, PooledWork, result_of
from structgen.server.sequence_writer import LocalModel
from structgen.server.sequences import SequenceEvent, SequenceRequest, ServedModel
from structgen.server.settings import ServingSettings
from structgen.server.tokenizing import InTurn
from structgen.server.waiting_slots import Holdings

_T = TypeVar("_T")
LOG = logging.getLogger("structgen.server")
MAKERS = 3  # threads that make outputs; of one caller one fewer
ROOM_SECONDS = 0.05  # after which it is asked again for room to read a prompt
WAIT_FOR_ROOM = 5.0  # seconds of that: meanwhile the thread makes no other outputs
ANY_NUMBER = 1 << 30  # may wait there: what may wait is counted by ``room``
STUCK_SECONDS = 30.0  # a model thread that has work and makes no step for so long is not healthy


@dataclass(frozen=True)
class StepReport:
    """One step of the model thread: how long it took to write, and to hand out what was written, tokens that came,
    outputs that run and that wait, and what their keys and values take."""

    seconds: float
    hand_out_seconds: float
    tokens: int
    running: int
    waiting: int
    cache_bytes: int


class RequestStream:
    """What comes of a request with one or several outputs. Read it in the loop that made it.

    A slow reader holds up nobody: events that were not read yet become one.

    Attributes:
        loop: in which it was made.
        is_left: whether nobody reads it any more.
        making: what makes its outputs.
    """

    def __init__(self, engine: AsyncEngine, count: int) -> None:
        self.loop = asyncio.get_running_loop()
        self._engine = engine
        self._open = set(range(count))
        self.is_left = False
        self.making: PooledWork[None] | None = None
        self._pending: dict[int, SequenceEvent] = {}
        self._arrived = asyncio.Event()

    def put(self, index: int, event: SequenceEvent) -> None:
        """Add an event of an output; in the loop's thread."""
        self._engine.unbegun.discard(self)
        before = self._pending.get(index)
        self._pending[index] = event if before is None else event.after(before)
        self._arrived.set()

    async def events(self) -> AsyncGenerator[tuple[int, SequenceEvent], None]:
        """Which output, and what came of it, until all are finished. Leaving it cancels what is not.

        Raises:
            StructgenError: an output failed (the others are cancelled).
        """
        try:
            while self._open:
                await self._arrived.wait()
                self._arrived.clear()
                arrived, self._pending = self._pending, {}
                for index, event in arrived.items():
                    if event.error is not None:
                        raise _copied(event.error)
                    if event.is_last:
                        self._open.discard(index)
                    yield index, event
        finally:
            if self._open:
                self._engine.cancel(self)

    async def last(self) -> list[SequenceEvent]:
        """The whole of each output. Errors as ``events``."""
        events: dict[int, SequenceEvent] = {}
        async for index, event in self.events():
            events[index] = event.after(events[index]) if index in events else event
        return [events[index] for index in sorted(events)]


class AsyncEngine(AsyncWriting):
    """Writes outputs for many callers at once, in one model thread, which begins with the first request.

    Attributes:
        failure: what the model thread was lost by; None: it was not.
        is_prepared: whether what drafts is ready; until then all outputs wait.
        unbegun: requests of which nothing came yet.

    Args:
        model: a generator, not to be used along with the engine; or a model that is elsewhere.
        settings: limits; None: ``ServingSettings()``.
        compiling: compiles constraints; None: in this process, without limits.
        observe: called in the model thread after each step.
        progress: hears of what takes over a second besides the writing: compiling, preparing drafts (see
            ``report_progress``); None: what the generator reports to, or the log.
    """

    def __init__(
        self,
        model: Generator | ServedModel,
        settings: ServingSettings | None = None,
        *,
        compiling: Compiling | None = None,
        observe: Callable[[StepReport], None] | None = None,
        progress: ProgressCallback | None = None,
    ) -> None:
        self._progress = progress or (model.progress if isinstance(model, Generator) else None)
        self.settings = with_prompt_length(settings or ServingSettings(), model)
        served: ServedModel = LocalModel(model) if isinstance(model, Generator) else model
        self.tokenizer, self.vocabulary, self.defaults = served.tokenizer, served.vocabulary, served.defaults
        self.context_length = served.context_length
        self.failure: BaseException | None = None
        limits = SchedulerLimits(
            sequences=self.settings.max_rows,
            sequences_a_key=self.settings.max_rows_a_key,
            waiting=None,  # what may wait is counted here, for all outputs of a request at once
            max_bytes=self.settings.max_cache_bytes,
            max_mask_seconds=self.settings.max_mask_seconds,
        )
        self._served, self._writer = served, served.writer(limits)
        self._observe = observe
        self.max_prompt_length = self.settings.max_prompt_length
        shares = Shares()  # one account of each caller for all that is done off the loop and the model
        self._compiler = AsyncCompiler(
            compiling or PlainCompiling(served.vocabulary),
            served.placed,
            self.settings.max_waiting,
            self._progress,
            shares,
        )
        self._in_turn = InTurn(self.tokenizer)
        self._reading = FairPool(1, "structgen-read", waiting=ANY_NUMBER, shares=shares)
        self._reading_long = FairPool(1, "structgen-read-long", waiting=ANY_NUMBER, shares=shares, niceness=KINDER)
        self._making = FairPool(
            MAKERS, "structgen-outputs", each=MAKERS - 1, waiting=ANY_NUMBER, shares=shares, niceness=KINDER
        )
        self.unbegun = Holdings[RequestStream]()
        self._lock = threading.Lock()  # of the two below and ``_entering``
        self._is_over = False  # whether the model thread takes nothing out of the inbox any more
        self._inbox: deque[Callable[[], None]] = deque()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._process = os.getpid()
        self.is_prepared = False
        self._handles: dict[Handle, tuple[RequestStream, int]] = {}  # of the model thread: what each output belongs to
        self._entering = 0
        self._stepped = time.monotonic()
        self._pace = 0.0  # tokens a second, lately
        self._length = 100.0  # tokens of an output, lately

    # --- for callers, in their loop ---
    @property
    def running(self) -> int:
        """Outputs that are being written."""
        return self._writer.running

    @property
    def waiting(self) -> int:
        """Outputs that wait for their turn."""
        with self._lock:
            return self._entering + self._writer.waiting

    @property
    def is_idle(self) -> bool:
        """Whether nothing is written and nothing waits."""
        return not (self.running or self.waiting)

    @property
    def is_healthy(self) -> bool:
        """Whether the model thread lives, and made a step lately, prepares itself or has nothing to do."""
        stuck = self.is_prepared and not self.is_idle and time.monotonic() - self._stepped > STUCK_SECONDS
        return self.failure is None and not self._closed and not stuck

    @property
    def is_preparing(self) -> bool:
        """Whether the model thread was begun and outputs still wait for what drafts."""
        return self._thread is not None and self._thread.is_alive() and not self.is_prepared

    @property
    def room(self) -> int:
        """How many more outputs may come: those that can begin at once, and those that may wait."""
        return max(0, self.settings.max_rows - self.running) + self.settings.max_waiting - self.waiting

    def room_for(self, who: str) -> int:
        """The same with what would make way for this caller."""
        return self.room + self.unbegun.excess(who)

    def retry_after(self) -> float:
        """Seconds in which what waits now should have been written."""
        tokens = (self.waiting + self.running / 2) * self._length
        return min(60.0, max(1.0, tokens / self._pace)) if self._pace else 1.0

    def submit(self, requests: Sequence[SequenceRequest], who: str = "") -> RequestStream:
        """Have outputs written, for ``who``.

        Raises:
            RequestError: too many wait already, or the model thread is gone.
        """
        self._check_process()
        if self.failure is not None or self._closed:
            raise RequestError("The model thread is gone.", status=503, type="server_error", code="model_thread_failed")
        missing = len(requests) - self.room
        if missing > 0 and not self._make_room(who, missing):
            raise self._full()
        stream = RequestStream(self, len(requests))
        self.unbegun.add(who, stream, len(requests))
        self._count_entering(len(requests))
        with self._lock:
            self._begin()  # here, not by a thread that makes outputs, which gives way to it
        try:
            stream.making = self._making.submit(who, lambda _: self._make(stream, requests))
        except RequestError:
            self._count_entering(-len(requests))
            self.unbegun.discard(stream)
            raise

        def never_made(result: Future[None]) -> None:
            """Nobody reads them, or the engine is closed."""
            for index in range(len(requests) if result.cancelled() else 0):
                self._refuse(stream, index, self._gone())

        stream.making.result.add_done_callback(never_made)
        return stream

    def cancel(self, stream: RequestStream) -> None:
        """Forget the outputs of a request; within a step the model no longer works on them."""
        stream.is_left = True
        self.unbegun.discard(stream)
        if stream.making is None or not self._making.give_up(stream.making):
            self._ask(lambda: self._leave(stream))

    def _make_room(self, who: str, outputs: int) -> bool:
        """Turn away so many outputs, that were not begun, of callers who have more than this one; False: there are
        none. They are gone within a step."""
        turned_away = self.unbegun.make_room(who, outputs)
        for stream in turned_away:
            self.cancel(stream)
            with suppress(RuntimeError):  # the loop is closed: nobody reads
                stream.loop.call_soon_threadsafe(stream.put, 0, SequenceEvent("", error=self._full()))
        return bool(turned_away)

    def _full(self) -> RequestError:
        return overloaded(
            f"{self.waiting} outputs wait already, and at most {self.settings.max_waiting} may.", self.retry_after()
        )

    def hurry(self) -> None:
        """Close all outputs that were begun, validly and soon."""
        self._ask(self._writer.hurry)

    async def compile(self, constraint: Constraint, who: str = "", until: float | None = None) -> Grammar:
        """The compiled form of a constraint, whose section the sequences keep; see ``AsyncCompiler.compile``."""
        self._check_process()
        return await self._compiler.compile(unbudgeted(constraint), who, until)

    async def read(self, tokenize: Callable[[Any], _T], who: str = "", *, is_long: bool = False) -> _T:
        """What ``tokenize`` makes of the tokenizer, see ``off_loop``."""
        return await self.off_loop(lambda: tokenize(self._in_turn), who, is_long=is_long)

    async def off_loop(self, work: Callable[[], _T], who: str = "", *, is_long: bool = False) -> _T:
        """What comes of some work, off the loop, in turn with other callers'; what is short passes what is long.

        Raises:
            RequestError: the engine is closed (503). What the work raises.
        """
        self._check_process()
        readers = self._reading_long if is_long else self._reading
        job = readers.submit(who, lambda _: work())
        try:
            return await result_of(job.result)
        finally:
            readers.give_up(job)

    def budget(self, prompt_tokens: int, wanted: int) -> int:
        """How many tokens an output may have.

        Raises:
            RequestError: the prompt leaves no room.
        """
        most = self.settings.model_defaults.max_new_tokens
        wanted = wanted if most is None else min(wanted, most)
        if self.context_length is None:
            return wanted
        if prompt_tokens >= self.context_length:
            raise RequestError(
                f"The prompt has {prompt_tokens} tokens, and the model reads {self.context_length}; shorten it.",
                code="context_length_exceeded",
                param="messages",
            )
        return min(wanted, self.context_length - prompt_tokens)

    def close(self) -> None:
        """Stop the model thread after its step; what is being written fails. One that still prepares itself is not
        waited for."""
        self._closed = True
        self._making.close(wait=True)
        self._wake.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout=10 if self.is_prepared else 0)
        self._compiler.close()
        for readers in (self._reading, self._reading_long):
            readers.close()
        self._served.close()

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise RequestError(
                "This process was forked from the one in which the engine was made, whose threads are not here; make "
                "an engine in it.",
                status=503, type="server_error", code="model_thread_failed",
            )  # fmt: skip

    # --- off the loop and the model thread ---
    def _count_entering(self, change: int) -> None:
        with self._lock:
            self._entering += change

    def _make(self, stream: RequestStream, requests: Sequence[SequenceRequest]) -> None:
        """Make the outputs, which may take a while, and have the model thread take them on."""
        made = []
        for index, request in enumerate(requests):
            try:
                if stream.is_left:
                    raise self._gone()
                made.append((index, request, self._writer.output(request, self._asked)))
            except Exception as error:  # of this output: the others are written
                self._refuse(stream, index, error)
        if made and not self._ask(lambda: self._enter(stream, made)):
            for index, _, _ in made:
                self._refuse(stream, index, self._gone())

    def _asked(self, work: Callable[[], _T]) -> _T:
        """What comes of work that reads the model, which the model thread does between two steps; where there is no
        room, after a while: what is written gives its own back.

        Raises:
            RequestError: the model thread is gone, or there still is no room. What the work raises.
        """
        until = time.monotonic() + WAIT_FOR_ROOM
        while True:
            result = Future[_T]()
            if not self._ask(partial(_bring_about, work, result)):
                raise unavailable(str(self._gone()), "model_thread_failed")
            try:
                return result.result()
            except MemoryError as error:
                if not self.running or time.monotonic() > until:
                    raise overloaded("There is no room to read the prompt.", self.retry_after()) from error
                time.sleep(ROOM_SECONDS)

    def _refuse(self, stream: RequestStream, index: int, error: Exception) -> None:
        self._count_entering(-1)
        self._bring([(stream, index, SequenceEvent("", error=error))])

    def _gone(self) -> GenerationError:
        return GenerationError(str(self.failure or "The server stops."))

    def _ask(self, what: Callable[[], None]) -> bool:
        """Have the model thread do something before its next step. False: it is over."""
        with self._lock:
            if self._is_over:
                return False
            self._inbox.append(what)
            self._begin()
        self._wake.set()
        return True

    def _begin(self) -> None:
        """Begin the model thread, with the lock held. It has the niceness of who does."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="structgen-model", daemon=True)
            self._stepped = time.monotonic()
            self._thread.start()

    # --- the model thread ---

    def _run(self) -> None:
        try:
            with report_progress(self._progress):
                self._writer.prepare()
            self._stepped = time.monotonic()
            self.is_prepared = True
            while not self._closed:
                self._wake.clear()
                while self._inbox:
                    self._inbox.popleft()()
                if not self._writer.is_idle:
                    self._step()
                else:
                    self._wake.wait()
                    self._stepped = time.monotonic()
        except BaseException as error:  # the thread is lost, and all that is being written with it
            if self.is_prepared or not isinstance(error, StructgenError):  # else the caller made a mistake
                LOG.exception("the model thread failed")
            self.failure = error
        with self._lock:
            self._is_over = True
        while self._inbox:
            self._inbox.popleft()()
        self._hand_out([(handle, SequenceEvent("", error=self._gone())) for handle in self._handles])
        self._writer.close()

    def _step(self) -> None:
        started = time.perf_counter()
        events = self._writer.step()
        seconds = time.perf_counter() - started
        self._stepped = time.monotonic()
        tokens = sum(len(event.tokens) for _, event in events)
        self._pace += 0.1 * (tokens / max(seconds, 1e-6) - self._pace)
        for _, event in events:
            if event.end is not None:
                self._length += 0.1 * (len(event.end.token_ids) - self._length)
        self._hand_out(events)
        if self._observe is not None:
            writer, handed = self._writer, time.perf_counter() - started - seconds
            self._observe(StepReport(seconds, handed, tokens, writer.running, writer.waiting, writer.cache_bytes))

    def _enter(self, stream: RequestStream, made: Sequence[tuple[int, SequenceRequest, Output]]) -> None:
        for index, request, output in made:
            error = None
            with self._lock:  # so that nobody counts it twice
                self._entering -= 1
                try:
                    if not stream.is_left:
                        self._handles[self._writer.submit(request, output)] = stream, index
                except Exception as found:  # of this output: the others are written
                    error = found
            if error is not None:
                self._bring([(stream, index, SequenceEvent("", error=error))])

    def _leave(self, stream: RequestStream) -> None:
        for handle in [handle for handle, (owner, _) in self._handles.items() if owner is stream]:
            self._writer.cancel(handle)
            del self._handles[handle]

    def _hand_out(self, events: Sequence[tuple[Handle, SequenceEvent]]) -> None:
        """Bring events to the streams of their outputs."""
        arrived = [(*self._handles[handle], event) for handle, event in events]
        for handle, event in events:
            if event.is_last:
                del self._handles[handle]
        self._bring(arrived)

    def _bring(self, events: Sequence[tuple[RequestStream, int, SequenceEvent]]) -> None:
        """Bring events to streams: one call for each loop."""
        by_loop: dict[asyncio.AbstractEventLoop, list[tuple[RequestStream, int, SequenceEvent]]] = {}
        for stream, index, event in events:
            by_loop.setdefault(stream.loop, []).append((stream, index, event))
        for loop, arrived in by_loop.items():
            try:
                loop.call_soon_threadsafe(_put_all, arrived)
            except RuntimeError:  # the loop is closed: nobody reads
                for stream, _, _ in arrived:
                    self._leave(stream)


def _bring_about(work: Callable[[], _T], result: Future[_T]) -> None:
    try:
        result.set_result(work())
    except Exception as error:  # of who asked for it: the thread goes on
        result.set_exception(error)


def _put_all(arrived: Sequence[tuple[RequestStream, int, SequenceEvent]]) -> None:
    for stream, index, event in arrived:
        stream.put(index, event)


def _copied(error: Exception) -> Exception:
    """The error as callers see it."""
    if isinstance(error, QueueError):
        return overloaded(str(error), 1.0, "queue_timeout")
    return error


def with_prompt_length(settings: ServingSettings, model: Generator | ServedModel) -> ServingSettings:
    """Prompts may have as many tokens as the model reads, and be as long as they can be if all are the longest."""
    if settings.max_prompt_tokens is None:
        context = model.model.context_length if isinstance(model, Generator) else model.context_length
        settings = replace(settings, max_prompt_tokens=context)
    if settings.max_prompt_length is not None:
        return settings
    if isinstance(model, Generator):
        return replace(settings, max_prompt_length=model.max_prompt_length)
    return replace(settings, max_prompt_length=longest_prompt(model.context_length, model.vocabulary))
