"""What SGLang's own code asks for of tools, for each of its parsers: all of it compiles here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("sglang", reason="SGLang is not here; `make test-engines` fetches it")

from sglang.srt.entrypoints.openai.protocol import Tool, ToolChoice
from sglang.srt.function_call.function_call_parser import FunctionCallParser

from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.integrations.sglang import dialects
from tests.integrations.tag_walks import TOOLS, compiled, names_in, vocabulary

KINDS = {"json_schema": "json", "structural_tag": "structural_tag", "full_assistant_ebnf": "grammar"}
# Inkling's tags name tokens by id, as its tokenizer has them.
INKLING = {"<|message_model|>": 200000, "<|end_message|>": 200010, "<|content_invoke_tool_json|>": 200049}


def constraints() -> Iterator[tuple[str, str, str]]:
    """Parser, kind and text of each constraint."""
    named = ToolChoice.model_validate({"type": "function", "function": {"name": "search"}})
    for parser in FunctionCallParser.ToolCallParserEnum:
        for mode in ("auto", "required", named):
            for strict in (True, False):
                tools = [_tool(name, parameters, strict) for name, parameters in TOOLS.items()]
                try:
                    asked: Any = FunctionCallParser(tools, parser).get_structure_constraint(mode)
                except ValueError:  # the parser needs a template, or cannot do this
                    continue
                if asked is not None:
                    kind, value = asked
                    yield parser, kind, value if isinstance(value, str) else _text(value)


def _tool(name: str, parameters: dict[str, Any], strict: bool) -> Any:
    function = {"name": name, "parameters": parameters, "strict": strict}
    return Tool.model_validate({"type": "function", "function": function})


def _text(value: Any) -> str:
    return json.dumps(value if isinstance(value, dict) else value.model_dump(by_alias=True), ensure_ascii=False)


def test_all_constraints_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialects, "is_backend", lambda: False)  # what SGLang itself asks for, hooks or none
    count = 0
    done: set[tuple[str, str]] = set()
    for parser, kind, text in constraints():
        count += 1
        if (kind, text) not in done:
            done.add((kind, text))
            compiled(KINDS[kind], text, _inkling() if parser == "inkling" else vocabulary(names_in(text)))
    assert count == 184


def _inkling() -> Vocabulary:
    size = 200_064
    return Vocabulary(
        [*(bytes([byte]) for byte in range(256)), *([None] * (size - 256))],
        eos_token_ids=size - 1,
        special_token_ids=range(256, size),
        special_tokens=INKLING,
    )
