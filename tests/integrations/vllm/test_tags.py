"""vLLM's structural tags here: all compile, none masks what models write, and vLLM's parsers read what masks allow."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

pytest.importorskip("vllm", reason="vLLM is not here; `make test-engines` fetches it")

from structgen.core.constraints.tools import tool_call
from structgen.core.tool_calls.calls import ToolCall
from tests.integrations.tag_walks import (
    ARGUMENTS,
    TOOLS,
    WALKS,
    check_call,
    compiled,
    names_in,
    refused_at,
    text_of,
    tokenizer,
    tokens_of,
    vocabulary,
    walk,
)
from tests.integrations.vllm import tags

FORMATS = {
    "deepseek_r1": "deepseek_v3", "deepseek_v3_1": "deepseek_v3_1", "deepseek_v3_2": "deepseek_v3_2",
    "deepseek_v4": "deepseek_v3_2", "deepseek_v4_1": "deepseek_v3_2", "glm_4_7": "glm4_7", "hermes": "hermes",
    "kimi": "kimi_k2", "llama": "llama3", "longcat": "hermes", "mimo": "mimo", "minimax": "minimax_m2",
    "qwen_3": "hermes", "qwen_3_5": "qwen3_coder", "qwen_3_coder": "qwen3_coder",
}  # fmt: skip
"""The formats of ours that write as the models of a key do, but for a few marks."""
MARKS: dict[str, list[tuple[str, str]]] = {
    "deepseek_v4": [("function_calls", "tool_calls")],
    "deepseek_v4_1": [
        ("DSML｜function_calls", "DSML｜ calls"),
        ("DSML｜invoke", "DSML｜ invoke"),
        ("DSML｜p", "DSML｜ p"),
    ],
    "longcat": [("tool_call>", "longcat_tool_call>")],
}
UNREAD = {"harmony", "hy_v4"}
"""Keys whose parsers read tokens, or null as a string."""
LOST = {("llama", "auto"), ("llama", "required")}
"""Where the parser gives up the whole output if text around a call holds a brace."""
LOOSE = {"hy_v4", "kimi_k3"}
"""Keys whose tags leave values free: what their arguments are is no matter of the masks."""


def reference(key: str, name: str, arguments: dict[str, Any]) -> str:
    """A call as models of a key write it."""
    if key in FORMATS:
        given = [{"name": name, "parameters": parameters} for name, parameters in TOOLS.items()]
        text = tool_call(FORMATS[key], given).render([ToolCall(name, arguments)])
        for old, new in MARKS.get(key, []):
            text = text.replace(old, new)
        return text
    value = json.dumps(arguments, ensure_ascii=False)
    if key == "plamo3":
        own = f"<|plamo:begin_tool_name:plamo|>{name}<|plamo:end_tool_name:plamo|><|plamo:begin_tool_arguments:plamo|>"
        own += f"<|plamo:constrain|>json<|plamo:msg|>{value}<|plamo:end_tool_arguments:plamo|>"
        call = f"<|plamo:begin_tool_request:plamo|>{own}<|plamo:end_tool_request:plamo|>"
        return f"<|plamo:begin_tool_requests:plamo|>{call}<|plamo:end_tool_requests:plamo|>"
    if key == "harmony":
        return f"<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{value}"
    texts = {k: v if isinstance(v, str) else json.dumps(v, ensure_ascii=False) for k, v in arguments.items()}
    if key == "hy_v4":
        own = "".join(f"<arg_key>{k}</arg_key><arg_value>{v}</arg_value>" for k, v in texts.items())
        return f"<tool_calls><tool_call>{name}{own}</tool_call></tool_calls>"
    own = "".join(
        f'<|open|>argument key="{k}" type="{_type(arguments[k])}"<|sep|>{v}<|close|>argument<|sep|>'
        for k, v in texts.items()
    )
    call = f'<|open|>call tool="{name}" index="1"<|sep|>{own}<|close|>call<|sep|>'
    return f"<|close|>response<|sep|><|open|>tools<|sep|>{call}<|close|>tools<|sep|>"


def _type(value: Any) -> str:
    names = {str: "string", bool: "boolean", type(None): "null", dict: "object", list: "array"}
    return names.get(type(value), "number")


def test_all_tags_compile() -> None:
    """With the names in them as special tokens, and without any."""
    done: set[str] = set()
    count = 0
    for tag in tags.all_tags():
        count += 1
        if tag.text not in done:
            done.add(tag.text)
            compiled("structural_tag", tag.text, vocabulary(names_in(tag.text)))
            compiled("structural_tag", tag.text, vocabulary(()))
    assert count == 874 and len(tags.KEYS) == 19


@pytest.mark.parametrize("key", tags.KEYS)
def test_what_models_write_is_not_masked(key: str) -> None:
    """In every mode, strict and not; and vLLM's parser reads the same arguments."""
    for mode in tags.MODES:
        for strict in ("strict", "not"):
            tag = tags.tag(key, mode, strict)
            if tag is None:
                continue
            words = vocabulary(names_in(tag.text))
            grammar = compiled("structural_tag", tag.text, words)
            for name in TOOLS if mode != "named" else [tags.NAMED]:
                for arguments in ARGUMENTS[name]:
                    text = reference(key, name, arguments)
                    starts = ["", "\n", "\n\n"] if mode != "auto" else [""]
                    places = [refused_at(grammar, tokens_of(start + text, words)) for start in starts]
                    assert None in places, (tag[:5], text, places, tokens_of(text, words)[: places[0]])


@pytest.mark.parametrize("key", [key for key in tags.KEYS if key not in UNREAD])
def test_what_models_write_is_read_by_the_parser(key: str) -> None:
    """So it is what models write."""
    for name in TOOLS:
        for arguments in ARGUMENTS[name]:
            text = reference(key, name, arguments)
            [(found, value)] = tags.read(key, "required", text, tokenizer(names_in(text)))
            assert (found, json.loads(value)) == (name, arguments)


@pytest.mark.parametrize("mode", tags.MODES)
@pytest.mark.parametrize("key", [key for key in tags.KEYS if key != "harmony"])
def test_walks_are_read_by_the_parser(key: str, mode: str) -> None:
    """Into calls of the tools, with arguments that their schemas allow: no member too many, none too few."""
    tag = tags.tag(key, mode)
    assert tag is not None
    names = names_in(tag.text)
    words = vocabulary(names)
    grammar = compiled("structural_tag", tag.text, words)
    found = 0
    for number in range(WALKS):
        rng = random.Random(f"{key} {mode} {number}")
        begun = _begun(tag, rng)
        text = text_of(walk(grammar, rng, tokens_of(begun, words)), words)
        calls = tags.read(key, mode, text, tokenizer(names))
        may_be_none = mode == "auto" and (not begun or key in LOOSE)
        assert calls or may_be_none or (key, mode) in LOST, text
        found += len(calls)
        if key not in LOOSE:
            for name, arguments in calls:
                check_call(name, arguments)
    assert found or key in LOOSE


def _begun(tag: tags.Tag, rng: random.Random) -> str:
    """Where a call may be left out: perhaps some text, and what begins a call."""
    given = json.loads(tag.text)["format"]
    if tag.mode != "auto" or given["type"] != "triggered_tags" or rng.random() < 0.2:
        return ""
    return rng.choice(["", "x < y "]) + str(given["triggers"][0])


LEAK = {
    "type": "object",
    "properties": {
        "note": {"type": "string", "maxLength": 200},
        "more": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["note"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("style, argument, other", [
    ("qwen_xml", "<parameter=note>\n{}\n</parameter>\n", "<parameter=more>\n{}\n</parameter>\n"),
    ("minimax_xml", '<parameter name="note">{}</parameter>\n', '<parameter name="more">{}</parameter>\n'),
    ("glm_xml", "<arg_key>note</arg_key><arg_value>{}</arg_value>", "<arg_key>more</arg_key><arg_value>{}</arg_value>"),
], ids=["qwen", "minimax", "glm"])  # fmt: skip
def test_a_value_cannot_close_itself(style: str, argument: str, other: str) -> None:
    """As it can in XGrammar where ``maxLength`` is said: an argument that is not declared came in so."""
    begin, end = ("<f>\n", "\n</f>") if style == "qwen_xml" else ("<f>", "</f>")
    format = {"type": "json_schema", "json_schema": LEAK, "style": style}
    tag = json.dumps(
        {"type": "structural_tag", "format": {"type": "tag", "begin": begin, "content": format, "end": end}}
    )
    words = vocabulary(())
    grammar = compiled("structural_tag", tag, words)
    leaked = "a" + argument[argument.index("{}") + 2 :] + argument.replace("note", "admin").replace("{}", "true")
    inside = json.dumps([leaked.rstrip()])[:-2]

    def whole(text: str) -> str:
        return begin + text.removesuffix("\n" if style == "qwen_xml" else "") + end

    def takes(text: str) -> bool:
        return refused_at(grammar, tokens_of(whole(text), words)) is None

    assert takes(argument.format("a")) and takes(argument.format("a") + other.format('["b", "</"]'))
    assert not takes(argument.format(leaked))
    assert not takes(argument.format("a") + other.format(inside + '"]'))
