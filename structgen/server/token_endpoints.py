"""``/tokenize`` and ``/detokenize``, as vLLM has them: how many tokens a prompt has, and which; their text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.server.chat import plain_message
from structgen.server.errors import RequestError
from structgen.server.inference_request import token_text
from structgen.server.openai_types import FunctionTool, Items, Message, RequestPart
from structgen.server.prompts import (
    ChatPrompt,
    check_template_fields,
    messages_for_template,
    rendered,
    template_takes,
    token_ids,
)
from structgen.server.settings import ServingSettings

Token = Annotated[int, Field(ge=0)]


class TokenizeRequest(RequestPart):
    """``POST /tokenize``: either a prompt as it is, or messages as the model's chat template writes them."""

    model: str | None = None
    prompt: str | None = None
    messages: Annotated[Items[Message], Field(min_length=1)] | None = None
    tools: Items[FunctionTool] | None = None
    add_special_tokens: bool | None = None
    add_generation_prompt: bool = True
    continue_final_message: Literal[False] = False
    chat_template_kwargs: dict[str, Any] | None = None
    return_token_strs: bool | None = None


class DetokenizeRequest(RequestPart):
    """``POST /detokenize``: ids of tokens."""

    model: str | None = None
    tokens: Items[Token]


def tokenized(
    asked: TokenizeRequest,
    tokenizer: Any,
    vocabulary: Vocabulary,
    settings: ServingSettings,
    context_length: int | None,
) -> dict[str, Any]:
    """The tokens of a prompt: ``count``, ``max_model_len`` (how many the model reads), ``tokens``, and their texts as
    ``token_strs`` where they are asked for.

    Special tokens that stand around texts (``add_special_tokens``) are there by default around a prompt, and not around
    messages, for which the template writes them.

    Raises:
        RequestError: there is not one of prompt and messages, the template refuses them, or they are much longer than
            what the model reads.
    """
    if (asked.prompt is None) == (asked.messages is None):
        there = "both are there" if asked.messages is not None else "neither is there"
        raise RequestError.at(("prompt",), f"give either prompt or messages; {there}")
    text = asked.prompt if asked.messages is None else _chat_text(asked, tokenizer)
    special = asked.messages is None if asked.add_special_tokens is None else asked.add_special_tokens
    ids = token_ids(tokenizer, str(text), settings, add_special_tokens=special) if text else []
    texts = [_shown(vocabulary, token) for token in ids] if asked.return_token_strs else None
    return {"count": len(ids), "max_model_len": context_length, "tokens": ids, "token_strs": texts}


def _chat_text(asked: TokenizeRequest, tokenizer: Any) -> str:
    fields = asked.chat_template_kwargs or {}
    check_template_fields(tokenizer, fields)
    plain = [plain_message(message) for message in asked.messages or ()]
    takes_tools = template_takes(tokenizer, "tools")
    if asked.tools and not takes_tools:
        raise RequestError.at(("tools",), "The model's chat template takes no tools", "unsupported_parameter")
    messages = messages_for_template(plain, takes_tools=takes_tools)
    tools = [tool.model_dump(exclude_none=True) for tool in asked.tools or ()] if takes_tools else ()
    prompt = ChatPrompt(messages, tools, (), fields)
    return rendered(tokenizer, prompt, add_generation_prompt=asked.add_generation_prompt)


def detokenized(asked: DetokenizeRequest, tokenizer: Any, vocabulary: Vocabulary, *_: Any) -> dict[str, Any]:
    """The text of ids, special tokens by their names.

    Raises:
        RequestError: there is no such token.
    """
    wrong = next((index for index, token in enumerate(asked.tokens) if token >= vocabulary.size), None)
    if wrong is not None:
        most = f"ids are 0 to {vocabulary.size - 1}"
        raise RequestError.at(("tokens", wrong), f"there is no token {asked.tokens[wrong]}; {most}")
    decode = getattr(tokenizer, "decode", None)
    return {"prompt": _text(vocabulary, asked.tokens) if decode is None else str(decode(asked.tokens))}


def _text(vocabulary: Vocabulary, ids: Sequence[int]) -> str:
    return b"".join(token_text(vocabulary, token) for token in ids).decode("utf-8", "replace")


def _shown(vocabulary: Vocabulary, token: int) -> str:
    return _text(vocabulary, (token,))


TOKEN_ENDPOINTS: dict[str, tuple[type[RequestPart], Callable[..., dict[str, Any]]]] = {
    "/tokenize": (TokenizeRequest, tokenized),
    "/detokenize": (DetokenizeRequest, detokenized),
}
