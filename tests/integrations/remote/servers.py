"""Servers as they are found: a chat endpoint whose answers and refusals a test writes down, over loopback."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

Answer = str | tuple[str, str] | Response
"""Text, or with its finish_reason, or an error."""


class ScriptedServer:
    """Answers by a function of the request's body.

    Attributes:
        bodies: what was asked, in order.
        sent: for streams, how many pieces were sent of each answer.
    """

    def __init__(self, answer: Callable[[dict[str, Any]], Answer], piece: int = 3) -> None:
        self.answer, self.piece = answer, piece
        self.bodies: list[dict[str, Any]] = []
        self.sent: list[int] = []
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"
        app = Starlette(routes=[Route("/v1/chat/completions", self._chat, methods=["POST"])])
        self._uvicorn = uvicorn.Server(uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=1))
        self._thread = threading.Thread(target=self._uvicorn.run, args=([self._socket],), daemon=True)

    async def _chat(self, request: Request) -> Response:
        body = await request.json()
        self.bodies.append(body)
        answer = self.answer(body)
        if isinstance(answer, Response):
            return answer
        text, finish = answer if isinstance(answer, tuple) else (answer, "stop")
        if body.get("stream"):
            return StreamingResponse(self._chunks(text, finish), media_type="text/event-stream")
        message = {"role": "assistant", "content": text}
        return JSONResponse(
            {**HEAD, "choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": USAGE}
        )

    async def _chunks(self, text: str, finish: str) -> Any:
        self.sent.append(0)
        for at in range(0, len(text), self.piece):
            yield event([{"index": 0, "delta": {"content": text[at : at + self.piece]}, "finish_reason": None}])
            self.sent[-1] += 1
        yield event([{"index": 0, "delta": {}, "finish_reason": finish}])
        yield event([], usage=USAGE)
        yield "data: [DONE]\n\n"

    def __enter__(self) -> ScriptedServer:
        self._thread.start()
        until = time.monotonic() + 30
        while not self._uvicorn.started and time.monotonic() < until:
            time.sleep(0.01)
        return self

    def __exit__(self, *error: object) -> None:
        self._uvicorn.should_exit = True
        self._thread.join(20)
        with contextlib.suppress(OSError):
            self._socket.close()


HEAD = {"id": "c", "object": "chat.completion", "created": 0, "model": "m"}
USAGE = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}


def event(choices: list[Any], **fields: Any) -> str:
    chunk = {**HEAD, "object": "chat.completion.chunk", "choices": choices, **fields}
    return f"data: {json.dumps(chunk)}\n\n"


def in_turn(*answers: Answer) -> Callable[[dict[str, Any]], Answer]:
    """The answers one after the other; the last again and again."""
    left: Iterator[Answer] = iter(answers)
    last: list[Answer] = []

    def answer(body: dict[str, Any]) -> Answer:
        last[:] = [next(left, *last)]
        return last[0]

    return answer


def refusal(message: str, status: int = 400, **fields: Any) -> JSONResponse:
    return JSONResponse({"error": {"message": message, "type": "invalid_request_error", **fields}}, status)
