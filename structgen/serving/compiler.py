"""Compiling constraints beside the model thread: each once, in few threads, failures remembered."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Hashable
from concurrent.futures import Future, ThreadPoolExecutor

from structgen.constraints.base import Constraint
from structgen.constraints.cache import content_key
from structgen.engines.protocols import Grammar
from structgen.errors import StructgenError
from structgen.serving.errors import RequestError
from structgen.vocabulary.vocabulary import Vocabulary

THREADS = 2  # one slow grammar does not hold up all others
KEPT_FAILURES = 128


class GrammarCompiler:
    """Compiles for one vocabulary. Compiled grammars are kept by ``constraints.cache``, for the process.

    Args:
        seconds: how long a request waits.
    """

    def __init__(self, vocabulary: Vocabulary, seconds: float) -> None:
        self._vocabulary, self._seconds = vocabulary, seconds
        self._threads = ThreadPoolExecutor(THREADS, "structgen-compile")
        self._running: dict[Hashable, Future[Grammar]] = {}
        self._failures: OrderedDict[Hashable, StructgenError] = OrderedDict()

    async def compile(self, constraint: Constraint) -> Grammar:
        """The compiled form.

        Raises:
            RequestError: it takes too long. ConstraintError: it cannot be used.
        """
        key = content_key(constraint)
        if key is not None and key in self._failures:
            raise self._failures[key]
        running = self._running.get(key) if key is not None else None
        if running is None:
            running = self._threads.submit(constraint.compile, self._vocabulary)
            if key is not None:
                self._running[key] = running
                loop = asyncio.get_running_loop()
                running.add_done_callback(lambda done: _in_loop(loop, self._note, key, done))
        try:
            return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(running)), self._seconds)
        except TimeoutError:
            raise RequestError(
                f"Compiling the constraint takes longer than {self._seconds:g} seconds; simplify it.",
                code="grammar_too_complex",
            ) from None

    def _note(self, key: Hashable, done: Future[Grammar]) -> None:
        """What came of it: in the loop's thread."""
        self._running.pop(key, None)
        error = None if done.cancelled() else done.exception()
        if isinstance(error, StructgenError):
            self._failures[key] = error
            while len(self._failures) > KEPT_FAILURES:
                self._failures.popitem(last=False)

    def close(self) -> None:
        """Take on no more."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _in_loop(loop: asyncio.AbstractEventLoop, function: object, *arguments: object) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(function, *arguments)  # type: ignore[arg-type]
