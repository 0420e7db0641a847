"""Compiling constraints beside the event loop and the model thread: once for all who wait for the same."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor

from structgen.constraints.base import Constraint
from structgen.constraints.cache import content_key
from structgen.engines.protocols import Grammar
from structgen.serving.errors import until_stopped

THREADS = 2  # one slow grammar does not hold up all others


class AsyncCompiler:
    """Compiles in threads. Compiled grammars are kept by ``constraints.cache``, for the process.

    Args:
        compile: compiles one; a ``CompileService`` for constraints of strangers.
    """

    def __init__(self, compile: Callable[[Constraint], Grammar]) -> None:
        self._compile = compile
        self._threads = ThreadPoolExecutor(THREADS, "structgen-compile")
        self._running: dict[Hashable, Future[Grammar]] = {}

    async def compile(self, constraint: Constraint) -> Grammar:
        """The compiled form; what compiling raises."""
        key = content_key(constraint)
        running = None if key is None else self._running.get(key)
        if running is None:
            with until_stopped():
                running = self._threads.submit(self._compile, constraint)
            if key is not None:
                self._running[key] = running
                loop = asyncio.get_running_loop()
                running.add_done_callback(lambda _: _in_loop(loop, lambda: self._running.pop(key, None)))
        return await asyncio.shield(asyncio.wrap_future(running))

    def close(self) -> None:
        """Take on no more."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _in_loop(loop: asyncio.AbstractEventLoop, function: Callable[[], object]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(function)
