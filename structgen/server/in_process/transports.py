"""Transports of HTTP clients (httpx's, and httpx2's, which OpenAI's client uses now) to a server in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

from structgen.server.in_process.server import Exchange, InProcessServer

BASE_URL = "http://structgen/v1"
"""What clients talk to; no name is looked up."""


def http_client(server: InProcessServer, library: Any) -> Any:
    """A client of ``library`` (the module httpx or httpx2) whose requests go to ``server``."""
    return library.Client(transport=_transport(server, library), base_url=BASE_URL)


def async_http_client(server: InProcessServer, library: Any) -> Any:
    """As `http_client`, for coroutines of any loop."""
    return library.AsyncClient(transport=_async_transport(server, library), base_url=BASE_URL)


def _transport(server: InProcessServer, library: Any) -> Any:
    class Body(library.SyncByteStream):
        """The pieces of an answer."""

        def __init__(self, exchange: Exchange) -> None:
            self._exchange = exchange

        def __iter__(self) -> Iterator[bytes]:
            while (piece := server.submit(self._exchange.piece()).result()) is not None:
                yield piece

        def close(self) -> None:
            """Read no more."""
            server.submit(self._exchange.close()).result()

    class Transport(library.BaseTransport):
        """Hands requests to the server's loop."""

        def handle_request(self, request: Any) -> Any:
            exchange = server.submit(server.exchange(_scope(request), request.read())).result()
            status, headers = server.submit(exchange.head()).result()
            return library.Response(status, headers=headers, stream=Body(exchange))

    return Transport()


def _async_transport(server: InProcessServer, library: Any) -> Any:
    def submit(work: Any) -> Any:
        return asyncio.wrap_future(server.submit(work))

    class Body(library.AsyncByteStream):
        """The pieces of an answer."""

        def __init__(self, exchange: Exchange) -> None:
            self._exchange = exchange

        async def __aiter__(self) -> AsyncIterator[bytes]:
            while (piece := await submit(self._exchange.piece())) is not None:
                yield piece

        async def aclose(self) -> None:
            """Read no more."""
            await submit(self._exchange.close())

    class Transport(library.AsyncBaseTransport):
        """Hands requests to the server's loop."""

        async def handle_async_request(self, request: Any) -> Any:
            exchange = await submit(server.exchange(_scope(request), await request.aread()))
            try:
                status, headers = await submit(exchange.head())
            except asyncio.CancelledError:
                server.submit(exchange.close())
                raise
            return library.Response(status, headers=headers, stream=Body(exchange))

    return Transport()


def _scope(request: Any) -> dict[str, Any]:
    """The request as ASGI has it."""
    url = request.url
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": url.scheme,
        "path": url.path,
        "raw_path": url.raw_path.partition(b"?")[0],
        "query_string": url.query,
        "root_path": "",
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "client": ("127.0.0.1", 0),
        "server": (url.host, url.port or 80),
    }
