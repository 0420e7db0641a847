"""Texts and names that a request brings for its constraint: its field ``sources``, and what its prompt says."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from structgen.core.constraints.specs import ConstraintSpec
from structgen.core.json_schema.keywords_data import with_sources
from structgen.core.text_sets.opening import PROMPT
from structgen.errors import TooComplexError
from structgen.server.errors import RequestError, as_request_error
from structgen.server.openai_types import CheckRequest, CommonFields, CompletionRequest
from structgen.server.settings import ServingSettings


def sources_of(
    request: CommonFields | CheckRequest, prompt: Mapping[str, str], settings: ServingSettings
) -> dict[str, Any]:
    """The sources of a request, by name.

    Args:
        request: its fields.
        prompt: the texts of the prompt, by what they are called in places of quotes.
        settings: with the limits of sources, and those that the operator opened; a request may give others of their
            names, and of that of the prompt.

    Raises:
        RequestError: they are too large.
    """
    given = request.sources or {}
    try:
        _check_sources(given, settings.max_source_bytes, settings.max_source_names)
    except TooComplexError as error:
        raise as_request_error(error, ("sources",)) from error
    texts = {name: text for name, text in prompt.items() if text}
    return {**settings.sources, **({PROMPT: texts} if texts else {}), **given}


def check_one_prompt(request: CompletionRequest, prompts: Collection[str]) -> None:
    """Refuse a constraint that speaks of the prompt where several prompts share it: each would quote the others, too.

    Args:
        request: whose constraint could be read.
        prompts: its texts.

    Raises:
        RequestError: there are several, and it does.
    """
    given = request.structured_outputs
    if given is None or len({*prompts}) < 2 or PROMPT in (request.sources or {}):
        return
    for kind, source in (("json", given.json_schema), ("structural_tag", given.structural_tag)):
        value = None if source is None else ConstraintSpec(kind, source).value
        if with_sources(value, {PROMPT: ""}) is not value:
            raise RequestError.at(
                ("prompt",),
                "the constraint quotes what the prompt says, and there are several prompts, which it is one for; ask "
                "for one prompt at a time",
                "unsupported_value",
            )


def _check_sources(given: Mapping[str, Any], max_bytes: int, max_names: int) -> None:
    """Look at the size of sources: their texts, names and what they are called.

    Raises:
        TooComplexError: they have more bytes or names than are taken.
    """
    size, names = 0, 0
    for name, source in given.items():
        texts = (source,) if isinstance(source, str) else source
        if isinstance(source, Mapping):
            texts = [*source, *source.values()]
        names += len(texts)
        size += sum(len(text.encode(errors="replace")) for text in (name, *texts))
    if size > max_bytes:
        raise TooComplexError(
            f"the sources have {size:,} bytes of text; at most {max_bytes:,} are taken",
            limit=max_bytes,
            budget="max_source_bytes",
        )
    if names > max_names:
        raise TooComplexError(
            f"the sources have {names:,} names and texts; at most {max_names:,} are taken",
            limit=max_names,
            budget="max_source_names",
        )


def message_texts(messages: list[dict[str, Any]]) -> dict[str, str]:
    """What messages say, by their places."""
    return {
        f"messages[{number}]": message["content"]
        for number, message in enumerate(messages)
        if isinstance(message.get("content"), str)
    }
