"""Connections that wait, dribble, flood, or are too many: each is given up in time, and good clients are served."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("httpx2")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("prometheus_client")

import httpx2

from structgen.server.connections import server_config
from structgen.server.settings import ServingSettings
from tests.server.tiny_server import RunningServer, serving

resource: Any = pytest.importorskip("resource")
CHAT = "/v1/chat/completions"
HELLO: dict[str, Any] = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 3}
MOST = 8
HEAD = f"POST {CHAT} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    limits: dict[str, Any] = {"max_body": 1 << 20, "head_seconds": 0.6, "idle_seconds": 0.6, "max_connections": MOST}
    with serving(**limits, body_seconds=20.0) as running:
        yield running


def works(server: RunningServer) -> bool:
    """Whether a client that comes now is served, soon."""
    with httpx2.Client(base_url=server.url, timeout=10) as client:
        return client.post(CHAT, json=HELLO).status_code == 200


@contextlib.contextmanager
def connected(server: RunningServer) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        yield connection


def answer(connection: socket.socket) -> tuple[int, Any]:
    """The status, and the error object; (0, None) if the connection is closed without any."""
    received = b""
    with contextlib.suppress(ConnectionError):
        while piece := connection.recv(1 << 16):
            received += piece
    head, _, body = received.partition(b"\r\n\r\n")
    if not head:
        return 0, None
    assert b"application/json" in head and b"connection: close" in head.lower()
    return int(head.split()[1]), json.loads(body)["error"]


def is_well(connection: socket.socket) -> bool:
    """What ``/health`` says; the connection stays open."""
    connection.sendall(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n")
    received = b""
    while not received.endswith(b"}"):
        received += connection.recv(1000)
    return b" 200 " in received


def seconds_until_closed(connection: socket.socket) -> float:
    started = time.monotonic()
    answer(connection)
    return time.monotonic() - started


def test_one_that_sends_nothing_is_closed(server: RunningServer) -> None:
    with connected(server) as connection:
        assert 0.3 < seconds_until_closed(connection) < 5


def test_one_that_dribbles_its_head_is_told(server: RunningServer) -> None:
    with connected(server) as connection:
        for byte in HEAD.encode()[:20]:
            connection.sendall(bytes([byte]))
            time.sleep(0.02)
        status, error = answer(connection)
        assert (status, error["code"]) == (408, "timeout")


def test_one_that_dribbles_its_second_head_is_told(server: RunningServer) -> None:
    with connected(server) as connection:
        assert is_well(connection)
        connection.sendall(b"GET /hea")
        assert answer(connection)[0] == 408


def test_one_that_is_idle_after_its_answer_is_closed(server: RunningServer) -> None:
    with connected(server) as connection:
        assert is_well(connection)
        assert 0.3 < seconds_until_closed(connection) < 5


@pytest.mark.parametrize("at_once", [True, False])
def test_a_head_without_end_is_refused(server: RunningServer, at_once: bool) -> None:
    with connected(server) as connection:
        lines = [f"x-{number}: {'y' * 900}\r\n".encode() for number in range(200)]
        with contextlib.suppress(ConnectionError):
            for data in [b"".join(lines)] if at_once else lines:
                connection.sendall(HEAD.encode() * (data is lines[0] or at_once) + data)
        status, error = answer(connection)
        assert (status, error["code"]) == (431, "headers_too_large") and works(server)


@pytest.mark.parametrize("data", [b"\x16\x03\x01\x02", b"nonsense\r\n\r\n", b"GET /health HTTP/1.1\r\nhost x\r\n\r\n"])
def test_what_is_no_http_is_told_as_json(server: RunningServer, data: bytes) -> None:
    with connected(server) as connection:
        connection.sendall(data + b"\r\n\r\n")
        status, error = answer(connection)
        assert (status, error["code"]) == (400, "invalid_http") and error["type"] == "invalid_request_error"


def flood(connection: socket.socket, data: bytes, seconds: float = 10.0) -> int:
    """How many bytes go out until the other side has had enough."""
    sent, until = 0, time.monotonic() + seconds
    with contextlib.suppress(OSError):
        while time.monotonic() < until:
            sent += connection.send(data)
    return sent


@pytest.mark.parametrize("head", [
    HEAD + "content-length: 1000000000000\r\n\r\n",
    HEAD + "transfer-encoding: chunked\r\n\r\n",
    HEAD.replace("application/json", "text/plain") + "content-length: 1000000000000\r\n\r\n",
    HEAD.replace(CHAT, "/nowhere") + "content-length: 1000000000000\r\n\r\n",
    HEAD.replace("POST", "GET").replace(CHAT, "/health") + "content-length: 1000000000000\r\n\r\n",
])  # fmt: skip
def test_the_rest_of_a_refused_body_is_not_read(server: RunningServer, head: str) -> None:
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n" if "chunked" in head else b" " * 0x10000
    with connected(server) as connection:
        connection.sendall(head.encode())
        started = time.monotonic()
        sent = flood(connection, chunk)
        assert sent < 32 << 20 and time.monotonic() - started < 8  # what the kernels hold, and a megabyte or two
    assert works(server)


def test_an_early_refusal_is_read_by_clients_that_send_first(server: RunningServer) -> None:
    """The whole body is sent before the answer is looked at: no reset takes it away."""
    with httpx2.Client(base_url=server.url, timeout=20) as client:
        for size, kind, status in ((3 << 19, "application/json", 413), (1 << 20, "text/plain", 415)):
            told = client.post(CHAT, content=b" " * size, headers={"content-type": kind})
            assert told.status_code == status and told.headers["connection"] == "close"
        small = client.post(CHAT, json=HELLO)
        assert small.status_code == 200 and "connection" not in small.headers


def test_a_refused_body_is_no_reset(server: RunningServer) -> None:
    """Three times as large as may be: the answer comes, then the end. A reset could overtake the answer."""
    with connected(server) as connection:
        connection.sendall(f"{HEAD}content-length: {3 << 20}\r\n\r\n".encode() + b" " * (3 << 20))
        received = b""
        while piece := connection.recv(1 << 16):
            received += piece
        assert received.startswith(b"HTTP/1.1 413 ")


def test_a_million_chunks_of_a_byte_cost_little(server: RunningServer) -> None:
    with connected(server) as connection:
        connection.sendall((HEAD + "transfer-encoding: chunked\r\n\r\n").encode())
        sent = flood(connection, b"1\r\n \r\n" * 10_000)
        status, error = answer(connection)
        assert (status, error["code"]) == (400, "invalid_http") if status else sent < 32 << 20
    assert works(server)


def test_a_body_in_chunks_is_taken(server: RunningServer) -> None:
    data = json.dumps({**HELLO, "user": "x" * 300_000}).encode()
    with httpx2.Client(base_url=server.url, timeout=20) as client:
        for size in (50, 4096):
            chunks = (data[start : start + size] for start in range(0, len(data), size))
            assert client.post(CHAT, content=chunks, headers={"content-type": "application/json"}).status_code == 200


@pytest.mark.parametrize("sent", [b"", b"POST ", (HEAD + "content-length: 500\r\n\r\n{").encode()])
def test_those_that_wait_longest_make_room(server: RunningServer, sent: bytes) -> None:
    """Four times as many as may be, which send nothing or no more: a good client is served at once all the while."""
    with contextlib.ExitStack() as stack:
        for _ in range(4 * MOST):
            connection = stack.enter_context(connected(server))
            connection.sendall(sent)
        started = time.monotonic()
        assert works(server) and time.monotonic() - started < 5


def test_those_that_are_being_answered_do_not() -> None:
    with serving(max_connections=4, max_rows=8) as server, contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.closing(httpx2.Client(base_url=server.url)))
        data = json.dumps({**HELLO, "max_tokens": 100_000, "logit_bias": {"256": -100}, "stream": True}).encode()
        streams = [stack.enter_context(connected(server)) for _ in range(4)]
        for connection in streams:
            connection.sendall(f"{HEAD}content-length: {len(data)}\r\n\r\n".encode() + data)
            assert b" 200 " in connection.recv(100)
        status, error = answer(stack.enter_context(connected(server)))
        assert (status, error["code"]) == (503, "too_many_connections")
        assert all(connection.recv(1000) for connection in streams)
        streams[0].close()
        until = time.monotonic() + 10
        while not (served := works(server)) and time.monotonic() < until:
            time.sleep(0.1)
        assert served


def test_files_are_left_for_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    for soft, least, most in ((256, 8, 200), (1024, 600, 1000), (1 << 20, 4096, 4096)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, soft=soft: (soft, soft))
        config = server_config(None, ServingSettings())
        limit = config.http.args[0].most  # type: ignore[union-attr]
        assert least <= limit <= most and limit + 2 * config.backlog <= max(soft, 8)
    assert server_config(None, ServingSettings(max_connections=7)).http.args[0].most == 7  # type: ignore[union-attr]
