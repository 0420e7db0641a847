"""From a prompt to token ids: chat template where the model has one, and what the constraint asks for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from structgen.errors import GenerationError

Message: TypeAlias = "Mapping[str, Any]"
Prompt: TypeAlias = "str | Sequence[Message]"


def prompt_token_ids(tokenizer: Any, prompt: Prompt, instruction: str | None = None) -> list[int]:
    """Token ids of a prompt.

    With a chat template, a string is one user message, and ``instruction`` is added to the last user message. Without,
    a string is continued as it is, after the instruction; messages are refused.

    Raises:
        GenerationError: the prompt is neither a string nor messages, or the tokenizer cannot read it.
    """
    if isinstance(prompt, str):
        messages: list[dict[str, Any]] = [{"role": "user", "content": prompt}]
    else:
        given = list(prompt) if isinstance(prompt, Iterable) else []
        messages = [dict(message) for message in given if isinstance(message, Mapping)]
        if not messages or len(messages) < len(given) or not all({"role", "content"} <= m.keys() for m in messages):
            raise GenerationError(
                'A prompt is a string or messages like {"role": "user", "content": "..."}, not empty.'
            )
    if getattr(tokenizer, "chat_template", None):
        text = _render(tokenizer, _instruct(messages, instruction))
        return list(tokenizer.encode(text, add_special_tokens=False))  # the template writes the special tokens
    if not isinstance(prompt, str):
        raise GenerationError("This model's tokenizer has no chat template; give the prompt as one string.")
    text = f"{prompt}\n\n{instruction}\n\n" if instruction else prompt
    return list(tokenizer.encode(text))


def _instruct(messages: list[dict[str, Any]], instruction: str | None) -> list[dict[str, Any]]:
    """Add the instruction to the last user message (a new one if there is none)."""
    if instruction is None:
        return messages
    for message in reversed(messages):
        if message["role"] == "user" and isinstance(message["content"], str):
            message["content"] = f"{message['content']}\n\n{instruction}"
            return messages
    return [*messages, {"role": "user", "content": instruction}]


def _render(tokenizer: Any, messages: list[dict[str, Any]]) -> str:
    try:
        return str(tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True))
    except Exception as error:  # templates are programs of their authors and raise jinja2 errors of all kinds
        raise GenerationError(f"The model's chat template refuses these messages: {error}") from error
