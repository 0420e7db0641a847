"""Keys, rates, queue, draining, metrics and logs of a running server."""

from __future__ import annotations

import json
import logging
import threading
import time
from typing import Any

import pytest

pytest.importorskip("httpx2")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("prometheus_client")

import httpx2

from structgen.errors import GenerationError, OptionsError
from structgen.progress import CONSTRAINT_LOG
from structgen.server.logs import mute_constraints
from structgen.server.records import log_failure
from structgen.server.settings import ServingSettings
from tests.server.tiny import EOS, generator
from tests.server.tiny_server import serving

CHAT = "/v1/chat/completions"
NO_END = {str(EOS): -100}
HELLO: dict[str, Any] = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 5, "logit_bias": NO_END}


def test_keys() -> None:
    with serving(api_keys=frozenset({"sk-one", "sk-two"})) as server, httpx2.Client(base_url=server.url) as http:
        for headers in (
            {},
            {"authorization": "Bearer no"},
            {"authorization": "Basic sk-one"},
            {"authorization": "sk-one"},
        ):
            answer = http.post(CHAT, json=HELLO, headers=headers)
            assert answer.status_code == 401 and answer.json()["error"]["code"] == "invalid_api_key"
            assert (
                answer.headers["www-authenticate"] == "Bearer"
                and http.get("/v1/models", headers=headers).status_code == 401
            )
        for key in ("sk-one", "sk-two"):
            assert http.post(CHAT, json=HELLO, headers={"authorization": f"Bearer {key}"}).status_code == 200
        assert http.get("/health").status_code == http.get("/ready").status_code == 200


def test_a_wrong_key_is_not_read_further() -> None:
    """Neither its body nor its rate counts."""
    with (
        serving(api_keys=frozenset({"k"}), requests_per_minute=2) as server,
        httpx2.Client(base_url=server.url) as http,
    ):
        for _ in range(5):
            assert http.post(CHAT, content=b"{", headers={"content-type": "application/json"}).status_code == 401
        assert http.post(CHAT, json=HELLO, headers={"authorization": "Bearer k"}).status_code == 200


@pytest.mark.full
def test_hosts() -> None:
    with serving(hosts=frozenset({"127.0.0.1", "[::1]"})) as server, httpx2.Client(base_url=server.url) as http:
        assert http.post(CHAT, json=HELLO).status_code == 200
        assert http.post(CHAT, json=HELLO, headers={"host": "[::1]:8000"}).status_code == 200
        for host in ("evil.example", "evil.example:8000", "127.0.0.1.evil.example", ""):
            answer = http.post(CHAT, json=HELLO, headers={"host": host})
            assert answer.status_code in (400, 403)
            for path in ("/v1/models", "/v1/models/tiny", "/", "/page.js", "/health", "/ready", "/metrics", "/nowhere"):
                told = http.get(path, headers={"host": host})
                assert told.status_code in (400, 403) and set(told.json()) == {"error"}, (path, host)
        for path in ("/", "/health", "/ready", "/metrics"):
            assert http.get(path).status_code == 200


def test_rates() -> None:
    with serving(requests_per_minute=3) as server, httpx2.Client(base_url=server.url) as http:
        answers = [http.post(CHAT, json=HELLO) for _ in range(5)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
        assert answers[-1].json()["error"]["code"] == "rate_limit_exceeded"
        assert 1 <= int(answers[-1].headers["retry-after"]) <= 21 and answers[-1].headers["x-should-retry"] == "true"


@pytest.mark.full
def test_the_queue_turns_away_and_the_admitted_finish() -> None:
    with serving(generator(0.002), max_rows=1, max_waiting=3) as server:
        statuses: list[int] = []

        def ask() -> None:
            with httpx2.Client(base_url=server.url, timeout=60) as http:
                answer = http.post(CHAT, json={**HELLO, "max_tokens": 100, "logit_bias": NO_END})
                statuses.append(answer.status_code)
                if answer.status_code == 429:
                    assert answer.headers["retry-after"] and answer.json()["error"]["code"] == "queue_full"
                else:
                    assert answer.json()["usage"]["completion_tokens"] == 100

        threads = [threading.Thread(target=ask) for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert set(statuses) == {200, 429} and statuses.count(200) >= 3


def test_requests_that_are_being_prepared_wait_too() -> None:
    import asyncio

    with serving(max_rows=1, max_waiting=1) as server:
        engine = server.server.engine
        compile = engine.compile

        async def slowly(*arguments: Any) -> Any:
            await asyncio.sleep(0.5)
            return await compile(*arguments)

        engine.compile = slowly  # type: ignore[method-assign, assignment]

        async def all_at_once() -> list[int]:
            async with httpx2.AsyncClient(base_url=server.url, timeout=60) as http:
                body = {**HELLO, "structured_outputs": {"regex": "a"}}
                return [
                    answer.status_code
                    for answer in await asyncio.gather(*(http.post(CHAT, json=body) for _ in range(6)))
                ]

        assert sorted(asyncio.run(all_at_once())) == [200, 200, 429, 429, 429, 429]


def test_draining_lets_work_end_and_takes_no_more() -> None:
    import asyncio

    schema = {"type": "array", "items": {"type": "integer"}}
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    with serving(generator(0.002), drain_seconds=0.5) as server, httpx2.Client(base_url=server.url, timeout=60) as http:
        answers: list[Any] = []
        bias = {**NO_END, **{str(byte): 8 for byte in b"0123456789, "}}

        def ask(**more: Any) -> None:
            answers.append(httpx2.post(f"{server.url}{CHAT}", json={**HELLO, **more}, timeout=60))

        threads = [
            threading.Thread(target=ask, kwargs={"max_tokens": 50}),
            threading.Thread(target=ask, kwargs={"max_tokens": 100_000, "response_format": form, "logit_bias": bias}),
        ]
        for thread in threads:
            thread.start()
        while server.server.engine.running < 2:
            time.sleep(0.01)
        draining = threading.Thread(target=lambda: asyncio.run(server.server.drain()))
        draining.start()
        while not server.server.admission.is_draining:
            time.sleep(0.01)
        refused = http.post(CHAT, json=HELLO)
        assert refused.status_code == 503 and refused.json()["error"]["code"] == "draining"
        assert http.get("/ready").status_code == 503 and http.get("/health").status_code == 200
        for thread in [*threads, draining]:
            thread.join(30)
        assert [answer.status_code for answer in answers] == [200, 200]
        texts = [answer.json()["choices"][0]["message"]["content"] for answer in answers]
        assert any(text.startswith("[") and isinstance(json.loads(text), list) for text in texts)


def test_metrics() -> None:
    with serving() as server, httpx2.Client(base_url=server.url) as http:
        for _ in range(3):
            http.post(CHAT, json=HELLO)
        http.post(CHAT, json={**HELLO, "x": 1})
        http.post(CHAT, json={**HELLO, "stream": True})
        assert server.wait_until_idle()
        answer = http.get("/metrics")
        values = dict(line.rsplit(" ", 1) for line in answer.text.splitlines() if not line.startswith("#"))
        label = 'model_name="tiny"'
        assert float(values[f"structgen:generation_tokens_total{{{label}}}"]) == 20
        assert float(values[f'structgen:request_success_total{{finished_reason="length",{label}}}']) == 4
        assert float(values[f'structgen:admission_rejections_total{{code="unsupported_parameter",{label}}}']) == 1
        assert float(values[f"structgen:time_to_first_token_seconds_count{{{label}}}"]) == 4
        assert float(values[f"structgen:num_requests_running{{{label}}}"]) == 0


NAMES = """num_requests_running num_requests_waiting kv_cache_usage_perc kv_cache_usage_bytes prefix_cache_queries_total
prefix_cache_hits_total num_preemptions_total admission_rejections_total prompt_tokens_total prompt_tokens_cached_total
generation_tokens_total request_success_total iteration_tokens_total time_to_first_token_seconds
inter_token_latency_seconds e2e_request_latency_seconds request_queue_time_seconds request_prefill_time_seconds
request_decode_time_seconds spec_decode_num_drafts_total spec_decode_num_draft_tokens_total
spec_decode_num_accepted_tokens_total grammar_compile_seconds grammar_cache_hits_total grammar_cache_bytes mask_seconds
late_masks_total
forced_tokens_total steered_tokens_total hurried_requests_total step_seconds cancelled_requests_total"""
"""Those of shared dashboards first, by vLLM's names."""


def test_metrics_have_their_names_and_add_up() -> None:
    """Read by the client library's own parser, and compared with what the answers say."""
    from prometheus_client.parser import text_string_to_metric_families

    with (
        serving(generator(draft="ngram"), max_cache_bytes=1 << 20) as server,
        httpx2.Client(base_url=server.url) as http,
    ):
        body = {**HELLO, "max_tokens": 60, "structured_outputs": {"regex": "(abc){12}[a-z]{3}"}, "cache_salt": "x"}
        usages = [http.post(CHAT, json={**body, "messages": [{"role": "user", "content": "y" * 50}]}).json()["usage"]
                  for _ in range(3)]  # fmt: skip
        http.post(CHAT, json={**body, "x": 1})
        assert server.wait_until_idle()
        families = list(text_string_to_metric_families(http.get("/metrics").text))
    samples = {(sample.name, sample.labels.get("outcome")): sample.value for f in families for sample in f.samples}
    names = {name for name, _ in samples}
    for name in NAMES.split():
        assert {f"structgen:{name}", f"structgen:{name}_count"} & names, name

    def value(name: str, outcome: str | None = None) -> float:
        return samples[f"structgen:{name}", outcome]

    cached = sum(usage["prompt_tokens_details"]["cached_tokens"] for usage in usages)
    assert cached > 0 and value("prefix_cache_hits_total") == value("prompt_tokens_cached_total") == cached
    assert (
        value("prefix_cache_queries_total") == value("prompt_tokens_total") == sum(u["prompt_tokens"] for u in usages)
    )
    assert value("grammar_cache_hits_total") == value("grammar_compile_seconds_count", "kept") == 2
    assert value("grammar_compile_seconds_count", "compiled") == 1 and value("grammar_cache_bytes") > 0
    drafts = [value(f"spec_decode_num_{name}_total") for name in ("drafts", "draft_tokens", "accepted_tokens")]
    assert drafts[1] >= max(drafts[0], drafts[2])
    parts = sum(value(f"request_{name}_time_seconds_sum") for name in ("queue", "prefill", "decode"))
    assert 0 < parts <= value("e2e_request_latency_seconds_sum")


def test_outputs_closed_for_time_are_counted() -> None:
    with serving(generator(0.002), total_seconds=0.1) as server, httpx2.Client(base_url=server.url) as http:
        answer = http.post(CHAT, json={**HELLO, "max_tokens": 1000})
        assert answer.json()["choices"][0]["finish_reason"] == "length"
        assert 'structgen:hurried_requests_total{model_name="tiny"} 1.0' in http.get("/metrics").text


def test_one_line_of_json_a_request_and_never_text(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "structgen.server")
    secret = {"role": "user", "content": "my secret is 1234"}
    with serving() as server, httpx2.Client(base_url=server.url) as http:
        good = http.post(CHAT, json={**HELLO, "messages": [secret]})
        bad = http.post(CHAT, json={**HELLO, "messages": [secret], "temperature": 9})
        told = [json.loads(record.message) for record in caplog.records if record.name == "structgen.server"]
        lines = [line for line in told if "id" in line]
    assert [line["status"] for line in lines] == [200, 400] and lines[1]["error"] == "invalid_value"
    assert lines[0]["id"] == good.json()["id"] == good.headers["x-request-id"]
    assert lines[1]["id"] == bad.headers["x-request-id"] and lines[0]["completion_tokens"] == 5
    assert "1234" not in caplog.text


@pytest.mark.parametrize("workers", [0, pytest.param(1, marks=pytest.mark.full)])
def test_nothing_of_a_constraint_is_logged(
    workers: int, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """What is odd about it is answered, and counted in the log."""
    caplog.set_level(logging.INFO)
    level = CONSTRAINT_LOG.level
    mute_constraints()  # as ``structgen serve`` does
    odd = {"type": "object", "properties": {"secret": {"type": "string", "minLenght": 3}}}
    never = {"type": "object", "properties": {"secret": False}, "required": ["secret"]}
    tools = [{"type": "function", "function": {"name": name, "parameters": each}} for name, each in (
        ("secretly", never), ("f", odd),
    )]  # fmt: skip
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": odd}}
    try:
        with serving(compile_workers=workers) as server, httpx2.Client(base_url=server.url, timeout=30) as http:
            for more in ({"response_format": form}, {"tools": tools, "structgen": {"on_impossible": "skip"}}):
                answer = http.post(CHAT, json={**HELLO, **more, "max_tokens": 200})
                assert answer.status_code == 200 and "secret" in answer.headers["x-structgen-warnings"]
            assert http.post("/check", json={"structured_outputs": {"json": odd}}).status_code == 200
    finally:
        CONSTRAINT_LOG.setLevel(level)
    assert "secret" not in caplog.text and "secret" not in capfd.readouterr().err
    assert '"warnings": 1' in caplog.text


def test_what_is_checked_may_name_sources() -> None:
    def ask(name: str, **more: object) -> int:
        json_schema = {"type": "string", "x-structgen": {"quoteOf": name}}
        return http.post("/check", json={"structured_outputs": {"json": json_schema}, **more}).status_code

    with serving(sources={"case": "the roof"}) as server, httpx2.Client(base_url=server.url) as http:
        assert [ask("case"), ask("letter", sources={"letter": "a"}), ask("letter")] == [200, 200, 400]
        assert ask("prompt", sources={"prompt": "what it would be"}) == 200


def test_what_fails_is_logged_without_its_text(caplog: pytest.LogCaptureFixture) -> None:
    log_failure("r1", GenerationError("cannot read 'secret'", text="secret"))
    assert "r1" in caplog.text and "GenerationError" in caplog.text and "secret" not in caplog.text
    log_failure("r2", RuntimeError("out of memory"))
    assert "out of memory" in caplog.text


def test_a_failed_model_thread_is_not_healthy() -> None:
    with serving() as server, httpx2.Client(base_url=server.url) as http:
        server.server.engine.failure = MemoryError("gone")
        assert http.get("/health").status_code == 503 and http.get("/ready").status_code == 503
        answer = http.post(CHAT, json=HELLO)
        assert answer.status_code == 503 and answer.json()["error"]["code"] == "model_thread_failed"


@pytest.mark.parametrize(
    "options",
    [
        {"max_rows": 0},
        {"queue_seconds": 0},
        {"model_names": ()},
        {"schema_in_prompt": "x"},
        {"schema_form": "x"},
        {"default_temperature": 3},
    ],
)
def test_settings_out_of_range_raise(options: Any) -> None:
    with pytest.raises(OptionsError, match=next(iter(options))):
        ServingSettings(**options)


def test_a_schema_is_read_once() -> None:
    """Requests of one schema begin alike up to what the user says, in whichever message it stands."""
    schema = {"type": "object", "properties": {"answer": {"enum": ["yes", "no"]}}, "required": ["answer"]}

    def cached(http: httpx2.Client, place: str) -> tuple[list[int], int]:
        counts, sizes = [], []
        for question in ("Is it so?", "Was it ever?"):
            form = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
            body = {
                "messages": [{"role": "user", "content": question}],
                "response_format": form, "cache_salt": place, "structgen": {"schema_in_prompt": place},
            }  # fmt: skip
            usage = http.post(CHAT, json=body).json()["usage"]
            counts.append(usage["prompt_tokens_details"]["cached_tokens"])
            sizes.append(usage["prompt_tokens"])
        return counts, min(sizes)

    with serving() as server, httpx2.Client(base_url=server.url) as http:
        for place in ("system", "user"):
            (first, again), size = cached(http, place)
            assert first == 0 and again >= size - len("<user>Is it so?\n<assistant>")


def test_what_is_odd_about_a_constraint_is_told() -> None:
    """Words that look misspelt, and tools without possible arguments: in the answer, in a header, in streams too."""
    schema = {"type": "object", "properties": {"a": {"const": 1, "minLenght": 3}}, "required": ["a"]}
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    asked = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 40}
    never = {"type": "object", "properties": {"x": False}, "required": ["x"]}
    tools = [
        {"type": "function", "function": {"name": "fine", "parameters": {"typ": "object"}}},
        {"type": "function", "function": {"name": "never", "parameters": never}},
    ]
    with serving() as server, httpx2.Client(base_url=server.url) as http:
        answer = http.post(CHAT, json={**asked, "response_format": form})
        (told,) = answer.json()["structgen"]["warnings"]
        assert "/properties/a/minLenght" in told and "did you mean 'minLength'" in told
        assert json.loads(answer.headers["x-structgen-warnings"]) == [told]
        assert http.post(CHAT, json={**asked, "response_format": form}).json()["structgen"]["warnings"] == [told]
        streamed = http.post(CHAT, json={**asked, "response_format": form, "stream": True})
        assert json.loads(streamed.headers["x-structgen-warnings"]) == [told]
        checked = http.post("/check", json={"structured_outputs": {"json": schema}}).json()["keywords"]
        assert [entry["pointer"] for entry in checked if entry["status"] == "misspelt"] == ["/properties/a/minLenght"]
        refused = http.post(CHAT, json={**asked, "tools": tools})
        assert refused.status_code == 400 and refused.json()["error"]["code"] == "unsatisfiable_schema"
        assert "'never'" in refused.json()["error"]["message"]
        skipped = http.post(CHAT, json={**asked, "tools": tools, "structgen": {"on_impossible": "skip"}})
        assert skipped.status_code == 200
        left_out, word = skipped.json()["structgen"]["warnings"]
        assert "'never' is left out" in left_out
        assert "'fine', at /0/function/parameters/typ" in word and "'type'" in word
        plain = http.post(CHAT, json=HELLO)
        assert "structgen" not in plain.json() and "x-structgen-warnings" not in plain.headers


def test_the_report_comes_where_it_is_asked_for() -> None:
    schema = {"title": "t", "properties": {"a": {"type": "integer"}}, "additionalProperties": False}
    form = {"type": "json_schema", "json_schema": {"schema": schema}}
    asked = {**HELLO, "response_format": form, "max_tokens": 60, "structgen": {"report": True}}
    with serving() as server, httpx2.Client(base_url=server.url) as http:
        report = http.post(CHAT, json=asked).json()["structgen"]["report"]
        assert report["counts"] == {"annotation": 1, "enforced": 3}
        assert {"pointer": "/properties/a/type", "status": "enforced", "reason": ""} in report["keywords"]
        lines = http.post(CHAT, json={**asked, "stream": True}).text.splitlines()
        first, second, *_ = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
        assert first["structgen"]["report"] == report and "structgen" not in second
        free = http.post(CHAT, json={**HELLO, "structgen": {"report": True}}).json()
        assert free["structgen"]["report"] == {"counts": {}, "keywords": []}


def test_a_predicted_text_is_counted_and_changes_nothing() -> None:
    """Counts by hand: a byte is a token. A prediction of what comes is accepted whole, whichever way it is sent."""
    constraint = {"regex": "[a-z]{8}-[0-9]{4}"}
    body = {**HELLO, "max_tokens": 40, "seed": 3, "structured_outputs": constraint}
    with serving() as server, httpx2.Client(base_url=server.url, timeout=30) as http:

        def ask(**fields: Any) -> tuple[str, tuple[int, int]]:
            answer = http.post(CHAT, json={**body, **fields}).json()
            details = answer["usage"]["completion_tokens_details"]
            counts = details["accepted_prediction_tokens"], details["rejected_prediction_tokens"]
            return answer["choices"][0]["message"]["content"], counts

        text, counts = ask()
        assert len(text) == 13 and counts == (0, 0)
        assert ask(prediction={"type": "content", "content": text}) == (text, (13, 0))
        parts = [{"type": "text", "text": piece} for piece in (text[:5], text[5:])]
        assert ask(prediction={"type": "content", "content": parts}) == (text, (13, 0))
        assert ask(prediction={"type": "content", "content": "~" * 20}) == (text, (0, 20))
        assert ask(prediction={"type": "content", "content": ""}) == (text, (0, 0))
        assert ask(prediction=None) == (text, (0, 0))
        several = http.post(CHAT, json={**body, "n": 2, "prediction": {"type": "content", "content": text}}).json()
        assert several["choices"][0]["message"]["content"] == text


@pytest.mark.full
def test_thinking_is_closed_within_its_budget() -> None:
    """In chats and responses, with an answer, tools or any text behind it, by request or by setting."""
    parameters = {"type": "object", "additionalProperties": False}
    tools = [{"type": "function", "function": {"name": "f", "parameters": parameters}}]
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"enum": ["yes", "no"]}}}
    body = {"messages": [{"role": "user", "content": "x"}], "max_tokens": 200, "seed": 1}
    with (
        serving(generator(template="{{ messages }} <think>"), max_think_tokens=7) as server,
        httpx2.Client(base_url=server.url, timeout=60) as http,
    ):
        gen = server.server.engine
        gen.tokenizer.apply_chat_template = lambda *_, **__: "x<think>\n"
        for most, asked in (
            (7, {}),
            (3, {"structgen": {"max_think_tokens": 3}}),
            (0, {"structgen": {"max_think_tokens": 0}}),
        ):
            for more in ({"response_format": form}, {"tools": tools, "tool_choice": "required"}):
                answer = http.post(CHAT, json={**body, **more, **asked}).json()
                message = answer["choices"][0]["message"]
                thought = answer["usage"]["completion_tokens_details"]["reasoning_tokens"]
                assert thought <= most + len("</think>")
                if "tools" in more:
                    assert message["tool_calls"][0]["function"]["name"] == "f"
                else:
                    assert message["content"] in ('"yes"', '"no"') and answer["choices"][0]["finish_reason"] == "stop"
            free = http.post(CHAT, json={**body, **asked, "max_tokens": 40}).json()
            assert free["usage"]["completion_tokens_details"]["reasoning_tokens"] <= most + len("</think>")
            response = http.post("/v1/responses", json={"input": "x", "max_output_tokens": 40, **asked}).json()
            assert response["usage"]["output_tokens_details"]["reasoning_tokens"] <= most + len("</think>")
        refused = http.post("/v1/completions", json={"prompt": "x", "structgen": {"max_think_tokens": 3}})
        assert refused.status_code == 400 and refused.json()["error"]["param"] == "structgen.max_think_tokens"
        assert http.post(CHAT, json={**body, "structgen": {"max_think_tokens": -1}}).status_code == 400
