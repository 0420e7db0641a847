"""The field ``sources`` of requests, and quotes of what the prompt says: in all endpoints, as constraints."""

from __future__ import annotations

from typing import Any

import pytest

from structgen import SchemaError
from structgen.server.chat import chat_work
from structgen.server.completions import completion_work
from structgen.server.errors import RequestError
from structgen.server.inference_request import InferenceRequest
from structgen.server.openai_types import ChatRequest, CompletionRequest
from structgen.server.responses import response_work
from structgen.server.responses_types import ResponseRequest
from structgen.server.settings import ServingSettings
from tests.server.tiny import VOCABULARY, ByteTokenizer

TOKENIZER, SETTINGS = ByteTokenizer(), ServingSettings()


def schema(source: str) -> dict[str, Any]:
    quote = {"type": "string", "x-structgen": {"quoteOf": source}}
    return {"type": "object", "properties": {"q": quote}, "required": ["q"], "additionalProperties": False}


def takes(work: InferenceRequest, text: str) -> bool:
    assert work.constraint is not None
    matcher = work.constraint.constraint.compile(VOCABULARY).matcher()
    return matcher.accept_bytes(text.encode()) and matcher.is_accepting()


def chat(source: str, **more: Any) -> InferenceRequest:
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema(source)}}
    messages = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "the roof leaks"}]
    request = ChatRequest.model_validate({"messages": messages, "response_format": form, **more})
    return chat_work(request, TOKENIZER, VOCABULARY, SETTINGS)


def test_what_the_prompt_says() -> None:
    assert takes(chat("prompt"), '{"q":"roof leaks"}') and takes(chat("prompt"), '{"q":"brief"}')
    assert not takes(chat("prompt"), '{"q":"roof leaked"}')
    given = {"prompt": "the roof leaks", "structured_outputs": {"json": schema("prompt")}}
    completed = completion_work(CompletionRequest.model_validate(given), TOKENIZER, VOCABULARY, SETTINGS)
    assert takes(completed, '{"q":"roof"}') and not takes(completed, '{"q":"floor"}')
    form = {"format": {"type": "json_schema", "name": "n", "schema": schema("prompt")}}
    replied = ResponseRequest.model_validate({"input": "the roof leaks", "text": form})
    assert takes(response_work(replied, TOKENIZER, VOCABULARY, SETTINGS), '{"q":"the roof"}')


def test_what_the_request_brings() -> None:
    work = chat("letter", sources={"letter": {"a": "a first", "b": "a second"}, "prompt": "another"})
    assert takes(work, '{"q":"first"}') and takes(work, '{"q":"second"}') and not takes(work, '{"q":"third"}')
    names = chat("letter", sources={"letter": "x", "cities": ["Rome"]})
    assert takes(names, '{"q":"x"}')


def test_what_is_wrong_is_named() -> None:
    with pytest.raises(SchemaError, match="no source is called 'letter'"):
        takes(chat("letter"), "{}")
    with pytest.raises(RequestError, match="bytes of text") as large:
        chat("letter", sources={"letter": "x" * (1 << 20)})
    assert large.value.param == "sources"
    with pytest.raises(RequestError, match="quotes need"):
        chat("letter", sources={"letter": ["a", "b"]})
