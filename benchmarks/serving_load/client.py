"""Asking a server, as its clients do, and noting when what came."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import httpx2

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
_PATIENCE = httpx2.Timeout(300.0)
ADDRESS = "127.0.0.2" if sys.platform == "linux" else None
"""Of a client that is another caller than the rest; None: there is no such address."""


@dataclass
class Answer:
    """What came of a request.

    Attributes:
        sent: when it was asked (``time.perf_counter``).
        status: of HTTP; 0: the connection broke.
        headers: of the response.
        text: of the output.
        arrived: when each event with text arrived; of answers that are not streamed, the whole.
        done: when it was over.
        is_whole: whether the stream ended as it should.
        reason: ``finish_reason``.
        usage: as told.
        told: of each token, where log-probabilities were asked for.
        error: the error object.
    """

    sent: float
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    text: str = ""
    arrived: list[float] = field(default_factory=list)
    done: float = 0.0
    is_whole: bool = False
    reason: str | None = None
    usage: dict[str, Any] = field(default_factory=dict)
    told: list[dict[str, Any]] = field(default_factory=list)
    error: dict[str, Any] = field(default_factory=dict)

    @property
    def tokens(self) -> int:
        """Of the output."""
        return int(self.usage.get("completion_tokens", 0))

    @property
    def first(self) -> float:
        """Seconds to the first text."""
        return self.arrived[0] - self.sent

    @property
    def seconds(self) -> float:
        """Seconds to the end."""
        return self.done - self.sent

    def gaps(self, start: float = 0.0, end: float = float("inf")) -> list[float]:
        """Seconds between texts of which the later arrived in a span of time."""
        pairs = zip(self.arrived, self.arrived[1:], strict=False)
        return [late - early for early, late in pairs if start <= late < end]

    def read(self, event: dict[str, Any]) -> None:
        """Take in an event of a stream, or a whole answer."""
        self.error = event.get("error") or self.error
        self.usage = event.get("usage") or self.usage
        for choice in event.get("choices", ()):
            told = choice.get("delta") or choice.get("message") or {}
            text = told.get("content") or choice.get("text") or ""
            if text:
                self.text += text
                self.arrived.append(time.perf_counter())
            self.told += (choice.get("logprobs") or {}).get("content") or ()
            self.reason = choice.get("finish_reason") or self.reason


class Client:
    """A client of a server.

    Args:
        url: of the server.
        key: for the header Authorization.
        address: from which it comes, where the system lets it choose (127.0.0.2, on Linux); None: any.
    """

    def __init__(self, url: str, key: str = "none", address: str | None = None) -> None:
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=64)
        transport = httpx2.AsyncHTTPTransport(limits=limits, local_address=address)
        headers = {"authorization": f"Bearer {key}"}
        self.http = httpx2.AsyncClient(base_url=url, timeout=_PATIENCE, transport=transport, headers=headers)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.http.aclose()

    async def ask(
        self, body: dict[str, Any], answer: Answer | None = None, leave: Callable[[Answer], bool] | None = None
    ) -> Answer:
        """Ask, streamed or not, and read to the end; or until ``leave`` says so, then hang up.

        Args:
            answer: what is filled in; for looking on.
        """
        answer = answer or Answer(time.perf_counter())
        try:
            if body.get("stream"):
                await self._stream(body, answer, leave)
            else:
                reply = await self.http.post(_path(body), json=body)
                answer.status, answer.headers = reply.status_code, dict(reply.headers)
                answer.read(reply.json())
                answer.is_whole = reply.status_code == 200
        except httpx2.TransportError:
            pass
        answer.done = time.perf_counter()
        return answer

    async def _stream(self, body: dict[str, Any], answer: Answer, leave: Callable[[Answer], bool] | None) -> None:
        async with self.http.stream("POST", _path(body), json=body) as reply:
            answer.status, answer.headers = reply.status_code, dict(reply.headers)
            if reply.status_code != 200:
                answer.read(json.loads(await reply.aread()))
                return
            async for line in reply.aiter_lines():
                if line == "data: [DONE]":
                    answer.is_whole = True
                elif line.startswith("data: "):
                    answer.read(json.loads(line.removeprefix("data: ")))
                if leave is not None and leave(answer):
                    return

    async def together(self, bodies: Sequence[dict[str, Any]]) -> list[Answer]:
        """Ask all at once."""
        return list(await asyncio.gather(*map(self.ask, bodies)))

    async def metrics(self) -> dict[str, float]:
        """The server's metrics that have no labels but the model's, without their prefix; of steps, the writing."""
        found = {}
        for line in (await self.http.get("/metrics")).text.splitlines():
            name, _, value = line.rpartition(" ")
            name, _, labels = name.partition("{")
            if not line.startswith("#") and (
                labels.count("=") <= 1 or ('phase="write"' in labels and "le=" not in labels)
            ):
                found[name.partition(":")[2]] = float(value)
        return found

    async def wait_until_idle(self, seconds: float = 60.0) -> bool:
        """Whether the server has nothing to write within some seconds."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            told = await self.metrics()
            if not told.get("num_requests_running") and not told.get("num_requests_waiting"):
                return True
            await asyncio.sleep(0.1)
        return False


def _path(body: dict[str, Any]) -> str:
    return COMPLETIONS if "prompt" in body else CHAT


@dataclass
class Others:
    """Streams that go on while something else happens."""

    answers: list[Answer]

    def gaps(self, start: float, end: float) -> list[float]:
        """Seconds between texts, of all streams, in a span of time."""
        return [gap for answer in self.answers for gap in answer.gaps(start, end)]

    def pace(self, start: float, end: float) -> float:
        """Texts a second, of all streams, in a span of time."""
        arrived = sum(start <= when < end for answer in self.answers for when in answer.arrived)
        return arrived / (end - start)

    @property
    def are_writing(self) -> bool:
        """Whether none has ended."""
        return all(not answer.done for answer in self.answers)


@asynccontextmanager
async def others(client: Client, bodies: Sequence[dict[str, Any]], *, waits: bool = True) -> AsyncIterator[Others]:
    """Streams that are being written, once all have begun; hung up in the end.

    Args:
        waits: in the end, until the server has nothing to write.
    """
    answers = [Answer(time.perf_counter()) for _ in bodies]
    asking = [asyncio.create_task(client.ask(*pair)) for pair in zip(bodies, answers, strict=True)]
    try:
        while any(len(answer.arrived) < 3 for answer in answers):
            failed = next((answer for answer in answers if answer.done), None)
            assert failed is None, f"a stream has ended at once: {failed}"
            await asyncio.sleep(0.02)
        yield Others(answers)
    finally:
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        if waits:
            await client.wait_until_idle()
