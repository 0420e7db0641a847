"""The Responses API without a model: input as messages, output as items and events."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structgen.server.errors import RequestError
from structgen.server.reading import read_request
from structgen.server.responses import ResponseWriter, response_work
from structgen.server.responses_types import ResponseRequest
from structgen.server.settings import ServingSettings
from tests.server.tiny import VOCABULARY, ByteTokenizer, events_of, merged

FUNCTION = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
TOOLS = [
    {"type": "function", "name": "f", "parameters": FUNCTION},
    {"type": "custom", "name": "c", "format": {"type": "grammar", "syntax": "regex", "definition": "[a-c]+"}},
]
CALLS = (
    'Hm. <tool_call>\n{"name": "f", "arguments": {"a": 12}}\n</tool_call>\n'
    '<tool_call>\n{"name": "c", "arguments": {"input": "ab"}}\n</tool_call>'
)
THINKER = "{{ messages }} <think>"


def asked(template: str = "{{ messages }}", **fields: Any) -> tuple[ResponseRequest, Any, ByteTokenizer]:
    request = read_request(ResponseRequest, {"input": "Hello", **fields})
    tokenizer = ByteTokenizer(template)
    return request, response_work(request, tokenizer, VOCABULARY, ServingSettings()), tokenizer


def writer_of(template: str = "{{ messages }}", **fields: Any) -> ResponseWriter:
    _, work, _ = asked(template, **fields)
    return ResponseWriter(work, VOCABULARY, id="resp_x", created=1, model="tiny")


def test_input_items_become_messages() -> None:
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": "one"}, {"type": "input_text", "text": "two"}]},
        {"type": "reasoning", "id": "r", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm"}]},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Yes"}],
            "id": "m",
            "status": "completed",
        },
        {
            "type": "function_call",
            "call_id": "1",
            "name": "f",
            "arguments": '{"a": 1}',
            "id": "fc",
            "status": "completed",
        },
        {"type": "custom_tool_call", "call_id": "2", "name": "c", "input": "ab"},
        {"type": "function_call_output", "call_id": "1", "output": "42"},
        {"type": "custom_tool_call_output", "call_id": "2", "output": [{"type": "input_text", "text": "43"}]},
    ]
    _, _, tokenizer = asked("{{ messages }} {{ tools }}", input=items, instructions="Be brief.")
    messages = tokenizer.fields["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "tool", "tool"]
    assert messages[1]["content"] == "one\ntwo" and messages[2]["reasoning_content"] == "Hm"
    assert [call["function"]["name"] for call in messages[2]["tool_calls"]] == ["f", "c"]
    assert messages[3]["content"] == "42" and messages[4]["name"] == "c"


def test_the_effort_is_named_where_it_stands() -> None:
    with pytest.raises(RequestError) as caught:
        asked(reasoning={"effort": "high"})
    assert caught.value.param == "reasoning.effort"


def test_thinking_before_a_call_is_kept() -> None:
    def thought(text: str) -> dict[str, Any]:
        return {"type": "reasoning", "id": "r", "summary": [], "content": [{"type": "reasoning_text", "text": text}]}

    call = {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"}
    said = {"role": "assistant", "content": [{"type": "output_text", "text": "Yes"}], "type": "message"}
    items = [{"role": "user", "content": "x"}, thought("one"), thought("two"), said, thought("three"), call]
    _, _, tokenizer = asked("{{ messages }} {{ tools }}", input=items)
    message = tokenizer.fields["messages"][1]
    assert message["reasoning_content"] == "one\ntwo\nthree" and message["tool_calls"] and message["content"] == "Yes"


def test_what_is_asked_for() -> None:
    fields: Any = {"text": {"format": {"type": "json_schema", "name": "n", "schema": FUNCTION}}, "max_output_tokens": 9}
    _, work, _ = asked(**fields, top_logprobs=3, include=["message.output_text.logprobs"])
    assert work.sequence.max_new_tokens == 9 and work.logprobs == 3 and work.constraint.kind == "json_schema"
    assert asked(text={"format": {"type": "text"}})[1].constraint is None
    assert asked(tools=TOOLS, tool_choice={"type": "custom", "name": "c"})[1].constraint.kind == "tools"
    assert asked(
        tools=TOOLS, tool_choice={"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]}
    )[1]


def test_the_pointer_leads_into_the_text_format() -> None:
    with pytest.raises(RequestError) as caught:
        asked(text={"format": {"type": "json_schema", "name": "n", "schema": {"enum": ["x" * 300_000]}}})
    assert caught.value.pointer == "/text/format/schema"


def whole(text: str, template: str, finish: str = "stop", **fields: Any) -> dict[str, Any]:
    return writer_of(template, **fields).completion([merged(events_of(text, [], finish))])


def without_ids(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without_ids(v) for k, v in value.items() if k not in ("id", "call_id", "item_id", "completed_at")}
    return [without_ids(item) for item in value] if isinstance(value, list) else value


def replayed(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The items that events add up to, by what OpenAI's documentation says of each; asserts their order."""
    items: list[dict[str, Any]] = []
    done: list[dict[str, Any]] = []
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    for event in events[2:-1]:
        kind = event["type"].removeprefix("response.")
        if kind == "output_item.added":
            assert event["output_index"] == len(items) == len(done) and event["item"]["status"] == "in_progress"
            items.append({"text": "", **event["item"]})
            continue
        item = items[event["output_index"]]
        assert event["output_index"] == len(items) - 1
        assert event.get("item_id", item["id"]) == item["id"]
        if kind == "content_part.added":
            assert not item["content"] and event["part"]["text"] == ""
        elif kind.endswith(".delta"):
            assert event["delta"]
            item["text"] += event["delta"]
        elif kind == "content_part.done":
            assert event["part"]["text"] == item["text"]
        elif kind == "output_item.done":
            done.append(event["item"])
        else:
            field = next(name for name in ("text", "arguments", "input") if name in event)
            assert kind.endswith(".done") and event[field] == item["text"]
    return done


@pytest.mark.parametrize(
    ("template", "fields", "text", "finish"),
    [
        ("{{ messages }}", {}, "Hello, wörld", "stop"),
        ("{{ messages }}", {"top_logprobs": 1}, "Hello, wörld", "length"),
        ("{{ messages }}", {"tools": TOOLS}, CALLS, "stop"),
        (THINKER, {"tools": TOOLS}, "<think>Hm, hm</think>\n\n" + CALLS, "stop"),
        ("{{ messages }}", {}, "", "stop"),
    ],
)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_events_add_up_to_the_response(template: str, fields: Any, text: str, finish: str, data: st.DataObject) -> None:
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=8))
    writer = writer_of(template, **fields)
    events = list(writer.opening())
    for event in events_of(text, cuts, finish):
        events += writer.chunks(0, event)
    events += writer.closing()
    assert [event["type"] for event in events[:2]] == ["response.created", "response.in_progress"]
    assert events[-1]["type"] == f"response.{'completed' if finish == 'stop' else 'incomplete'}"
    expected = whole(text, template, finish, **fields)
    assert without_ids(events[-1]["response"]) == without_ids(expected)
    assert replayed(events) == events[-1]["response"]["output"]


def test_items_of_a_response() -> None:
    response = whole("<think>Hm</think>" + CALLS, THINKER, tools=TOOLS)
    kinds = [item["type"] for item in response["output"]]
    assert kinds == ["reasoning", "message", "function_call", "custom_tool_call"]
    assert response["output"][2]["arguments"] == '{"a": 12}' and response["output"][3]["input"] == "ab"
    assert response["usage"]["output_tokens_details"]["reasoning_tokens"] == len("<think>Hm</think>")
    assert response["status"] == "completed" and response["store"] is False


def test_logprobs_of_a_text_are_those_of_its_tokens() -> None:
    response = whole("<think>Hm</think>\n\nHello", THINKER, top_logprobs=1)
    (content,) = response["output"][1]["content"]
    assert content["text"] == "Hello" == "".join(token["token"] for token in content["logprobs"])
    assert content["logprobs"][0]["bytes"] == [72]


def test_an_output_that_the_budget_shaped_is_incomplete() -> None:
    response = whole("Hell", "{{ messages }}", "length")
    assert response["status"] == "incomplete" and response["output"][0]["status"] == "incomplete"
    assert response["incomplete_details"] == {"reason": "max_output_tokens"}
    closed = whole("Hell", "{{ messages }}", "length", structgen={"on_budget": "close"})
    assert closed["status"] == "completed" and closed["incomplete_details"] is None


def test_a_failure_is_an_event() -> None:
    writer = writer_of()
    list(writer.opening())
    event = writer.failure(RequestError("It broke.", status=500, code="generation_failed"))
    assert event["type"] == "response.failed" and event["sequence_number"] == 2
    assert event["response"]["error"] == {"code": "server_error", "message": "It broke."}
