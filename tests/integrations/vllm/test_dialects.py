"""Strict calls through parsers for which vLLM has no structural tag: what masks let through, its own parsers read."""

from __future__ import annotations

import importlib
import json
import logging
import random
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest

vllm = pytest.importorskip("vllm", reason="vLLM is not here; `make test-engines` fetches it")

from vllm import tool_parsers
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.parser.parser_manager import ParserManager
from vllm.tool_parsers import structural_tag_registry as registry
from vllm.tool_parsers.abstract_tool_parser import ToolParser, ToolParserManager
from vllm.tool_parsers.structural_tag_registry import limit_to_single_tool_call

from structgen.core.constraints.base import Constraint
from structgen.core.constraints.tools import tool_call
from structgen.core.tool_calls.calls import ToolCall
from structgen.integrations.engine_requests import engine_constraint
from structgen.integrations.vllm import dialects
from tests.core.tool_calls.test_templates import TOOLS, random_calls
from tests.core.tool_calls.vocabularies import BYTES, accepts
from tests.integrations import tag_walks
from tests.integrations.dialect_world import deltas, random_tools, tokenizer, vocabulary, walk

REGISTERED = tool_parsers._TOOL_PARSERS_TO_REGISTER
PARSERS = [name for name, (_, parser) in REGISTERED.items() if parser in dialects.FORMATS]
NO_CONTAINERS = ("step3",)
"""Parsers that read arrays and objects as strings."""
NO_AUTO = ("hy_v4",)
"""Parsers for which vLLM asks for no tag where calls are optional."""
NOT_STREAMED = ("granite-20b-fc", "hunyuan_a13b", "hy_v3", "hy_v4", "jamba", "olmo3", "xlam")
"""Parsers whose streams differ from what they read as a whole."""
WALKS = max(12, tag_walks.WALKS)


@pytest.fixture(autouse=True)
def patched(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """vLLM's loader with our hook, and as it was afterwards."""
    for key in ("hy_v4", "kimi_k3"):  # which ours replaces
        monkeypatch.setitem(registry._VLLM_STRUCTURAL_TAG_REGISTRY, key, registry._VLLM_STRUCTURAL_TAG_REGISTRY[key])
    monkeypatch.setattr(ToolParserManager, "tool_parsers", dict(ToolParserManager.tool_parsers))
    for name in PARSERS:
        ToolParserManager.tool_parsers.pop(name, None)
    assert dialects.HOOK.misfit() == ""
    dialects.HOOK.make()
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
    for hook in (dialects.HOOK, *dialects.WITH_FORMATS):
        hook.undo()


def asked(name: str, tools: list[dict[str, Any]], choice: Any, **fields: Any) -> tuple[type[ToolParser], Any]:
    """The parser's class, and a request."""
    messages = [{"role": "user", "content": "x"}]
    request = ChatCompletionRequest(messages=messages, model="m", tools=tools, tool_choice=choice, **fields)
    return ToolParserManager.get_tool_parser(name), request


def constraint_of(parser: type[ToolParser], request: Any, single: bool = False) -> Constraint:
    """What the parser's structural tag asks for, as vLLM's front end sends it."""
    tag = parser(tokenizer(), request.tools).get_structural_tag(request)
    tag = limit_to_single_tool_call(tag) if single else tag
    return engine_constraint("structural_tag", json.dumps(tag.model_dump()), vocabulary())


def read(parser: type[ToolParser], request: Any, text: str) -> list[tuple[str, Any]]:
    calls_read = parser(tokenizer(), request.tools).extract_tool_calls(text, request)
    return [(call.function.name, json.loads(call.function.arguments)) for call in calls_read.tool_calls]


def streamed(parser: type[ToolParser], request: Any, tokens: list[int], rng: random.Random) -> list[tuple[str, Any]]:
    """What is read of the tokens in random cuts."""
    reader, calls = parser(tokenizer(), request.tools), dict[int, list[str]]()
    text, ids = "", list[int]()
    for new, piece in deltas(tokens, rng):
        delta = reader.extract_tool_calls_streaming(text, text + piece, piece, ids, ids + new, new, request)
        text, ids = text + piece, ids + new
        for call in (delta.tool_calls if delta else None) or ():
            kept = calls.setdefault(call.index, ["", ""])
            kept[0] += call.function.name or "" if not kept[0] else ""
            kept[1] += call.function.arguments or ""
    return [(name, json.loads(arguments or "{}")) for _, (name, arguments) in sorted(calls.items())]


def test_at_least_twelve_parsers() -> None:
    assert len(PARSERS) >= 12
    for name in PARSERS:
        parser = ToolParserManager.get_tool_parser(name)
        tag = parser.structural_tag_model
        if name == "hy_v3":  # by the suffix of the checkpoint
            assert isinstance(tag, property) and tag.fget is not None
            assert tag.fget(SimpleNamespace(suffix=":x1")) == "structgen_hy_v3:x1"
            built = registry._VLLM_STRUCTURAL_TAG_REGISTRY["structgen_hy_v3:x1"]([], [], "auto", False)
            assert "hy_v3:x1" in built.model_dump_json()
        elif parser.__name__ not in dialects.REPLACED:
            assert tag == dialects.PREFIX + dialects.FORMATS[parser.__name__][0]


@pytest.mark.parametrize("name", PARSERS)
def test_walks_are_read_by_the_parser(name: str) -> None:
    calls = 0
    for seed in range(WALKS):
        rng = random.Random(f"{name} {seed}")
        tools = random_tools(rng, containers=name not in NO_CONTAINERS)
        schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in tools}
        parser, request = asked(name, tools, "required" if seed % 4 or name in NO_AUTO else "auto")
        constraint = constraint_of(parser, request)
        tokens = walk(constraint.compile(vocabulary()), rng, rng.choice([60, 150]))
        text = tokenizer().decode(tokens, skip_special_tokens=False)
        calls_read = read(parser, request, text)
        assert len(calls_read) >= (1 if seed % 4 or name in NO_AUTO else 0), text
        for called, arguments in calls_read:
            jsonschema.validate(arguments, schemas[called])
            calls += 1
        if name not in NOT_STREAMED:
            assert streamed(parser, request, tokens, rng) == calls_read, text
    assert calls >= WALKS // 2


@pytest.mark.parametrize("name", PARSERS)
def test_one_call_only_and_a_named_tool(name: str) -> None:
    tools = [{"type": "function", "function": {"name": tool, "strict": True}} for tool in ("one", "two")]
    parser, request = asked(name, tools, {"type": "function", "function": {"name": "two"}})
    named = constraint_of(parser, request).compile(vocabulary())
    parser, request = asked(name, tools, "required")
    single = constraint_of(parser, request, single=True).compile(vocabulary())
    for seed in range(3):
        rng = random.Random(seed)
        text = tokenizer().decode(walk(named, rng, 80), skip_special_tokens=False)
        assert read(parser, request, text) == [("two", {})]
        text = tokenizer().decode(walk(single, rng, 80), skip_special_tokens=False)
        assert len(read(parser, request, text)) == 1


@pytest.mark.parametrize("name", ["gemma4", "hermes"])
def test_alongside_a_format_that_xgrammar_does_not_read(name: str) -> None:
    """vLLM itself would drop the tools, with a line in the log."""
    schema = {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 2, "uniqueItems": True}
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    tools = random_tools(random.Random(0), all_required=True)
    parser, request = asked(name, tools, "auto", response_format=form)
    assert not any(hook.misfit() for hook in dialects.WITH_FORMATS)
    whole = ParserManager.get_parser(tool_parser_name=name, enable_auto_tools=True)
    assert whole is not None
    tag = whole(tokenizer(), tools=request.tools).adjust_request(request).structured_outputs.structural_tag
    grammar = engine_constraint("structural_tag", tag, vocabulary()).compile(vocabulary())

    def takes(text: bytes) -> bool:
        matcher = grammar.matcher()
        return matcher.accept_bytes(text) and matcher.is_accepting()

    assert takes(b'["a","b"]') and not takes(b'["a","a"]') and not takes(b'["a"]')
    found = 0
    for seed in range(WALKS):
        text = tokenizer().decode(walk(grammar, random.Random(seed), 80), skip_special_tokens=False)
        found += len(read(parser, request, text))
    assert found


def test_gigachat_before_it_had_a_token_for_calls() -> None:
    """The parser reads what 3.0 writes, too."""
    for seed in range(WALKS):
        rng = random.Random(seed)
        tools = random_tools(rng)
        parser, request = asked("gigachat3", tools, "required")
        constraint = tool_call("gigachat3_0", tools, tool_choice="required", parallel_tool_calls=False)
        text = tokenizer().decode(walk(constraint.compile(vocabulary()), rng, 80), skip_special_tokens=False)
        [(name, arguments)] = read(parser, request, text)
        schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in tools}
        jsonschema.validate(arguments, schemas[name])


def test_the_loader_is_wrapped_once_and_left_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a class method before, in between and afterwards; one that takes something else is named."""
    hook = dialects.HOOK
    wrapped = ToolParserManager.__dict__[hook.method]
    hook.make()
    assert ToolParserManager.__dict__[hook.method] is wrapped and isinstance(wrapped, classmethod)
    hook.undo()
    theirs = ToolParserManager.__dict__[hook.method]
    assert isinstance(theirs, classmethod) and not hasattr(theirs, "structgen_original")
    monkeypatch.setattr(ToolParserManager, hook.method, classmethod(lambda cls, other: None))
    assert "_load_lazy_parser takes ['other']" in hook.misfit()


def encoded(module: Any, calls: list[dict[str, Any]]) -> str:
    """Calls as vLLM's encoder of a model writes them."""
    words = {"dsml_token": module.dsml_token, "tool_call_tag_name": getattr(module, "tool_call_tag_name", "")}
    texts = [
        module.tool_call_template.format(**words, name=call["name"], arguments=module.encode_arguments_to_dsml(call))
        for call in module.tool_calls_from_openai_format(calls)
    ]
    block = getattr(module, "tool_calls_block_name", "function_calls")
    text: str = module.tool_calls_template.format(**words, tool_calls="\n".join(texts), tc_block_name=block)
    return text


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("deepseek_v3_2", "deepseek_v32_encoding"),
        ("deepseek_v4", "deepseek_v4_encoding"),
        ("deepseek_v4_1", "deepseek_v41_encoding"),
    ],
)
def test_what_vllm_encodes_is_taken_and_read(name: str, module: str) -> None:
    """Where a model has no chat template, vLLM's encoder is the published one."""
    encoder = importlib.import_module(f"vllm.tokenizers.{module}")
    constraint = tool_call(name, TOOLS)
    grammar = constraint.compile(BYTES)
    for seed in range(12):
        calls = random_calls(random.Random(seed), name)
        text = "\n\n" + encoded(encoder, calls)
        assert accepts(grammar, BYTES, text, random.Random(seed)), text
        expected = [(call["function"]["name"], call["function"]["arguments"]) for call in calls]
        assert [(p.name, p.arguments) for p in constraint.parse(text) if isinstance(p, ToolCall)] == expected
