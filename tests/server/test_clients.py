"""OpenAI's own client, unmodified, against a server over loopback: only ``base_url`` says where it is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import pydantic
import pytest

pytest.importorskip("openai")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("prometheus_client")

import openai

from structgen import OneOf, Quote, QuoteOf
from structgen.core.constraints.json import json_schema
from tests.server.tiny import generator
from tests.server.tiny_server import RunningServer, serving

HELLO: Any = [{"role": "user", "content": "Hello"}]


class Pet(pydantic.BaseModel):
    """A small value."""

    kind: Literal["cat", "dog"]
    age: int = pydantic.Field(ge=0, le=99)
    names: list[Literal["Tom", "Rex"]] = pydantic.Field(max_length=2)


LETTER = "The roof leaks. I said “fix it” in March."


class Claim(pydantic.BaseModel):
    """Quotes, and a name."""

    quote: Annotated[str, QuoteOf(LETTER, "word"), pydantic.Field(max_length=30)]
    asked: Annotated[str, QuoteOf.named("prompt"), pydantic.Field(max_length=30)]
    city: Annotated[str, OneOf(["Oslo", "Rome"])]


TOOLS: Any = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "The weather of a city.",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"enum": ["Paris", "Rome"]},
                    "days": {"type": "integer", "minimum": 1, "maximum": 9},
                },
                "required": ["city", "days"],
                "additionalProperties": False,
            },
            "strict": True,
        },
    }
]


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with serving() as running:
        yield running


@pytest.fixture(scope="module")
def client(server: RunningServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0, timeout=60) as made:
        yield made


def test_models(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["tiny"]
    assert client.models.retrieve("tiny").owned_by == "structgen"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("other/model")


def test_chat(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model="tiny", messages=HELLO, max_tokens=20, seed=1, n=2)
    assert len(answer.choices) == 2 and answer.choices[0].finish_reason == "length"
    assert answer.usage is not None and answer.usage.completion_tokens == 40
    again = client.chat.completions.create(model="tiny", messages=HELLO, max_tokens=20, seed=2)
    assert again.choices[0].message.content == answer.choices[1].message.content  # the i-th has seed + i


def test_chat_is_what_the_generator_writes(client: openai.OpenAI) -> None:
    schema = Pet.model_json_schema()
    form: Any = {"type": "json_schema", "json_schema": {"name": "Pet", "schema": schema}}
    answer = client.chat.completions.create(model="tiny", messages=HELLO, response_format=form, seed=4, temperature=0.9)
    result = generator().generate(HELLO, json_schema(schema), seed=4, temperature=0.9, max_new_tokens=2048)
    assert answer.choices[0].message.content == result.text


def test_parse(client: openai.OpenAI) -> None:
    for seed in range(5):
        answer = client.chat.completions.parse(model="tiny", messages=HELLO, response_format=Pet, seed=seed)
        assert isinstance(answer.choices[0].message.parsed, Pet)


def test_quotes_and_names_of_types(client: openai.OpenAI) -> None:
    """The type says it, and nothing else: chat, a strict tool and responses keep to it."""
    tool: Any = openai.pydantic_function_tool(Claim)
    for seed in range(6):
        call: dict[str, Any] = {"model": "tiny", "messages": HELLO, "seed": seed}
        asked = client.chat.completions.parse(response_format=Claim, **call)
        called = client.chat.completions.parse(tools=[tool], tool_choice="required", parallel_tool_calls=False, **call)
        replied = client.responses.parse(model="tiny", input=HELLO, text_format=Claim)
        calls = called.choices[0].message.tool_calls
        assert calls is not None
        for claim in (asked.choices[0].message.parsed, calls[0].function.parsed_arguments, replied.output_parsed):
            assert isinstance(claim, Claim) and isinstance(claim.quote, Quote) and claim.city in ("Oslo", "Rome")
            assert LETTER.find(claim.quote) == claim.quote.places[0].start >= 0 and claim.asked in "Hello"


def test_parse_tells_of_the_budget(client: openai.OpenAI) -> None:
    long: Any = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "string"}}}

    def ask(**more: Any) -> Any:
        return client.chat.completions.create(
            model="tiny", messages=HELLO, response_format=long, max_tokens=12, seed=1, **more
        )

    assert ask().choices[0].finish_reason == "length"
    closed = ask(extra_body={"structgen": {"on_budget": "close"}}).choices[0]
    assert closed.finish_reason == "stop" and isinstance(json.loads(closed.message.content), str)


def test_stream(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(model="tiny", messages=HELLO, max_tokens=30, seed=7, stop="q")
    chunks = list(
        client.chat.completions.create(
            model="tiny",
            messages=HELLO,
            max_tokens=30,
            seed=7,
            stop="q",
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content
    assert chunks[0].choices[0].delta.role == "assistant"
    used, before = chunks[-1].usage, whole.usage
    assert used is not None and before is not None and used.prompt_tokens_details is not None
    assert used.prompt_tokens_details.cached_tokens == before.prompt_tokens - 1, "it was read for the first of the two"
    assert used.to_dict() == {**before.to_dict(), "prompt_tokens_details": used.prompt_tokens_details.to_dict()}
    reasons = [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices]
    assert reasons[-1] == whole.choices[0].finish_reason and set(reasons[:-1]) == {None}


def test_stream_of_several(client: openai.OpenAI) -> None:
    texts = ["", "", ""]
    for chunk in client.chat.completions.create(model="tiny", messages=HELLO, max_tokens=9, n=3, seed=1, stream=True):
        for choice in chunk.choices:
            texts[choice.index] += choice.delta.content or ""
    whole = client.chat.completions.create(model="tiny", messages=HELLO, max_tokens=9, n=3, seed=1)
    assert texts == [choice.message.content for choice in whole.choices]


def test_the_clients_own_stream_helper(client: openai.OpenAI) -> None:
    with client.chat.completions.stream(model="tiny", messages=HELLO, response_format=Pet, seed=3) as stream:
        kinds = {event.type for event in stream}
        final = stream.get_final_completion()
    assert {"content.delta", "content.done", "chunk"} <= kinds
    assert isinstance(final.choices[0].message.parsed, Pet)


def test_logprobs(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(
        model="tiny",
        messages=HELLO,
        response_format={"type": "json_object"},
        logprobs=True,
        top_logprobs=3,
        max_tokens=30,
        seed=3,
    )
    choice = answer.choices[0]
    assert choice.logprobs is not None and choice.logprobs.content is not None
    assert b"".join(bytes(token.bytes or []) for token in choice.logprobs.content).decode() == choice.message.content
    assert all(token.logprob <= 0 and len(token.top_logprobs) <= 3 for token in choice.logprobs.content)
    assert choice.logprobs.content[0].logprob == 0.0  # "{" is forced


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "get_weather"}}])
def test_tools(client: openai.OpenAI, choice: Any) -> None:
    answer = client.chat.completions.create(
        model="tiny", messages=HELLO, tools=TOOLS, tool_choice=choice, parallel_tool_calls=False, seed=1
    )
    assert answer.choices[0].finish_reason == "tool_calls" and answer.choices[0].message.content is None
    (call,) = answer.choices[0].message.tool_calls or []
    assert call.type == "function" and call.function.name == "get_weather"
    arguments = json.loads(call.function.arguments)
    assert arguments["city"] in ("Paris", "Rome") and 1 <= arguments["days"] <= 9
    back: Any = [*HELLO, answer.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
    assert client.chat.completions.create(model="tiny", messages=back, tools=TOOLS, max_tokens=5).choices


def test_tools_streamed(client: openai.OpenAI) -> None:
    with client.chat.completions.stream(
        model="tiny", messages=HELLO, tools=TOOLS, tool_choice="required", parallel_tool_calls=False, seed=1
    ) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_completion().choices[0]
    assert "tool_calls.function.arguments.delta" in kinds and "tool_calls.function.arguments.done" in kinds
    assert final.message.tool_calls is not None
    assert final.message.tool_calls[0].function.parsed_arguments["city"] in ("Paris", "Rome")  # type: ignore[index]
    whole = client.chat.completions.create(
        model="tiny", messages=HELLO, tools=TOOLS, tool_choice="required", parallel_tool_calls=False, seed=1
    )
    (call,) = whole.choices[0].message.tool_calls or []
    assert call.type == "function" and call.function.arguments == final.message.tool_calls[0].function.arguments


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        ({"choice": ["red", "green"]}, "red|green"),
        ({"regex": "[0-9]{4}"}, "[0-9]{4}"),
        ({"grammar": 'root ::= "a" | "b"'}, "a|b"),
    ],
)
def test_structured_outputs(client: openai.OpenAI, constraint: Any, expected: str) -> None:
    import re

    body = {"structured_outputs": constraint}
    chat = client.chat.completions.create(model="tiny", messages=HELLO, extra_body=body, seed=1)
    plain = client.completions.create(model="tiny", prompt="Hello", extra_body=body, seed=1)
    assert re.fullmatch(expected, chat.choices[0].message.content or "") and re.fullmatch(
        expected, plain.choices[0].text
    )


def test_completions(client: openai.OpenAI) -> None:
    answer = client.completions.create(model="tiny", prompt=["a", "b"], n=2, max_tokens=5, seed=1, logprobs=2)
    assert [choice.index for choice in answer.choices] == [0, 1, 2, 3]
    assert answer.choices[0].logprobs is not None and len(answer.choices[0].logprobs.tokens or []) >= 3
    chunks = client.completions.create(model="tiny", prompt="a", max_tokens=5, seed=1, stream=True)
    assert "".join(chunk.choices[0].text for chunk in chunks) == answer.choices[0].text


def test_responses(client: openai.OpenAI) -> None:
    response = client.responses.create(
        model="tiny", input="Hello", instructions="Be brief.", max_output_tokens=9, temperature=0
    )
    assert response.status == "incomplete" and response.usage is not None and response.usage.output_tokens == 9
    parsed = client.responses.parse(model="tiny", input=HELLO, text_format=Pet)
    assert isinstance(parsed.output_parsed, Pet) and parsed.status == "completed"


def test_responses_streamed(client: openai.OpenAI) -> None:
    with client.responses.stream(model="tiny", input="Hello", text_format=Pet) as stream:
        events = list(stream)
        final = stream.get_final_response()
    assert isinstance(final.output_parsed, Pet)
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert text == final.output_text


def test_responses_with_tools(client: openai.OpenAI) -> None:
    tools: Any = [{"type": "function", **TOOLS[0]["function"]}]
    options: Any = {"tools": tools, "tool_choice": "required", "parallel_tool_calls": False}
    response = client.responses.create(model="tiny", input=HELLO, **options)
    call = response.output[0]
    assert call.type == "function_call" and json.loads(call.arguments)["city"] in ("Paris", "Rome")
    back: Any = [*HELLO, call, {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}]
    assert client.responses.create(model="tiny", input=back, tools=tools, max_output_tokens=5).output
    with client.responses.stream(model="tiny", input=HELLO, **options) as stream:
        kinds = {event.type for event in stream}
        streamed = stream.get_final_response().output[0]
    assert (
        streamed.type == "function_call" and {"response.function_call_arguments.delta", "response.completed"} <= kinds
    )


def test_errors_are_the_clients_own(client: openai.OpenAI) -> None:
    bad: Any = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"properties": {"a": {"type": "strin"}}}}}
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model="tiny", messages=HELLO, response_format=bad)
    assert caught.value.code == "invalid_schema" and caught.value.param == "response_format.json_schema.schema"
    assert caught.value.body["pointer"] == "/response_format/json_schema/schema/properties/a/type"  # type: ignore[index]
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(model="gpt", messages=HELLO)
    with pytest.raises(openai.BadRequestError, match="guided_json"):
        client.chat.completions.create(model="tiny", messages=HELLO, extra_body={"guided_json": {}})


@pytest.mark.full
def test_64_mixed_at_once(server: RunningServer) -> None:
    """All valid, and equal to what each gets alone."""
    forms: list[dict[str, Any]] = [
        {"response_format": {"type": "json_schema", "json_schema": {"name": "P", "schema": Pet.model_json_schema()}}},
        {"extra_body": {"structured_outputs": {"regex": "[a-f]{2,9}"}}},
        {"tools": TOOLS, "tool_choice": "required", "parallel_tool_calls": False},
        {"max_tokens": 12},
    ]

    async def all_at_once() -> tuple[list[Any], list[Any]]:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0, timeout=120) as client:

            async def one(number: int) -> Any:
                form = forms[number % len(forms)]
                answer = await client.chat.completions.create(model="tiny", messages=HELLO, seed=number, **form)
                message = answer.choices[0].message
                calls = [call.function.arguments for call in message.tool_calls or [] if call.type == "function"]
                return message.content, calls

            together = await asyncio.gather(*(one(number) for number in range(64)))
            alone = [await one(number) for number in range(64)]
        return list(together), alone

    together, alone = asyncio.run(all_at_once())
    assert together == alone
    for content, _ in together[::4]:
        Pet.model_validate_json(content)
