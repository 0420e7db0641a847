"""Outputs for coroutines, as methods of what has a model: many calls at once share the model's calls."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Unpack, overload

from structgen.core.constraints.base import Constraint, T
from structgen.core.constraints.json import as_constraint
from structgen.core.constraints.sources import Source, Texts
from structgen.core.engines.capture import Captures
from structgen.errors import RefusedValueError
from structgen.generation.batch import BatchRow
from structgen.generation.decoding.prompts import Prompt
from structgen.generation.options import GenerationOptions, GenerationSettings, checked_settings, streamed_settings
from structgen.generation.prepared_model import PreparedModel
from structgen.generation.results import GenerationResult, StreamEvent, captures_so_far, result_of
from structgen.generation.scheduler.budget import SchedulerLimits
from structgen.generation.scheduler.coroutines import CoroutineWriter
from structgen.generation.scheduler.inline import ROWS
from structgen.generation.scheduler.request import Event

if TYPE_CHECKING:
    from structgen.core.constraints.sources import TypeForm


class AsyncGeneration(PreparedModel):
    """``generate`` and ``stream`` for coroutines."""

    @overload
    async def agenerate(
        self, prompt: Prompt, constraint: Texts = None, **options: Unpack[GenerationOptions]
    ) -> GenerationResult[str]: ...

    @overload
    async def agenerate(
        self, prompt: Prompt, constraint: Source[T], **options: Unpack[GenerationOptions]
    ) -> GenerationResult[T]: ...

    @overload
    async def agenerate(
        self, prompt: Prompt, constraint: TypeForm[T], **options: Unpack[GenerationOptions]
    ) -> GenerationResult[T]: ...

    @overload
    async def agenerate(
        self, prompt: Prompt, constraint: Any, **options: Unpack[GenerationOptions]
    ) -> GenerationResult[Any]: ...

    async def agenerate(
        self, prompt: Prompt, constraint: Any = None, **options: Unpack[GenerationOptions]
    ) -> GenerationResult[Any]:
        """Write one output while the loop goes on; arguments, result and errors as ``generate``.

        Calls that are under way at one time, of any loop, share the model's calls. Rows join at every step where the
        model reads them apart (llama.cpp, transformers on the processor); where rows are padded (transformers on
        accelerators), those that are asked for in one moment are written together. ``generate`` and the others may be
        used beside it. Cancelling the task stops the work within a step of the model.
        """
        settings, checked = checked_settings(**options), as_constraint(constraint)
        row = BatchRow(prompt, checked, settings.params.seed, settings.prediction)
        while True:
            with self._waiting("writing an output"):
                async with aclosing(self._events(row, checked, settings)) as events:
                    async for event, _ in events:
                        output = event.handle.output
            try:
                return result_of(output, checked, row.attempt + 1)
            except RefusedValueError as error:
                if row.attempt + 1 == settings.attempts:
                    raise
                row = row.again(error)

    @overload
    def astream(
        self, prompt: Prompt, constraint: Texts = None, **options: Unpack[GenerationOptions]
    ) -> AsyncGenerator[StreamEvent[str], None]: ...

    @overload
    def astream(
        self, prompt: Prompt, constraint: Source[T], **options: Unpack[GenerationOptions]
    ) -> AsyncGenerator[StreamEvent[T], None]: ...

    @overload
    def astream(
        self, prompt: Prompt, constraint: TypeForm[T], **options: Unpack[GenerationOptions]
    ) -> AsyncGenerator[StreamEvent[T], None]: ...

    @overload
    def astream(
        self, prompt: Prompt, constraint: Any, **options: Unpack[GenerationOptions]
    ) -> AsyncGenerator[StreamEvent[Any], None]: ...

    def astream(
        self, prompt: Prompt, constraint: Any = None, **options: Unpack[GenerationOptions]
    ) -> AsyncGenerator[StreamEvent[Any], None]:
        """Write one output while the loop goes on, yielding text as it settles: events and errors as ``stream``,
        beside others as ``agenerate``.

        Options that cannot be used raise at the call; what is wrong with prompt and constraint at the first event.
        Leaving the iterator (``aclose``, or the end of ``contextlib.aclosing``) stops the work within a step.
        """
        settings, checked = streamed_settings(**options), as_constraint(constraint)
        row = BatchRow(prompt, checked, settings.params.seed, settings.prediction)
        return self._astream(row, checked, settings)

    async def _astream(
        self, row: BatchRow, constraint: Constraint[T] | None, settings: GenerationSettings
    ) -> AsyncGenerator[StreamEvent[T], None]:
        shown = ""
        async with aclosing(self._events(row, constraint, settings, streams=True)) as events:
            async for event, captures in events:
                shown += event.text
                result = result_of(event.handle.output, constraint) if event.is_last else None
                yield StreamEvent(event.text, shown, result, constraint, result.captures if result else captures)

    def _events(
        self, row: BatchRow, constraint: Constraint | None, settings: GenerationSettings, *, streams: bool = False
    ) -> AsyncGenerator[tuple[Event, Captures], None]:
        """What comes of one row, with the captures of streams."""
        return self._coroutines.events(
            lambda: self._request(row, constraint, settings, streams=streams),
            lambda event: captures_so_far(event.handle.output) if streams else {},
        )

    @property
    def _coroutines(self) -> CoroutineWriter:
        """What writes for coroutines; its threads are those of this process, and not of one that it was forked from."""
        found = self._writers.get(os.getpid())
        if found is None:
            writer = CoroutineWriter(self.scheduler(SchedulerLimits(rows=ROWS, waiting=None)))
            found = self._writers.setdefault(os.getpid(), writer)
        return found
