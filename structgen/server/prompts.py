"""Messages of a chat as a prompt: what the model's own template is given, and what stands in for what it ignores."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from structgen.core.tool_calls.templates import template_of
from structgen.generation.decoding.prompts import Place, noted
from structgen.server.errors import RequestError
from structgen.server.outputs import json_text
from structgen.server.settings import ServingSettings


def messages_for_template(messages: Sequence[Mapping[str, Any]], *, takes_tools: bool) -> list[dict[str, Any]]:
    """Messages as a template takes them that knows of tools, or of none."""
    return _messages_with_calls(messages) if takes_tools else messages_in_words(messages)


def _messages_with_calls(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
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


MOST_BYTES = 4
"""Of a character in UTF-8."""
BYTES_A_TOKEN = 4
"""Texts with more for each token that the model reads are looked at in parts first."""
PART = 4_096
"""Bytes of such a part: tokenizers may hold Python's lock, and so everything else, until they are through one."""
NO_TEMPLATE = "The model has no chat template; use /v1/completions with one prompt."


@dataclass(frozen=True)
class ChatPrompt:
    """What a prompt is made of.

    Attributes:
        messages: plain messages: ``role`` and ``content``; ``tool_calls`` with arguments as values, ``tool_call_id``.
        tools: definitions of tools for templates that take them.
        notes: what is said besides, in the user's or the system's message, in this order: (text, message).
        template_fields: fields that the template is given besides.
    """

    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]] = ()
    notes: Sequence[tuple[str, Place]] = ()
    template_fields: Mapping[str, Any] = field(default_factory=dict)


def template_takes(tokenizer: Any, name: str) -> bool:
    """Whether the chat template speaks of a variable."""
    return re.search(rf"\b{re.escape(name)}\b", template_of(tokenizer)) is not None


def check_template_fields(tokenizer: Any, given: Mapping[str, Any]) -> None:
    """Refuse fields that the template ignores, and those that are not the template's but of whoever renders it.

    Raises:
        RequestError: a field that has no effect, or may not be given.
    """
    reserved = set(inspect.signature(tokenizer.apply_chat_template).parameters) | {"messages", "add_generation_prompt"}
    for name in given:
        if name in reserved or not name.isidentifier() or not template_takes(tokenizer, name):
            raise RequestError.at(
                ("chat_template_kwargs", name),
                f"The model's chat template takes no field {name!r}",
                "unsupported_parameter",
            )


def rendered(tokenizer: Any, prompt: ChatPrompt, *, add_generation_prompt: bool = True) -> str:
    """The text of a prompt, up to where the model begins to write, or (without ``add_generation_prompt``) of what was
    said.

    Raises:
        RequestError: there is no template, or it refuses the messages.
    """
    if not template_of(tokenizer):
        raise RequestError(NO_TEMPLATE, code="no_chat_template", param="messages")
    messages = noted([dict(message) for message in prompt.messages], prompt.notes)
    more: dict[str, Any] = dict(prompt.template_fields)
    if prompt.tools:
        more["tools"] = [dict(tool) for tool in prompt.tools]
    try:
        return str(
            tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=add_generation_prompt, **more)
        )
    except Exception as error:  # templates are programs of their authors and raise jinja2 errors of all kinds
        raise RequestError(
            f"The model's chat template refuses these messages: {error}", code="chat_template_refused", param="messages"
        ) from error


def token_ids(tokenizer: Any, text: str, settings: ServingSettings, *, add_special_tokens: bool = False) -> list[int]:
    """The tokens of a prompt; of a rendered one, the template wrote the special tokens.

    Raises:
        RequestError: there are none, or the text is longer than the settings allow.
    """
    most = settings.max_prompt_length
    if most is not None and len(text) > most:
        raise RequestError(
            f"The prompt has {len(text):,} characters, and at most {most:,} are read; shorten it.",
            code="context_length_exceeded",
            param="messages",
        )
    _check_parts(tokenizer, text, settings.max_prompt_tokens)
    ids = list(tokenizer.encode(text, add_special_tokens=add_special_tokens))
    if not ids:
        raise RequestError("The prompt is empty; give some text.", param="prompt")
    return ids


def _check_parts(tokenizer: Any, text: str, most: int | None) -> None:
    """Refuse a long text whose parts have more than twice the tokens that are read.

    Tokens across a cut are few, so a text that could be read is never refused; others end after a few parts. Between
    two of them, the tokens of other requests are made.
    """
    if most is None or len(text) <= BYTES_A_TOKEN * most // MOST_BYTES:
        return
    if len(text.encode(errors="replace")) <= BYTES_A_TOKEN * most:
        return
    count = 0
    for part in _parts(text):
        count += len(tokenizer.encode(part, add_special_tokens=False))
        if count > 2 * most + PART:
            raise RequestError(
                f"The prompt has more than {most:,} tokens, which are all that the model reads; shorten it.",
                code="context_length_exceeded",
                param="messages",
            )


def _parts(text: str) -> Iterator[str]:
    """A text in parts of at most ``PART`` bytes."""
    start = 0
    while start < len(text):
        part = text[start : start + PART]
        part = part[: PART * len(part) // max(PART, len(part.encode(errors="replace")))]  # by its mean
        while len(part.encode(errors="replace")) > PART:
            part = part[: len(part) // 2]
        yield part
        start += len(part)
