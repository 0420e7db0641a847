"""The field ``sources`` of requests, and quotes of what the prompt says: in all endpoints, as constraints."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from structgen import Corpus, SchemaError
from structgen.core.constraints.limits import check_size
from structgen.core.text_sets.sorted_texts import SHARED
from structgen.server.chat import chat_work
from structgen.server.compiler import CompileService
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


def chat(source: str, settings: ServingSettings = SETTINGS, **more: Any) -> InferenceRequest:
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema(source)}}
    messages = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "the roof leaks"}]
    request = ChatRequest.model_validate({"messages": messages, "response_format": form, **more})
    return chat_work(request, TOKENIZER, VOCABULARY, settings)


def test_what_the_prompt_says() -> None:
    assert takes(chat("prompt"), '{"q":"roof leaks"}') and takes(chat("prompt"), '{"q":"brief"}')
    assert not takes(chat("prompt"), '{"q":"roof leaked"}')
    given = {"prompt": "the roof leaks", "structured_outputs": {"json": schema("prompt")}}
    completed = completion_work(CompletionRequest.model_validate(given), TOKENIZER, VOCABULARY, SETTINGS)
    assert takes(completed, '{"q":"roof"}') and not takes(completed, '{"q":"floor"}')
    form = {"format": {"type": "json_schema", "name": "n", "schema": schema("prompt")}}
    replied = ResponseRequest.model_validate({"input": "the roof leaks", "text": form})
    assert takes(response_work(replied, TOKENIZER, VOCABULARY, SETTINGS), '{"q":"the roof"}')


def test_several_prompts_are_not_quoted_by_one_constraint() -> None:
    def work(prompts: Any, json_schema: Any = None, **more: Any) -> InferenceRequest:
        outputs = {"structured_outputs": {"json": json_schema or schema("prompt")}}
        given = CompletionRequest.model_validate({"prompt": prompts, **outputs, **more})
        return completion_work(given, TOKENIZER, VOCABULARY, SETTINGS)

    for form in (schema("prompt"), json.dumps(schema("prompt"))):
        with pytest.raises(RequestError, match="one prompt at a time") as caught:
            work(["the roof", "the floor"], form)
        assert caught.value.param == "prompt"
    assert takes(work(["the roof"]), '{"q":"roof"}') and takes(work(["the roof"] * 2), '{"q":"roof"}')
    assert takes(work(["a", "b"], sources={"prompt": "the roof"}), '{"q":"roof"}')
    assert takes(work(["a", "b"], {"type": "integer"}), "7")


def test_tools_name_sources_and_prompts_show_none() -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": schema("letter"), "strict": True}}
    messages = [{"role": "user", "content": "the roof leaks"}]
    asked = {"messages": messages, "tools": [tool], "tool_choice": "required", "sources": {"letter": "a floor"}}
    work = chat_work(ChatRequest.model_validate(asked), TOKENIZER, VOCABULARY, SETTINGS)
    assert b"floor" not in bytes(work.prompts[0]) and b"x-structgen" not in bytes(work.prompts[0])
    assert work.constraint is not None
    for quote, fits in (("a floor", True), ("roof", False)):
        matcher = work.constraint.constraint.compile(VOCABULARY).matcher()
        text = f'<tool_call>\n{{"name": "f", "arguments": {{"q": "{quote}"}}}}\n</tool_call>'
        assert matcher.accept_bytes(text.encode()) == fits
    asked["sources"] = {"letter": ["a", "b"]}
    with pytest.raises(RequestError, match="quotes need") as error:
        chat_work(ChatRequest.model_validate(asked), TOKENIZER, VOCABULARY, SETTINGS)
    assert error.value.param == "tools"


def test_what_the_request_brings() -> None:
    work = chat("letter", sources={"letter": {"a": "a first", "b": "a second"}, "prompt": "another"})
    assert takes(work, '{"q":"first"}') and takes(work, '{"q":"second"}') and not takes(work, '{"q":"third"}')
    names = chat("letter", sources={"letter": "x", "cities": ["Rome"]})
    assert takes(names, '{"q":"x"}')


def test_what_the_operator_opened() -> None:
    """All requests may name it; a request may give another of the name. Trials have it and are sent its hash."""
    corpus = Corpus.build("the roof leaks " * 500, "word")
    settings = ServingSettings(sources={"case": corpus, "letter": "the floor"})
    assert takes(chat("case", settings), '{"q":"roof leaks"}') and takes(chat("letter", settings), '{"q":"floor"}')
    assert takes(chat("letter", settings, sources={"letter": "the roof"}), '{"q":"roof"}')
    work = chat("case", settings)
    assert work.constraint is not None
    service = CompileService(VOCABULARY, sources=settings.sources)
    try:
        assert len(pickle.dumps(work.constraint.constraint)) < 4000
        grammar = service.compile(work.constraint.constraint)
        assert grammar is not None
        matcher = grammar.matcher()
        assert matcher.accept_bytes(b'{"q":"leaks the roof') and not matcher.accept_bytes(b"s")
    finally:
        service.close()
        SHARED.clear()


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ({"letter": "é" * 60}, "126 bytes of text; at most 100"),
        ({"letter": {"name" * 30: "x"}}, "127 bytes of text; at most 100"),
        ({"l" * 101: "x"}, "102 bytes of text; at most 100"),
        ({"letter": "x", "names": ["a", "b", "c"]}, "4 names and texts; at most 3"),
        ({"letter": "x", "more": {"a": "x", "b": "y"}}, "5 names and texts; at most 3"),
    ],
)
def test_limits_of_what_a_request_brings(sources: Any, message: str) -> None:
    settings = ServingSettings(max_source_bytes=100, max_source_names=3)
    with pytest.raises(RequestError, match=message) as error:
        chat("letter", settings, sources=sources)
    assert error.value.param == "sources" and error.value.status == 400
    assert takes(chat("letter", settings, sources={"letter": "x" * 94}), '{"q":"xx"}')


def test_a_source_may_be_larger_than_a_constraint() -> None:
    """And be named very often: the schema holds it once."""
    text = "the roof leaks " * 40_000
    work = chat("letter", sources={"letter": text})
    assert work.constraint is not None
    check_size(work.constraint.constraint, SETTINGS.compile_limits)
    assert takes(work, '{"q":"roof leaks the roof"}')


def test_what_is_wrong_is_named() -> None:
    with pytest.raises(SchemaError, match="no source is called 'letter'"):
        takes(chat("letter"), "{}")
    with pytest.raises(RequestError, match="bytes of text; at most 4,194,304") as large:
        chat("letter", sources={"letter": "x" * (5 << 20)})
    assert large.value.param == "sources"
    with pytest.raises(RequestError, match="quotes need"):
        chat("letter", sources={"letter": ["a", "b"]})
