"""Chat and completions without a model: what is asked for as work, what comes of it as objects and chunks."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structgen.core.constraints.tools import tool_call
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.generation.models.defaults import ModelDefaults
from structgen.server.chat import ChatWriter, chat_work
from structgen.server.completions import CompletionWriter, completion_work
from structgen.server.errors import RequestError
from structgen.server.inference_request import InferenceRequest, TokenStream
from structgen.server.openai_types import ChatRequest, CompletionRequest
from structgen.server.outputs import OutputForm
from structgen.server.reading import read_request
from structgen.server.sequences import SequenceEvent, TokenChoice
from structgen.server.settings import ServingSettings
from tests.server.tiny import VOCABULARY, ByteTokenizer, events_of, generator, merged

SETTINGS = ServingSettings()
HELLO = [{"role": "user", "content": "Hello"}]
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
TOOLS = [
    {"type": "function", "function": {"name": "f", "parameters": {**SCHEMA}}},
    {
        "type": "custom",
        "custom": {"name": "c", "format": {"type": "grammar", "grammar": {"syntax": "regex", "definition": "[a-c]+"}}},
    },
]


def custom_tool(expression: str) -> dict[str, Any]:
    grammar = {"type": "grammar", "grammar": {"syntax": "regex", "definition": expression}}
    return {"type": "custom", "custom": {"name": "c", "format": grammar}}


HEAD: dict[str, Any] = {"id": "x", "created": 1, "model": "tiny"}


def work_of(tokenizer: Any = None, settings: ServingSettings = SETTINGS, **fields: Any) -> InferenceRequest:
    request = read_request(ChatRequest, {"messages": HELLO, **fields})
    return chat_work(request, tokenizer or ByteTokenizer(), VOCABULARY, settings)


def prompt_of(work: InferenceRequest) -> str:
    return bytes(work.prompts[0]).decode()


def accepts(work: InferenceRequest, text: str) -> bool:
    """Whether the constraint of the work takes the whole text."""
    assert work.constraint is not None
    matcher = work.constraint.constraint.compile(VOCABULARY).matcher()
    return matcher.accept_bytes(text.encode()) and matcher.is_accepting()


def error_of(**fields: Any) -> RequestError:
    with pytest.raises(RequestError) as caught:
        work_of(**fields)
    return caught.value


# --- what is asked for ---
def test_sampling_fields() -> None:
    work = work_of(
        temperature=0.5,
        top_p=0.9,
        top_k=5,
        min_p=0.1,
        frequency_penalty=1,
        presence_penalty=-1,
        repetition_penalty=1.2,
        logit_bias={"65": -100},
        seed=-1,
        stop="END",
        n=2,
        max_tokens=7,
        priority=3,
    )
    params = work.sequence.params
    assert (params.temperature, params.top_p, params.top_k, params.min_p) == (0.5, 0.9, 5, 0.1)
    assert (params.frequency_penalty, params.presence_penalty, params.repetition_penalty) == (1.0, -1.0, 1.2)
    assert dict(params.logit_bias) == {65: -100} and params.seed == 2**64 - 1
    assert (work.sequence.stop, work.choices, work.sequence.max_new_tokens, work.sequence.priority) == (
        ("END",),
        2,
        7,
        3,
    )
    rows = work.sequences(None, lambda prompt, wanted: wanted, "key")
    assert [row.params.seed for row in rows] == [2**64 - 1, 0]


def test_what_is_not_said_is_as_openai_has_it() -> None:
    work = work_of()
    assert work.sequence.params.temperature == 1.0 and work.sequence.params.seed is None and work.choices == 1
    assert (
        work.constraint is None
        and work.logprobs is None
        and work.sequence.max_new_tokens == SETTINGS.default_max_tokens
    )
    assert (
        work_of(max_completion_tokens=9).sequence.max_new_tokens == 9
        and work_of(top_k=-1).sequence.params.top_k is None
    )


def test_messages_of_all_roles() -> None:
    messages = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}],
        },
        {"role": "tool", "content": "42", "tool_call_id": "1"},
    ]
    expected = (
        "<system>Be brief.\n<user>one\ntwo\n"
        '<assistant><tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>\n'
        "<user><tool_response>\n42\n</tool_response>\n<assistant>"
    )
    assert prompt_of(work_of(messages=messages)) == expected


def test_templates_that_take_tools_get_them() -> None:
    tokenizer = ByteTokenizer("{{ messages }} {{ tools }}")
    messages = [
        *HELLO,
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}],
        },
        {"role": "tool", "content": "42", "tool_call_id": "1"},
    ]
    work_of(tokenizer, messages=messages, tools=TOOLS)
    given_tools = tokenizer.fields["tools"]
    assert [tool["function"]["name"] for tool in given_tools] == ["f", "c"]
    assert tokenizer.fields["messages"][1]["tool_calls"][0]["function"] == {"name": "f", "arguments": {"a": 1}}
    assert tokenizer.fields["messages"][2]["name"] == "f"


def test_templates_that_do_not_are_told_in_the_system_message() -> None:
    prompt = prompt_of(work_of(tools=TOOLS))
    assert prompt.startswith("<system># Tools") and '"name": "f"' in prompt


@pytest.mark.parametrize(
    ("role", "begins"), [("user", "<user>Answer with JSON"), ("system", "<system>Answer with JSON")]
)
def test_where_the_model_is_told_of_the_schema(role: str, begins: str) -> None:
    form: Any = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}
    assert prompt_of(work_of(response_format=form, structgen={"schema_in_prompt": role})).startswith(begins)
    assert prompt_of(work_of(response_format=form, settings=ServingSettings(schema_in_prompt=role))).startswith(begins)  # type: ignore[arg-type]
    assert "Answer" not in prompt_of(work_of(response_format=form, structgen={"schema_in_prompt": "none"}))


def test_the_form_in_which_the_model_is_told_of_the_schema() -> None:
    form: Any = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}
    skeleton = '<user>Answer with JSON: {"a": integer}\n\nHello'
    small = ServingSettings(model_defaults=ModelDefaults("skeleton"))
    assert prompt_of(work_of(response_format=form, settings=small)).startswith(skeleton)
    assert prompt_of(work_of(response_format=form, structgen={"schema_form": "skeleton"})).startswith(skeleton)
    assert prompt_of(work_of(response_format=form, settings=ServingSettings(schema_form="skeleton"))).startswith(
        skeleton
    )
    told = prompt_of(work_of(response_format=form, settings=small, structgen={"schema_form": "schema"}))
    assert told.startswith("<user>Answer with JSON that matches this JSON Schema:")


def test_temperature_where_a_request_names_none() -> None:
    own = ModelDefaults(temperature=0.2, top_p=0.9, top_k=40, min_p=0.1)
    params = work_of(settings=ServingSettings(model_defaults=own)).sequence.params
    assert (params.temperature, params.top_p, params.top_k, params.min_p) == (0.2, 0.9, 40, 0.1)
    asked: dict[str, Any] = {"temperature": 0, "top_p": 1, "top_k": -1, "min_p": 0}
    params = work_of(settings=ServingSettings(model_defaults=own), **asked).sequence.params
    assert (params.temperature, params.top_p, params.top_k, params.min_p) == (0.0, 1.0, None, 0.0)
    assert work_of().sequence.params.temperature == 1.0  # of a model that says nothing of itself
    settings = ServingSettings(model_defaults=own, default_temperature=0.7)
    assert work_of(settings=settings).sequence.params.temperature == 0.7
    assert work_of(settings=settings, temperature=0.0).sequence.params.temperature == 0.0


@pytest.mark.parametrize(
    ("fields", "good", "bad"),
    [
        ({"response_format": {"type": "json_object"}}, '{"x": [1]}', "[1]"),
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}}}, '{"a": 1}', '{"a": "1"}'),
        ({"structured_outputs": {"json": SCHEMA}}, '{"a": 1}', "{}"),
        ({"structured_outputs": {"json": json.dumps(SCHEMA)}}, '{"a": 1}', "{}"),
        ({"structured_outputs": {"regex": "[0-9]{4}"}}, "2026", "20266"),
        ({"structured_outputs": {"choice": ["yes", "no"]}}, "yes", "maybe"),
        ({"structured_outputs": {"grammar": 'root ::= "a" root | "b"'}}, "aab", "aa"),
        ({"structured_outputs": {"json_object": True}}, "{}", "1"),
        ({"tools": TOOLS}, 'Hm. <tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>', "<tool_call>x"),
        (
            {"tools": TOOLS, "tool_choice": "none"},
            "Hm.",
            '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>',
        ),
        (
            {"tools": TOOLS, "tool_choice": "required"},
            '<tool_call>\n{"name": "c", "arguments": {"input": "ab"}}\n</tool_call>',
            "Hm.",
        ),
        (
            {"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "f"}}},
            '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>',
            '<tool_call>\n{"name": "c", "arguments": {"input": "ab"}}\n</tool_call>',
        ),
        (
            {"tools": TOOLS, "tool_choice": {"type": "custom", "custom": {"name": "c"}}},
            '<tool_call>\n{"name": "c", "arguments": {"input": "ab"}}\n</tool_call>',
            '<tool_call>\n{"name": "c", "arguments": {"input": "abd"}}\n</tool_call>',
        ),
        (
            {"tools": TOOLS, "response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}}},
            '{"a": 1}',
            "Hm.",
        ),
        (
            {"tools": TOOLS, "response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}}},
            '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>',
            '{"a": 1}<tool_call>',
        ),
    ],
)
def test_constraints(fields: dict[str, Any], good: str, bad: str) -> None:
    work = work_of(**fields)
    assert accepts(work, good) and not accepts(work, bad)


FORMAT = {"type": "json_schema", "json_schema": {"schema": SCHEMA}}
CALL = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
NAMED = {"type": "function", "function": {"name": "f"}}


def allowed(mode: str) -> dict[str, Any]:
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": [NAMED]}}


@pytest.mark.parametrize("choice", ["required", NAMED, allowed("required")])
def test_a_call_that_is_required_is_no_answer(choice: Any) -> None:
    """DSPy sends a response format beside tools of which one must be called."""
    work = work_of(tools=TOOLS, tool_choice=choice, response_format=FORMAT)
    assert accepts(work, CALL) and not accepts(work, '{"a": 1}') and not accepts(work, "Hm.")
    assert whole(work, CALL)["finish_reason"] == "tool_calls"


def test_a_tool_that_is_named_is_called_once() -> None:
    """instructor reads one call of the tool that it names; it says nothing of parallel calls."""
    for parallel in (None, True, False):
        work = work_of(tools=TOOLS, tool_choice=NAMED, parallel_tool_calls=parallel)
        assert accepts(work, CALL) and not accepts(work, f"{CALL}\n{CALL}")
    for choice in ("required", allowed("required")):
        assert accepts(work_of(tools=TOOLS, tool_choice=choice), f"{CALL}\n{CALL}")


def test_notes_of_clients_in_messages_change_nothing() -> None:
    """LiteLLM's, in what the model answered before."""
    said = {"role": "assistant", "content": "Hi"}
    plain = work_of(messages=[*HELLO, said, *HELLO])
    noted = work_of(messages=[*HELLO, {**said, "provider_specific_fields": {"refusal": None}}, *HELLO])
    assert prompt_of(noted) == prompt_of(plain)


@pytest.mark.parametrize("choice", ["auto", allowed("auto")])
def test_a_call_or_an_answer(choice: Any) -> None:
    work = work_of(tools=TOOLS, tool_choice=choice, response_format=FORMAT)
    assert accepts(work, CALL) and accepts(work, '{"a": 1}')
    assert not accepts(work, "Hm.") and not accepts(work, '{"a": 1}' + CALL)


def test_lark_grammars() -> None:
    pytest.importorskip("lark")
    work = work_of(structured_outputs={"grammar": 'start: "x" /[0-9]+/'})
    assert accepts(work, "x12") and not accepts(work, "x")


def test_structural_tags() -> None:
    tag = {
        "type": "structural_tag",
        "triggers": ["<function="],
        "structures": [{"begin": f"<function={name}>", "schema": SCHEMA, "end": "</function>"} for name in "fg"],
    }
    for given_tag in (tag, json.dumps(tag)):
        work = work_of(structured_outputs={"structural_tag": given_tag})
        assert accepts(work, 'Hm <function=f>{"a": 1}</function> <function=g>{"a": 2}</function>') and accepts(
            work, "Hm"
        )
        assert not accepts(work, '<function=h>{"a": 1}</function>') and not accepts(work, "<function=f>{}</function>")


@pytest.mark.parametrize(
    ("fields", "param", "code"),
    [
        ({"structured_outputs": {}}, "structured_outputs", "invalid_value"),
        ({"structured_outputs": {"regex": "a", "choice": ["a"]}}, "structured_outputs", "invalid_value"),
        ({"structured_outputs": {"json": "file.json"}}, "structured_outputs.json", "invalid_value"),
        (
            {"structured_outputs": {"structural_tag": {"type": "structural_tag", "format": {}}}},
            "structured_outputs.structural_tag.format",
            "invalid_value",
        ),
        (
            {"structured_outputs": {"structural_tag": {"structures": [], "formats": {}}}},
            "structured_outputs.structural_tag.formats",
            "unsupported_parameter",
        ),
        (
            {"structured_outputs": {"regex": "a"}, "response_format": {"type": "json_object"}},
            "structured_outputs",
            "invalid_value",
        ),
        ({"top_logprobs": 3}, "top_logprobs", "invalid_value"),
        ({"n": 99}, "n", "invalid_value"),
        ({"stop": ""}, "stop", "invalid_value"),
        ({"max_tokens": 3, "max_completion_tokens": 4}, "max_tokens", "invalid_value"),
        ({"logit_bias": {"99999": 1}}, "logit_bias.99999", "invalid_value"),
        ({"logit_bias": {"7": 100, "07": -100}}, "logit_bias.07", "invalid_value"),
        ({"tool_choice": "required"}, "tool_choice", "invalid_value"),
        (
            {"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "g"}}},
            "tool_choice",
            "invalid_value",
        ),
        ({"tools": [TOOLS[0], TOOLS[0]]}, "tools", "invalid_constraint"),
        (
            {"tools": [{"type": "function", "function": {"name": "tool_choice", "parameters": {"type": 1}}}]},
            "tools",
            "invalid_schema",
        ),
        ({"tools": [custom_tool("a)|(?:b")]}, "tools[0].custom.format.grammar.definition", "invalid_pattern"),
        ({"tools": [custom_tool("a" * 2_001)]}, "tools[0].custom.format.grammar.definition", "grammar_too_complex"),
        (
            {
                "tools": [
                    {
                        "type": "custom",
                        "custom": {
                            "name": "c",
                            "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "x"}},
                        },
                    }
                ]
            },
            "tools[0].custom.format.grammar.syntax",
            "unsupported_value",
        ),
        ({"reasoning_effort": "high"}, "reasoning_effort", "unsupported_parameter"),
        (
            {"chat_template_kwargs": {"chat_template": "{{ 1 }}"}},
            "chat_template_kwargs.chat_template",
            "unsupported_parameter",
        ),
        ({"chat_template_kwargs": {"tokenize": True}}, "chat_template_kwargs.tokenize", "unsupported_parameter"),
        ({"messages": [{"role": "user", "content": "refuse me"}]}, "messages", "chat_template_refused"),
    ],
)
def test_what_cannot_be_done_is_refused_with_its_place(fields: dict[str, Any], param: str, code: str) -> None:
    error = error_of(**fields)
    assert (error.param, error.code, error.status) == (param, code, 400)


def test_the_pointer_leads_into_the_schema() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "strin"}}}
    tools = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    assert error_of(tools=tools).pointer == "/tools/0/function/parameters/properties/a/type"


def test_strict_false_leaves_out_what_cannot_be_enforced() -> None:
    for strict, unsupported in ((None, "error"), (True, "error"), (False, "ignore")):
        work = work_of(response_format={"type": "json_schema", "json_schema": {"schema": SCHEMA, "strict": strict}})
        constraint: Any = work.constraint and work.constraint.constraint
        assert constraint.options.unsupported == unsupported


def test_models_without_a_template_are_for_completions() -> None:
    with pytest.raises(RequestError, match="/v1/completions"):
        work_of(ByteTokenizer(None))


def test_template_fields_and_effort() -> None:
    tokenizer = ByteTokenizer("{{ messages }} {{ ending }} {{ reasoning_effort }}")
    assert prompt_of(work_of(tokenizer, chat_template_kwargs={"ending": "Well, "})).endswith("<assistant>Well, ")
    work_of(tokenizer, reasoning_effort="high")
    assert tokenizer.fields["reasoning_effort"] == "high"
    thinker = ByteTokenizer("{{ messages }} <think> {{ enable_thinking }}")
    work_of(thinker, reasoning_effort="none")
    assert thinker.fields["enable_thinking"] is False


def test_thinking_comes_before_what_is_constrained() -> None:
    form: Any = {"response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}}}
    may = work_of(ByteTokenizer("{{ messages }} <think>"), **form)
    assert accepts(may, '<think>Hm {"b"</think>\n\n{"a": 1}') and accepts(may, '{"a": 1}') and not accepts(may, "Hm")
    begun = work_of(ByteTokenizer("{{ ending }}"), **form, chat_template_kwargs={"ending": "<think>\n"})
    assert accepts(begun, 'Hm</think>{"a": 1}') and not accepts(begun, '{"a": 1}')
    with_tools = work_of(ByteTokenizer("{{ messages }} <think>"), tools=TOOLS, tool_choice="required")
    assert accepts(
        with_tools, '<think><tool_call></think><tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
    )


# --- what is answered ---
def streamed(
    work: InferenceRequest, text: str, cuts: list[int], finish: str = "stop"
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The message that chunks add up to, as OpenAI's clients add them up, and the chunks."""
    writer = ChatWriter(work, VOCABULARY, **HEAD)
    chunks = list(writer.opening())
    for event in events_of(text, cuts, finish):
        chunks += writer.chunks(0, event)
    chunks += writer.closing()
    message: dict[str, Any] = {"content": "", "reasoning_content": "", "tool_calls": [], "logprobs": []}
    for chunk in chunks:
        for choice in chunk["choices"]:
            delta = choice["delta"]
            for field in ("content", "reasoning_content"):
                message[field] += delta.get(field) or ""
            for call in delta.get("tool_calls", ()):
                kind = next(name for name in ("function", "custom") if name in call)
                field = "arguments" if kind == "function" else "input"
                if "id" in call:
                    assert call["index"] == len(message["tool_calls"])
                    message["tool_calls"].append({"type": call["type"], "name": call[kind]["name"], "text": ""})
                message["tool_calls"][call["index"]]["text"] += call[kind][field]
            message["logprobs"] += (choice["logprobs"] or {}).get("content", [])
            message["finish_reason"] = choice["finish_reason"]
    return message, chunks


def whole(work: InferenceRequest, text: str, finish: str = "stop") -> dict[str, Any]:
    """The same of an answer that is not streamed."""
    writer = ChatWriter(work, VOCABULARY, **HEAD)
    answer = writer.completion([merged(events_of(text, [], finish))])
    choice = answer["choices"][0]
    calls = [
        {
            "type": call["type"],
            "name": call[call["type"]]["name"],
            "text": call[call["type"]].get("arguments", call[call["type"]].get("input")),
        }
        for call in choice["message"].get("tool_calls", ())
    ]
    return {
        "content": choice["message"]["content"] or "",
        "reasoning_content": choice["message"].get("reasoning_content", ""),
        "tool_calls": calls,
        "logprobs": (choice["logprobs"] or {}).get("content", []),
        "finish_reason": choice["finish_reason"],
    }


TEXTS = [
    ({}, "Hello, wörld 😀"),
    ({"logprobs": True, "top_logprobs": 2}, "Hello, wörld 😀"),
    (
        {"tools": TOOLS},
        'Hm. <tool_call>\n{"name": "f", "arguments": {"a": 12}}\n</tool_call>\n'
        '<tool_call>\n{"name": "c", "arguments": {"input": "ab"}}\n</tool_call>',
    ),
    ({"tools": TOOLS}, "No call, but a <tool"),
    ({"tools": TOOLS, "response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}}}, '{"a": 1}'),
]


@pytest.mark.parametrize(("fields", "text"), TEXTS)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_chunks_add_up_to_the_answer(fields: dict[str, Any], text: str, data: st.DataObject) -> None:
    work = work_of(**fields)
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=8))
    assert streamed(work, text, cuts)[0] == whole(work, text)


@pytest.mark.parametrize(
    ("finish", "on_budget", "text", "told"),
    [
        ("stop", "length", "x", "stop"),
        ("length", "length", "x", "length"),
        ("length", "close", "x", "stop"),
        ("stop", "length", TEXTS[2][1], "tool_calls"),
        ("length", "length", TEXTS[2][1], "length"),
    ],
)
def test_finish_reasons(finish: str, on_budget: str, text: str, told: str) -> None:
    work = work_of(tools=TOOLS, structgen={"on_budget": on_budget})
    assert whole(work, text, finish)["finish_reason"] == told
    assert streamed(work, text, [3], finish)[0]["finish_reason"] == told


def test_chunks_have_the_shape_of_openai() -> None:
    _, chunks = streamed(work_of(stream=True, stream_options={"include_usage": True}), "Hello", [1, 3])
    assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert all(chunk["object"] == "chat.completion.chunk" and chunk["id"] == "x" for chunk in chunks)
    assert chunks[-1]["choices"] == [] and chunks[-1]["usage"]["completion_tokens"] == 5
    assert all(chunk["usage"] is None for chunk in chunks[:-1])
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks[:-1]][-2:] == [None, "stop"]
    assert "usage" not in streamed(work_of(), "Hello", [])[1][-1]


def test_logprobs_are_of_what_is_told() -> None:
    told = whole(work_of(logprobs=True, top_logprobs=1), "é!")["logprobs"]
    assert [token["bytes"] for token in told] == [[0xC3], [0xA9], [33]] and told[2]["token"] == "!"
    assert all(token["logprob"] == -0.5 and len(token["top_logprobs"]) == 1 for token in told)
    cut = ChatWriter(work_of(logprobs=True), VOCABULARY, **HEAD)
    (event,) = events_of("abEND")
    answer = cut.completion([dataclasses.replace(event, text="ab")])  # the stop string was cut off
    assert len(answer["choices"][0]["logprobs"]["content"]) == 2


def test_usage_counts_all_outputs_and_thinking() -> None:
    work = work_of(ByteTokenizer("{{ messages }} <think>"), n=2)
    writer = ChatWriter(work, VOCABULARY, **HEAD)
    answer = writer.completion([merged(events_of("<think>Hm</think>Yes")), merged(events_of("No"))])
    assert answer["choices"][0]["message"]["reasoning_content"] == "Hm"
    assert answer["choices"][0]["message"]["content"] == "Yes"
    usage = answer["usage"]
    assert usage["completion_tokens"] == 22 and usage["completion_tokens_details"]["reasoning_tokens"] == 17
    assert usage["total_tokens"] == usage["prompt_tokens"] + 22


def test_thinking_that_is_cut_is_counted_whole() -> None:
    work = work_of(ByteTokenizer("{{ messages }} <think>"))
    answer = ChatWriter(work, VOCABULARY, **HEAD).completion([merged(events_of("<think>Hm, let me see"))])
    assert answer["usage"]["completion_tokens_details"]["reasoning_tokens"] == len("<think>Hm, let me see")
    text = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Yes."
    harmony = dataclasses.replace(work, form=OutputForm(tool_call("harmony", [], tool_choice="none")))
    answer = ChatWriter(harmony, VOCABULARY, **HEAD).completion([merged(events_of(text))])
    assert answer["usage"]["completion_tokens_details"]["reasoning_tokens"] == text.index("<|channel|>final")


def test_tokens_have_their_places_whatever_the_model_writes() -> None:
    special = Vocabulary(
        [*(bytes([byte]) for byte in range(256)), None, None], eos_token_ids=256, special_tokens={"<call>": 257}
    )
    written = (0xC3, 257, *"é<".encode(), 0xFF, *b"a")
    text = "\ufffd<call>é<\ufffda"
    stream = TokenStream(special)
    stream.add(SequenceEvent("", tuple(TokenChoice(token, -0.5) for token in (*written, *b"END"))))
    placed = stream.with_text(text)
    assert [choice.token_id for _, choice in placed] == [*written] and [place for place, _ in placed] == [
        *(0, 1, 7, 7, 8, 9, 10)
    ]


def test_tokens_of_a_stop_string_after_what_is_no_text_are_not_streamed() -> None:
    stream = TokenStream(VOCABULARY)
    stream.add(SequenceEvent("", tuple(TokenChoice(byte, -0.5) for byte in b"a\xc3\xc3\xa9")))
    assert [place for place, _ in stream.with_text("a\ufffd")] == [0, 1]  # "é" was cut off


# --- completions ---
def completion_of(**fields: Any) -> InferenceRequest:
    request = read_request(CompletionRequest, {"prompt": "Hello", **fields})
    return completion_work(request, ByteTokenizer(), VOCABULARY, SETTINGS)


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [("ab", [[97, 98]]), (["a", "b"], [[97], [98]]), ([97, 98], [[97, 98]]), ([[97], [98]], [[97], [98]])],
)
def test_prompts_of_completions(prompt: Any, expected: list[list[int]]) -> None:
    assert completion_of(prompt=prompt).prompts == expected


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"prompt": []}, "prompt"),
        ({"prompt": ""}, "prompt"),
        ({"prompt": [999]}, "prompt"),
        ({"prompt": [[1], []]}, "prompt[1]"),
        ({"prompt": ["x"] * 99}, "prompt"),
    ],
)
def test_prompts_that_are_none(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError) as caught:
        completion_of(**fields)
    assert caught.value.param == param


def test_prompts_that_are_too_long_for_the_model_are_not_taken_to_pieces() -> None:
    class Counting(ByteTokenizer):
        read = 0

        def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
            self.read += len(text)
            return super().encode(text, add_special_tokens)

    tokenizer, short = Counting(), ServingSettings(max_prompt_length=100)
    tried: list[tuple[Any, Any, Any]] = [
        ({"prompt": "x" * 101}, CompletionRequest, completion_work),
        ({"prompt": ["x"] * 99}, CompletionRequest, completion_work),
        ({"messages": [{"role": "user", "content": "x" * 101}]}, ChatRequest, chat_work),
    ]
    for ask, kind, work in tried:
        with pytest.raises(RequestError) as caught:
            work(read_request(kind, ask), tokenizer, VOCABULARY, short)
        assert caught.value.status == 400
    assert tokenizer.read == 0
    assert completion_work(read_request(CompletionRequest, {"prompt": "x" * 100}), tokenizer, VOCABULARY, short)


def test_how_long_a_prompt_may_be_follows_from_the_model() -> None:
    pytest.importorskip("starlette")
    pytest.importorskip("prometheus_client")
    from structgen.server.app import ApiServer

    server = ApiServer(generator(context_length=50), ServingSettings(compile_workers=0))
    assert server.settings.max_prompt_length == 50  # all tokens have a byte
    assert ApiServer(generator(), ServingSettings(compile_workers=0)).settings.max_prompt_length is None


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 12), max_size=6))
def test_completions_add_up(cuts: list[int]) -> None:
    text = "Hello wörld."
    work = completion_of(logprobs=2, n=1)
    writer = CompletionWriter(work, VOCABULARY, **HEAD)
    chunks = [chunk for event in events_of(text, cuts) for chunk in writer.chunks(0, event)]
    answer = CompletionWriter(work, VOCABULARY, **HEAD).completion([merged(events_of(text))])["choices"][0]
    assert "".join(chunk["choices"][0]["text"] for chunk in chunks) == answer["text"] == text
    assert answer["logprobs"]["text_offset"] == [*range(8), *range(7, 12)]  # the ö has two tokens
    told = [chunk["choices"][0]["logprobs"] for chunk in chunks]
    for field in ("tokens", "token_logprobs", "top_logprobs", "text_offset"):
        assert [item for each in told for item in each[field]] == answer["logprobs"][field]
    assert answer["logprobs"]["tokens"][7] == "bytes:\\xc3"
