"""Events over ASGI: written as they come, and given up when nobody reads them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from structgen.server.sse import EventStream


def test_whenever_the_client_leaves_the_events_end() -> None:
    """Also in the very moment in which a piece was sent: a cancellation must not be lost."""

    async def leave_after(turns: int) -> None:
        sent = 0

        async def events() -> AsyncGenerator[bytes, None]:
            for _ in range(3_000):
                yield b"data: 1\n\n"

        async def receive() -> dict[str, Any]:
            for _ in range(turns):
                await asyncio.sleep(0)
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            nonlocal sent
            sent += 1
            await asyncio.sleep(0)

        stream = EventStream(events(), {}, 5.0, lambda error: b"", lambda: None)
        await stream({}, receive, send)
        assert sent < 200

    async def every() -> None:
        for turns in range(40):
            await leave_after(turns)

    asyncio.run(every())


def test_no_comment_where_nothing_is_read() -> None:
    """The client is not read for: what was sent last still waits."""
    sent: list[bytes] = []

    async def events() -> AsyncGenerator[bytes, None]:
        yield b"data: 1\n\n"

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(60)
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body":
            sent.append(message["body"])
            await asyncio.sleep(60)

    async def all_of_it() -> None:
        stream = EventStream(events(), {}, 0.5, lambda error: b"", lambda: None, 0.05)
        await asyncio.wait_for(stream({}, receive, send), 5)

    asyncio.run(all_of_it())
    assert sent == [b"data: 1\n\n"]
