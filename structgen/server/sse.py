"""Server-sent events over ASGI: written as they come, given up when the client is gone or reads nothing; in a silence,
comments say that the request is alive, which clients of events skip."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping
from typing import Any

from structgen.errors import StructgenError

AsgiMessage = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[AsgiMessage]]
Send = Callable[[AsgiMessage], Awaitable[None]]
DONE = b"data: [DONE]\n\n"


class ClientGone(StructgenError):
    """Nobody reads the answer any more."""


def encode_event(value: Any, name: str | None = None) -> bytes:
    """An event with JSON data. ASCII: halves of surrogate pairs, which models may write in JSON strings, pass."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(value, separators=(',', ':'))}\n\n".encode()


def encode_comment(text: str) -> bytes:
    """A comment of one line, which clients skip."""
    return f": {text}\n\n".encode()


async def begun(
    events: AsyncGenerator[bytes, None], seconds: float, receive: Receive
) -> tuple[AsyncGenerator[bytes, None], bool]:
    """All events, and whether the first has come within some seconds: then what fails has failed, and the client is
    still reported with a status of its own.

    Raises:
        ClientGone: the client is. Whatever the first event fails with in that time.
    """
    first = asyncio.ensure_future(anext(events, b""))
    gone = asyncio.ensure_future(wait_until_gone(receive))
    try:
        await asyncio.wait({first, gone}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if first.done():
            first.result()
        elif gone.done():
            raise ClientGone("the client went away")
    except BaseException:
        await _end(first)
        await events.aclose()
        raise
    finally:
        await _end(gone)
    return _from(first, events), first.done()


async def _from(first: asyncio.Future[bytes], following: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """An event that is waited for, and those after it."""
    try:
        yield await first
        async for event in following:
            yield event
    finally:
        await _end(first)
        await following.aclose()


async def _end(task: asyncio.Future[Any]) -> None:
    """Have a task end, whatever comes of it."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


class EventStream:
    """An ASGI response whose body are events.

    Args:
        events: encoded events; closed when the client is gone.
        headers: of the response.
        write_seconds: longest time in which the client reads nothing.
        failed: what to send for an error that comes after the first byte.
        left: called when it is over, whatever the reason.
        silence_seconds: longest time in which nothing is sent; then a comment is.
        waits_for: what it says, for one that comes now.
        is_silent: whether the client was sent nothing for that time already.
    """

    def __init__(
        self,
        events: AsyncGenerator[bytes, None],
        headers: dict[str, str],
        write_seconds: float,
        failed: Callable[[BaseException], bytes],
        left: Callable[[], None],
        silence_seconds: float = 2.0,
        waits_for: Callable[[], str] = lambda: "waiting",
        *,
        is_silent: bool = False,
    ) -> None:
        self._events, self._headers = events, headers
        self._seconds, self._failed, self._left = write_seconds, failed, left
        self._silence, self._waits_for, self._is_silent = silence_seconds, waits_for, is_silent
        self._sent, self._is_sending = 0.0, False  # when something was sent last

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Send everything."""
        gone = asyncio.ensure_future(wait_until_gone(receive))
        writing = asyncio.ensure_future(self._write(send))
        commenting = asyncio.ensure_future(self._comment(send))
        try:
            await asyncio.wait({gone, writing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (gone, writing, commenting):
                task.cancel()
            await asyncio.gather(gone, writing, commenting, return_exceptions=True)
            await self._events.aclose()
            self._left()

    async def _write(self, send: Send) -> None:
        headers = {
            "content-type": "text/event-stream; charset=utf-8",
            "cache-control": "no-cache",
            "x-accel-buffering": "no",  # nginx holds nothing back
            **self._headers,
        }
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": 200, "headers": raw})
        if self._is_silent:
            await self._send(send, encode_comment(self._waits_for()))
        self._sent = asyncio.get_running_loop().time()
        try:
            async for event in self._events:
                await self._send(send, event)
        except (TimeoutError, ClientGone):
            return  # the body stays incomplete: the connection is given up
        except Exception as error:
            await self._send(send, self._failed(error))
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send(self, send: Send, data: bytes) -> None:
        self._is_sending = True
        async with asyncio.timeout(self._seconds):  # (wait_for can lose a cancellation, in Python 3.11)
            await send({"type": "http.response.body", "body": data, "more_body": True})
        self._is_sending, self._sent = False, asyncio.get_running_loop().time()

    async def _comment(self, send: Send) -> None:
        """Break every silence, but not where the client reads nothing."""
        loop = asyncio.get_running_loop()
        while True:
            now = loop.time()
            left = self._sent + self._silence - now if self._sent and not self._is_sending else self._silence
            if left <= 0:
                self._sent = now
                await send({"type": "http.response.body", "body": encode_comment(self._waits_for()), "more_body": True})
            else:
                await asyncio.sleep(left)


async def wait_until_gone(receive: Receive) -> None:
    """Return when the client has closed the connection; the body was read before."""
    while (await receive())["type"] != "http.disconnect":
        pass
