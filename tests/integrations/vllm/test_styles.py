"""Tags of XGrammar's in styles that no key of vLLM's has: what masks let through is read back into valid arguments."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator

pytest.importorskip("vllm", reason="vLLM is not here; `make test-engines` fetches it")

from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.tool_parsers import ToolParserManager
from xgrammar import get_model_structural_tag

from tests.integrations.tag_walks import (
    EMPTY,
    NOTE,
    SEARCH,
    WALKS,
    compiled,
    text_of,
    tokenizer,
    tokens_of,
    vocabulary,
    walk,
)

MINIMAX = "]<]minimax[>["
BEGINS = {"minimax_m3": f"{MINIMAX}<tool_call>\n", "cohere": "<cofl:tool_calls>"}
"""What begins a call where it may be left out."""
NAMES = {"minimax_m3": (MINIMAX,), "cohere": ()}
MODES: dict[str, Any] = {
    "auto": "auto",
    "required": "required",
    "named": {"type": "function", "function": {"name": "search"}},
}
LISTS = {
    "type": "object",
    "properties": {
        "rows": {
            "type": "array",
            "items": {"type": "array", "items": {"type": "integer"}, "maxItems": 2},
            "maxItems": 3,
        },
        "notes": {"type": "array", "items": NOTE["properties"]["place"], "minItems": 1},
    },
    "required": ["notes"],
    "additionalProperties": False,
}
# Items that must differ are refused where items are not JSON.
TOOLS = {
    "search": SEARCH,
    "note": {**NOTE, "properties": {key: value for key, value in NOTE["properties"].items() if key != "many"}},
    "lists": LISTS,
    "ping": EMPTY,
}
FUNCTIONS = [
    {"type": "function", "function": {"name": name, "parameters": given, "strict": True}}
    for name, given in TOOLS.items()
]


def read(key: str, text: str) -> list[tuple[str, str]]:
    """The calls of an output, with arguments as JSON text: by vLLM's parser, where it has one."""
    if key == "cohere":
        return [(name, json.dumps(arguments)) for name, arguments in Cofl(text).calls()]
    fields = {"messages": [{"role": "user", "content": "?"}], "model": "m", "tools": FUNCTIONS}
    request = ChatCompletionRequest.model_validate(fields)
    parser = ToolParserManager.get_tool_parser(key)(tokenizer(NAMES[key]), request.tools)
    calls = parser.extract_tool_calls(text, request=request).tool_calls
    return [(call.function.name, call.function.arguments) for call in calls]


class Cofl:
    """A reader of Cohere's calls. No engine has one; values that are raw or JSON hold no tag that ends a value."""

    CALL = re.compile(r'<cofl:tool_call id="\d+" name="(\w+)">')
    VALUE = re.compile(r'\s*<cofl:value(?: name="(\w+)")? type="(raw|json|dict|list)">')
    END = "</cofl:value>"

    def __init__(self, text: str) -> None:
        self.text, self.position = text, 0

    def calls(self) -> list[tuple[str, dict[str, Any]]]:
        calls = []
        while begun := self.CALL.search(self.text, self.position):
            self.position = begun.end()
            calls.append((begun[1], dict(self.values())))
            self.skip("</cofl:tool_call>")
        return calls

    def values(self) -> list[tuple[str, Any]]:
        values = []
        while begun := self.VALUE.match(self.text, self.position):
            self.position = begun.end()
            values.append((begun[1], self.value(begun[2])))
            self.skip(self.END)
        assert len(dict(values)) == len(values) or not values[0][0], self.text
        return values

    def value(self, kind: str) -> Any:
        if kind in ("dict", "list"):
            inner = self.values()
            return dict(inner) if kind == "dict" else [value for _, value in inner]
        begun, self.position = self.position, self.text.index(self.END, self.position)
        text = self.text[begun : self.position]
        return text if kind == "raw" else json.loads(text)

    def skip(self, end: str) -> None:
        self.position = re.compile(r"\s*").match(self.text, self.position).end()  # type: ignore[union-attr]
        assert self.text.startswith(end, self.position), self.text[self.position :]
        self.position += len(end)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("key", BEGINS)
def test_walks_are_read_into_valid_arguments(key: str, mode: str) -> None:
    tag = get_model_structural_tag(key, FUNCTIONS, MODES[mode], reasoning="disabled").model_dump()
    words = vocabulary(NAMES[key])
    grammar = compiled("structural_tag", json.dumps(tag), words)
    count = 0
    for number in range(WALKS):
        rng = random.Random(f"{key} {mode} {number}")
        begun = BEGINS[key] if mode == "auto" and rng.random() < 0.8 else ""
        text = text_of(walk(grammar, rng, tokens_of(begun, words)), words)
        calls = read(key, text)
        assert calls or (mode == "auto" and not begun), text
        count += len(calls)
        for name, arguments in calls:
            Draft202012Validator(TOOLS[name]).validate(json.loads(arguments))
    assert count
