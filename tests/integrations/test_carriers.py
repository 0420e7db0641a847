"""What carriers bring through structural tags, and what is no carrier."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from structgen.core.tool_calls.calls import ToolCall
from structgen.errors import OptionsError, SchemaError, SpecificationError
from structgen.integrations.carriers import carried, carrier
from structgen.integrations.engine_requests import engine_constraint
from tests.core.tool_calls.vocabularies import BYTES, accepts, chat_vocabulary

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "f",
            "strict": True,
            "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
        },
    }
]
CALL = "<|tool_call>call:f{n:1}<tool_call|>"


def tag(form: Any) -> str:
    return json.dumps({"type": "structural_tag", "format": form})


def takes(constraint: Any, text: str) -> bool:
    matcher = constraint.compile(BYTES).matcher()
    return bool(matcher.accept_bytes(text.encode()) and matcher.is_accepting())


def test_required_and_auto() -> None:
    required = engine_constraint("structural_tag", tag(carrier("gemma4", TOOLS, required=True, text="before")), BYTES)
    assert takes(required, CALL) and takes(required, CALL + CALL)
    assert not takes(required, "Well. " + CALL) and not takes(required, "Well.")
    assert not takes(required, CALL.replace("n:1", "")) and not takes(required, CALL.replace("n:1", "n:1,m:2"))
    assert required.parse(CALL) == [ToolCall("f", {"n": 1})]
    auto = engine_constraint("structural_tag", tag(carrier("gemma4", TOOLS, required=False, text="before")), BYTES)
    assert takes(auto, "Well. " + CALL) and takes(auto, "Well.") and not takes(auto, CALL + " Done.")
    instead = engine_constraint(
        "structural_tag", tag(carrier("pythonic", TOOLS, required=False, text="instead")), BYTES
    )
    assert takes(instead, "[f(n=1)]") and takes(instead, "Well.") and not takes(instead, "[f(m=1)]")


@pytest.mark.parametrize("name, call", [
    ("gigachat3", '<|function_call|>{"name": "f", "arguments": {"n": 1}}'),
    ("gigachat3_0", '<|message_sep|>\n\nfunction call<|role_sep|>\n{"name": "f", "arguments": {"n": 1}}'),
])  # fmt: skip
def test_the_vocabulary_says_which_of_two_formats(name: str, call: str) -> None:
    """GigaChat 3.0 and 3.1 have one parser; a token for calls has the later one alone."""
    vocabulary = chat_vocabulary(name)
    asked = tag(carrier("gigachat3", TOOLS, required=True, text="before"))
    grammar = engine_constraint("structural_tag", asked, vocabulary).compile(vocabulary)
    assert accepts(grammar, vocabulary, call, random.Random(0))


def test_one_call_only_as_engines_say_it() -> None:
    form = carrier("gemma4", TOOLS, required=True, text="before")
    form["stop_after_first"] = True
    single = engine_constraint("structural_tag", tag(form), BYTES)
    assert takes(single, CALL) and not takes(single, CALL + CALL)


def test_beside_a_response_format() -> None:
    form = carrier("gemma4", TOOLS, required=True, text="before")
    schema = {"type": "json_schema", "json_schema": {"type": "object", "properties": {"a": {"const": 1}}}}
    either = engine_constraint("structural_tag", tag({"type": "or", "elements": [form, schema]}), BYTES)
    assert takes(either, CALL) and takes(either, '{"a": 1}') and not takes(either, '{"a": 2}')


def test_what_is_no_carrier() -> None:
    plain = tag({"type": "json_schema", "json_schema": {"type": "object"}})
    assert carried("structural_tag", plain, {}) is None and carried("json", '{"const": "%structgen"}', {}) is None
    assert carried("grammar", 'start: "%structgen"', {}) is None
    quoted = tag({"type": "json_schema", "json_schema": {"const": "%structgen"}})
    assert carried("structural_tag", quoted, {}) is None and takes(
        engine_constraint("structural_tag", quoted, BYTES), '"%structgen"'
    )


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("%structgen", SpecificationError),
        ("%structgen []", SpecificationError),
        ('%structgen {"tool_call": 1}', SpecificationError),
        ('%structgen {"tool_call": {"format": "gemma4", "tools": [], "more": 1}}', SpecificationError),
        ('%structgen {"tool_call": {"format": "gemma5", "tools": []}}', OptionsError),
        ('%structgen {"tool_call": {"format": "gemma4", "tools": [{"name": "f", "parameters": 1}]}}', SchemaError),
    ],
)
def test_bad_carriers_are_refused(text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        engine_constraint("grammar", text, BYTES)
