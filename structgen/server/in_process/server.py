"""The server's application in this process: requests go to it as objects, in a thread with a loop of its own."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Coroutine
from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from structgen.errors import ModelError

if TYPE_CHECKING:
    from structgen.server.settings import ServingSettings

_T = TypeVar("_T")
MODEL_NAME = "structgen"
INSTALL = "pip install 'structgen-lm[serve]'"


class InProcessServer:
    """What ``structgen serve`` runs, over a generator of this process, for clients in this process.

    Its fields, meanings and errors are those of the server (docs/serving.md). Nothing else may use the generator
    meanwhile. ``close``, or the end of a ``with`` block, ends its threads; so does the end of the process.

    Args:
        generator: model, tokenizer and vocabulary; anything else is what ``Generator`` takes; None: the built-in model.
        **settings: see ``structgen.server.settings.ServingSettings``. Constraints are compiled in this process
            (``compile_workers=0``) unless it is said otherwise: who writes them is who runs it. Requests that name no
            ``max_tokens`` get ``default_max_tokens``: 2048, and 256 for models that are known to have fewer than a
            billion parameters, so that an agent with such a model stops at its steps in seconds.

    Raises:
        ModelError: the server's packages are missing, or the model cannot be loaded.
        OptionsError: bad settings.
    """

    def __init__(self, generator: Any = None, **settings: Any) -> None:
        self._application, self.model_name = _application(generator, settings)
        started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        serving = (_serve(self._application, started),)
        self._thread = threading.Thread(target=asyncio.run, args=serving, name="structgen-in-process", daemon=True)
        self._thread.start()
        self._loop, stop = started.result()
        self._finalizer = weakref.finalize(self, self._loop.call_soon_threadsafe, stop.set)
        self._finalizer.atexit = False  # there, executors take nothing more; the threads end with the process

    def __enter__(self) -> InProcessServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End what is being written, and the threads. Later requests fail."""
        self._finalizer()
        self._thread.join()

    def submit(self, work: Coroutine[Any, Any, _T]) -> Future[_T]:
        """A future of a coroutine that runs in the server's loop. It fails with ``ModelError`` if the server is closed
        meanwhile.

        Raises:
            ModelError: it is closed.
        """
        if not self._finalizer.alive:
            work.close()
            raise _closed()
        return asyncio.run_coroutine_threadsafe(self._unless_closed(work), self._loop)

    async def _unless_closed(self, work: Coroutine[Any, Any, _T]) -> _T:
        try:
            return await work
        except asyncio.CancelledError:
            if self._finalizer.alive:  # who asked for it has cancelled it
                raise
            raise _closed() from None

    async def exchange(self, scope: dict[str, Any], body: bytes) -> Exchange:
        """Begin a request (an ASGI scope of type "http"); in the server's loop."""
        return Exchange(self._application, scope, body)


class Exchange:
    """One request to an ASGI application and what it answers, piece by piece; all of it in the application's loop.

    What was not read yet is held, so that a slow reader delays nobody.
    """

    def __init__(self, application: Any, scope: dict[str, Any], body: bytes) -> None:
        self._body: bytes | None = body
        self._gone = asyncio.Event()
        self._pieces: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._start: asyncio.Future[tuple[int, list[tuple[bytes, bytes]]]] = asyncio.get_running_loop().create_future()
        self._task = asyncio.ensure_future(self._run(application, scope))

    async def head(self) -> tuple[int, list[tuple[bytes, bytes]]]:
        """Status and headers."""
        return await self._start

    async def piece(self) -> bytes | None:
        """The next piece of the body; None: that was all."""
        return await self._pieces.get()

    async def close(self) -> None:
        """The client reads no more."""
        self._gone.set()
        await asyncio.wait([self._task])

    async def _run(self, application: Any, scope: dict[str, Any]) -> None:
        try:
            await application(scope, self._receive, self._send)
        except Exception as error:
            if not self._start.done():
                self._start.set_exception(error)
        finally:
            if not self._start.done():
                self._start.set_exception(ConnectionError("the application gave no answer"))
            self._pieces.put_nowait(None)

    async def _receive(self) -> dict[str, Any]:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        if self._gone.is_set():
            raise OSError("the client is gone")  # as servers do (ASGI 2.4)
        if message["type"] == "http.response.start":
            self._start.set_result((message["status"], list(message.get("headers", ()))))
        elif message.get("body"):
            self._pieces.put_nowait(message["body"])


def _application(generator: Any, settings: dict[str, Any]) -> tuple[Any, str]:
    """The application, and the name of its model."""
    from structgen.generation.generator import Generator

    try:
        from structgen.server.app import ApiServer
        from structgen.server.settings import ServingSettings
    except ImportError as error:
        raise ModelError(f"The server in this process needs {error.name}: {INSTALL}") from error
    checked = _settings(ServingSettings, {"model_names": (MODEL_NAME,), "compile_workers": 0, **settings})
    made = generator if isinstance(generator, Generator) else Generator(generator)
    if "default_max_tokens" not in settings:
        checked = replace(checked, default_max_tokens=made.defaults.max_tokens)
    return ApiServer(made, checked).app(), checked.model_names[0]


def _settings(kind: type[ServingSettings], values: dict[str, Any]) -> ServingSettings:
    from dataclasses import fields

    from structgen.options import refuse_name

    names = [field.name for field in fields(kind)]
    for name in values:
        if name not in names:
            refuse_name(name, names)
    return kind(**values)


def _closed() -> ModelError:
    return ModelError("This in-process server is closed; make another one.")


async def _serve(application: Any, started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]]) -> None:
    """Run the application until the event is set that ``started`` is given, with the loop."""
    stop = asyncio.Event()
    try:
        async with application.router.lifespan_context(application):
            started.set_result((asyncio.get_running_loop(), stop))
            await stop.wait()
    except Exception as error:
        if started.done():
            raise
        started.set_exception(error)
