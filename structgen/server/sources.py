"""Texts and names that a request brings for its constraint: its field ``sources``, and what its prompt says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from structgen.core.constraints.limits import check_size
from structgen.server.errors import as_request_error
from structgen.server.openai_types import CommonFields
from structgen.server.settings import ServingSettings

PROMPT = "prompt"
"""The source that stands for what the prompt says; a request may give another of this name."""


def sources_of(request: CommonFields, prompt: Mapping[str, str], settings: ServingSettings) -> dict[str, Any]:
    """The sources of a request, by name.

    Args:
        request: its fields.
        prompt: the texts of the prompt, by what they are called in places of quotes.
        settings: their limits are those of constraints.

    Raises:
        RequestError: they are too large.
    """
    given = request.sources or {}
    try:
        check_size(given, settings.compile_limits)
    except Exception as error:
        raise as_request_error(error, ("sources",)) from error
    texts = {name: text for name, text in prompt.items() if text}
    return {**({PROMPT: texts} if texts else {}), **given}


def message_texts(messages: list[dict[str, Any]]) -> dict[str, str]:
    """What messages say, by their places."""
    return {
        f"messages[{number}]": message["content"]
        for number, message in enumerate(messages)
        if isinstance(message.get("content"), str)
    }
