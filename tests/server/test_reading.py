"""Requests are read whole or refused with the place and the name of what is wrong."""

from __future__ import annotations

import json
import threading
import time
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from structgen.core.constraints.specs import ConstraintSpec
from structgen.core.tool_calls.definitions import MAX_TOOLS
from structgen.core.untrusted_json import _FAST, _YIELDING
from structgen.errors import dotted, pointer_to
from structgen.server.errors import RequestError
from structgen.server.formats import placed
from structgen.server.openai_types import ChatRequest, CompletionRequest
from structgen.server.reading import read_json, read_request
from structgen.server.responses_types import ResponseRequest
from structgen.server.settings import ServingSettings

HELLO: dict[str, Any] = {"messages": [{"role": "user", "content": "Hello"}]}


def refusal(fields: dict[str, Any], kind: Any = ChatRequest) -> dict[str, Any]:
    with pytest.raises(RequestError) as caught:
        read_request(kind, fields)
    error: dict[str, Any] = caught.value.body()["error"]
    assert caught.value.status == 400 and error["type"] == "invalid_request_error"
    assert caught.value.headers()["x-should-retry"] == "false"
    return error


@pytest.mark.parametrize(
    "body",
    [b"", b"[1]", b"{", b'{"a": }', b"\xff", b"[" * 100_000, b'{"a": "\\ud800"}', b'{"a": NaN}', b"1" * 5000, b'"x"'],
)
def test_bodies_that_are_no_object_are_refused(body: bytes) -> None:
    with pytest.raises(RequestError) as caught:
        read_json(body)
    assert (caught.value.status, caught.value.code) == (400, "invalid_json")


def test_the_place_in_bad_json_is_shown_with_a_caret() -> None:
    with pytest.raises(RequestError, match=r"line 2, column 7") as caught:
        read_json(b'{"a": 1,\n "b": oops}')
    assert str(caught.value).endswith(' "b": oops}\n      ^')


@pytest.mark.parametrize(
    "name",
    [
        "functions",
        "function_call",
        "modalities",
        "audio",
        "moderation",
        "web_search_options",
        "verbosity",
        "guided_json",
        "guided_regex",
        "guided_choice",
        "guided_grammar",
        "guided_decoding_backend",
        "previous_response_id",
        "temprature",
        "anything",
    ],
)
def test_fields_that_are_not_supported_are_refused_by_name(name: str) -> None:
    error = refusal({**HELLO, name: {"x": 1}})
    assert (error["code"], error["param"], error["pointer"]) == ("unsupported_parameter", name, f"/{name}")
    assert repr(name) in error["message"]


@pytest.mark.parametrize(("name", "successor"), [("guided_json", "structured_outputs.json"), ("functions", "tools")])
def test_refusals_name_the_successor(name: str, successor: str) -> None:
    assert f"use {successor}" in refusal({**HELLO, name: {"x": 1}})["message"]
    assert "did you mean 'temperature'" in refusal({**HELLO, "temprature": 1})["message"]


@pytest.mark.parametrize(
    ("fields", "pointer", "hint"),
    [
        ({"structgen": {"schema_in_promt": "none"}}, "/structgen/schema_in_promt", "did you mean 'schema_in_prompt'?"),
        ({"structgen": {"sources": {"a": "b"}}}, "/structgen/sources", "use the request's own 'sources'"),
        ({"spelling": "canonical"}, "/spelling", "use structgen.spelling"),
        ({"messages": [{"role": "user", "contents": "x"}]}, "/messages/0/contents", "did you mean 'content'?"),
        ({"structured_outputs": {"choices": ["a"]}}, "/structured_outputs/choices", "did you mean 'choice'?"),
        ({"stream_options": {"nothing": 1}}, "/stream_options/nothing", "leave it out"),
    ],
)
def test_fields_that_are_elsewhere_are_named(fields: dict[str, Any], pointer: str, hint: str) -> None:
    error = refusal({**HELLO, **fields})
    assert (error["code"], error["pointer"]) == ("unsupported_parameter", pointer)
    assert hint in error["message"]


@pytest.mark.parametrize(
    "fields",
    [
        {"modalities": ["text"], "audio": None, "functions": [], "web_search_options": None, "verbosity": "medium"},
        {"user": "u", "metadata": {"a": "b"}, "store": False, "service_tier": "auto", "safety_identifier": "s"},
        {"prompt_cache_key": "k", "prompt_cache_retention": "24h", "frequency_penalty": 0, "logit_bias": {}},
        {"temperature": None, "n": None, "stop": None, "tools": None, "response_format": None, "seed": None},
    ],
)
def test_fields_that_say_nothing_are_taken(fields: dict[str, Any]) -> None:
    read_request(ChatRequest, {**HELLO, **fields})


@pytest.mark.parametrize(
    ("fields", "param", "code"),
    [
        ({"messages": []}, "messages", "invalid_value"),
        ({}, "messages", "missing_required_parameter"),
        ({"messages": [{"role": "user"}]}, "messages[0].content", "missing_required_parameter"),
        ({"messages": [{"role": "nobody", "content": "x"}]}, "messages[0]", "unsupported_value"),
        ({**HELLO, "temperature": "1"}, "temperature", "invalid_value"),
        ({**HELLO, "temperature": 3}, "temperature", "invalid_value"),
        ({**HELLO, "top_p": 0}, "top_p", "invalid_value"),
        ({**HELLO, "n": 0}, "n", "invalid_value"),
        ({**HELLO, "stop": ["a"] * 5}, "stop", "invalid_value"),
        ({**HELLO, "top_logprobs": 21}, "top_logprobs", "invalid_value"),
        ({**HELLO, "store": True}, "store", "invalid_value"),
        ({**HELLO, "tools": [{"type": "file_search"}]}, "tools[0]", "unsupported_value"),
        ({**HELLO, "response_format": {"type": "yaml"}}, "response_format", "unsupported_value"),
        ({**HELLO, "stream_options": {"x": 1}}, "stream_options.x", "unsupported_parameter"),
        (
            {**HELLO, "structured_outputs": {"json": {}, "whitespace_pattern": ""}},
            "structured_outputs.whitespace_pattern",
            "unsupported_parameter",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
            "messages[0].content[0].type",
            "invalid_value",
        ),
        ({"messages": [{"role": "user", "content": "x", "mood": "good"}]}, "messages[0].mood", "unsupported_parameter"),
    ],
)
def test_the_place_of_what_is_wrong_is_told(fields: dict[str, Any], param: str, code: str) -> None:
    error = refusal(fields)
    assert (error["param"], error["code"]) == (param, code)


@pytest.mark.parametrize("name", ["echo", "suffix", "messages", "tools"])
def test_completions_refuse_by_name(name: str) -> None:
    assert refusal({"prompt": "x", name: 2}, CompletionRequest)["param"] == name
    read_request(CompletionRequest, {"prompt": "x", "echo": False, "suffix": None, "best_of": 1})


@pytest.mark.parametrize(
    "name", ["previous_response_id", "conversation", "background", "prompt", "max_tool_calls", "n", "stop", "logprobs"]
)
def test_responses_refuse_by_name(name: str) -> None:
    assert refusal({"input": "x", name: "y"}, ResponseRequest)["param"] == name
    read_request(ResponseRequest, {"input": "x", "background": False, "truncation": "disabled", "store": None})


def test_too_many_tools_are_refused_before_they_are_looked_at() -> None:
    tools = [{"type": "function", "name": f"f{n}", "function": {"name": f"f{n}"}} for n in range(MAX_TOOLS + 1)]
    chat = [{key: tool[key] for key in ("type", "function")} for tool in tools]
    flat = [{key: tool[key] for key in ("type", "name")} for tool in tools]
    assert refusal({**HELLO, "tools": chat})["param"] == "tools"
    assert refusal({"input": "x", "tools": flat}, ResponseRequest)["param"] == "tools"
    read_request(ChatRequest, {**HELLO, "tools": chat[:MAX_TOOLS]})


def test_responses_refuse_hosted_tools_and_references() -> None:
    assert refusal({"input": "x", "tools": [{"type": "web_search"}]}, ResponseRequest)["param"] == "tools[0]"
    assert refusal({"input": [{"type": "item_reference", "id": "x"}]}, ResponseRequest)["param"] == "input[0]"
    assert refusal({"input": "x", "truncation": "auto"}, ResponseRequest)["param"] == "truncation"


def test_many_errors_are_not_collected() -> None:
    """A list of a million wrong things costs as much as one."""
    error = refusal({"prompt": [[True]] * 200_000}, CompletionRequest)
    assert error["param"].startswith("prompt[0]") and len(json.dumps(error)) < 2000


def test_places() -> None:
    assert dotted(["messages", 0, "content"]) == "messages[0].content" and dotted([]) == ""
    assert pointer_to(["a/b", 0, "c~d"]) == "/a~1b/0/c~0d"


@pytest.mark.parametrize(
    "schema",
    [
        {"enum": ["x" * 300_000]},
        {"enum": list(range(30_000))},
        {"properties": {"a": {"pattern": "a" * 3000}}},
        {"patternProperties": {"a" * 3000: {}}},
        {"description": "x" * 300_000},
    ],
)
def test_large_constraints_are_refused_before_they_are_compiled(schema: Any) -> None:
    with pytest.raises(RequestError, match="simplify it") as caught:
        placed(ConstraintSpec("schema", schema), ("response_format",), ServingSettings())
    assert caught.value.code == "grammar_too_complex"


def test_deep_constraints_are_refused() -> None:
    schema: Any = {}
    for _ in range(900):
        schema = {"items": schema}
    with pytest.raises(RequestError, match="levels of nesting"):
        placed(ConstraintSpec("schema", schema), ("x",), ServingSettings())


def seconds_of(read: Any) -> float:
    """Processor time of reading what is refused."""
    started = time.thread_time()
    with pytest.raises(RequestError):
        read()
    return time.thread_time() - started


WRONG_FIELDS: dict[str, Any] = {f"x{number}": 1 for number in range(330_000)}


@pytest.mark.parametrize(
    ("fields", "kind", "param"),
    [
        ({**HELLO, "logit_bias": {name: 200 for name in WRONG_FIELDS}}, ChatRequest, "logit_bias.x0"),
        ({**HELLO, "logit_bias": {"1": 1, **{str(n): 200 for n in range(2, 330_000)}}}, ChatRequest, "logit_bias.2"),
        ({**HELLO, **WRONG_FIELDS}, ChatRequest, "x0"),
        ({"messages": [{"role": "user", "content": "x", **WRONG_FIELDS}]}, ChatRequest, "messages[0].x0"),
        ({**HELLO, "stream_options": WRONG_FIELDS}, ChatRequest, "stream_options.x0"),
        ({**HELLO, "structured_outputs": {"regex": "a", **WRONG_FIELDS}}, ChatRequest, "structured_outputs.x0"),
        ({"input": "x", "text": {"format": {"type": "text", **WRONG_FIELDS}}}, ResponseRequest, "text.format.x0"),
        ({"prompt": "x", "stop": [1] * 330_000}, CompletionRequest, "stop"),
    ],
)
def test_the_first_thing_that_is_wrong_ends_the_reading(fields: dict[str, Any], kind: Any, param: str) -> None:
    error = refusal(fields, kind)
    assert error["param"].startswith(param) and len(json.dumps(error)) < 2000
    assert seconds_of(lambda: read_request(kind, fields)) < 0.25  # all of them: 3 seconds and more


@pytest.mark.parametrize("text", ["x", "\N{PILE OF POO}", "a/b.c"])
def test_answers_are_short_whatever_the_request_holds(text: str) -> None:
    """Names and values of megabytes are cut; the pointer then leads to what holds them."""
    long = text * (4_000_000 // len(text))
    for fields, around in (
        ({**HELLO, long: 1}, ""),
        ({**HELLO, "stream_options": {long: 1}}, "/stream_options"),
        ({**HELLO, "temperature": long}, "/temperature"),
        ({**HELLO, "temperature": {"a": [long]}}, "/temperature"),
        ({"messages": [{"role": long, "content": "x"}]}, "/messages/0"),
        ({**HELLO, "logit_bias": {long: 1}}, "/logit_bias"),
    ):
        error = refusal(fields)
        assert len(json.dumps(error)) < 80_000 and error["pointer"].startswith(around)
        assert len(error["pointer"]) <= 1000
        assert seconds_of(partial(read_request, ChatRequest, fields)) < 0.5


@pytest.mark.parametrize(
    "body",
    ['{"model": "a", "model": "b"}', '{"a": [{"b": {"x": 1, "x": 1}}]}', '{"a": {"\\u0061": 1, "b": 2, "a": 3}}'],
)
def test_a_name_twice_is_refused(body: str) -> None:
    with pytest.raises(RequestError, match=r'has the name "\w+" twice') as caught:
        read_json(body.encode())
    assert (caught.value.status, caught.value.code) == (400, "invalid_json")


@pytest.mark.parametrize(
    "fields",
    [
        {"logit_bias": {f"{n}": 1 for n in range(200_000)}},
        {"stop": ["a,b"] * 200_000},
        {"x": [[]] * 200_000},
        {"x": {f"{n}": [n, {"y": 1.5e3}] for n in range(61_000)}},
    ],
)
def test_more_values_than_any_constraint_may_have_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(RequestError, match="more than 120,000 values") as caught:
        read_json(json.dumps(fields).encode())
    assert (caught.value.status, caught.value.code) == (400, "request_too_large")


def test_commas_of_texts_are_no_values() -> None:
    fields = {"messages": 'a,"\\,\\\\"' * 300_000, "x": [",", '\\",']}
    assert read_json(json.dumps(fields).encode()) == fields


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@pytest.mark.full
@given(st.dictionaries(st.text(), JSON, max_size=4), st.booleans())
def test_many_values_are_read_as_few(value: dict[str, Any], ascii: bool) -> None:
    """The parser for many values reads what Python's own reads, and refuses what that refuses."""
    text = json.dumps(value, ensure_ascii=ascii)
    assert _YIELDING.decode(text) == _FAST.decode(text) == value
    for broken in (
        text[:-1],
        text + "}",
        text.replace(":", ",", 1),
        text.replace('"', "", 1),
        f'{{"a":NaN,"b":{text}}}',
    ):
        found = []
        for decoder in (_FAST, _YIELDING):
            try:
                found.append(decoder.decode(broken))
            except ValueError as error:
                found.append(str(error))
        assert found[0] == found[1], broken


def test_many_values_hold_up_no_other_thread() -> None:
    """Beside a body of as many values as there may be: another thread comes to its turn every few milliseconds of
    the reading thread's time."""
    body = json.dumps({f"x{n}": n for n in range(110_000)}).encode()
    turns, over = 0, threading.Event()

    def count() -> None:
        nonlocal turns
        while not over.is_set():
            turns += 1
            time.sleep(0.001)

    counting = threading.Thread(target=count)
    counting.start()
    started = time.thread_time()
    read_json(body)
    took = time.thread_time() - started
    over.set()
    counting.join()
    assert turns >= took / 0.05, (turns, took)


def test_half_a_pair_is_found_wherever_it_stands() -> None:
    for body in (b'{"a": [{"b": "\\ud800"}]}', b'{"\\udc00": 1}', b'{"a": "\\udca9\\ud83d"}'):
        with pytest.raises(RequestError, match="half of a surrogate pair"):
            read_json(body)
    assert read_json(b'{"a": "\\ud83d\\udca9"}') == {"a": "\N{PILE OF POO}"}


def test_bad_json_of_many_lines_is_refused_at_its_place() -> None:
    body = b"{" + b"\n" * 2_000_000 + b" " * 100 + b"x" * 200
    with pytest.raises(RequestError, match=r"line 2000001, column 101") as caught:
        read_json(body)
    assert str(caught.value).endswith("\n" + " " * 39 + "x" * 41 + "\n" + " " * 39 + "^")
