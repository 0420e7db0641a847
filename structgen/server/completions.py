"""``/v1/completions``: requests as work, and what comes of it as objects and chunks. No model, no I/O."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import Place
from structgen.server.best_of import with_choice
from structgen.server.chat import one_constraint
from structgen.server.errors import RequestError
from structgen.server.formats import grammar_constraint, structured_constraint
from structgen.server.inference_request import (
    InferenceRequest,
    TokenStream,
    check_fields,
    check_healing,
    choices_of,
    end_of,
    sequence_of,
    token_text,
    usage_of,
    with_fields,
    with_healed,
    with_regions,
)
from structgen.server.openai_types import CompletionRequest
from structgen.server.prompts import token_ids
from structgen.server.sequences import SequenceEnd, SequenceEvent, TokenChoice
from structgen.server.settings import ServingSettings
from structgen.server.sources import check_one_prompt, sources_of

DEFAULT_TOKENS = 16
"""The budget where none is named, as OpenAI's API has it."""


def completion_work(
    request: CompletionRequest, tokenizer: Any, vocabulary: Vocabulary, settings: ServingSettings
) -> InferenceRequest:
    """What a request asks for.

    Raises:
        RequestError: what it asks for cannot be done, with the field that asks for it.
    """
    if request.structgen.max_think_tokens is not None:
        raise RequestError.at(
            ("structgen", "max_think_tokens"), "Completions have no thinking; leave it out", "unsupported_parameter"
        )
    choices = choices_of(request, settings)
    prompts = _prompts(request.prompt)
    if len(prompts) * choices > settings.max_rows:
        raise RequestError.at(
            ("prompt",), f"{len(prompts)} prompts of {choices} outputs; at most {settings.max_rows} are written at once"
        )
    check_healing(request.structgen, is_text=all(isinstance(prompt, str) for _, prompt in prompts))
    texts = {f"prompt[{number}]": prompt for number, (_, prompt) in enumerate(prompts) if isinstance(prompt, str)}
    sources = sources_of(request, texts, settings)
    sequence = sequence_of(
        request,
        vocabulary,
        settings,
        max_new_tokens=request.max_tokens or DEFAULT_TOKENS,
        top_logprobs=request.logprobs or 0,
    )
    work = InferenceRequest(
        request,
        sequence,
        prompts=[
            _ids_of(prompt, tokenizer, settings) if isinstance(prompt, str) else _checked_ids(prompt, path, vocabulary)
            for path, prompt in prompts
        ],
        choices=choices,
        constraint=one_constraint(
            structured_constraint(request.structured_outputs, settings, sources),
            grammar_constraint(request.grammar, settings),
        ),
        logprobs=request.logprobs,
    )
    check_fields(work)
    check_one_prompt(request, texts.values())
    return with_choice(with_regions(work), settings)


def _prompts(prompt: Any) -> list[tuple[Place, str | list[int]]]:
    """Each prompt with its place."""
    if not prompt and not isinstance(prompt, str):
        raise RequestError.at(("prompt",), "there is no prompt")
    if isinstance(prompt, str) or isinstance(prompt[0], int):
        return [(("prompt",), prompt)]
    return [(("prompt", number), each) for number, each in enumerate(prompt)]


def _ids_of(prompt: str, tokenizer: Any, settings: ServingSettings) -> list[int]:
    """The tokens of a prompt as it is, with those that the tokenizer puts around texts."""
    return token_ids(tokenizer, prompt, settings, add_special_tokens=True)


def _checked_ids(ids: Sequence[int], path: Place, vocabulary: Vocabulary) -> list[int]:
    wrong = next((token for token in ids if not 0 <= token < vocabulary.size), None)
    if wrong is not None or not ids:
        what = (
            "the prompt is empty" if wrong is None else f"there is no token {wrong}; ids are 0 to {vocabulary.size - 1}"
        )
        raise RequestError.at(path, what)
    return list(ids)


class CompletionWriter:
    """Writes the answers to one request. Arguments as ``ChatWriter``."""

    def __init__(self, work: InferenceRequest, vocabulary: Vocabulary, *, id: str, created: int, model: str) -> None:
        self._work, self._vocabulary = work, vocabulary
        self._head = {"id": id, "object": "text_completion", "created": created, "model": model}
        self._tokens = [TokenStream(vocabulary) for _ in range(len(work.prompts) * work.choices)]
        self._streamed = [""] * len(self._tokens)
        self._ends: dict[int, SequenceEnd] = {}

    def completion(self, events: Sequence[SequenceEvent]) -> dict[str, Any]:
        """The whole answer, from the last event of each output."""
        choices = []
        for index, event in enumerate(events):
            self._tokens[index].add(event)
            choices.append(self._choice(index, event.text, self._logprobs(index, event.text), event))
        return {**self._head, "choices": choices, "usage": self._usage()}

    def opening(self) -> Iterator[dict[str, Any]]:
        """Nothing comes before the text."""
        yield from ()

    def chunks(self, index: int, event: SequenceEvent) -> Iterator[dict[str, Any]]:
        """What is new of an output."""
        self._tokens[index].add(event)
        delta = event.text[len(self._streamed[index]) :]
        self._streamed[index] = event.text
        if delta or event.is_last:
            logprobs = self._logprobs(index, event.text)
            chunk = {**self._head, "choices": [self._choice(index, delta, logprobs, event)]}
            yield {**chunk, "usage": None} if self._work.include_usage else chunk

    def closing(self) -> Iterator[dict[str, Any]]:
        """What follows all outputs."""
        if self._work.include_usage:
            yield {**self._head, "choices": [], "usage": self._usage()}

    def _choice(self, index: int, text: str, logprobs: Any, event: SequenceEvent) -> dict[str, Any]:
        finish = None
        if event.end is not None:
            self._ends[index] = event.end
            finish = self._work.finish_reason(end_of(event).finish_reason)
        choice = {"index": index, "text": text, "logprobs": logprobs, "finish_reason": finish}
        if event.end is None:
            return choice
        return with_healed(with_fields(choice, self._work, event.end), self._work, event)

    def _logprobs(self, index: int, text: str) -> dict[str, Any] | None:
        top = self._work.logprobs
        if top is None:
            return None
        placed = self._tokens[index].with_text(text)
        return {
            "tokens": [self._text(choice.token_id) for _, choice in placed],
            "token_logprobs": [choice.logprob for _, choice in placed],
            "top_logprobs": [self._top(choice, top) for _, choice in placed] if top else None,
            "text_offset": [offset for offset, _ in placed],
        }

    def _top(self, choice: TokenChoice, top: int) -> dict[str, float]:
        return {self._text(token): logprob for token, logprob in reversed(choice.top[:top])}

    def _text(self, token_id: int) -> str:
        """A token as text; of one that is no text alone, its bytes, so that no two tokens look alike."""
        data = token_text(self._vocabulary, token_id)
        try:
            return data.decode()
        except UnicodeDecodeError:
            return "bytes:" + "".join(f"\\x{byte:02x}" for byte in data)

    def _usage(self) -> dict[str, Any]:
        return usage_of(self._work, [self._ends[index] for index in sorted(self._ends)])
