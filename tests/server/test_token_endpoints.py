"""``/tokenize`` and ``/detokenize`` as vLLM has them; keys, hosts, limits and logs as of the other endpoints."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("httpx2")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("prometheus_client")

import httpx2

from structgen.server.settings import ServingSettings
from structgen.server.token_endpoints import DetokenizeRequest, TokenizeRequest, detokenized, tokenized
from tests.server.tiny import EOS, VOCABULARY, ByteTokenizer, generator
from tests.server.tiny_server import serving

TOOL = {"type": "function", "function": {"name": "f"}}
MESSAGES = [{"role": "user", "content": "Hi"}]


class Framed(ByteTokenizer):
    """Texts stand between two ends, and ids have a text of their own."""

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        return [EOS, *text.encode()] if add_special_tokens else list(text.encode())

    def decode(self, ids: list[int]) -> str:
        return "".join("<end>" if token == EOS else chr(token) for token in ids)


@pytest.fixture(scope="module")
def http() -> Iterator[httpx2.Client]:
    with serving() as running, httpx2.Client(base_url=running.url) as client:
        yield client


def test_a_prompt(http: httpx2.Client) -> None:
    answer = http.post("/tokenize", json={"model": "tiny", "prompt": "Grüße"})
    ids = list("Grüße".encode())
    assert answer.json() == {"count": 7, "max_model_len": None, "tokens": ids, "token_strs": None}
    assert answer.headers["x-request-id"].startswith("tokenize-")
    assert http.post("/detokenize", json={"tokens": ids}).json() == {"prompt": "Grüße"}
    named = http.post("/tokenize", json={"prompt": "ab", "return_token_strs": True}).json()
    assert named["token_strs"] == ["a", "b"]
    assert http.post("/tokenize", json={"prompt": ""}).json()["count"] == 0
    assert http.post("/detokenize", json={"tokens": []}).json() == {"prompt": ""}


def test_messages_have_as_many_as_a_chat_reads(http: httpx2.Client) -> None:
    told = http.post("/tokenize", json={"messages": MESSAGES}).json()
    usage = http.post("/v1/chat/completions", json={"messages": MESSAGES, "max_tokens": 1}).json()["usage"]
    assert told["count"] == usage["prompt_tokens"] and bytes(told["tokens"]) == b"<user>Hi\n<assistant>"


def test_special_tokens() -> None:
    settings, tokenizer = ServingSettings(), Framed()

    def ids(**asked: Any) -> list[int]:
        found: list[int] = tokenized(TokenizeRequest(**asked), tokenizer, VOCABULARY, settings, 512)["tokens"]
        return found

    assert ids(prompt="a") == [EOS, 97] and ids(prompt="a", add_special_tokens=False) == [97]
    chat: Any = {"messages": [{"role": "user", "content": "a"}]}
    assert ids(**chat)[0] != EOS and ids(**chat, add_special_tokens=True)[0] == EOS
    told = detokenized(DetokenizeRequest(tokens=[EOS, 97]), tokenizer, VOCABULARY)
    assert told == {"prompt": "<end>a"}


@pytest.mark.parametrize(
    ("path", "body", "param", "said"),
    [
        ("/tokenize", {}, "prompt", "give either prompt or messages; neither is there"),
        ("/tokenize", {"prompt": "a", "messages": MESSAGES}, "prompt", "both are there"),
        ("/tokenize", {"promt": "a"}, "promt", "did you mean 'prompt'?"),
        ("/tokenize", {"prompt": ["a"]}, "prompt", "valid string"),
        ("/tokenize", {"messages": []}, "messages", "at least 1"),
        ("/tokenize", {"messages": MESSAGES, "continue_final_message": True}, "continue_final_message", "False"),
        ("/tokenize", {"messages": MESSAGES, "chat_template_kwargs": {"x": 1}}, "chat_template_kwargs.x", "no field"),
        ("/tokenize", {"messages": MESSAGES, "tools": [TOOL]}, "tools", "takes no tools"),
        ("/tokenize", {"messages": [{"role": "user", "content": "refuse me"}]}, "messages", "refuses these messages"),
        ("/detokenize", {}, "tokens", "it is required"),
        ("/detokenize", {"tokens": [1, 257]}, "tokens[1]", "there is no token 257; ids are 0 to 256"),
        ("/detokenize", {"tokens": [-1]}, "tokens[0]", "greater than or equal to 0"),
        ("/detokenize", {"tokens": "a"}, "tokens", "valid list"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told(http: httpx2.Client, path: str, body: Any, param: str, said: str) -> None:
    answer = http.post(path, json=body)
    error = answer.json()["error"]
    assert (answer.status_code, error["param"]) == (400, param) and said in error["message"], error
    assert http.post(path, json={**body, "model": "other"}).status_code in (400, 404)


@pytest.mark.parametrize(("path", "body"), [("/tokenize", {"prompt": "secret"}), ("/detokenize", {"tokens": [115]})])
def test_rules_of_all_endpoints(path: str, body: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    limits: dict[str, Any] = {"hosts": frozenset({"127.0.0.1"}), "max_body": 1000}
    key = {"authorization": "Bearer k"}
    with serving(api_keys=frozenset({"k"}), requests_per_minute=6, **limits) as server:  # noqa: SIM117
        with httpx2.Client(base_url=server.url, headers=key) as http:
            assert http.post(path, json=body).status_code == 200
            assert http.post(path, json=body, headers={"authorization": "Bearer x"}).status_code == 401
            assert http.post(path, json=body, headers={"host": "evil.example"}).status_code == 403
            assert http.post(path, content=b"{}", headers={"content-type": "text/plain"}).status_code == 415
            assert http.post(path, json={**body, "model": "no"}).status_code == 404
            assert http.post(path, json={"prompt": "a" * 2000}).status_code == 413
            assert [http.post(path, json=body).status_code for _ in range(6)][-1] == 429
            assert http.get(path).status_code == 405
    assert f'"path": "{path}"' in caplog.text and "secret" not in caplog.text


def test_long_texts_end_early() -> None:
    with serving(generator(), max_prompt_tokens=100, max_prompt_length=10**6) as server:
        answer = httpx2.post(f"{server.url}/tokenize", json={"prompt": "a" * 500_000})
        assert answer.status_code == 400 and answer.json()["error"]["code"] == "context_length_exceeded"
        assert httpx2.post(f"{server.url}/tokenize", json={"prompt": "a" * 150}).json()["count"] == 150
