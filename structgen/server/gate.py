"""What holds for every request, whatever its path: the host that it asks for, and the end of a body nobody reads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import JSONResponse

from structgen.server.admission import Admission
from structgen.server.errors import RequestError
from structgen.server.sse import AsgiMessage, Receive, Send

AsgiApp = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]
LINGER_SECONDS = 2.0
"""How long an answered connection stays open while bytes of its request come: a reset could overtake the answer."""
SLOW_SECONDS = 0.05
"""The pause between two pieces of a body that is too long even to be thrown away."""


class Gate:
    """An ASGI middleware.

    Args:
        app: what answers.
        admission: which hosts are served.
        most: bytes of the rest of a body that are still taken, and thrown away. More is taken slowly.
    """

    def __init__(self, app: AsgiApp, admission: Admission, most: int) -> None:
        self._app, self._admission, self._most = app, admission, most

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer a request."""
        app = self._app
        if scope["type"] == "http":
            headers = Headers(raw=scope["headers"])
            exchange = _Exchange(headers, receive, send, self._most)
            receive, send = exchange.receive, exchange.send
            try:
                self._admission.check_host(headers)
            except RequestError as error:
                app = JSONResponse(error.body(), error.status, headers=error.headers())
        await app(scope, receive, send)


class _Exchange:
    """A request and its answer. An answer that comes before the end of the request is the connection's last."""

    def __init__(self, headers: Headers, receive: Receive, send: Send, most: int) -> None:
        self._receive, self._send, self._most = receive, send, most
        self._is_read = "transfer-encoding" not in headers and headers.get("content-length", "0") == "0"
        self._is_last = False

    async def receive(self) -> AsgiMessage:
        message = await self._receive()
        if not message.get("more_body", False):  # nor has a client more that is gone
            self._is_read = True
        return message

    async def send(self, message: AsgiMessage) -> None:
        if message["type"] == "http.response.start" and not self._is_read:
            self._is_last = True
            message = {**message, "headers": [*message.get("headers", ()), (b"connection", b"close")]}
        if not self._is_last or message["type"] != "http.response.body" or message.get("more_body", False):
            await self._send(message)
            return
        await self._send({**message, "more_body": True})  # the answer is whole; the connection is still open
        await self._discard()
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _discard(self) -> None:
        left = self._most
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER_SECONDS):
                while not self._is_read:
                    left -= len((await self.receive()).get("body", b""))
                    await asyncio.sleep(0 if left > 0 else SLOW_SECONDS)  # to close at once would reset the connection
