"""Every field that the openai package knows of, field by field: what has an effect, what is taken and changes nothing,
what is refused by name. A field that a later release of the package adds fails here until it is put in one of these."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Hashable
from typing import Any

import pydantic
import pytest

pytest.importorskip("openai")

from openai.types import Completion, completion_create_params
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.chat import completion_create_params as chat_create_params
from openai.types.responses import Response, ResponseStreamEvent, response_create_params

from structgen.core.constraints.cache import content_key
from structgen.server.chat import ChatWriter, chat_work
from structgen.server.completions import CompletionWriter, completion_work
from structgen.server.errors import RequestError
from structgen.server.inference_request import InferenceRequest
from structgen.server.openai_types import NEUTRAL, ChatRequest, CommonFields, CompletionRequest
from structgen.server.reading import read_request
from structgen.server.responses import ResponseWriter, response_work
from structgen.server.responses_types import ResponseRequest
from structgen.server.settings import ServingSettings
from tests.server.tiny import VOCABULARY, ByteTokenizer, events_of, merged

TEMPLATE = "{{ messages }} {{ tools }} {{ reasoning_effort }} {{ mood }}"
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
FORMAT = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}
TOOL = {"type": "function", "function": {"name": "f", "parameters": SCHEMA}}
OTHER = {"type": "function", "function": {"name": "g"}}
CUSTOM = {"type": "custom", "custom": {"name": "c", "format": {"type": "text"}}}
TOOLS = {"tools": [TOOL, OTHER]}
NAMED = {"type": "function", "function": {"name": "f"}}
ALLOWED = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [NAMED]}}
FLAT = {"type": "function", "name": "f", "parameters": SCHEMA}
FLAT_TOOLS = {"tools": [FLAT, {"type": "function", "name": "g"}]}
TAG = {"type": "structural_tag", "structures": [{"begin": "<a>", "schema": SCHEMA, "end": "</a>"}], "triggers": ["<a"]}

QUOTED = {"anyOf": [SCHEMA, {"x-structgen": {"quoteOf": "letter"}}]}

Sample = tuple[dict[str, Any], dict[str, Any]]
"""Fields, and those without them: what has an effect makes another work of the one than of the other."""


def beside(base: dict[str, Any], **fields: Any) -> Sample:
    return {**base, **fields}, base


def alone(**fields: Any) -> Sample:
    return fields, {}


SAMPLING = [
    alone(temperature=0.3), alone(top_p=0.5), alone(frequency_penalty=0.5), alone(presence_penalty=-0.5),
    alone(logit_bias={"65": 5}), alone(stream=True), beside({"stream": True}, stream_options={"include_usage": True}),
    alone(top_k=5), alone(min_p=0.1), alone(repetition_penalty=1.1), alone(priority=3), alone(cache_salt="x"),
    beside({"structured_outputs": {"json": QUOTED}}, sources={"letter": "other"}),
    *(alone(structured_outputs=outputs) for outputs in (
        {"json": SCHEMA}, {"regex": "a+"}, {"choice": ["a", "b"]}, {"grammar": 'root ::= "a"'}, {"json_object": True},
        {"structural_tag": TAG},
    )),
    beside({"structured_outputs": {"json": SCHEMA}}, structgen={"regions": {"/a": {"max_tokens": 3}}}),
    alone(structgen={"on_budget": "close"}), alone(structgen={"log_mass": True}),
    alone(structgen={"spelling": "canonical"}),
    alone(model="m"),
]  # fmt: skip
"""What all endpoints have in common."""
COUNTED = [
    alone(n=2), beside({"temperature": 1}, best_of=2), alone(use_beam_search=True),
    *(beside({"use_beam_search": True}, **fields) for fields in (
        {"n": 2}, {"best_of": 2}, {"length_penalty": 2}, {"early_stopping": "never"},
    )),
    alone(seed=5), alone(stop=["x"]), alone(stop="x"), alone(max_tokens=7),
    alone(grammar='root ::= "a"'),
]  # fmt: skip
TAKEN: list[dict[str, Any]] = [
    {"user": "u"}, {"metadata": {"a": "b"}}, {"store": False}, {"service_tier": "auto"}, {"service_tier": "default"},
    {"safety_identifier": "s"}, {"prompt_cache_key": "k"}, {"prompt_cache_retention": "24h"},
    {"prompt_cache_options": {"mode": "x"}},
]  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Endpoint:
    """The lists of one endpoint."""

    request: type[CommonFields]
    work: Callable[..., InferenceRequest]
    theirs: Any
    base: dict[str, Any]
    effective: list[Sample]
    taken: list[dict[str, Any]]
    refused: list[dict[str, Any]]

    def work_of(self, fields: dict[str, Any]) -> InferenceRequest:
        request = read_request(self.request, {**self.base, **fields})
        return self.work(request, ByteTokenizer(TEMPLATE), VOCABULARY, ServingSettings())

    def effect(self, fields: dict[str, Any]) -> Hashable:
        """Everything that a request says, so that equal ones are written alike."""
        request, tokenizer = read_request(self.request, {**self.base, **fields}), ByteTokenizer(TEMPLATE)
        work = self.work(request, tokenizer, VOCABULARY, ServingSettings())
        key = None if work.constraint is None else content_key(work.constraint.constraint)
        answer = [work.include_usage, work.finish_reason("length")]
        return repr([dataclasses.replace(work, constraint=None), tokenizer.fields, request.model, *answer]), key


CHAT = Endpoint(
    ChatRequest, chat_work, chat_create_params.CompletionCreateParamsBase,
    {"messages": [{"role": "user", "content": "x"}]},
    [
        *SAMPLING, *COUNTED, alone(messages=[{"role": "system", "content": "y"}]), alone(max_completion_tokens=7),
        alone(logprobs=True), beside({"logprobs": True}, top_logprobs=3),
        alone(response_format={"type": "json_object"}),
        alone(response_format=FORMAT), alone(tools=[TOOL]), alone(tools=[CUSTOM]),
        *(beside(TOOLS, tool_choice=choice) for choice in ("none", "required", NAMED, ALLOWED)),
        beside(TOOLS, parallel_tool_calls=False), alone(prediction={"type": "content", "content": "x"}),
        alone(reasoning_effort="low"), alone(chat_template_kwargs={"mood": "good"}),
    ],
    [*TAKEN, {"parallel_tool_calls": True}, {"tool_choice": "none"}, {"response_format": {"type": "text"}}],
    [
        {"audio": {"voice": "x"}}, {"function_call": "auto"}, {"functions": [{"name": "f"}]}, {"modalities": ["audio"]},
        {"moderation": {"model": "m"}}, {"verbosity": "high"}, {"web_search_options": {}}, {"guided_json": SCHEMA},
        {"echo": True}, {"unknown": None}, {"input": "x"},
    ],
)  # fmt: skip
COMPLETIONS = Endpoint(
    CompletionRequest, completion_work, completion_create_params.CompletionCreateParamsBase, {"prompt": "x"},
    [
        *SAMPLING, *COUNTED, alone(structgen={"heal_prompt": True}), alone(prompt="y"), alone(prompt=[65, 66]),
        alone(prompt=["x", "y"]), alone(logprobs=2),
    ],
    TAKEN,
    [{"echo": True}, {"suffix": "y"}, {"tools": [TOOL]}, {"guided_regex": "a"}, {"unknown": 1}],
)  # fmt: skip
RESPONSES = Endpoint(
    ResponseRequest, response_work, response_create_params.ResponseCreateParamsBase, {"input": "x"},
    [
        *[sample for sample in SAMPLING if "stream_options" not in sample[0]],
        alone(input="y"), alone(instructions="y"), alone(text={"format": {"type": "json_object"}}),
        alone(text={"format": {"type": "json_schema", "name": "n", "schema": SCHEMA}}), alone(tools=[FLAT]),
        *(beside(FLAT_TOOLS, tool_choice=choice) for choice in (
            "none", "required", {"type": "function", "name": "f"},
            {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "f"}]},
        )),
        beside(FLAT_TOOLS, parallel_tool_calls=False), alone(max_output_tokens=7), alone(top_logprobs=2),
        alone(include=["message.output_text.logprobs"]), alone(reasoning={"effort": "low"}), alone(seed=5),
    ],
    [*TAKEN, {"store": None}, {"truncation": "disabled"}, {"background": False}, {"include": []},
     {"stream_options": {"include_obfuscation": False}}],
    [
        {"previous_response_id": "x"}, {"conversation": "x"}, {"background": True}, {"prompt": {"id": "x"}},
        {"truncation": "auto"}, {"max_tool_calls": 1}, {"moderation": {}}, {"context_management": [{"type": "x"}]},
        {"access_programs": {}}, {"background_options": {}}, {"image": {}}, {"n": 2}, {"stop": "x"}, {"unknown": 1},
    ],
)  # fmt: skip
ENDPOINTS = {"chat": CHAT, "completions": COMPLETIONS, "responses": RESPONSES}


def cases(kind: str) -> list[Any]:
    return [(name, sample) for name, endpoint in ENDPOINTS.items() for sample in getattr(endpoint, kind)]


@pytest.mark.parametrize("name", ENDPOINTS)
def test_every_field_of_the_package_is_in_one_list(name: str) -> None:
    endpoint = ENDPOINTS[name]
    effective = {field for fields, without in endpoint.effective for field in fields if field not in without}
    taken = {field for fields in endpoint.taken for field in fields}
    refused = {field for fields in endpoint.refused for field in fields}
    theirs = set(endpoint.theirs.__annotations__)
    assert theirs <= effective | taken | refused, theirs - (effective | taken | refused)
    assert not effective & (refused - {"prompt"})
    own = {info.alias or field for field, info in endpoint.request.model_fields.items()}
    assert own <= effective | taken, own - effective - taken


@pytest.mark.parametrize(("name", "sample"), cases("effective"))
def test_what_is_supported_has_an_effect(name: str, sample: Sample) -> None:
    endpoint, (fields, without) = ENDPOINTS[name], sample
    assert endpoint.effect(fields) != endpoint.effect(without)


@pytest.mark.parametrize(("name", "fields"), cases("taken"))
def test_what_is_taken_changes_nothing(name: str, fields: dict[str, Any]) -> None:
    endpoint = ENDPOINTS[name]
    assert endpoint.effect(fields) == endpoint.effect({})


@pytest.mark.parametrize(("name", "fields"), cases("refused"))
def test_what_is_refused_is_named(name: str, fields: dict[str, Any]) -> None:
    ((field, _),) = fields.items()
    with pytest.raises(RequestError) as caught:
        ENDPOINTS[name].work_of(fields)
    error = caught.value
    assert (error.status, error.code, error.param) == (400, "unsupported_parameter", field)
    assert error.headers()["x-should-retry"] == "false" and repr(field) in error.message


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        (name, field, value) for name, endpoint in ENDPOINTS.items() for field, values in NEUTRAL.items()
        for value in values if field not in endpoint.base and field in endpoint.theirs.__annotations__
    ],
)  # fmt: skip
def test_neutral_values_pass(name: str, field: str, value: Any) -> None:
    endpoint = ENDPOINTS[name]
    assert endpoint.effect({field: value}) == endpoint.effect({})


# --- what is answered, read by the package's own types ---
HEAD: dict[str, Any] = {"id": "x", "created": 1, "model": "tiny"}
CALLS = '<tool_call>\n{"name": "f", "arguments": {"a": 12}}\n</tool_call>'
CHAT_CASES: list[tuple[dict[str, Any], str]] = [
    ({}, "Hello, wörld"),
    ({"logprobs": True, "top_logprobs": 2, "stream_options": {"include_usage": True}}, "Hello"),
    ({"tools": [TOOL]}, CALLS),
]


@pytest.mark.parametrize(("fields", "text"), CHAT_CASES)
def test_chats_are_of_the_packages_types(fields: dict[str, Any], text: str) -> None:
    work = CHAT.work_of(fields)
    whole = ChatWriter(work, VOCABULARY, **HEAD).completion([merged(events_of(text))])
    ChatCompletion.model_validate(whole, strict=True)
    writer = ChatWriter(work, VOCABULARY, **HEAD)
    chunks = [*writer.opening(), *(c for e in events_of(text, [2, 5]) for c in writer.chunks(0, e)), *writer.closing()]
    for chunk in chunks:
        ChatCompletionChunk.model_validate(chunk, strict=True)
    assert bool(chunks[-1].get("usage")) == bool(fields.get("stream_options"))


def test_completions_are_of_the_packages_types() -> None:
    work = COMPLETIONS.work_of({"logprobs": 2, "stream_options": {"include_usage": True}})
    whole = CompletionWriter(work, VOCABULARY, **HEAD).completion([merged(events_of("Hello"))])
    Completion.model_validate(whole, strict=True)
    writer = CompletionWriter(work, VOCABULARY, **HEAD)
    for event in events_of("Hello", [2]):
        for chunk in writer.chunks(0, event):
            Completion.model_validate({**chunk, "choices": [{**chunk["choices"][0], "finish_reason": "stop"}]})


EVENT: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(ResponseStreamEvent)
FLAT_CUSTOM = {"type": "custom", "name": "c", "format": {"type": "text"}}
CUSTOM_CALL = '<tool_call>\n{"name": "c", "arguments": {"input": "ab"}}\n</tool_call>'


@pytest.mark.parametrize(
    ("template", "fields", "text", "finish"),
    [
        (TEMPLATE, {}, "Hello, wörld", "stop"),
        (TEMPLATE, {"top_logprobs": 2}, "Hello", "length"),
        (TEMPLATE, {"tools": [FLAT, FLAT_CUSTOM]}, f"Hm. {CALLS}\n{CUSTOM_CALL}", "stop"),
        (TEMPLATE + "<think>", {"tools": [FLAT]}, f"<think>Hm</think>\n\n{CALLS}", "stop"),
    ],
)
def test_events_of_responses_are_of_the_packages_types(
    template: str, fields: dict[str, Any], text: str, finish: str
) -> None:
    request = read_request(ResponseRequest, {"input": "x", **fields})
    work = response_work(request, ByteTokenizer(template), VOCABULARY, ServingSettings())

    def fresh() -> ResponseWriter:
        return ResponseWriter(work, VOCABULARY, **HEAD)

    Response.model_validate(fresh().completion([merged(events_of(text, [], finish))]))
    writer = fresh()
    chunks = (chunk for event in events_of(text, [3, 9, 14], finish) for chunk in writer.chunks(0, event))
    events = [*writer.opening(), *chunks, *writer.closing()]
    for number, event in enumerate(events):
        read = EVENT.validate_python(event)
        assert read.type == event["type"] and read.sequence_number == number
        assert type(read).model_fields.keys() <= {
            *event,
            *(n for n, f in type(read).model_fields.items() if not f.is_required()),
        }
    for status, code in ((500, "server_error"), (429, "rate_limit_exceeded"), (400, "invalid_prompt")):
        failed = EVENT.validate_python(writer.failure(RequestError("no", status=status, code="x")))
        assert failed.type == "response.failed" and failed.response.error.code == code
    assert failed.sequence_number == len(events) + 2


def test_items_of_a_response_begin_and_end_in_order() -> None:
    """Each item is added, filled and done before the next, and its parts within it."""
    request = read_request(ResponseRequest, {"input": "x", "tools": [FLAT]})
    work = response_work(request, ByteTokenizer(TEMPLATE), VOCABULARY, ServingSettings())
    writer = ResponseWriter(work, VOCABULARY, **HEAD)
    text = f"Hm. {CALLS}\n{CALLS}"
    kinds = [
        e["type"].removeprefix("response.")
        for event in events_of(text, list(range(0, len(text), 7)))
        for e in writer.chunks(0, event)
    ]
    shortened = [kind for kind, _ in itertools.groupby(kinds)]
    call = [
        "output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done",
    ]  # fmt: skip
    assert shortened == [
        "output_item.added", "content_part.added", "output_text.delta", "output_text.done", "content_part.done",
        "output_item.done", *call, *call,
    ]  # fmt: skip
