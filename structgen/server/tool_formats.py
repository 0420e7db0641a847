"""Calls and answers of a chat as a template, or plain text, has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from structgen.server.outputs import json_text


def messages_for_template(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Messages as templates that know of tools take them."""
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
