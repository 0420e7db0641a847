"""The structural tags that vLLM's own code builds for its parsers, and these parsers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

pytest.importorskip("vllm", reason="vLLM is not here; `make test-engines` fetches it")

import vllm.parser.harmony  # registers its builder
from vllm.entrypoints.openai.chat_completion.protocol import (
    ChatCompletionNamedToolChoiceParam,
    ChatCompletionRequest,
    ChatCompletionToolsParam,
)
from vllm.tool_parsers import ToolParserManager
from vllm.tool_parsers import structural_tag_registry as registry
from vllm.tool_parsers.tool_strict_level import ToolStrictLevel

from tests.integrations.tag_walks import TOOLS

assert vllm.parser.harmony
KEYS = sorted({*registry._VLLM_STRUCTURAL_TAG_REGISTRY, *registry.XGRAMMAR_BUILTIN_STRUCTURAL_TAG_MODELS})
MODES = ("auto", "required", "named")
NAMED = "search"
STRICTNESS: dict[str, tuple[bool | None, ...]] = {
    "strict": (True, True, True), "not": (False, False, False), "mixed": (True, False, True), "unset": (None,) * 3,
}  # fmt: skip
PARSERS = {
    "deepseek_r1": "deepseek_v3", "deepseek_v3_1": "deepseek_v31", "deepseek_v3_2": "deepseek_v32",
    "deepseek_v4": "deepseek_v4", "deepseek_v4_1": "deepseek_v41", "glm_4_7": "glm47", "hermes": "hermes",
    "hy_v4": "hy_v4", "kimi": "kimi_k2", "kimi_k3": "kimi_k3", "llama": "llama3_json", "longcat": "longcat",
    "mimo": "mimo", "minimax": "minimax_m2", "plamo3": "plamo3", "qwen_3": "hermes", "qwen_3_5": "qwen3_coder",
    "qwen_3_coder": "qwen3_coder", "harmony": "openai",
}  # fmt: skip


class Tag(NamedTuple):
    """A tag: key of its builder, choice of tools, their strictness, the level of the server, several calls or one."""

    key: str
    mode: str
    strict: str
    level: str
    parallel: bool
    text: str


def tools(strict: str) -> list[Any]:
    """The tools as requests have them."""
    found = []
    for (name, parameters), is_strict in zip(TOOLS.items(), STRICTNESS[strict], strict=True):
        function = {"name": name, "parameters": parameters, **({} if is_strict is None else {"strict": is_strict})}
        found.append(ChatCompletionToolsParam.model_validate({"type": "function", "function": function}))
    return found


def choice(mode: str) -> Any:
    """``tool_choice`` of a mode."""
    named = {"type": "function", "function": {"name": NAMED}}
    return ChatCompletionNamedToolChoiceParam.model_validate(named) if mode == "named" else mode


def tag(key: str, mode: str, strict: str = "strict", level: str = "AUTO", parallel: bool = True) -> Tag | None:
    """The tag that vLLM builds; None: it builds none."""
    wanted = ToolStrictLevel[level]
    wanted = wanted if parallel else max(wanted, ToolStrictLevel.FUNCTION)
    built = registry.get_model_structural_tag(key, tools(strict), choice(mode), False, "", wanted)
    if built is None:
        return None
    if not parallel:
        registry.limit_to_single_tool_call(built)
    return Tag(key, mode, strict, level, parallel, json.dumps(built.model_dump(), ensure_ascii=False))


def all_tags() -> Iterator[Tag]:
    """Every tag of every key."""
    for key in KEYS:
        for mode in MODES:
            for strict in STRICTNESS:
                for level in ("AUTO", "PARAMETER"):
                    for parallel in (True, False):
                        built = tag(key, mode, strict, level, parallel)
                        if built is not None:
                            yield built


def read(key: str, mode: str, text: str, tokenizer: Any) -> list[tuple[str, str]]:
    """The calls that vLLM's parser finds in an output, with arguments as JSON text."""
    request = ChatCompletionRequest.model_validate(
        {
            "messages": [{"role": "user", "content": "?"}],
            "model": "m",
            "tools": [tool.model_dump() for tool in tools("strict")],
            "tool_choice": choice(mode).model_dump() if mode == "named" else mode,
        }
    )
    parser = ToolParserManager.get_tool_parser(PARSERS[key])(tokenizer, tools("strict"))
    found = parser.extract_tool_calls(text, request=request)
    return [(call.function.name, call.function.arguments) for call in found.tool_calls]
