"""Hostile clients, over plain sockets, each in a process of its own.

python attackers.py NAME PORT SECONDS
"""

from __future__ import annotations

import contextlib
import json
import socket
import sys
import time
from collections.abc import Callable
from typing import Any

CHAT = "/v1/chat/completions"
JSON_HEAD = f"POST {CHAT} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
HELLO: dict[str, Any] = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 3}
IDLE = 600
"""Connections that do nothing, or next to nothing, at a time."""


def hold(port: int, until: float, first: bytes, dribble: bytes = b"") -> None:
    """Keep many connections that have sent a beginning, and now and then a byte more; open them again when closed."""
    held: list[socket.socket] = []
    while time.monotonic() < until:
        for connection in list(held):
            try:
                connection.setblocking(False)
                if connection.recv(1 << 16) == b"":
                    raise ConnectionError
            except BlockingIOError:
                with contextlib.suppress(OSError):
                    connection.send(dribble)
            except OSError:
                connection.close()
                held.remove(connection)
        while len(held) < IDLE:
            with contextlib.suppress(OSError):
                connection = socket.create_connection(("127.0.0.1", port), timeout=1)
                held.append(connection)
                connection.sendall(first)
        time.sleep(0.2)


def flood(port: int, until: float, head: str, data: bytes) -> None:
    """Send without end, whatever is answered; from the beginning when the connection is closed."""
    while time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
            connection.sendall(head.encode())
            while time.monotonic() < until:
                connection.sendall(data)


def ask(port: int, until: float, body: dict[str, Any] | bytes) -> None:
    """Send a whole request, read its answer, and again."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = f"{JSON_HEAD}connection: close\r\ncontent-length: {len(data)}\r\n\r\n".encode() + data
    while time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
            connection.sendall(request)
            while connection.recv(1 << 16):
                pass


def _asking(fields: dict[str, Any] | bytes) -> Callable[[int, float], None]:
    return lambda port, until: ask(port, until, fields if isinstance(fields, bytes) else {**HELLO, **fields})


def _user(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


ATTACKS: dict[str, Callable[[int, float], None]] = {
    "nothing": lambda port, until: None,
    "idle connections": lambda port, until: hold(port, until, b""),
    "dribbled heads": lambda port, until: hold(port, until, b"POST /v1", b"x"),
    "dribbled bodies": lambda port, until: hold(port, until, f"{JSON_HEAD}content-length: 9999\r\n\r\n".encode(), b" "),
    "heads without end": lambda port, until: flood(port, until, JSON_HEAD, b"x-y: " + b"z" * 4000 + b"\r\n"),
    "body after 413": lambda port, until: flood(
        port, until, f"{JSON_HEAD}content-length: 1000000000000\r\n\r\n", b" " * (1 << 20)
    ),
    "chunks of a byte": lambda port, until: flood(
        port, until, f"{JSON_HEAD}transfer-encoding: chunked\r\n\r\n", b"1\r\n \r\n" * 20_000
    ),
    "no HTTP": lambda port, until: flood(port, until, "", b"\x16\x03\x01nonsense\r\n\r\n"),
    "330,000 wrong logit_bias": _asking({"logit_bias": {f"x{number}": 200 for number in range(330_000)}}),
    "330,000 unknown fields": _asking({f"x{number}": 1 for number in range(330_000)}),
    "a name of 4 MB": _asking({"x" * 4_000_000: 1}),
    "a value of 4 MB": _asking({"temperature": "x" * 4_000_000}),
    "bad JSON of 4 MB": _asking(b'{"a": "' + b"\n" * 4_000_000),
    "300,000 emoji": _asking(_user("\N{PILE OF POO}" * 300_000)),
    "300,000 letters": _asking(_user("a" * 300_000)),
    "2,000 structures": _asking({
        "structured_outputs": {"structural_tag": {"type": "structural_tag", "triggers": ["<f"], "structures": [
            {"begin": f"<f{number}>", "schema": {"type": "object"}, "end": "</f>"} for number in range(2_000)
        ]}},
    }),
}  # fmt: skip
"""By name: what is done at a port until a time (``time.monotonic``)."""


if __name__ == "__main__":
    ATTACKS[sys.argv[1]](int(sys.argv[2]), time.monotonic() + float(sys.argv[3]))
