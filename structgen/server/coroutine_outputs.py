"""Single outputs for coroutines, without HTTP: ``agenerate`` and ``astream`` over what writes for many callers."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload

from structgen.core.constraints.base import Constraint, T, value_of
from structgen.core.constraints.json import as_constraint
from structgen.core.constraints.sources import Source, Texts
from structgen.core.engines.protocols import Grammar
from structgen.core.tool_calls.templates import template_of
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.generation.decoding.prompts import Prompt, Telling, prompt_token_ids
from structgen.generation.fields.layout import placed_regions
from structgen.generation.models.defaults import ModelDefaults
from structgen.generation.options import OPTION_NAMES, OTHER_NAMES, checked_settings
from structgen.generation.prepared_model import after_prompt, section_of
from structgen.generation.results import GenerationResult, StreamEvent
from structgen.options import refuse_name
from structgen.server.sequences import SequenceEnd, SequenceEvent, SequenceRequest

if TYPE_CHECKING:
    from structgen.core.constraints.sources import TypeForm

_Read = TypeVar("_Read")
_OF_GENERATORS = {
    *("draft", "prediction", "attempts", "refusal_in_prompt", "log_mass", "fields", "choose", "spelling", "guidance"),
    "loop_guard",
}
_OPTIONS = tuple(name for name in OPTION_NAMES if name not in _OF_GENERATORS)


class SequenceEvents(Protocol):
    """What comes of requests."""

    def events(self) -> AsyncGenerator[tuple[int, SequenceEvent], None]:
        """Which output, and what came of it, until all are finished."""
        ...


class AsyncWriting(ABC):
    """Writes outputs that satisfy constraints, for many callers at once, by what a subclass does with requests."""

    vocabulary: Vocabulary
    max_prompt_length: int | None = None
    defaults: ModelDefaults

    @abstractmethod
    async def read(self, tokenize: Callable[[Any], _Read]) -> _Read:
        """What ``tokenize`` makes of the tokenizer."""

    @abstractmethod
    async def compile(self, constraint: Constraint) -> Grammar:
        """The compiled form of a constraint, whose section the sequences keep."""

    @abstractmethod
    def budget(self, prompt_tokens: int, wanted: int) -> int:
        """How many tokens an output may have."""

    @abstractmethod
    def submit(self, requests: Sequence[SequenceRequest]) -> SequenceEvents:
        """Have outputs written."""

    @overload
    async def agenerate(self, prompt: Prompt, constraint: Texts = None, **options: Any) -> GenerationResult[str]: ...

    @overload
    async def agenerate(self, prompt: Prompt, constraint: Source[T], **options: Any) -> GenerationResult[T]: ...

    @overload
    async def agenerate(self, prompt: Prompt, constraint: TypeForm[T], **options: Any) -> GenerationResult[T]: ...

    @overload
    async def agenerate(self, prompt: Prompt, constraint: Any, **options: Any) -> GenerationResult[Any]: ...

    async def agenerate(self, prompt: Prompt, constraint: Any = None, **options: Any) -> GenerationResult[Any]:
        """As ``Generator.generate``, for many callers at once. What results have not here, and what a generator alone
        does, is no option: ``draft``, ``prediction``, ``attempts``, ``refusal_in_prompt``, ``log_mass``, ``fields``,
        ``choose``, ``spelling``, ``guidance``, ``loop_guard``."""
        result = None
        async for event in self.astream(prompt, constraint, **options):
            result = event.result
        assert result is not None
        return result

    @overload
    def astream(
        self, prompt: Prompt, constraint: Texts = None, **options: Any
    ) -> AsyncGenerator[StreamEvent[str], None]: ...

    @overload
    def astream(
        self, prompt: Prompt, constraint: Source[T], **options: Any
    ) -> AsyncGenerator[StreamEvent[T], None]: ...

    @overload
    def astream(
        self, prompt: Prompt, constraint: TypeForm[T], **options: Any
    ) -> AsyncGenerator[StreamEvent[T], None]: ...

    @overload
    def astream(self, prompt: Prompt, constraint: Any, **options: Any) -> AsyncGenerator[StreamEvent[Any], None]: ...

    async def astream(
        self, prompt: Prompt, constraint: Any = None, **options: Any
    ) -> AsyncGenerator[StreamEvent[Any], None]:
        """As ``Generator.stream``, for many callers at once; leaving the iterator cancels the output."""
        checked = as_constraint(constraint)
        request = await self._request(prompt, checked, **options)
        shown = ""
        async with aclosing(self.submit([request]).events()) as events:
            async for _, event in events:
                result = None if event.end is None else _result(event, event.end, checked)
                if result is not None or len(event.text) > len(shown):
                    captures = {} if result is None else result.captures
                    yield StreamEvent(event.text[len(shown) :], event.text, result, checked, captures)
                    shown = event.text

    async def _request(self, prompt: Prompt, constraint: Constraint | None, **options: Any) -> SequenceRequest:
        arrived = time.monotonic()  # while its constraint is compiled, it waits already
        unknown = next((name for name in options if name not in _OPTIONS), None)
        if unknown is not None:
            refuse_name(unknown, _OPTIONS, OTHER_NAMES)
        settings = checked_settings(**options)
        telling, instruction = settings.telling or Telling(), None
        if constraint is not None and settings.telling is not None:
            instruction = telling.of(constraint, self.defaults.schema_form)
        most = self.max_prompt_length
        ids = await self.read(lambda tokenizer: prompt_token_ids(tokenizer, prompt, instruction, telling.role, most))
        budget = self.budget(len(ids), settings.max_new_tokens)  # first: nothing is compiled for what cannot be read
        constraint, regions = placed_regions(constraint, settings.regions)
        constraint = after_prompt(constraint, ids, self.vocabulary)
        heals = settings.heal_prompt and not await self.read(lambda tokenizer: bool(template_of(tokenizer)))
        grammar = None if constraint is None else await self.compile(constraint)
        return SequenceRequest(
            ids,
            grammar,
            settings.params,
            budget,
            settings.stop,
            streams=True,
            section=section_of(constraint),
            regions=regions,
            heal_prompt=heals,
            arrived=arrived,
        )


def _result(event: SequenceEvent, end: SequenceEnd, constraint: Constraint | None) -> GenerationResult[Any]:
    value = value_of(constraint, event.text)
    return GenerationResult(
        value, event.text, end.token_ids, end.finish_reason, end.logprob, end.stats, end.captures, healed=event.healed
    )
