"""Outputs for coroutines: many calls at once share the model's calls."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Unpack

from structgen.core.constraints.base import Constraint, T
from structgen.core.constraints.json import as_constraint
from structgen.core.engines.capture import Captures
from structgen.errors import RefusedValueError
from structgen.generation.batch import BatchTask
from structgen.generation.decoding.prompts import Prompt
from structgen.generation.options import (
    GenerationOptions,
    GenerationSettings,
    check_unguided,
    check_written_once,
    checked_settings,
    streamed_settings,
)
from structgen.generation.prepared_model import PreparedModel
from structgen.generation.results import GenerationResult, StreamEvent, captures_so_far
from structgen.generation.scheduler.budget import SchedulerLimits
from structgen.generation.scheduler.coroutines import CoroutineWriter
from structgen.generation.scheduler.inline import SEQUENCES
from structgen.generation.scheduler.request import Event, Request


class AsyncWriter:
    """What writes for coroutines for a generator."""

    def __init__(self, prepared: PreparedModel) -> None:
        self._prepared = prepared

    async def generate(
        self, prompt: Prompt, constraint: Any, **options: Unpack[GenerationOptions]
    ) -> GenerationResult[Any]:
        """See ``Generator.agenerate``."""
        settings, checked = checked_settings(**options), as_constraint(constraint)
        check_written_once(settings)
        check_unguided(settings)
        row = BatchTask(prompt, checked, settings.params.seed, settings.prediction)
        while True:
            with self._prepared._waiting("writing an output"):
                async with aclosing(self._events(row, checked, settings)) as events:
                    async for event, _ in events:
                        request = event.handle.request
            try:
                return await self._result(request, checked, settings, row.attempt + 1)
            except RefusedValueError as error:
                if row.attempt + 1 == settings.attempts:
                    raise
                row = row.again(error)

    def stream(
        self, prompt: Prompt, constraint: Any, **options: Unpack[GenerationOptions]
    ) -> AsyncGenerator[StreamEvent[Any], None]:
        """See ``Generator.astream``."""
        settings, checked = streamed_settings(**options), as_constraint(constraint)
        check_unguided(settings)
        row = BatchTask(prompt, checked, settings.params.seed, settings.prediction)
        return self._astream(row, checked, settings)

    async def _astream(
        self, row: BatchTask, constraint: Constraint[T] | None, settings: GenerationSettings
    ) -> AsyncGenerator[StreamEvent[T], None]:
        shown = ""
        async with aclosing(self._events(row, constraint, settings, streams=True)) as events:
            async for event, captures in events:
                shown += event.text
                result = await self._result(event.handle.request, constraint, settings) if event.is_last else None
                yield StreamEvent(event.text, shown, result, constraint, result.captures if result else captures)

    def _events(
        self, row: BatchTask, constraint: Constraint | None, settings: GenerationSettings, *, streams: bool = False
    ) -> AsyncGenerator[tuple[Event, Captures], None]:
        """What comes of one row, with the captures of streams."""
        return self.coroutines.events(
            lambda: self._prepared._request(row, constraint, settings, streams=streams),
            lambda event: captures_so_far(event.handle.output) if streams else {},
        )

    async def _result(
        self, request: Request, constraint: Constraint[T] | None, settings: GenerationSettings, attempts: int = 1
    ) -> GenerationResult[T]:
        """What a finished request gives; where the model reads fields for it, the loop goes on meanwhile."""
        if settings.fields is None:
            return self._prepared._result(request, constraint, settings, attempts)
        return await asyncio.to_thread(self._prepared._result, request, constraint, settings, attempts)

    @property
    def coroutines(self) -> CoroutineWriter:
        """What writes for coroutines; its threads are those of this process, and not of one that it was forked from."""
        writer_here = self._prepared._writers.get(os.getpid())
        if writer_here is None:
            writer = CoroutineWriter(self._prepared.scheduler(SchedulerLimits(sequences=SEQUENCES, waiting=None)))
            writer_here = self._prepared._writers.setdefault(os.getpid(), writer)
        return writer_here
