"""Connections of the HTTP server: how many, and how long each may wait for its client.

A request's head must come within a time and a size, and most of what is sent of a body must be the body. Where places
run short, the connection that has waited longest for its client makes room; one whose request is being answered never
does. What cannot be read is answered with the error objects of all other answers.
"""

from __future__ import annotations

import asyncio
import json
import os
from functools import partial
from http import HTTPStatus
from typing import Any

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from structgen.server.errors import RequestError, unavailable
from structgen.server.logs import RareLog
from structgen.server.settings import ServingSettings

MAX_HEAD = 64 << 10
"""Bytes of a request's line and headers."""
MAX_FRAMES = 16 << 10
"""Bytes between those of a body: the sizes of chunks, and an eighth of the body besides."""
PIECE = 2 << 10
"""Bytes that are parsed before these limits are looked at again."""
LINGER_SECONDS, LINGER_BYTES = 1.0, 1 << 20
"""How long, and how much, is read of a client that was refused, so that it reads the answer and no reset."""
MOST_CONNECTIONS = 4096
RESERVED_FILES = 32
"""Files that other parts of the server may open."""


def server_config(app: Any, settings: ServingSettings, **options: Any) -> uvicorn.Config:
    """How uvicorn serves an application within the settings' limits of connections.

    Args:
        options: of ``uvicorn.Config``, besides.
    """
    files = _files_allowed()
    backlog = min(1024, max(16, files // 16))  # so many are taken on at once before any can be given up
    most = settings.max_connections or min(
        MOST_CONNECTIONS, max(8, files - _files_open() - 2 * backlog - RESERVED_FILES)
    )
    http: Any = partial(GuardedConnection, Connections(most, settings.head_seconds))
    return uvicorn.Config(
        app, http=http, ws="none", log_config=None, access_log=False, server_header=False, backlog=backlog,
        timeout_keep_alive=settings.idle_seconds, h11_max_incomplete_event_size=2 * MAX_HEAD,  # type: ignore[arg-type]
        **options,
    )  # fmt: skip


def _files_allowed() -> int:
    """How many files the process may have open."""
    try:
        import resource
    except ImportError:  # Windows: sockets are no files there
        return 2 * MOST_CONNECTIONS
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 2 * MOST_CONNECTIONS if most == resource.RLIM_INFINITY else most


def _files_open() -> int:
    try:
        return len(os.listdir("/dev/fd"))
    except OSError:
        return 64


class Connections:
    """The open connections of a server.

    Args:
        most: how many there may be.
        head_seconds: longest time for a request's head.
    """

    def __init__(self, most: int, head_seconds: float) -> None:
        self.most, self.head_seconds = most, head_seconds
        self._open: set[GuardedConnection] = set()
        self._waiting: dict[GuardedConnection, None] = {}  # for their clients: who has waited longest is first
        self._log = RareLog()

    def enter(self, connection: GuardedConnection) -> bool:
        """Whether there is a place for a new connection, if need be another's."""
        if len(self._open) >= self.most:
            longest = next(iter(self._waiting), None)
            self._log.warn(
                "connections", f"there are {self.most} connections, as many as allowed; idle ones are closed"
            )
            if longest is None:
                return False
            self.leave(longest)
            longest.transport.abort()
        self._open.add(connection)
        self._waiting[connection] = None
        return True

    def leave(self, connection: GuardedConnection) -> None:
        """A connection is over."""
        self._open.discard(connection)
        self._waiting.pop(connection, None)

    def note(self, connection: GuardedConnection, *, waits: bool) -> None:
        """Whether an open connection waits for its client."""
        if not waits or connection not in self._open:
            self._waiting.pop(connection, None)
        else:
            self._waiting.setdefault(connection)


class GuardedConnection(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """uvicorn's HTTP connection (httptools' parser where that is installed, else h11's) with limits.

    Args:
        connections: all of the server.
        options: of uvicorn's class.
    """

    def __init__(self, connections: Connections, **options: Any) -> None:
        super().__init__(**options)
        self._all = connections
        self._until: asyncio.TimerHandle | None = None
        self._head = self._frames = self._body = self._ignored = 0
        self._is_refused = False

    def connection_made(self, transport: Any) -> None:
        """A client has come."""
        super().connection_made(transport)
        if self._all.enter(self):
            self._expect_head()
        else:
            self._refuse(unavailable("The server has no free connection; try again later.", "too_many_connections", 1))

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        self._all.leave(self)
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """It has sent something."""
        for start in range(0, len(data), PIECE):
            if self._is_refused:
                return self._ignore(data[start:])
            if self.transport.is_closing():
                return None
            self._read(data[start : start + PIECE])
        return None

    def on_response_complete(self) -> None:
        """It was answered."""
        self._all.note(self, waits=True)
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """What came is no HTTP."""
        self._refuse(RequestError("The request is no HTTP/1.1 that can be read.", code="invalid_http"))

    def _read(self, data: bytes) -> None:
        before = self.cycle
        expects_head = before is None or before.response_complete
        held = 0 if before is None else len(before.body)
        super().data_received(data)
        if self._is_refused or self.transport.is_closing():
            return
        if self.cycle is not before:
            self._stop_timer()
            self._head = self._frames = self._body = 0
        elif expects_head:
            self._head += len(data)
            self._expect_head()
            if self._head > MAX_HEAD:
                self._refuse(_too_large_head())
        elif self.cycle.more_body:
            came = len(self.cycle.body) - held
            self._body += came
            self._frames += len(data) - came
            if self._frames > MAX_FRAMES + self._body // 8:
                self._refuse(RequestError("The body comes in too small chunks; send larger ones.", code="invalid_http"))
        self._all.note(self, waits=self.cycle is None or self.cycle.more_body or self.cycle.response_complete)

    # --- times ---
    def _expect_head(self) -> None:
        if self._until is None:
            self._until = self.loop.call_later(self._all.head_seconds, self._head_is_late)

    def _stop_timer(self) -> None:
        if self._until is not None:
            self._until.cancel()
            self._until = None

    def _head_is_late(self) -> None:
        self._until = None
        if self.transport.is_closing() or self._is_refused:
            return
        if not self._head:
            self.transport.close()
            return
        seconds = self._all.head_seconds
        self._refuse(RequestError(f"The headers did not come within {seconds:g} seconds.", status=408, code="timeout"))

    # --- refusals ---
    def _refuse(self, error: RequestError) -> None:
        """Answer in the application's place, and have the connection end."""
        if self._is_refused or self.transport.is_closing():
            return
        self._is_refused = True
        self._stop_timer()
        self._unset_keepalive_if_required()
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            if self.cycle.response_started:
                self.transport.abort()
                return
        self.transport.write(_as_http(error))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.flow.resume_reading()
        self.loop.call_later(LINGER_SECONDS, self.transport.close)

    def _ignore(self, data: bytes) -> None:
        self._ignored += len(data)
        if self._ignored > LINGER_BYTES:
            self.transport.pause_reading()  # to close at once would reset the connection


def _too_large_head() -> RequestError:
    return RequestError(
        f"The request's line and headers have more than {MAX_HEAD:,} bytes.", status=431, code="headers_too_large"
    )


def _as_http(error: RequestError) -> bytes:
    """The answer, as it goes over the wire."""
    body = json.dumps(error.body()).encode()
    fields = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        "connection": "close",
        **error.headers(),
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}\r\n{head}\r\n".encode() + body
