"""What clients do wrong, or go away in the middle of: the right status, and nobody else notices."""

from __future__ import annotations

import contextlib
import json
import socket
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

pytest.importorskip("httpx2")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("prometheus_client")

import httpx2

from structgen.core.constraints.limits import CompileLimits
from tests.server.tiny import EOS, generator
from tests.server.tiny_server import RunningServer, serving

CHAT = "/v1/chat/completions"
HELLO: dict[str, Any] = {"messages": [{"role": "user", "content": "Hello"}], "logit_bias": {str(EOS): -100}}


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with serving(generator(0.001), max_body=1 << 20, body_seconds=1.0, write_seconds=2.0) as running:
        yield running


@pytest.fixture(scope="module")
def http(server: RunningServer) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=server.url, timeout=60) as client:
        yield client


def works(http: httpx2.Client) -> bool:
    """Whether others are served."""
    answer = http.post(CHAT, json={**HELLO, "max_tokens": 3})
    return answer.status_code == 200 and answer.json()["usage"]["completion_tokens"] == 3


JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, "invalid_json"),
        (b"\xff\xfe", 400, "invalid_json"),
        (b"[" * 200_000, 400, "invalid_json"),
        (b'{"messages": "x" * 9}', 400, "invalid_json"),
        (b" " * (2 << 20), 413, "request_too_large"),
        (json.dumps({**HELLO, "nonsense": 1}).encode(), 400, "unsupported_parameter"),
        (json.dumps({**HELLO, "model": "x"}).encode(), 404, "model_not_found"),
    ],
)
def test_bad_bodies(http: httpx2.Client, body: bytes, status: int, code: str) -> None:
    answer = http.post(CHAT, content=body, headers=JSON)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert answer.headers["x-should-retry"] == "false" and works(http)


def test_a_body_that_does_not_say_its_length(http: httpx2.Client) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(40):
            yield b" " * 100_000

    with contextlib.suppress(httpx2.TransportError):  # the server may close before everything was sent
        assert http.post(CHAT, content=chunks(), headers=JSON).status_code == 413
    assert works(http)


def hostile() -> Iterator[tuple[str, Any, str]]:
    deep: Any = {}
    for _ in range(500):
        deep = {"items": deep}
    yield "deep schema", {"json": deep}, "grammar_too_complex"
    yield "large schema", {"json": {"enum": ["x" * 400_000]}}, "grammar_too_complex"
    yield "exponential expression", {"regex": "(a|b)*a(a|b){40}"}, "grammar_too_complex"
    yield "bad expression", {"regex": "(a"}, "invalid_pattern"
    yield "bad grammar", {"grammar": "root ::= ("}, "invalid_grammar"
    yield "empty language", {"json": {"type": "string", "minLength": 3, "maxLength": 2}}, "unsatisfiable_schema"
    yield "missing reference", {"json": {"$ref": "#/$defs/x"}}, "invalid_schema"


@pytest.mark.parametrize(("what", "outputs", "code"), list(hostile()))
def test_hostile_constraints(http: httpx2.Client, what: str, outputs: Any, code: str) -> None:
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(http.post, CHAT, json={**HELLO, "max_tokens": 20})
        answer = http.post(CHAT, json={**HELLO, "structured_outputs": outputs})
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, code), answer.text
        assert answer.json()["error"]["param"].startswith("structured_outputs")
        assert other.result().status_code == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_other_content_types_are_refused(http: httpx2.Client, kind: str) -> None:
    answer = http.post(CHAT, content=json.dumps(HELLO).encode(), headers={"content-type": kind} if kind else {})
    assert answer.status_code == 415


def test_paths_and_methods_that_are_none(http: httpx2.Client) -> None:
    for answer, status in ((http.get("/v1/nothing"), 404), (http.get(CHAT), 405), (http.post("/v1/models"), 405)):
        assert answer.status_code == status and answer.json()["error"]["message"]


def test_a_client_that_leaves_a_stream(server: RunningServer, http: httpx2.Client) -> None:
    with http.stream("POST", CHAT, json={**HELLO, "max_tokens": 100_000, "stream": True}) as answer:
        for line in answer.iter_lines():
            if '"delta":{"content":"' in line:  # the first piece of text: the role comes before the output is begun
                break
        assert server.server.engine.running == 1
    assert server.wait_until_idle(5) and works(http)


def as_http(body: dict[str, Any]) -> bytes:
    """A request as it goes over the wire."""
    data = json.dumps(body).encode()
    headers = f"host: x\r\ncontent-type: application/json\r\ncontent-length: {len(data)}"
    return f"POST {CHAT} HTTP/1.1\r\n{headers}\r\n\r\n".encode() + data


def raw(server: RunningServer, body: dict[str, Any]) -> socket.socket:
    """A connection on which a request was sent."""
    connection = socket.create_connection(("127.0.0.1", server.port))
    connection.sendall(as_http(body))
    return connection


def test_a_client_that_leaves_before_the_answer(server: RunningServer, http: httpx2.Client) -> None:
    connection = raw(server, {**HELLO, "max_tokens": 100_000})
    until = time.monotonic() + 5
    while not server.server.engine.running and time.monotonic() < until:
        time.sleep(0.01)
    assert server.server.engine.running == 1
    connection.close()
    assert server.wait_until_idle(5) and works(http)


@pytest.mark.full
def test_a_client_that_reads_nothing(server: RunningServer, http: httpx2.Client) -> None:
    """Its answer fills the buffers of the connection; then it is given up, and nobody waited for it."""
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", server.port))
        data = json.dumps({**HELLO, "max_tokens": 3000, "stream": True, "logprobs": True, "top_logprobs": 20}).encode()
        head = (
            f"POST {CHAT} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
        )
        connection.sendall(head.encode() + data)
        time.sleep(0.3)
        assert works(http)
        assert server.wait_until_idle(30) and works(http)


@pytest.mark.full
def test_a_request_that_never_ends(server: RunningServer, http: httpx2.Client) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(as_http(HELLO)[:-1])
        connection.settimeout(10)
        assert b" 408 " in connection.recv(1000).split(b"\r\n")[0] and works(http)


@pytest.mark.full
def test_constraints_are_tried_out_elsewhere_first() -> None:
    """One that takes too long is refused in time, twice, while others are served; good ones of all kinds pass."""
    limits = CompileLimits(seconds=1.0)
    slow = {"grammar": "start: " + " | ".join(f'"{number}" A' for number in range(9000)) + "\nA: /[a-z]{1,9}/\n"}
    with (
        serving(compile_workers=1, compile_limits=limits) as running,
        httpx2.Client(base_url=running.url, timeout=60) as client,
        ThreadPoolExecutor(1) as pool,
    ):
        for _ in range(2):
            other = pool.submit(client.post, CHAT, json={**HELLO, "max_tokens": 20})
            started = time.monotonic()
            answer = client.post(CHAT, json={**HELLO, "structured_outputs": slow})
            assert answer.status_code == 400 and time.monotonic() - started < 30
            assert answer.json()["error"]["code"] == "grammar_too_complex"
            assert other.result().status_code == 200
        tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
        for fields in (
            {"response_format": {"type": "json_object"}},
            {"tools": [tool], "tool_choice": "required", "parallel_tool_calls": False},
            {"tools": [tool], "response_format": {"type": "json_object"}, "parallel_tool_calls": False},
            {"structured_outputs": {"regex": "[0-9]{3}"}},
        ):
            assert client.post(CHAT, json={**HELLO, "max_tokens": 400, **fields}).status_code == 200


def _doubling(count: int) -> str:
    """A Lark grammar that takes exponential time to read, and a few hundred bytes."""
    rules = [f"A{number}: A{number + 1} A{number + 1}" for number in range(count)]
    return "start: A0\n" + "\n".join(rules) + f'\nA{count}: "a"\n'


@pytest.mark.full
def test_grammars_are_read_in_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """``/check`` and chats with grammars that take long to read: ``/health`` is answered meanwhile."""

    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("a grammar is read in the server's process")

    for name in ("lark_reader.read_lark", "gbnf.read_gbnf", "dialects.llguidance.reader.read_llguidance"):
        monkeypatch.setattr(f"structgen.core.grammars.{name}", never)
    monkeypatch.setattr("structgen.core.compilers.read_lark", never, raising=False)
    limits = CompileLimits(seconds=1.0)
    outputs = [{"grammar": _doubling(40 + number)} for number in range(2)]
    with (
        serving(compile_workers=1, compile_limits=limits) as running,
        httpx2.Client(base_url=running.url, timeout=60) as client,
        ThreadPoolExecutor(4) as pool,
    ):
        asked = [pool.submit(client.post, "/check", json={"structured_outputs": given}) for given in outputs]
        body = {**HELLO, "structured_outputs": outputs[0]}
        asked += [pool.submit(client.post, CHAT, json=body)]
        tag = {"type": "structural_tag", "format": {"type": "grammar", **outputs[1]}}
        asked += [pool.submit(client.post, CHAT, json={**HELLO, "structured_outputs": {"structural_tag": tag}})]
        slowest = 0.0
        while not all(future.done() for future in asked):
            started = time.monotonic()
            assert client.get("/health").status_code == 200
            slowest = max(slowest, time.monotonic() - started)
            time.sleep(0.02)
        codes = {future.result().json()["error"]["code"] for future in asked}
        assert codes == {"grammar_too_complex"} and slowest < 1.0
        time.sleep(0.1)


@pytest.mark.full
def test_clients_that_leave_while_their_constraint_is_compiled(caplog: pytest.LogCaptureFixture) -> None:
    """What they asked for is given up: the next new constraint is compiled at once, a kept one meanwhile; nothing of
    their texts is in the log."""
    limits = CompileLimits(seconds=3.0)
    known = {**HELLO, "max_tokens": 5, "structured_outputs": {"regex": "known"}}
    with (
        serving(compile_workers=1, compile_limits=limits) as running,
        httpx2.Client(base_url=running.url, timeout=60) as client,
    ):
        assert client.post(CHAT, json=known).status_code == 200
        left = []
        for number in range(20):
            grammar = _doubling(40 + number) + "// a secret\n"
            left.append(raw(running, {**HELLO, "structured_outputs": {"grammar": grammar}}))
        time.sleep(0.3)
        assert client.post(CHAT, json=known).status_code == 200  # a kept one does not wait for them
        for connection in left:
            connection.close()
        started = time.monotonic()
        new = {**HELLO, "max_tokens": 5, "structured_outputs": {"regex": "newer"}}
        assert client.post(CHAT, json=new).status_code == 200
        assert time.monotonic() - started < 30  # twenty trials would take a minute
    assert "secret" not in caplog.text and "never retrieved" not in caplog.text


def test_a_prompt_that_is_too_long_is_told_before_its_constraint_is_compiled() -> None:
    with serving(generator(context_length=200)) as running, httpx2.Client(base_url=running.url, timeout=60) as client:

        async def never(*_: Any) -> Any:
            raise AssertionError("it was compiled")

        running.server.engine.compile = never  # type: ignore[method-assign, assignment]
        body = {"prompt": "x" * 200, "structured_outputs": {"regex": "a"}}
        answer = client.post("/v1/completions", json=body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "context_length_exceeded")


def test_an_error_in_a_stream_ends_it_without_done() -> None:
    """The model fails in the middle: the client is told, and no ``[DONE]`` follows."""
    gen = generator()
    model: Any = gen.model
    read, calls = type(model).read_after, []

    def failing(self: Any, texts: Any) -> Any:
        calls.append(1)
        if len(calls) > 5:
            raise RuntimeError("the secret of the server")
        return read(self, texts)

    with serving(gen) as running, httpx2.Client(base_url=running.url, timeout=60) as client:
        model.read_after = failing.__get__(model)
        body = {**HELLO, "max_tokens": 50, "stream": True, "seed": 1}  # whose text goes on
        text = client.post(CHAT, json=body).text
        last = [line for line in text.splitlines() if line.startswith("data: ")][-1]
        error = json.loads(last.removeprefix("data: "))["error"]
        assert error["code"] == "internal_error" and "secret" not in text and "[DONE]" not in text
        calls.clear()
        events = client.post(
            "/v1/responses", json={"input": "x", "max_output_tokens": 50, "stream": True, "temperature": 0}
        ).text
        assert "event: response.failed" in events and "secret" not in events
        calls.clear()
        answer = client.post(CHAT, json={**HELLO, "max_tokens": 50, "seed": 1})
        assert answer.status_code == 500 and "secret" not in answer.text
        calls.clear()
        assert client.post(CHAT, json={**HELLO, "max_tokens": 3}).status_code == 200


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have one loopback address")
def test_one_address_cannot_take_all_rows() -> None:
    """Another one's small request is written while the first's long outputs go on, whatever priority they claim."""
    long = {**HELLO, "max_tokens": 100_000, "priority": -100}
    with serving(generator(0.001), max_rows=4, total_seconds=60) as running:
        greedy = [raw(running, long) for _ in range(10)]
        until = time.monotonic() + 20
        while (running.server.engine.running, running.server.engine.waiting) != (4, 6) and time.monotonic() < until:
            time.sleep(0.01)
        transport = httpx2.HTTPTransport(local_address="127.0.0.2")
        with httpx2.Client(base_url=running.url, transport=transport, timeout=30) as good:
            for _ in range(3):
                assert works(good)
        assert running.server.engine.running == 4 and running.server.engine.waiting == 6
        for connection in greedy:
            connection.close()
        assert running.wait_until_idle(20)
