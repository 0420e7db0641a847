"""Streams that have nothing to say yet say so in comments: while a prompt is read, a constraint compiled, a turn waited
for. OpenAI's own reader skips them."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("httpx2")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("prometheus_client")

import httpx2

from structgen.errors import OptionsError
from structgen.server.errors import RequestError
from structgen.server.settings import ServingSettings
from tests.many import nightly
from tests.server.tiny import EOS, generator
from tests.server.tiny_server import RunningServer, serving

PATHS = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 3},
    "/v1/completions": {"prompt": "Hello", "max_tokens": 3},
    "/v1/responses": {"input": "Hello", "max_output_tokens": 3},
}
CHAT = "/v1/chat/completions"


def lines_of(server: RunningServer, path: str, **more: Any) -> Iterator[tuple[float, str]]:
    """The lines of a stream, with the seconds after which each came."""
    started = time.monotonic()
    body = {**PATHS[path], "logit_bias": {str(EOS): -100}, "stream": True, **more}
    if path == "/v1/responses":
        del body["logit_bias"]
    with httpx2.stream("POST", server.url + path, json=body, timeout=60) as answer:
        assert answer.status_code == 200, answer.read()
        for line in answer.iter_lines():
            yield time.monotonic() - started, line


def comments(lines: list[tuple[float, str]]) -> list[tuple[float, str]]:
    return [(at, line) for at, line in lines if line.startswith(":")]


def data(lines: list[tuple[float, str]]) -> list[Any]:
    found = [line.removeprefix("data: ") for _, line in lines if line.startswith("data: ")]
    return [json.loads(text) for text in found if text != "[DONE]"]


def test_quick_streams_have_none() -> None:
    with serving() as server:
        for path in PATHS:
            assert not comments(list(lines_of(server, path)))


@pytest.mark.full
@pytest.mark.parametrize(
    "path", [pytest.param(path, marks=nightly if path == "/v1/responses" else ()) for path in PATHS]
)
def test_while_a_prompt_is_read(path: str) -> None:
    with serving(generator(2.0), silence_seconds=0.2) as server:
        most = {"max_output_tokens" if path == "/v1/responses" else "max_tokens": 1}
        lines = list(lines_of(server, path, **most))
        told = comments(lines)
        assert told and told[0][0] < 1.5 and ": waiting for the model" in {text for _, text in told}
        times = [at for at, line in lines if line]
        assert max(b - a for a, b in zip([0.0, *times], times, strict=False)) < 1.5
        assert data(lines) and "error" not in data(lines)[-1]


@pytest.mark.full
def test_openai_reads_the_same_text() -> None:
    openai = pytest.importorskip("openai")
    texts = []
    for silence in (0.1, 60.0):
        with serving(generator(0.4), silence_seconds=silence) as server:
            client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="x")
            asked: Any = {**PATHS[CHAT], "model": "tiny", "seed": 1, "temperature": 0}
            texts.append(
                [chunk.choices[0].delta.content for chunk in client.chat.completions.create(**asked, stream=True)]
            )
            events = list(client.responses.create(model="tiny", input="Hello", max_output_tokens=2, stream=True))
            assert events[0].type == "response.created" and events[-1].type in (
                "response.incomplete",
                "response.completed",
            )
    assert texts[0] == texts[1] and len(texts[0]) >= 2


def slow_compile(server: RunningServer, seconds: float, error: Exception | None = None) -> None:
    engine, compile = server.server.engine, server.server.engine.compile

    async def slowly(*arguments: Any) -> Any:
        await asyncio.sleep(seconds)
        if error is not None:
            raise error
        return await compile(*arguments)

    engine.compile = slowly  # type: ignore[method-assign, assignment]


@pytest.mark.full
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
def test_while_a_constraint_is_compiled(path: str) -> None:
    with serving(silence_seconds=0.2) as server:
        slow_compile(server, 0.9)
        lines = list(lines_of(server, path, structured_outputs={"regex": "ab"}))
        told = [text for _, text in comments(lines)]
        assert told[:2] == [": compiling the constraint"] * 2
        assert set(told) <= {": compiling the constraint", ": waiting for the model"}
        assert data(lines)[-1]["choices"][0]["finish_reason"] == "stop"


@pytest.mark.first_case
@pytest.mark.parametrize("path", PATHS)
def test_what_fails_late_is_told_in_the_stream(path: str) -> None:
    """And what fails at once keeps its status."""
    asked: dict[str, Any] = {"structured_outputs": {"regex": "ab"}}
    refused = RequestError("It is too much.", code="grammar_too_complex")
    with serving(silence_seconds=0.3) as server:
        slow_compile(server, 0.0, refused)
        body = {**PATHS[path], **asked, "stream": True}
        answer = httpx2.post(server.url + path, json=body)
        assert answer.status_code == 400 and answer.json()["error"]["code"] == "grammar_too_complex"
    with serving(silence_seconds=0.1) as server:
        slow_compile(server, 0.5, refused)
        lines = list(lines_of(server, path, **asked))
        (told,) = data(lines)
        assert comments(lines) and "[DONE]" not in lines[-2][1]
        if path == "/v1/responses":
            assert (
                told["type"] == "error"
                and told["code"] == "grammar_too_complex"
                and told["message"] == "It is too much."
            )
        else:
            assert told["error"]["code"] == "grammar_too_complex"
        assert server.wait_until_idle()


@pytest.mark.full
def test_openai_raises_what_fails_late() -> None:
    openai = pytest.importorskip("openai")
    with serving(silence_seconds=0.1) as server:
        slow_compile(server, 0.4, RequestError("It is too much.", code="grammar_too_complex"))
        client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="x")
        extra = {"structured_outputs": {"regex": "ab"}}
        for ask in (
            lambda: client.chat.completions.create(model="tiny", stream=True, extra_body=extra, **PATHS[CHAT]),
            lambda: client.responses.create(model="tiny", stream=True, input="Hi", extra_body=extra),
        ):
            with pytest.raises(openai.APIError, match="It is too much"):
                list(ask())


def being_written(server: Any, tokens: int) -> threading.Thread:
    """The thread of a request that is being written."""
    thread = threading.Thread(target=lambda: list(lines_of(server, CHAT, max_tokens=tokens)))
    thread.start()
    while not server.server.engine.running:
        time.sleep(0.01)
    return thread


@pytest.mark.full
def test_while_others_are_written() -> None:
    with serving(generator(0.05), max_rows=1, silence_seconds=0.2) as server:
        first = being_written(server, 20)
        lines = list(lines_of(server, CHAT))
        first.join()
        assert ": waiting for the model" in {text for _, text in comments(lines)}


@pytest.mark.full
def test_who_leaves_in_the_silence_is_noticed() -> None:
    with serving(generator(0.02), max_rows=1, silence_seconds=0.1) as server:
        first = being_written(server, 100)
        lines = lines_of(server, CHAT, max_tokens=100_000)
        assert next(lines)[1].startswith(":")
        lines.close()  # type: ignore[attr-defined]
        first.join()
        assert server.wait_until_idle(5)


def test_late_warnings_come_with_the_first_event() -> None:
    """Where there is no header any more."""
    with serving(silence_seconds=0.1) as server:
        slow_compile(server, 0.4)
        schema = {"type": "string", "minLenght": 3, "maxLength": 3}
        form = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
        events = data(list(lines_of(server, CHAT, response_format=form, max_tokens=30)))
        assert "minLenght" in events[0]["structgen"]["warnings"][0] and "structgen" not in events[1]


def test_the_time_is_checked() -> None:
    with pytest.raises(OptionsError, match="silence_seconds"):
        ServingSettings(silence_seconds=0)
