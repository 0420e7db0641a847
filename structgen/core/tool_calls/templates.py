"""Which format a model calls tools in, as its chat template shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# What a template's source shows of a format; the first that is found. The order matters where one holds another.
SIGNS = [
    ("<|channel|>", "harmony"),
    ("]<]minimax[>[", "minimax_m3"),
    ("<cofl:tool_call", "command_a_plus"),
    ("<|tool_call>call:", "gemma4"),
    ("<start_function_call>", "functiongemma"),
    ("<|tool_call_start|>", "lfm2"),
    ("<|python_start|>", "llama4"),
    ("<function_calls>", "olmo3"),
    ("<steptml:invoke", "step3"),
    ("<longcat_tool_call>", "longcat"),
    ("<iquest_tool_call>", "iquest_q1"),
    ("<dots_function_call>", "dots"),
    ("<ifm|tool_call", "k2_horizon"),
    ("｜GCML｜", "gigachat3_5"),
    ("<|function_call|>", "gigachat3"),
    ("function call<|role_sep|>", "gigachat3_0"),
    ("<|open|>", "kimi_k3"),
    ("<|plamo:begin_tool_request", "plamo3"),
    ("｜DSML｜ calls", "deepseek_v4_1"),
    ("｜DSML｜tool_calls", "deepseek_v4"),
    ("<tool_sep>", "hy_v3"),
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
    ("<|action_start|> <|plugin|>", "intern_s1"),
    ("<|action_start|>", "internlm2"),
    ("functools[", "phi4_mini"),
    ("<|tool_call|>", "granite3"),
    ("<tool_calls>[", "hunyuan_a13b"),
    ("<tool_calls>", "minimax_m1"),
    ("<tool_call>[", "smollm2"),
]


def template_of(tokenizer: Any) -> str:
    """The source of the chat template; "" if there is none. Of several, all."""
    template = getattr(tokenizer, "chat_template", None) or ""
    return "\n".join(template.values()) if isinstance(template, Mapping) else str(template)


def tool_format(tokenizer: Any) -> str:
    """The format that a chat template shows; Hermes' where it shows none that is known."""
    template = template_of(tokenizer)
    return next((name for sign, name in SIGNS if sign in template), "hermes")
