"""Server-sent events over ASGI: written as they come, given up when the client is gone or reads nothing."""

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


class EventStream:
    """An ASGI response whose body are events.

    Args:
        events: encoded events; closed when the client is gone.
        headers: of the response.
        write_seconds: longest time in which the client reads nothing.
        failed: what to send for an error that comes after the first byte.
        left: called when it is over, whatever the reason.
    """

    def __init__(
        self,
        events: AsyncGenerator[bytes, None],
        headers: dict[str, str],
        write_seconds: float,
        failed: Callable[[BaseException], bytes],
        left: Callable[[], None],
    ) -> None:
        self._events, self._headers = events, headers
        self._seconds, self._failed, self._left = write_seconds, failed, left

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Send everything."""
        gone = asyncio.ensure_future(wait_until_gone(receive))
        writing = asyncio.ensure_future(self._write(send))
        try:
            await asyncio.wait({gone, writing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (gone, writing):
                task.cancel()
            await asyncio.gather(gone, writing, return_exceptions=True)
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
        try:
            async for event in self._events:
                await self._send(send, event)
        except (TimeoutError, ClientGone):
            return  # the body stays incomplete: the connection is given up
        except Exception as error:
            await self._send(send, self._failed(error))
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send(self, send: Send, data: bytes) -> None:
        async with asyncio.timeout(self._seconds):  # (wait_for can lose a cancellation, in Python 3.11)
            await send({"type": "http.response.body", "body": data, "more_body": True})


async def wait_until_gone(receive: Receive) -> None:
    """Return when the client has closed the connection; the body was read before."""
    while (await receive())["type"] != "http.disconnect":
        pass
