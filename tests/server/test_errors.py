"""Errors as OpenAI's client raises them, how often it asks again, and log-probabilities where nothing was chosen."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("openai")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("prometheus_client")

import httpx2
import openai

from tests.server.tiny import EOS, generator
from tests.server.tiny_server import RunningServer, serving

HELLO: list[Any] = [{"role": "user", "content": "Hello"}]


@contextlib.contextmanager
def client_of(server: RunningServer, key: str = "k") -> Iterator[tuple[openai.OpenAI, list[httpx2.Response]]]:
    """A client that asks again at most once, and what it was answered."""
    answers: list[httpx2.Response] = []
    http = httpx2.Client(event_hooks={"response": [answers.append]})
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key=key, max_retries=1, http_client=http) as client:
        yield client, answers


@pytest.mark.first_case
@pytest.mark.parametrize(
    ("settings", "asked", "kind", "status", "code", "retries"),
    [
        ({}, {"top_k": "x"}, openai.BadRequestError, 400, "invalid_value", False),
        ({}, {"guided_json": {}}, openai.BadRequestError, 400, "unsupported_parameter", False),
        ({"api_keys": frozenset({"other"})}, {}, openai.AuthenticationError, 401, "invalid_api_key", False),
        ({}, {"model": "other"}, openai.NotFoundError, 404, "model_not_found", False),
        ({"max_body": 10}, {}, openai.APIStatusError, 413, "request_too_large", False),
        ({"requests_per_minute": 1}, {}, openai.RateLimitError, 429, "rate_limit_exceeded", True),
        ({}, {"draining": True}, openai.InternalServerError, 503, "draining", True),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("surface", ["chat", "completions", "responses"])
def test_errors_have_their_kind(
    settings: Any, asked: dict[str, Any], kind: Any, status: int, code: str, retries: bool, stream: bool, surface: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    with serving(**settings) as server, client_of(server) as (client, answers):
        fields = {name: value for name, value in asked.items() if name not in ("draining", "model")}
        server.server.admission.is_draining = "draining" in asked
        monkeypatch.setattr(client, "_sleep_for_retry", lambda **_: None)
        if code == "rate_limit_exceeded":
            server.server.admission.check({"content-type": "application/json"}, "127.0.0.1")
        resources: dict[str, tuple[Any, dict[str, Any]]] = {
            "chat": (client.chat.completions, {"messages": HELLO}),
            "completions": (client.completions, {"prompt": "x"}),
            "responses": (client.responses, {"input": "x"}),
        }
        resource, given = resources[surface]
        with pytest.raises(kind) as caught:
            resource.create(model=asked.get("model", "tiny"), stream=stream, extra_body=fields, **given)
    error = caught.value
    assert (error.status_code, error.code) == (status, code) and error.message
    assert len(answers) == 1 + retries
    assert all(answer.headers["x-should-retry"] == str(retries).lower() for answer in answers)
    assert all(("retry-after" in answer.headers) == retries for answer in answers)
    if code == "unsupported_parameter":
        assert error.param == "guided_json"


@pytest.mark.parametrize("stream", [False, True])
def test_the_likeliest_of_forced_tokens_is_the_token(stream: bool) -> None:
    """A byte is a token: what is forced has log-probability 0 and stands alone; of two allowed both are told."""
    with serving(generator()) as server, client_of(server) as (client, _):
        answer: Any = client.chat.completions.create(
            model="tiny", messages=HELLO, logprobs=True, top_logprobs=5, stream=stream,
            extra_body={"structured_outputs": {"regex": "ab[xy]c[0-9]"}},
        )  # fmt: skip
        choices = [chunk.choices[0] for chunk in answer] if stream else answer.choices
    told = [token for choice in choices if choice.logprobs for token in choice.logprobs.content]
    assert [len(token.top_logprobs) for token in told] == [1, 1, 2, 1, 5]
    for token in told:
        if len(token.top_logprobs) == 1:
            assert token.logprob == 0 and token.top_logprobs[0].token == token.token
        assert sum(math.exp(other.logprob) for other in token.top_logprobs) <= 1 + 1e-6
        same = [other.logprob for other in token.top_logprobs if other.token == token.token]
        assert same == [pytest.approx(token.logprob, abs=1e-6)] or len(token.top_logprobs) == 5
    assert sum(math.exp(other.logprob) for other in told[2].top_logprobs) == pytest.approx(1)
    assert bytes(token.bytes[0] for token in told).decode() in {f"ab{x}c{n}" for x in "xy" for n in range(10)}


def test_the_likeliest_are_those_with_drafts() -> None:
    told = []
    for draft in (None, "ngram"):
        with serving(generator(draft=draft)) as server, client_of(server) as (client, _):
            answer = client.chat.completions.create(
                model="tiny", messages=HELLO, logprobs=True, top_logprobs=3, seed=4, max_tokens=40,
                extra_body={"structured_outputs": {"regex": "(ab[xy]c){9}"}, "logit_bias": {str(EOS): 0}},
            )  # fmt: skip
            told.append(answer.choices[0].logprobs)
    assert told[0] == told[1]


def test_a_stop_string_within_the_constraint_is_named() -> None:
    with serving() as server, httpx2.Client(base_url=server.url) as http:
        asked = {"prompt": "x", "structured_outputs": {"regex": "abcd"}, "stop": "c", "max_tokens": 50}
        for more in ({}, {"use_beam_search": True}):
            error = http.post("/v1/completions", json={**asked, **more}).json()["error"]
            assert (error["param"], error["code"]) == ("stop", "output_does_not_fit") and "stop string" in error[
                "message"
            ]
            assert "budget" not in error["message"]
