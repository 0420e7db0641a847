"""Hostile clients, over plain sockets, each in a process of its own.

python attackers.py NAME PORT SECONDS

At its end it prints a JSON object: how many answers had each status, and how many of them tell what no answer may
(``LEAKS``).
"""

from __future__ import annotations

import contextlib
import itertools
import json
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # as a program

from serving_load.hostile_requests import REQUESTS, Asked

CHAT = "/v1/chat/completions"
HEAD = "POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
JSON_HEAD = HEAD.format(path=CHAT)
SECRET = "the-secret-of-a-file"
"""What stands in files beside the server (``siege.folder``)."""
LEAKS = (SECRET.encode(), b"Traceback (most recent call last)")
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


STATUSES: Counter[str] = Counter()
"""Answers by status; "none": the connection was closed without one; "leaks": answers that tell what they may not."""


def ask(port: int, until: float, requests: Iterator[Asked]) -> None:
    """Send whole requests, one after the other, and read each answer, or leave as ``Asked`` says."""
    for asked in requests:
        left = until - time.monotonic()
        if left <= 0:
            return
        data = asked.data()
        head = f"{HEAD.format(path=asked.path)}connection: close\r\ncontent-length: {len(data)}\r\n\r\n"
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", port), timeout=left + 1) as connection,
        ):
            connection.sendall(head.encode() + data)
            if asked.leaves_after is not None:
                time.sleep(asked.leaves_after)
                continue
            _note(connection)


def _note(connection: socket.socket) -> None:
    answer = bytearray()
    while piece := connection.recv(1 << 16):
        answer += piece
        del answer[1 << 20 :]
    parts = answer.split(b" ", 2)
    STATUSES[parts[1].decode() if len(parts) == 3 else "none"] += 1
    STATUSES["leaks"] += any(leak in answer for leak in LEAKS)


def ask_from(threads: int, requests: Callable[[int], Asked]) -> Callable[[int, float], None]:
    """Ask from so many connections at once; no two requests have the same number."""

    def attack(port: int, until: float) -> None:
        numbers = itertools.count(int(time.time() * 1000) % 10_000_000)
        asking = [
            threading.Thread(target=ask, args=(port, until, (requests(next(numbers)) for _ in itertools.count())))
            for _ in range(threads)
        ]
        for thread in asking:
            thread.start()
        for thread in asking:
            thread.join()

    return attack


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
    **{name: ask_from(threads, requests) for name, (threads, requests) in REQUESTS.items()},
}
"""By name: what is done at a port until a time (``time.monotonic``)."""


if __name__ == "__main__":
    ATTACKS[sys.argv[1]](int(sys.argv[2]), time.monotonic() + float(sys.argv[3]))
    print(json.dumps(STATUSES))
