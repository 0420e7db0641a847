"""Compiling constraints beside the event loop and the model thread: once for all who wait for the same.

What is kept is answered at once. What nobody waits for any more is given up, whether it waits or was begun.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Hashable
from typing import Protocol

from structgen.constraints.base import Constraint
from structgen.constraints.cache import COMPILED, content_key, joined
from structgen.engines.protocols import Grammar
from structgen.progress import ProgressCallback, report_progress
from structgen.serving.errors import overloaded
from structgen.serving.fair_pool import FairPool, PooledWork, result_of
from structgen.shares import Shares
from structgen.vocabulary.vocabulary import Vocabulary


class Compiling(Protocol):
    """What compiles: ``PlainCompiling``, or a ``CompileService`` for constraints of strangers."""

    at_once: int
    """Constraints that are compiled at once."""
    each: int
    """Of them, those of one caller."""

    def known(self, constraint: Constraint) -> Grammar | None:
        """The compiled form if it is kept; what compiling raised if that is kept. At once."""
        ...

    def compile(self, constraint: Constraint, is_wanted: Callable[[], bool]) -> Grammar:
        """The compiled form; may give up once it is not wanted any more."""
        ...


class PlainCompiling:
    """Compiles in this process, without limits."""

    at_once, each = 3, 2  # one slow grammar does not hold up all others

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    def known(self, constraint: Constraint) -> Grammar | None:
        """See ``Compiling``."""
        return kept_grammar(constraint, self._vocabulary)

    def compile(self, constraint: Constraint, is_wanted: Callable[[], bool]) -> Grammar:
        """See ``Compiling``."""
        return constraint.compile(self._vocabulary)


def kept_grammar(constraint: Constraint, vocabulary: Vocabulary) -> Grammar | None:
    """The compiled form of a constraint if ``constraints.cache`` has it, which then counts as used."""
    key = joined(content_key(constraint), vocabulary)
    found: Grammar | None = None if key is None else COMPILED.kept(key)
    return found


class _Shared:
    """A job, and how many wait for it."""

    def __init__(self, job: PooledWork[Grammar]) -> None:
        self.job, self.waiters = job, 0


class AsyncCompiler:
    """Compiles in threads, for coroutines of any loop.

    Args:
        compiling: compiles one.
        placed: what a model has in place of the compiled form of a constraint.
        waiting: constraints that may wait for their turn.
        progress: told of what takes over a second.
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
        self._pool = FairPool(
            compiling.at_once, "structgen-compile", each=compiling.each, waiting=waiting, shares=shares
        )
        self._lock = threading.Lock()
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
        known = self._compiling.known(constraint)
        if known is not None:
            return self._placed(constraint, known)
        key = content_key(constraint)
        shared = self._join(key, constraint, who)
        try:
            async with asyncio.timeout(None if until is None else until - time.monotonic()):
                return self._placed(constraint, await result_of(shared.job.result))
        except TimeoutError:
            raise overloaded("The constraint was not compiled in time.", 1.0, "queue_timeout") from None
        finally:
            self._leave(key, shared)

    def close(self) -> None:
        """Take on no more."""
        self._pool.close()

    def _join(self, key: Hashable, constraint: Constraint, who: str) -> _Shared:
        with self._lock:
            shared = None if key is None else self._running.get(key)
            if shared is None:
                shared = _Shared(self._pool.submit(who, lambda job: self._compile(constraint, job)))
                if key is not None:
                    self._running[key] = shared
            elif not shared.job.result.running() and not shared.job.result.done():
                self._pool.join(who, shared.job)
            shared.waiters += 1
            return shared

    def _leave(self, key: Hashable, shared: _Shared) -> None:
        with self._lock:
            shared.waiters -= 1
            if shared.waiters:
                return
            if self._running.get(key) is shared:
                del self._running[key]
        self._pool.give_up(shared.job)

    def _compile(self, constraint: Constraint, job: PooledWork[Grammar]) -> Grammar:
        with report_progress(self._progress):
            return self._compiling.compile(constraint, lambda: job.is_wanted)
