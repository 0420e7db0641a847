"""Which format a model calls tools in, and calls and answers of a chat as its template, or plain text, has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from structgen.serving.outputs import json_text
from structgen.serving.prompts import template_of

# What a template's source shows of a format; the first that is found. The order matters where one holds another.
SIGNS = [
    ("<|channel|>", "harmony"),
    ("<minimax:tool_call>", "minimax_m2"),
    ("<seed:tool_call>", "seed_oss"),
    ("<tool_call><function=", "mimo"),
    ("<function=", "qwen3_coder"),
    ("[ARGS]", "mistral_v11"),
    ("[TOOL_CALLS]", "mistral"),
    ("<|python_tag|>", "llama3"),
    ('{"name": function name, "parameters":', "llama3"),
    ("｜DSML｜", "deepseek_v3_2"),
    ("<｜tool▁call▁begin｜>function", "deepseek_v3"),
    ("<｜tool▁call▁begin｜>", "deepseek_v3_1"),
    ("<arg_key>", "glm4_5"),
    ("<|tool_call_argument_begin|>", "kimi_k2"),
    ("<|START_ACTION|>", "cohere"),
    ("<TOOLCALL>", "nemotron"),
    ("<|tools_prefix|>", "apertus"),
    ("<|action_start|>", "internlm2"),
    ("functools[", "phi4_mini"),
    ("<|tool_call|>", "granite3"),
    ("<tool_calls>[", "hunyuan_a13b"),
    ("<tool_calls>", "minimax_m1"),
    ("<tool_call>[", "smollm2"),
]


def tool_format(tokenizer: Any) -> str:
    """The format that a chat template shows; Hermes' where it shows none that is known."""
    template = template_of(tokenizer)
    return next((name for sign, name in SIGNS if sign in template), "hermes")


def messages_for_template(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Messages as templates that know of tools take them."""
    shown = []
    names: dict[str, str] = {}
    for message in messages:
        message = dict(message)
        if "tool_calls" in message:
            names.update({call["id"]: call["name"] for call in message["tool_calls"]})
            message["tool_calls"] = [
                {"id": call["id"], "type": "function", "function": {k: call[k] for k in ("name", "arguments")}}
                for call in message["tool_calls"]
            ]
        if message["role"] == "tool":
            message["name"] = names.get(message.get("tool_call_id", ""), "")
        shown.append(message)
    return shown


def messages_in_words(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Messages for templates that know of no tools: calls and answers as text, as Hermes has them."""
    shown: list[dict[str, Any]] = []
    for message in messages:
        content = message["content"]
        if message["role"] == "tool":
            answer = f"<tool_response>\n{content}\n</tool_response>"
            if shown and shown[-1].get("answers"):
                shown[-1]["content"] += f"\n{answer}"
            else:
                shown.append({"role": "user", "content": answer, "answers": True})
            continue
        for call in message.get("tool_calls", ()):
            text = json_text({"name": call["name"], "arguments": call["arguments"]})
            content += f"{content and chr(10)}<tool_call>\n{text}\n</tool_call>"
        shown.append({"role": message["role"], "content": content})
    return [{"role": message["role"], "content": message["content"]} for message in shown]
