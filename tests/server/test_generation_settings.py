"""What a model's generation settings do in a server, as in vLLM: how tokens are drawn and how many there may be, where
a request says nothing; and how a server ignores them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("httpx2")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("prometheus_client")

import httpx2

from structgen.generation.models.defaults import ModelDefaults
from structgen.server.inference_request import sampling_of
from structgen.server.openai_types import CompletionRequest
from structgen.server.settings import ServingSettings
from tests.server.tiny import EOS, VOCABULARY, generator
from tests.server.tiny_server import serving

X_STRUCTGEN = ModelDefaults("skeleton", 0.6, 0.9, 20, 0.05, repetition_penalty=1.2, max_new_tokens=7)
NAMES = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")


def drawn(settings: ServingSettings, **asked: Any) -> tuple[Any, ...]:
    params = sampling_of(CompletionRequest(prompt="a", **asked), VOCABULARY, settings.of_model(X_STRUCTGEN))
    return tuple(getattr(params, name) for name in NAMES)


def test_they_hold_where_a_request_says_nothing() -> None:
    assert drawn(ServingSettings()) == (0.6, 0.9, 20, 0.05, 1.2)
    assert drawn(ServingSettings(default_temperature=0.3))[0] == 0.3
    said = {"temperature": 0.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0}
    assert drawn(ServingSettings(), **said) == (0.0, 1.0, None, 0.0, 1.0)


def test_others_take_their_place() -> None:
    assert drawn(ServingSettings(generation_settings={})) == (0.2, 1.0, None, 0.0, 1.0)
    assert drawn(ServingSettings(generation_settings={"top_k": 5})) == (0.2, 1.0, 5, 0.0, 1.0)


@pytest.mark.parametrize(("settings", "tokens"), [(None, 7), ({}, 12), ({"max_new_tokens": 3}, 3)])
def test_the_most_tokens(settings: Any, tokens: int) -> None:
    """Whatever a request asks for: it is a limit, as in vLLM."""
    own = generator()
    own.defaults = replace(X_STRUCTGEN, repetition_penalty=1.0)
    body: dict[str, Any] = {"max_tokens": 12, "logit_bias": {str(EOS): -100}}
    with serving(own, generation_settings=settings) as server, httpx2.Client(base_url=server.url) as http:
        for path, prompt in (
            ("/v1/completions", {"prompt": "a"}),
            ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}]}),
        ):
            answer = http.post(path, json={**body, **prompt}).json()
            assert answer["usage"]["completion_tokens"] == tokens
            assert answer["choices"][0]["finish_reason"] == "length"
