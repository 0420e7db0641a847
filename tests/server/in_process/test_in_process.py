"""OpenAI's client in this process: what it gets is what a server over a socket gives it."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from operator import gt
from pathlib import Path
from typing import Any

import pydantic
import pytest

openai = pytest.importorskip("openai")
httpx2 = pytest.importorskip("httpx2")
pytest.importorskip("starlette")
pytest.importorskip("prometheus_client")

import structgen  # noqa: E402
from structgen.server.in_process import InProcessServer, async_openai_client, openai_client  # noqa: E402
from structgen.server.in_process.transports import http_client  # noqa: E402
from tests.server.tiny import generator  # noqa: E402
from tests.server.tiny_server import serving  # noqa: E402

MESSAGES: Any = [{"role": "user", "content": "A ticket, please."}]


class Ticket(pydantic.BaseModel):
    title: str = pydantic.Field(max_length=12)
    urgent: bool


FORMAT: Any = {
    "type": "json_schema",
    "json_schema": {"name": "ticket", "schema": {**Ticket.model_json_schema(), "additionalProperties": False}},
}


def asked(client: Any, seed: int, **options: Any) -> Any:
    options = {"response_format": FORMAT, "temperature": 1.0, "max_tokens": 60, **options}
    return client.chat.completions.create(model="structgen", messages=MESSAGES, seed=seed, **options)


def test_the_same_as_over_a_socket() -> None:
    with serving(generator(), model_names=("structgen",)) as server, InProcessServer(generator()) as own:
        far = openai.OpenAI(base_url=f"{server.url}/v1", api_key="x")
        near = openai_client(own)
        for seed in range(5):
            there, here = asked(far, seed), asked(near, seed)
            assert here.choices[0].message.content == there.choices[0].message.content
            Ticket.model_validate_json(here.choices[0].message.content)
        texts = [
            "".join(c.choices[0].delta.content or "" for c in asked(client, 9, stream=True)) for client in (far, near)
        ]
        assert texts[0] == texts[1] and Ticket.model_validate_json(texts[0])
        models = [[model.id for model in client.models.list()] for client in (far, near)]
        assert models[0] == models[1] == ["structgen"]


def test_errors_are_the_clients_own() -> None:
    with InProcessServer(generator()) as server:
        client = openai_client(server)
        with pytest.raises(openai.BadRequestError, match="wisdom"):
            asked(client, 0, extra_body={"wisdom": 1})
        with pytest.raises(openai.NotFoundError):
            client.chat.completions.create(model="gpt-9", messages=MESSAGES)


def test_many_at_once_and_from_several_loops() -> None:
    with InProcessServer(generator()) as server:

        async def together() -> list[str]:
            client = async_openai_client(server)
            return [
                each.choices[0].message.content for each in await asyncio.gather(*(asked(client, s) for s in range(16)))
            ]

        first, second = asyncio.run(together()), asyncio.run(together())
    assert first == second and len(set(first)) > 8
    assert all(Ticket.model_validate_json(text) for text in first)


def test_who_reads_no_more_is_let_go() -> None:
    with InProcessServer(generator(seconds=0.01)) as server:
        text: Any = {"type": "text"}
        stream = asked(openai_client(server), 0, stream=True, response_format=text, max_tokens=2000)
        next(iter(stream))
        stream.close()
        assert asked(openai_client(server), 1).choices[0].finish_reason in ("stop", "length")

        async def leave() -> None:
            call = asyncio.ensure_future(
                asked(async_openai_client(server), 0, response_format={"type": "text"}, max_tokens=2000)
            )
            await asyncio.sleep(0.2)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call

        asyncio.run(leave())
        until = time.monotonic() + 10
        while running(server) and time.monotonic() < until:
            time.sleep(0.02)
        assert running(server) == 0


def running(server: InProcessServer) -> float:
    """Outputs that are being written, as the server's metrics tell."""
    text = http_client(server, httpx2).get("http://structgen/metrics").text
    return float(
        next(line for line in text.splitlines() if line.startswith("structgen:num_requests_running")).split()[-1]
    )


def test_it_ends() -> None:
    kept = threads_and_files()
    server = InProcessServer(generator())
    client = openai_client(server)
    asked(client, 0)
    server.close()
    server.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("asyncio")]
    with pytest.raises(structgen.ModelError, match="closed"):
        asked(client, 0)
    for _ in range(3):
        forgotten = openai_client(generator())
        asked(forgotten, 0)
        del forgotten
        gc.collect()
    until = time.monotonic() + 30
    while any(map(gt, threads_and_files(), kept)) and time.monotonic() < until:
        time.sleep(0.02)
        gc.collect()  # what a thread held may be garbage only once the thread has ended
    assert not any(map(gt, threads_and_files(), kept)), [thread.name for thread in threading.enumerate()]


def threads_and_files() -> tuple[int, int]:
    """How many threads this process has, and how many open files (0 where the system does not tell)."""
    folder = Path("/proc/self/fd")
    return threading.active_count(), len(list(folder.iterdir())) if folder.exists() else 0


def test_who_waits_while_it_is_closed_is_told() -> None:
    server = InProcessServer(generator(seconds=0.01))
    found: list[Exception] = []
    text: Any = {"type": "text"}

    def ask(stream: bool) -> None:
        try:
            answer = asked(openai_client(server), 0, response_format=text, max_tokens=2000, stream=stream)
            list(answer)
        except Exception as error:
            found.append(error)

    async def ask_in_a_loop() -> None:
        try:
            await asked(async_openai_client(server), 0, response_format=text, max_tokens=2000)
        except Exception as error:
            found.append(error)

    threads = [threading.Thread(target=ask, args=(stream,), daemon=True) for stream in (False, True)]
    threads.append(threading.Thread(target=lambda: asyncio.run(ask_in_a_loop()), daemon=True))
    for thread in threads:
        thread.start()
    until = time.monotonic() + 30
    while running(server) < len(threads) and time.monotonic() < until:
        time.sleep(0.02)
    server.close()
    for thread in threads:
        thread.join(30)
    assert len(found) == len(threads), found
    assert all("closed" in str(error) or "stops" in str(error) for error in found), found


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(structgen.OptionsError, match="did you mean 'max_rows'"):
        InProcessServer(generator(), max_row=3)
    with InProcessServer(generator()) as server, pytest.raises(structgen.ModelError, match="max_rows"):
        openai_client(server, max_rows=3)
