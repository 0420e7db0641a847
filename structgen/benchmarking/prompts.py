"""The prompts of JSONSchemaBench: a task, a few examples, then the schema; an instance is wanted.

The paper (arXiv 2501.10868, section 5) shows the model the schema and a few worked examples; its examples are not
published as such, so these are ours. The same prompt goes to every engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from structgen.generation.decoding.prompts import Prompt, prompt_token_ids

TASK = (
    "You write one JSON value that is valid under the JSON Schema you are given. "
    "Write the JSON only, on one line, without any explanation."
)
SHOTS = (
    (
        '{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer","minimum":0}},'
        '"required":["name","age"],"additionalProperties":false}',
        '{"name": "Ada Lovelace", "age": 36}',
    ),
    (
        '{"type":"object","properties":{"title":{"type":"string"},"tags":{"type":"array","items":{"type":"string"},'
        '"minItems":1},"status":{"enum":["draft","published"]}},"required":["title","status"]}',
        '{"title": "A walk in the hills", "tags": ["travel", "nature"], "status": "draft"}',
    ),
)
CUT = " …"


def schema_prompt(tokenizer: Any, schema_text: str, shots: int, max_tokens: int) -> tuple[list[int], bool]:
    """Token ids of the prompt for a schema, and whether the schema had to be cut to fit.

    A schema that does not fit is cut at its end, in the prompt only: engines always get all of it. With a chat
    template the examples are earlier turns of the conversation, without one they are plain text.
    """
    ids = _render(tokenizer, schema_text, shots)
    if len(ids) <= max_tokens:
        return ids, False
    room = max(0, max_tokens - len(_render(tokenizer, CUT, shots)))
    head = list(tokenizer.encode(schema_text, add_special_tokens=False))[:room]
    text = tokenizer.decode(head).rstrip("\ufffd") if head else ""
    return _render(tokenizer, text + CUT, shots), True


def as_prompt(tokenizer: Any, messages: Sequence[tuple[str, str]]) -> Prompt:
    """(role, content) messages as a generator takes them; without a chat template, as plain text, a paragraph each."""
    if getattr(tokenizer, "chat_template", None):
        return [{"role": role, "content": content} for role, content in messages]
    return "\n\n".join(content for _, content in messages) + "\n\n"


def _render(tokenizer: Any, schema_text: str, shots: int) -> list[int]:
    asked = "JSON Schema:\n{}"
    if getattr(tokenizer, "chat_template", None):
        messages = [{"role": "system", "content": TASK}]
        for schema, instance in SHOTS[:shots]:
            messages += [
                {"role": "user", "content": asked.format(schema)},
                {"role": "assistant", "content": instance},
            ]
        return prompt_token_ids(tokenizer, [*messages, {"role": "user", "content": asked.format(schema_text)}])
    parts = [TASK]
    for schema, instance in SHOTS[:shots]:
        parts += [asked.format(schema), f"JSON:\n{instance}"]
    return prompt_token_ids(tokenizer, "\n\n".join([*parts, asked.format(schema_text), "JSON:\n"]))
