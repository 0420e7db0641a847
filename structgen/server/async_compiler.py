"""Compiling constraints off the event loop and the model thread: once for all who wait for the same.

What is kept is answered at once. What nobody waits for any more is given up, whether it waits or was begun.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Protocol

from structgen.core.constraints.base import Constraint
from structgen.core.constraints.cache import COMPILED, content_key, joined
from structgen.core.engines.protocols import Grammar
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.generation.scheduler.shares import Shares
from structgen.progress import ProgressCallback, report_progress
from structgen.server.errors import RequestError, overloaded, unavailable
from structgen.server.fair_pool import KINDER, FairPool, PooledWork, result_of


class Compiling(Protocol):
    """What compiles: ``PlainCompiling``, or a ``CompileService`` for constraints of strangers."""

    at_once: int
    """Constraints that are compiled at once, at each stage."""
    each: int
    """Of them, those of one caller."""
    stages: Sequence[float | None]
    """Processor time that a constraint has before it waits after those that have had less; None: all that it may take.
    """

    def known(self, constraint: Constraint) -> Grammar | None:
        """The compiled form if it is kept; what compiling raised if that is kept. At once."""
        ...

    def compile(self, constraint: Constraint, is_wanted: Callable[[], bool], seconds: float | None) -> Grammar | None:
        """The compiled form; may give up once it is not wanted any more. None: ``seconds`` of a stage were too few."""
        ...


class PlainCompiling:
    """Compiles in this process, without limits."""

    at_once, each = 3, 2  # one slow grammar does not hold up all others
    stages: Sequence[float | None] = (None,)

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    def known(self, constraint: Constraint) -> Grammar | None:
        """See ``Compiling``."""
        return kept_grammar(constraint, self._vocabulary)

    def compile(self, constraint: Constraint, is_wanted: Callable[[], bool], seconds: float | None) -> Grammar | None:
        """See ``Compiling``."""
        return constraint.compile(self._vocabulary)


def kept_grammar(constraint: Constraint, vocabulary: Vocabulary) -> Grammar | None:
    """The compiled form of a constraint if ``constraints.cache`` has it, which then counts as used."""
    key = joined(content_key(constraint), vocabulary)
    kept: Grammar | None = None if key is None else COMPILED.kept(key)
    return kept


class _Shared:
    """A constraint that is being compiled.

    Attributes:
        result: what comes of it.
        waiters: callers who wait for it; one may several times.
        stage: how far it is.
        job: its work there.
    """

    def __init__(self, constraint: Constraint, who: str) -> None:
        self.constraint = constraint
        self.result: Future[Grammar] = Future()
        self.waiters = [who]
        self.stage = 0
        self.job: PooledWork[Grammar | None] | None = None


class AsyncCompiler:
    """Compiles in threads, for coroutines of any loop.

    What takes long is begun anew at a later stage, with threads of its own, so that what takes little overtakes it.

    Args:
        compiling: compiles one.
        placed: what a model has in place of the compiled form of a constraint.
        waiting: constraints that may wait for their turn, at each stage.
        progress: hears of what takes over a second.
        shares: seconds that callers have used; None: of these threads alone.
    """

    def __init__(
        self,
        compiling: Compiling,
        placed: Callable[[Constraint, Grammar], Grammar],
        waiting: int = 256,
        progress: ProgressCallback | None = None,
        shares: Shares | None = None,
    ) -> None:
        self._compiling, self._placed, self._progress = compiling, placed, progress
        self._pools = [
            FairPool(
                compiling.at_once,
                f"structgen-compile-{stage}",
                each=compiling.each,
                waiting=waiting,
                shares=shares,
                niceness=KINDER,
            )
            for stage in range(len(compiling.stages))
        ]
        self._lock = threading.RLock()  # of what is shared; a stage may be over before it is entered
        self._running: dict[Hashable, _Shared] = {}

    async def compile(self, constraint: Constraint, who: str = "", until: float | None = None) -> Grammar:
        """The compiled form.

        Args:
            who: shares the threads with the others.
            until: when to give up, by ``time.monotonic``; None: never.

        Raises:
            RequestError: too many wait, or it took too long (429).
            StructgenError: what compiling raises.
        """
        pending = self._compiling.known(constraint)
        if pending is not None:
            return self._placed(constraint, pending)
        key = content_key(constraint)
        shared = self._join(key, constraint, who)
        try:
            async with asyncio.timeout(None if until is None else until - time.monotonic()):
                return self._placed(constraint, await result_of(shared.result))
        except TimeoutError:
            raise overloaded("The constraint was not compiled in time.", 1.0, "queue_timeout") from None
        finally:
            self._leave(key, shared, who)

    def close(self) -> None:
        """Take on no more."""
        for pool in self._pools:
            pool.close()

    def _join(self, key: Hashable, constraint: Constraint, who: str) -> _Shared:
        with self._lock:
            shared = None if key is None else self._running.get(key)
            if shared is None:
                shared = _Shared(constraint, who)
                self._enter(shared)
                if key is not None:
                    self._running[key] = shared
                return shared
            if shared.job is not None and not shared.job.result.running() and not shared.job.result.done():
                self._pools[shared.stage].join(who, shared.job)
            shared.waiters.append(who)
            return shared

    def _enter(self, shared: _Shared) -> None:
        """Have a constraint wait for its turn at its stage. With the lock held. Errors as ``FairPool.submit``."""
        pool = self._pools[shared.stage]
        shared.job = job = pool.submit(shared.waiters[0], lambda job: self._compile(shared, job))
        for who in shared.waiters[1:]:
            with suppress(RequestError):  # it has the first one's turn
                pool.join(who, job)
        job.result.add_done_callback(lambda result: self._settle(shared, result))

    def _settle(self, shared: _Shared, result: Future[Grammar | None]) -> None:
        """What came of a stage: the grammar or an error, or the next one."""
        if result.cancelled():
            shared.result.set_exception(unavailable("The server stops.", "stopping"))
            return
        error = result.exception()
        grammar = None if error is not None else result.result()
        if grammar is not None:
            shared.result.set_result(grammar)
            return
        try:
            if error is not None:
                raise error
            with self._lock:
                if not shared.waiters:
                    raise unavailable("Nobody waits for this constraint any more.", "compile_failed")
                shared.stage += 1
                self._enter(shared)
        except BaseException as found:
            shared.result.set_exception(found)

    def _leave(self, key: Hashable, shared: _Shared, who: str) -> None:
        with self._lock:
            shared.waiters.remove(who)
            if shared.waiters:
                return
            if self._running.get(key) is shared:
                del self._running[key]
            pool, job = self._pools[shared.stage], shared.job
        if job is not None:
            pool.give_up(job)

    def _compile(self, shared: _Shared, job: PooledWork[Grammar | None]) -> Grammar | None:
        seconds = self._compiling.stages[shared.stage]
        with report_progress(self._progress):
            return self._compiling.compile(shared.constraint, lambda: job.is_wanted, seconds)
