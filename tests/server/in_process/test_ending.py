"""Processes that end while a server in them was not closed end cleanly: no traceback, by themselves, at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("starlette")
pytest.importorskip("prometheus_client")

ROOT = Path(__file__).parents[3]
PROGRAM = """
import json, sys, threading, time
from structgen.server.in_process import InProcessServer
from tests.server.tiny import generator

server = InProcessServer(generator(), default_max_tokens=60)
schema = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "integer"}}}
body = {"model": "structgen", "messages": [{"role": "user", "content": "Hi"}], "response_format": schema}
scope = {
    "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http",
    "path": "/v1/chat/completions", "raw_path": b"/v1/chat/completions", "query_string": b"", "root_path": "",
    "headers": [(b"content-type", b"application/json"), (b"host", b"localhost")],
    "server": ("localhost", 80), "client": ("localhost", 1),
}


async def ask():
    exchange = await server.exchange(scope, json.dumps(body).encode())
    status, _ = await exchange.head()
    while await exchange.piece() is not None:
        pass
    return status


def ask_on():
    while True:
        server.submit(ask()).result()


if sys.argv[1] == "answered":
    assert server.submit(ask()).result() == 200
elif sys.argv[1] == "begun":
    kept = [server.submit(ask()) for _ in range(5)]
elif sys.argv[1] == "in a thread":
    threading.Thread(target=ask_on, daemon=True).start()
    time.sleep(1)
elif sys.argv[1] == "closed":
    server.close()
"""


@pytest.mark.first_case
@pytest.mark.parametrize("how", ["never used", "answered", "begun", "in a thread", "closed"])
def test_a_process_ends_cleanly(how: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, how], cwd=ROOT, capture_output=True, text=True, timeout=100, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
