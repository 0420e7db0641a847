"""Spans of requests, as the SDK of OpenTelemetry gets them."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("httpx2")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("prometheus_client")
pytest.importorskip("opentelemetry.sdk")

import httpx2
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from structgen.server import tracing
from tests.server.tiny import EOS, generator
from tests.server.tiny_server import serving

CHAT = "/v1/chat/completions"
SECRET = "my secret is 1234"
BODY: dict[str, Any] = {
    "messages": [{"role": "user", "content": SECRET}],
    "max_tokens": 9,
    "temperature": 0.5,
    "seed": 7,
    "logit_bias": {str(EOS): -100},
}
EXPORTER = InMemorySpanExporter()


@pytest.fixture(scope="module", autouse=True)
def recording() -> None:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(EXPORTER))
    trace.set_tracer_provider(provider)


@pytest.fixture
def spans() -> Iterator[Any]:
    """What was recorded, by name, once the request's span has ended; children are looked for in its trace."""
    EXPORTER.clear()

    def found() -> tuple[ReadableSpan, dict[str, list[ReadableSpan]]]:
        until = time.monotonic() + 10
        while time.monotonic() < until:
            whole = EXPORTER.get_finished_spans()
            if any(span.name.endswith(" tiny") for span in whole):
                break
            time.sleep(0.01)
        (request,) = [span for span in whole if span.name.endswith(" tiny")]
        children: dict[str, list[ReadableSpan]] = {}
        for span in whole:
            if span is not request:
                assert span.parent is not None and span.parent.span_id == request.context.span_id
                children.setdefault(span.name, []).append(span)
        return request, children

    yield found
    EXPORTER.clear()


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def test_a_request_and_its_parts(spans: Any) -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    with serving(generator(0.001)) as server, httpx2.Client(base_url=server.url) as http:
        body = {**BODY, "structured_outputs": {"json": {"enum": [SECRET]}}, "stop": [SECRET + "!"], "max_tokens": 99}
        answer = http.post(CHAT, json=body, headers={"traceparent": parent}).json()
    request, children = spans()
    assert f"{request.context.trace_id:032x}" == parent.split("-")[1]
    assert request.parent is not None and f"{request.parent.span_id:016x}" == parent.split("-")[2]
    assert request.name == "chat tiny" and request.kind == SpanKind.SERVER
    told = attributes(request)
    expected = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "structgen",
        "gen_ai.request.model": "tiny",
        "gen_ai.request.max_tokens": 99,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.seed": "7",
        "gen_ai.output.type": "json",
        "gen_ai.response.id": answer["id"],
        "gen_ai.response.finish_reasons": (answer["choices"][0]["finish_reason"],),
        "gen_ai.usage.input_tokens": answer["usage"]["prompt_tokens"],
        "gen_ai.usage.output_tokens": answer["usage"]["completion_tokens"],
        "http.response.status_code": 200,
        "url.path": CHAT,
    }
    assert {name: told.get(name) for name in expected} == expected
    assert {name: len(found) for name, found in children.items()} == {
        "queue": 1, "compile": 1, "prefill": 1, "decode": 1,
    }  # fmt: skip
    compiled, *order = (children[name][0] for name in ("compile", "queue", "prefill", "decode"))
    for before, after in itertools.pairwise(order):
        assert before.start_time <= before.end_time == after.start_time
    # A request holds its place in the queue while its constraint is compiled.
    assert request.start_time <= order[0].start_time <= compiled.start_time <= order[1].start_time
    assert "1234" not in "".join(span.to_json() for span in EXPORTER.get_finished_spans())


def test_each_output_of_a_stream_has_its_parts(spans: Any) -> None:
    with serving() as server, httpx2.Client(base_url=server.url) as http:
        http.post(CHAT, json={**BODY, "n": 2, "stream": True})
    request, children = spans()
    assert {name: len(found) for name, found in children.items()} == {"queue": 2, "prefill": 2, "decode": 2}
    assert sorted(attributes(span)["structgen.choice.index"] for span in children["decode"]) == [0, 1]
    assert attributes(request)["gen_ai.response.finish_reasons"] == ("length", "length")
    assert attributes(request)["gen_ai.usage.output_tokens"] == 18
    assert attributes(request)["gen_ai.response.time_to_first_chunk"] > 0


@pytest.mark.parametrize(
    ("path", "fields", "code"),
    [
        (CHAT, {"x": 1}, "unsupported_parameter"),
        (CHAT, {"structured_outputs": {"regex": "("}}, "invalid_pattern"),
        (CHAT, {"model": "other"}, "model_not_found"),
    ],
)
def test_errors(spans: Any, path: str, fields: dict[str, Any], code: str) -> None:
    with serving() as server, httpx2.Client(base_url=server.url) as http:
        status = http.post(path, json={**BODY, **fields}).status_code
    request, children = spans()
    assert attributes(request)["error.type"] == code and request.status.status_code == StatusCode.ERROR
    assert attributes(request)["http.response.status_code"] == status
    for child in children.get("compile", []):
        assert attributes(child)["error.type"] == code


def test_a_client_that_leaves(spans: Any) -> None:
    with (
        serving(generator(0.01)) as server,
        httpx2.Client(base_url=server.url) as http,
        http.stream("POST", CHAT, json={**BODY, "max_tokens": 2000, "stream": True}) as answer,
    ):
        next(answer.iter_lines())
        answer.close()
        request, _ = spans()
    assert attributes(request)["error.type"] == "client_closed_request"


def test_completions_and_responses_have_their_operation(spans: Any) -> None:
    with serving() as server, httpx2.Client(base_url=server.url) as http:
        http.post("/v1/completions", json={"prompt": SECRET, "max_tokens": 3})
        request, _ = spans()
        assert request.name == "text_completion tiny" and "gen_ai.usage.output_tokens" in attributes(request)
        EXPORTER.clear()
        http.post("/v1/responses", json={"input": SECRET, "max_output_tokens": 3})
        assert spans()[0].name == "chat tiny"


def test_within_what_instruments_the_server(spans: Any) -> None:
    """Beside a current span the request's is its child, whatever the header says."""
    with trace.get_tracer("outer").start_as_current_span("outer") as outer:
        made = tracing.RequestTrace(CHAT, {"traceparent": "00-" + "1" * 32 + "-" + "2" * 16 + "-01"}, "tiny")
    made.finish("id", 200, None, None)
    (request,) = [span for span in EXPORTER.get_finished_spans() if span.name == "chat tiny"]
    assert request.parent is not None and request.parent.span_id == outer.get_span_context().span_id
    assert request.kind == SpanKind.INTERNAL


@pytest.mark.parametrize("missing", ["package", "sdk"])
def test_nothing_is_done_where_nobody_records(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    if missing == "package":
        monkeypatch.setattr(tracing, "trace", None)
    else:
        monkeypatch.setattr(trace, "get_tracer", lambda *_: trace.NoOpTracer())
    EXPORTER.clear()
    with serving() as server, httpx2.Client(base_url=server.url) as http:
        assert http.post(CHAT, json={**BODY, "structured_outputs": {"regex": "a"}}).status_code == 200
        assert http.post(CHAT, json={**BODY, "stream": True}).status_code == 200
    assert EXPORTER.get_finished_spans() == ()
