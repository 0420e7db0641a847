"""From a prompt to token ids: chat template where the model has one, and what the constraint asks for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from structgen.core.constraints.base import Constraint, instruction_of
from structgen.core.json_schema.prompt_forms import FORMS, SchemaForm, checked_form
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import GenerationError, OptionsError
from structgen.generation.decoding.refusals import Refusal

Message: TypeAlias = "Mapping[str, Any]"
Prompt: TypeAlias = "str | Sequence[Message]"
Place = Literal["user", "system"]
"""The message that the model is told of its constraint in: the user's last, or the system's. It stands before what
differs from prompt to prompt, since prompts that begin alike are read once as far as they do."""


@dataclass(frozen=True)
class Telling:
    """How the model is told of its constraint: in which message, and in which form of a schema (None: the model's
    own, see ``ModelDefaults``)."""

    role: Place = "user"
    form: SchemaForm | None = None

    def of(self, constraint: Constraint, default_form: SchemaForm) -> str | None:
        """What it is told of a constraint; ``default_form``: the model's form."""
        return instruction_of(constraint, self.form or default_form)


def telling(schema_in_prompt: bool | str = True, schema_form: str = "auto") -> Telling | None:
    """What the options say: True is "user"; False is that the model is told nothing.

    Raises:
        OptionsError: they say something else.
    """
    form = checked_form(schema_form)
    if schema_in_prompt is False:
        return None
    if schema_in_prompt is True or schema_in_prompt == "user" or schema_in_prompt == "system":
        return Telling("system" if schema_in_prompt == "system" else "user", form)
    is_form = isinstance(schema_in_prompt, str) and schema_in_prompt in FORMS
    raise OptionsError(
        f'schema_in_prompt must be True, False, "user" or "system", not {schema_in_prompt!r:.100}'
        + (f"; for the form, pass schema_form={schema_in_prompt!r}" if is_form else ""),
        option="schema_in_prompt",
        value=schema_in_prompt,
    )


def longest_prompt(context_length: int | None, vocabulary: Vocabulary) -> int | None:
    """How many characters a prompt can have at the most, so that the model reads it: those of its longest token, as
    often as it reads tokens. None: there is no limit."""
    if context_length is None:
        return None
    return context_length * max(map(len, (*vocabulary.tokens, *vocabulary.special_tokens)))


def prompt_token_ids(
    tokenizer: Any,
    prompt: Prompt,
    instruction: str | None = None,
    role: Place = "user",
    max_length: int | None = None,
    refused: Refusal | None = None,
) -> list[int]:
    """Token ids of a prompt.

    With a chat template, a string is one user message, and ``instruction`` is added to the message that ``role``
    names. Without, a string is continued as it is, with the instruction before it; messages are refused. ``refused``
    is an answer to it and what was wrong, which the model is told after it.

    Raises:
        GenerationError: the prompt is neither a string nor messages, the tokenizer cannot read it, or it has more than
            ``max_length`` characters (None: any number): no time goes into the tokens of what cannot fit.
    """
    messages = as_messages(prompt)
    if getattr(tokenizer, "chat_template", None):
        messages = noted(messages, [(instruction, role)] if instruction else [])
        text = _render(tokenizer, messages if refused is None else [*messages, *refused.messages()])
        _check_length(text, max_length)
        return list(tokenizer.encode(text, add_special_tokens=False))  # the template writes the special tokens
    if not isinstance(prompt, str):
        raise GenerationError("This model's tokenizer has no chat template; give the prompt as one string.")
    text = f"{instruction}\n\n{prompt}\n\n" if instruction else prompt
    if refused is not None:
        text = "\n\n".join([text.rstrip("\n"), *(message["content"] for message in refused.messages()), ""])
    _check_length(text, max_length)
    return list(tokenizer.encode(text))


def _check_length(text: str, most: int | None) -> None:
    if most is not None and len(text) > most:
        raise GenerationError(
            f"The prompt has {len(text):,} characters, and at most {most:,} are read (max_prompt_length); shorten it."
        )


def as_messages(prompt: Prompt) -> list[dict[str, Any]]:
    """The messages of a prompt; a string is the user's.

    Raises:
        GenerationError: it is neither a string nor messages, or has no UTF-8.
    """
    if isinstance(prompt, str):
        prompt = [{"role": "user", "content": prompt}]
    given = list(prompt) if isinstance(prompt, Iterable) and not isinstance(prompt, Mapping) else []
    messages = [dict(message) for message in given if isinstance(message, Mapping)]
    if not messages or len(messages) < len(given) or not all({"role", "content"} <= m.keys() for m in messages):
        raise GenerationError(
            'A prompt is a string or messages like [{"role": "user", "content": "..."}], at least one; '
            f"not {prompt!r:.100}."
        )
    for message in messages:
        message["content"] = _text_of(message["content"])
        if isinstance(message["content"], str):
            _check_text(message["content"])
    return messages


def _text_of(content: Any) -> Any:
    """A message's content, of parts their texts, a line each.

    Raises:
        GenerationError: a part is no text.
    """
    if content is None or isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise GenerationError(f"A message's content is a string, not {type(content).__name__}: {content!r:.100}.")
    for part in content:
        if not isinstance(part, Mapping) or part.get("type") != "text" or not isinstance(part.get("text"), str):
            raise GenerationError(
                'A message\'s content is a string or parts like {"type": "text", "text": "..."}; images and other '
                f"parts are not read: {part!r:.100}."
            )
    return "\n".join(part["text"] for part in content)


def _check_text(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise GenerationError(
            f"The prompt has half a character (U+{ord(text[error.start]):04X}) at offset {error.start}, which no UTF-8 "
            'can spell. It was read with another encoding; text.encode("utf-16", "surrogatepass").decode("utf-16") '
            "puts halves together."
        ) from None


def noted(messages: list[dict[str, Any]], notes: Sequence[tuple[str, Place]]) -> list[dict[str, Any]]:
    """The messages with texts put before the last of the user's, or after the first of the system's; where there is
    none (whose content is text), one is made. The messages are changed."""
    for text, role in notes:
        candidates = [
            message for message in messages if message["role"] == role and isinstance(message["content"], str)
        ]
        if not candidates:
            messages.insert(0 if role == "system" else len(messages), {"role": role, "content": text})
            continue
        message = candidates[-1 if role == "user" else 0]
        parts = [text, message["content"]] if role == "user" else [message["content"], text]
        message["content"] = "\n\n".join(filter(None, parts))
    return messages


def _render(tokenizer: Any, messages: list[dict[str, Any]]) -> str:
    try:
        return str(tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True))
    except Exception as error:  # templates are programs of their authors and raise jinja2 errors of all kinds
        raise GenerationError(f"The model's chat template refuses these messages: {error}") from error
