"""What clients see of an output: told in pieces, it is the same as told at once, in every format."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structgen.core.constraints.tools import tool_call
from structgen.core.tool_calls.calls import ToolCall
from structgen.core.tool_calls.patterns import written
from structgen.server.outputs import CUSTOM_INPUT, OutputForm, OutputPart, OutputReader, begun_json, held, json_text

FORMATS = ("hermes", "smollm2", "llama3", "qwen3_coder", "mistral_v11", "glm4_5", "deepseek_v3")
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "note",
            "parameters": {
                "type": "object",
                "properties": {"text": {"type": "string"}, "n": {"type": "number"}, "all": {"type": "array"}},
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "code",
            "parameters": {
                "type": "object",
                "properties": {CUSTOM_INPUT: {"type": "string"}},
                "required": [CUSTOM_INPUT],
            },
        },
    },
]
WORDS = st.text(st.sampled_from('ab <>{}[]"\\\n,:é😀\t'), max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.floats(allow_nan=False, allow_infinity=False) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)


def whole(form: OutputForm, text: str) -> list[OutputPart]:
    return form.parts(text, is_whole=True)


def in_pieces(form: OutputForm, text: str, cuts: list[int]) -> list[OutputPart]:
    """The parts that deltas add up to."""
    reader, found = OutputReader(form), dict[int, OutputPart]()
    for cut in [*sorted(cuts), len(text)]:
        is_whole = cut == len(text)
        for delta in reader.read(text[:cut], is_whole=is_whole):
            assert delta.is_new == (delta.index not in found)
            before = found[delta.index].text if delta.index in found else ""
            found[delta.index] = OutputPart(delta.part.kind, before + delta.delta, delta.part.name, delta.part.id)
        if is_whole:
            break
    assert all(found[index].text == part.text for index, part in enumerate(reader.parts))
    return [found[index] for index in sorted(found)]


def cuts_of(text: str, data: st.DataObject) -> list[int]:
    return data.draw(st.lists(st.integers(0, max(0, len(text) - 1)), max_size=12)) if text else []


def test_deep_values_take_time_by_their_length() -> None:
    def seconds(depth: int) -> float:
        value = json.loads('{"a":' * depth + "1" + "}" * depth)
        started = time.thread_time()  # other tests may have left threads that work
        for _ in range(30_000 // depth):
            json_text(value)
        return time.thread_time() - started

    assert min(seconds(750) for _ in range(3)) < 4 * min(seconds(75) for _ in range(3))


@settings(max_examples=100, deadline=None)
@given(VALUES)
def test_json_text_is_json_of_the_value(value: Any) -> None:
    assert json.loads(json_text(value)) == json.loads(json.dumps(value))


@pytest.mark.full
@settings(max_examples=100, deadline=None)
@given(st.dictionaries(WORDS, VALUES, max_size=4), st.data())
def test_what_was_begun_is_how_it_goes_on(value: dict[str, Any], data: st.DataObject) -> None:
    """The JSON of any unfinished value begins the JSON of the finished one."""
    import pydantic_core

    text = json.dumps(value)
    partial = pydantic_core.from_json(text[: data.draw(st.integers(1, len(text)))], allow_partial="trailing-strings")
    assert json_text(value).startswith(begun_json(partial))


@pytest.mark.full
@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_pieces_add_up_to_the_whole(name: str, data: st.DataObject) -> None:
    tools = tool_call(name, TOOLS)
    text_value = st.text(st.sampled_from('ab {}"\\,é😀0.5'), max_size=12)
    arguments = st.fixed_dictionaries(
        {},
        optional={
            "text": text_value,
            "n": st.floats(-9, 9, allow_nan=False) | st.integers(-9, 9),
            "all": st.lists(text_value | st.integers(0, 9), max_size=3),
        },
    )
    calls = [ToolCall("note", data.draw(arguments)) for _ in range(data.draw(st.integers(0, 2)))]
    calls += [ToolCall("code", {CUSTOM_INPUT: data.draw(text_value)})] if data.draw(st.booleans()) else []
    pieces: list[Any] = [data.draw(st.sampled_from(["", "Hi. ", "a <to", "x\n"]))]
    pieces = [piece for piece in pieces if piece] + calls
    try:
        text = tools.render(pieces)
    except Exception:  # some formats cannot write some strings
        return
    form = OutputForm(tools, custom=frozenset({"code"}))
    assert in_pieces(form, text, cuts_of(text, data)) == whole(form, text)
    assert in_pieces(form, text, list(range(len(text)))) == whole(form, text)
    called = [part for part in whole(form, text) if part.kind in ("call", "custom")]
    for part, call in zip(called, calls, strict=True):
        assert part.name == call.name
        if part.kind == "call":
            assert json.loads(part.text) == call.arguments
        else:
            assert part.text == call.arguments[CUSTOM_INPUT]


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(["begun", "may", "none"]),
    st.text("a<b /think>\n", max_size=20),
    st.text('{"a": 1}<', max_size=10),
    st.booleans(),
    st.data(),
)
def test_thinking_is_told_apart(thinking: Any, thought: str, answer: str, ends: bool, data: st.DataObject) -> None:
    thought = thought.replace("</think>", "").replace("<think>", "")
    text = ("<think>" if thinking == "may" else "") + thought + ("</think>\n\n" + answer if ends else "")
    form = OutputForm(thinking=thinking)
    parts = in_pieces(form, text, cuts_of(text, data))
    assert [part for part in parts if part.text] == [part for part in whole(form, text) if part.text]
    if thinking != "none" and ends:
        found = {part.kind: part.text for part in parts}
        assert found["thinking"] == thought.strip("\n") and found.get("text", "") == answer.lstrip()


def test_an_answer_or_calls() -> None:
    tools = tool_call("hermes", TOOLS, tool_choice="required")
    form = OutputForm(tools, answer_or_calls=True)
    answer = '{"text": "<tool_call> is how calls begin"}'
    assert in_pieces(form, answer, list(range(len(answer)))) == [OutputPart("text", answer)]
    call = tools.render([ToolCall("note", {"text": "x"})])
    assert [part.kind for part in in_pieces(form, call, list(range(len(call))))] == ["call"]


def test_what_may_be_a_mark_is_held_back() -> None:
    assert held("abc<tool", ["<tool_call>"]) == 5 and held("abc", ["<tool_call>"]) == 0
    assert held("<tool_call>", ["<tool_call>"]) == 0 and held("", ["ab"]) == 0


def test_harmony_channels_are_thinking_and_text() -> None:
    form = OutputForm(tool_call("harmony", [], tool_choice="none"))
    text = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Yes."
    assert whole(form, text) == [OutputPart("thinking", "Hm."), OutputPart("text", "Yes.")]
    assert in_pieces(form, text, list(range(len(text)))) == whole(form, text)


@pytest.mark.parametrize("name", ["qwen3_coder", "glm4_5", "minimax_m2", "seed_oss"])
@pytest.mark.parametrize("value", [12, -3, 1.5, None, "12a", "x", "nul", True])
def test_what_may_be_a_number_is_streamed_as_it_ends(name: str, value: Any) -> None:
    """Also where what closes the argument has begun: ``12`` and a part of ``</parameter>`` were a text."""
    schema = {"type": "object", "properties": {"a": {}, "b": {"type": "integer"}}, "required": ["a"]}
    form = OutputForm(tool_call(name, [{"type": "function", "function": {"name": "f", "parameters": schema}}]))
    text = "Hi " + form.calls.render([ToolCall("f", {"a": value, "b": 7})]) if form.calls else ""
    assert in_pieces(form, text, list(range(len(text)))) == whole(form, text)


def test_what_stands_around_text_in_its_channel_is_not_streamed() -> None:
    form = OutputForm(tool_call("kimi_k3", TOOLS))
    assert form.calls is not None
    channel = form.calls.calls.format.channel
    assert channel is not None
    call = form.calls.render([ToolCall("note", {"text": "x", "n": 1})])
    for text in (f"Hi {call}", f"{written(channel.begin)}Hi {call}", call, "Hi <|clo", "Hi <|close|>response<|sep|>"):
        assert in_pieces(form, text, list(range(len(text)))) == whole(form, text)
