"""Strict calls through detectors for which SGLang has no tag: what masks let through, its own detectors read."""

from __future__ import annotations

import json
import logging
import random
import re
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

pytest.importorskip("sglang", reason="SGLang is not here; `make test-engines` fetches it")

from sglang.srt.entrypoints.openai.protocol import Tool, ToolChoice
from sglang.srt.function_call.function_call_parser import FunctionCallParser

from structgen.integrations.engine_requests import engine_constraint
from structgen.integrations.sglang import dialects
from structgen.integrations.sglang.hooks import HOOKS
from tests.integrations import tag_walks
from tests.integrations.dialect_world import deltas, random_tools, tokenizer, vocabulary, walk

DETECTORS = FunctionCallParser.ToolCallParserEnum
PARSERS = [name for name, detector in DETECTORS.items() if detector.__name__ in dialects.FORMATS]
NEEDS_ARGUMENTS = ("step3",)
"""Detectors that do not read calls without arguments."""
UNSIGNED = ("pythonic",)
"""Detectors that do not read numbers with a sign."""
NOT_STREAMED = ("cohere_command4", "gemma4", "glm", "glm45", "hunyuan", "interns1", "ling3", "spark25")
"""Detectors whose streams differ from what they read as a whole: they lose or join calls that come in one piece."""
STREAMS_LOSE = {
    "minimax-m2": re.compile("}"),  # closing braces are counted in strings, too
    "minimax-m3": re.compile(r"^$"),  # an empty string comes as an object
    "pythonic": re.compile(r"[\[\]]"),  # brackets are counted in strings, too
}
"""What a string holds that a detector loses in streams, though not as a whole."""
WALKS = max(12, tag_walks.WALKS)


@pytest.fixture(autouse=True)
def configured(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(dialects, "is_backend", lambda: True)
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def parser_of(name: str, tools: list[dict[str, Any]]) -> FunctionCallParser:
    return FunctionCallParser([Tool.model_validate(tool) for tool in tools], name, tokenizer=tokenizer())


def grammar_of(name: str, tools: list[dict[str, Any]], choice: Any, parallel: bool = True) -> Any:
    """The grammar of the constraint that SGLang would be given."""
    parser = parser_of(name, tools)
    original = FunctionCallParser.get_structure_constraint
    kind, tag = dialects.structure_constraint(original, parser, choice, parallel_tool_calls=parallel)
    assert parser.detector.parses_required_natively()
    return engine_constraint(kind, json.dumps(tag.model_dump()), vocabulary()).compile(vocabulary())


def read(name: str, tools: list[dict[str, Any]], text: str) -> list[tuple[str | None, Any]]:
    _, calls = parser_of(name, tools).parse_non_stream(text)
    return [(call.name, json.loads(call.parameters or "{}")) for call in calls]


def streamed(name: str, tools: list[dict[str, Any]], tokens: list[int], rng: random.Random) -> list[tuple[str, Any]]:
    """What is read of the tokens in random cuts."""
    parser, calls = parser_of(name, tools), dict[int, list[str]]()
    for _, piece in deltas(tokens, rng):
        for call in parser.parse_stream_chunk(piece)[1]:
            kept = calls.setdefault(call.tool_index, ["", ""])
            kept[0] = call.name or kept[0]
            kept[1] += call.parameters or ""
    return [(called, json.loads(arguments or "{}")) for _, (called, arguments) in sorted(calls.items())]


def test_at_least_twelve_detectors() -> None:
    assert len(PARSERS) >= 12


def test_the_registry_wraps_what_fits(sglang_with_plugins: None) -> None:
    """Once each, around; SGLang's own call of a detector then comes to ours."""
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    fitting = [hook for hook in HOOKS if not hook.misfit()]
    assert dialects.HOOK in fitting
    for hook in fitting:
        assert [(kind, around) for kind, around, _ in HookRegistry._hooks[hook.target]] == [
            (HookType.AROUND, hook.around)
        ]
    tool = {"type": "function", "function": {"name": "one", "strict": True, "parameters": {"type": "object"}}}
    kind, tag = parser_of("gemma4", [tool]).get_structure_constraint("required")
    assert kind == "structural_tag" and "%structgen" in json.dumps(tag.model_dump())


@pytest.mark.parametrize("name", PARSERS)
def test_walks_are_read_by_the_detector(name: str) -> None:
    calls = 0
    for seed in range(WALKS):
        rng = random.Random(f"{name} {seed}")
        tools = random_tools(rng, signed=name not in UNSIGNED, all_required=name in NEEDS_ARGUMENTS)
        schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in tools}
        tokens = walk(grammar_of(name, tools, "required" if seed % 4 else "auto"), rng, rng.choice([60, 150]))
        text = tokenizer().decode(tokens, skip_special_tokens=False)
        calls_read = read(name, tools, text)
        assert len(calls_read) >= (1 if seed % 4 else 0), text
        for called, arguments in calls_read:
            assert called is not None
            jsonschema.validate(arguments, schemas[called])
            calls += 1
        if name not in NOT_STREAMED and not _is_lost(name, calls_read):
            assert streamed(name, tools, tokens, rng) == calls_read, text
    assert calls >= WALKS // 2


def _is_lost(name: str, calls_read: list[tuple[str | None, Any]]) -> bool:
    lost = STREAMS_LOSE.get(name)
    return lost is not None and any(lost.search(text) for _, arguments in calls_read for text in _strings(arguments))


def _strings(value: Any) -> Iterator[str]:
    """All strings in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings(inner)


def test_step3_writes_no_bracket_at_which_the_detector_would_end_a_value() -> None:
    """SGLang's: all of the argument would be lost. vLLM's reads it."""
    parameters = {"type": "object", "properties": {"text": {"type": "string"}, "many": {"type": "array"}}}
    tools = [{"type": "function", "function": {"name": "f", "strict": True, "parameters": parameters}}]
    grammar = grammar_of("step3", tools, "required")
    begin, end = (
        "<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜>",
        "<｜tool_call_end｜><｜tool_calls_end｜>",
    )
    for name, good, bad in (("text", "a > b", "a < b"), ("many", '["a > b"]', '["a < b"]')):
        for value in (good, bad):
            parameter = f'<steptml:parameter name="{name}">{value}</steptml:parameter>'
            text = f'{begin}<steptml:invoke name="f">{parameter}</steptml:invoke>{end}'
            matcher = grammar.matcher()
            takes = all(map(matcher.accept_token, tokenizer().encode(text)))
            assert (takes and matcher.is_accepting()) is (value is good), text
            assert (read("step3", tools, text) == [("f", {name: json.loads(value) if name == "many" else value})]) is (
                value is good
            )


@pytest.mark.parametrize("name", PARSERS)
def test_one_call_only_and_a_named_tool(name: str) -> None:
    parameters = {"type": "object", "properties": {"days": {"type": "integer", "minimum": 0}}, "required": ["days"]}
    tools = [
        {"type": "function", "function": {"name": tool, "strict": True, "parameters": parameters}}
        for tool in ("one", "two")
    ]
    named = grammar_of(name, tools, ToolChoice(function={"name": "two"}))
    single = grammar_of(name, tools, "required", parallel=False)
    for seed in range(3):
        rng = random.Random(seed)
        text = tokenizer().decode(walk(named, rng, 80), skip_special_tokens=False)
        assert [called for called, _ in read(name, tools, text)] == ["two"]
        text = tokenizer().decode(walk(single, rng, 80), skip_special_tokens=False)
        assert len(read(name, tools, text)) == 1


def test_other_backends_keep_their_constraints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialects, "is_backend", lambda: False)
    parser = parser_of("gemma4", random_tools(random.Random(0)))
    calls_read = dialects.structure_constraint(lambda *arguments, **named: "theirs", parser, "required")
    assert calls_read == "theirs"
