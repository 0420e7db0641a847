"""XGrammar's structural tags for the same formats: calls as we write them are theirs, too, and wrong ones are not; the
tags that it builds mean the same here."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest

from structgen.core.constraints.specs import ConstraintSpec
from structgen.core.constraints.tools import tool_call
from structgen.core.tool_calls.calls import ToolCall
from tests.core.tool_calls.vocabularies import BYTES

xgrammar = pytest.importorskip("xgrammar")

# Our name, theirs, and what theirs asks for before required calls, without reasoning.
FORMATS = [
    ("hermes", "qwen_3", ""),
    ("qwen3_coder", "qwen_3_coder", ""),
    ("mimo", "mimo", ""),
    ("minimax_m2", "minimax", "\n</think>\n\n\n\n\n"),
    ("glm4_7", "glm_4_7", ""),
    ("deepseek_v3", "deepseek_r1", ""),
    ("deepseek_v3_1", "deepseek_v3_1", ""),
    ("deepseek_v3_2", "deepseek_v3_2", "\n\n"),
    ("kimi_k2", "kimi", ""),
    ("llama3", "llama", ""),
    ("command_a_plus", "cohere", ""),
    ("deepseek_v4", "deepseek_v4", "\n\n"),
    ("deepseek_v4_1", "deepseek_v4_1", "\n\n"),
    ("minimax_m3", "minimax_m3", ""),
]
TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "search",
            "parameters": {
                "type": "object",
                "properties": {
                    "query": {"type": "string"},
                    "limit": {"type": "integer"},
                    "exact": {"type": "boolean"},
                    "tags": {"type": "array", "items": {"type": "string"}},
                    "unit": {"enum": ["celsius", "kelvin"]},
                },
                "required": ["query", "limit"],
                "additionalProperties": False,
            },
        },
    }
]


def calls(rng: random.Random) -> list[ToolCall]:
    """One or two valid calls."""
    found = []
    for _ in range(rng.randint(1, 2)):
        arguments = {
            "query": rng.choice(["cats", "a b\nc", "<b>ü</b>", ""]),
            "limit": rng.randint(-9, 99),
            "exact": rng.random() < 0.5,
            "tags": ["x", "y z"],
            "unit": rng.choice(["celsius", "kelvin"]),
        }
        kept = {k: v for k, v in arguments.items() if k in ("query", "limit") or rng.random() < 0.6}
        found.append(ToolCall("search", kept))
    return found


def wrong(rng: random.Random, found: list[ToolCall]) -> list[ToolCall]:
    """The calls with a value of another type, a member too many, or one too few."""
    changed = copy.deepcopy(found)
    arguments = rng.choice(changed).arguments
    kind = rng.randrange(4)
    if kind == 0:
        del arguments["limit"]
    elif kind == 1:
        arguments["limit"] = "many"
    elif kind == 2:
        arguments["unit"] = "inches"
    else:
        arguments["more"] = 1
    return changed


@pytest.mark.parametrize(("name", "theirs", "before"), FORMATS, ids=[name for name, *_ in FORMATS])
def test_the_same_calls(name: str, theirs: str, before: str) -> None:
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
    info = xgrammar.TokenizerInfo([*bytes_, "</s>"], vocab_type=xgrammar.VocabType.BYTE_FALLBACK, stop_token_ids=[256])
    tag = xgrammar.get_model_structural_tag(theirs, TOOLS, "required", reasoning="disabled")
    peer = xgrammar.GrammarCompiler(info).compile_structural_tag(tag)
    constraint = tool_call(name, TOOLS, tool_choice="required")
    anything = tool_call(name, [{"name": "search", "parameters": {"type": "object"}}])
    ours = constraint.compile(BYTES)
    of_tag = ConstraintSpec("structural_tag", tag.model_dump()).compile(BYTES)
    rng = random.Random(name)
    for _ in range(30):
        found = calls(rng)
        for valid, given in ((True, found), (False, wrong(rng, found))):
            text = anything.render(given)
            matcher, tagged, other = ours.matcher(), of_tag.matcher(), xgrammar.GrammarMatcher(peer)
            assert (matcher.accept_bytes(text.encode()) and matcher.is_accepting()) is valid, text
            assert (tagged.accept_bytes((before + text).encode()) and tagged.is_accepting()) is valid, text
            assert (other.accept_string(before + text) and other.accept_token(256)) is valid, text
