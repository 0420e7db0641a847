"""A server on a tiny model in a thread, for tests that talk to it over loopback."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import uvicorn

from structgen.generator import Generator
from structgen.models.tiny import TinyModel
from structgen.serving.app import ModelServer
from structgen.serving.settings import ServingSettings
from structgen.vocabulary.vocabulary import Vocabulary

EOS = 256
VOCABULARY = Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=EOS)


class ByteTokenizer:
    """A token a byte, and a chat template of a line."""

    eos_token_id = EOS

    def __init__(self, chat_template: str | None = "{{ messages }}") -> None:
        self.chat_template = chat_template
        self.seen: list[str] = []

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        self.seen.append(text)
        return list(text.encode())

    def apply_chat_template(self, messages: list[dict[str, Any]], **fields: Any) -> str:
        lines = [f"<{message['role']}>{message['content']}\n" for message in messages]
        return "".join(lines) + "<assistant>"


class SlowModel(TinyModel):
    """A tiny model whose every forward takes some time."""

    seconds = 0.0

    def forward(self, token_ids: Any, cache: Any) -> Any:
        time.sleep(self.seconds)
        return super().forward(token_ids, cache)


def generator(seconds: float = 0.0, template: str | None = "{{ messages }}", **options: Any) -> Generator:
    model = SlowModel(VOCABULARY.size, **options)
    model.seconds = seconds
    return Generator(model, ByteTokenizer(template), vocabulary=VOCABULARY)


class RunningServer:
    """A server that runs in a thread, at ``url``."""

    def __init__(self, server: ModelServer) -> None:
        self.server = server
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._uvicorn = uvicorn.Server(uvicorn.Config(server.app(), log_config=None, timeout_graceful_shutdown=1))
        self._thread = threading.Thread(target=self._uvicorn.run, args=([self._socket],), daemon=True)

    def start(self) -> None:
        self._thread.start()
        until = time.monotonic() + 30
        while not self._uvicorn.started and time.monotonic() < until:
            time.sleep(0.01)
        assert self._uvicorn.started

    def stop(self) -> None:
        self._uvicorn.should_exit = True
        self._thread.join(10)


@contextlib.contextmanager
def serving(gen: Generator | None = None, **settings: Any) -> Iterator[RunningServer]:
    """A running server over a tiny model."""
    names = settings.pop("model_names", ("tiny",))
    running = RunningServer(ModelServer(gen or generator(), ServingSettings(model_names=names, **settings)))
    running.start()
    try:
        yield running
    finally:
        running.stop()
