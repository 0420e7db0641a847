"""A server on a tiny model in a thread, for tests that talk to it over loopback."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import uvicorn

from structgen.generation.generator import Generator
from structgen.server.app import ApiServer
from structgen.server.connections import server_config
from structgen.server.settings import ServingSettings
from tests.server.tiny import generator


class RunningServer:
    """A server that runs in a thread, at ``url``."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._uvicorn = uvicorn.Server(server_config(server.app(), server.settings, timeout_graceful_shutdown=1))
        self._thread = threading.Thread(target=self._uvicorn.run, args=([self._socket],), daemon=True)

    def start(self) -> None:
        """Run, and wait until it is warm."""
        self._thread.start()
        until = time.monotonic() + 60
        while not (self._uvicorn.started and self.server.is_warm) and time.monotonic() < until:
            time.sleep(0.01)
        assert self._uvicorn.started

    def stop(self) -> None:
        """Stop, and wait for it."""
        self._uvicorn.should_exit = True
        self._thread.join(20)

    def wait_until_idle(self, seconds: float = 10.0) -> bool:
        """Whether nothing is written any more within some seconds."""
        until = time.monotonic() + seconds
        while not self.server.engine.is_idle and time.monotonic() < until:
            time.sleep(0.01)
        return self.server.engine.is_idle


@contextlib.contextmanager
def serving(gen: Generator | None = None, **settings: Any) -> Iterator[RunningServer]:
    """A running server over a tiny model."""
    settings = {"model_names": ("tiny",), "compile_workers": 0, **settings}
    running = RunningServer(ApiServer(gen or generator(), ServingSettings(**settings)))
    running.start()
    try:
        yield running
    finally:
        running.stop()
