"""Many requests, some bad, some given up: the others are served, and nothing of any is left."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from typing import Any

import pytest

pytest.importorskip("httpx2")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("prometheus_client")

import httpx2

from structgen.generation.decoding.output import Output
from tests.server.tiny_server import serving

CHAT = "/v1/chat/completions"
REQUESTS, SCHEMAS = 300, 50


def body_of(number: int) -> dict[str, Any]:
    key = f"k{number % SCHEMAS}"
    properties = {key: {"type": "integer", "maximum": number % SCHEMAS}, "s": {"enum": ["a", "b"]}}
    schema = {"type": "object", "properties": properties, "required": [key, "s"], "additionalProperties": False}
    messages = [{"role": "user", "content": f"Hello {number}"}]
    return {"messages": messages, "seed": number, "structured_outputs": {"json": schema}, "stream": number % 2 == 0}


async def one(client: httpx2.AsyncClient, number: int) -> str:
    body = body_of(number)
    if number % 20 == 3:
        return str((await client.post(CHAT, json={**body, "nonsense": 1})).status_code)
    if number % 10 == 5:
        long = {"messages": body["messages"], "max_tokens": 5000, "stream": True, "logit_bias": {"256": -100}}
        async with client.stream("POST", CHAT, json=long) as answer:
            async for line in answer.aiter_lines():
                if '"content":"' in line:
                    return "given up"
    return str((await client.post(CHAT, json=body)).status_code)


@pytest.mark.full
def test_many_requests_leave_nothing_behind() -> None:
    async def all_of_them(url: str) -> Counter[str]:
        limits, turns = httpx2.Limits(max_connections=32), asyncio.Semaphore(24)
        async with httpx2.AsyncClient(base_url=url, timeout=120, limits=limits) as client:

            async def in_turn(number: int) -> str:
                async with turns:
                    return await one(client, number)

            return Counter(await asyncio.gather(*(in_turn(number) for number in range(REQUESTS))))

    with serving() as running:
        engine = running.server.engine
        ends = asyncio.run(all_of_them(running.url))
        assert running.wait_until_idle()
        assert ends == {"400": REQUESTS // 20, "given up": REQUESTS // 10, "200": REQUESTS * 17 // 20}
        assert not engine._handles and not engine._writer._handles  # type: ignore[attr-defined]
        gc.collect()
        outputs = [thing for thing in gc.get_objects() if isinstance(thing, Output)]
        assert len(outputs) <= 2  # what the loop of the thread still has in hand
