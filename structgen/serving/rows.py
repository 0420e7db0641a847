"""Outputs that are written in the model thread: what a thread's loop calls, and what comes out of a step."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from structgen.decoding.output import FinishReason, GenerationStats
from structgen.decoding.plain import decode
from structgen.decoding.recorded import RecordedOutput, TokenChoice
from structgen.decoding.sampling import SamplingParams
from structgen.engines.protocols import Grammar
from structgen.errors import StructgenError
from structgen.models.language_model import LanguageModel
from structgen.vocabulary.vocabulary import Vocabulary


class QueueTimeoutError(StructgenError):
    """An output waited too long for its turn."""


@dataclass(frozen=True, eq=False)
class RowRequest:
    """One output that is to be written.

    Attributes:
        prompt_ids: tokens of the prompt, at least one.
        grammar: what the output must be, compiled; None: free text.
        params: how tokens are drawn.
        max_new_tokens, stop: see ``Output``.
        top_logprobs: how many of the likeliest tokens to tell beside each.
        priority: lower first.
        start_by, finish_by: times of ``time.monotonic``: later it is turned away, or closed; None: no limit.
    """

    prompt_ids: Sequence[int]
    grammar: Grammar | None = None
    params: SamplingParams = field(default_factory=SamplingParams)
    max_new_tokens: int = 512
    stop: tuple[str, ...] = ()
    top_logprobs: int = 0
    priority: int = 0
    start_by: float | None = None
    finish_by: float | None = None


@dataclass(frozen=True)
class RowEnd:
    """How an output ended.

    Attributes:
        finish_reason, logprob, token_ids, stats: see ``GenerationResult``.
    """

    finish_reason: FinishReason
    logprob: float
    token_ids: tuple[int, ...]
    stats: GenerationStats


@dataclass(frozen=True)
class RowEvent:
    """What a step brought of one output.

    Attributes:
        text: all text so far that later tokens cannot change.
        tokens: tokens since the event before.
        end: set on the last event, unless it failed.
        error: why it failed; nothing follows.
    """

    text: str
    tokens: tuple[TokenChoice, ...] = ()
    end: RowEnd | None = None
    error: Exception | None = None

    @property
    def is_last(self) -> bool:
        """Whether nothing follows."""
        return self.end is not None or self.error is not None

    def after(self, before: RowEvent) -> RowEvent:
        """Both as one event."""
        text = before.text if self.error is not None and not self.text else self.text
        return RowEvent(text, before.tokens + self.tokens, self.end, self.error)


class RowWriter(Protocol):
    """Writes outputs, a step of all at a time. One thread uses it; others only read ``waiting`` and ``running``."""

    @property
    def waiting(self) -> int:
        """Outputs that were not begun."""
        ...

    @property
    def running(self) -> int:
        """Outputs that were begun and are not finished."""
        ...

    def submit(self, request: RowRequest) -> int:
        """Take an output on; a number that stands for it."""
        ...

    def cancel(self, handle: int) -> None:
        """Forget an output; nothing more comes of it. One that is finished is none."""
        ...

    def hurry(self) -> None:
        """Close all outputs that were begun, validly and soon."""
        ...

    def step(self) -> list[tuple[int, RowEvent]]:
        """One step of all outputs that were begun, and what it brought. An output's error is its own event."""
        ...


@dataclass(eq=False)
class _Row:
    handle: int
    request: RowRequest
    output: RecordedOutput | None = None
    steps: Iterator[None] | None = None
    shown: int = 0
    hurried: bool = False


class SeparateRows:
    """Writes each output with the plain loop, a step of each in turn: a model call for each of them a step."""

    def __init__(self, model: LanguageModel, vocabulary: Vocabulary, max_rows: int = 32) -> None:
        self._model, self._vocabulary, self._max_rows = model, vocabulary, max_rows
        self._waiting: list[_Row] = []
        self._running: list[_Row] = []
        self._submitted = 0

    @property
    def waiting(self) -> int:
        """See ``RowWriter``."""
        return len(self._waiting)

    @property
    def running(self) -> int:
        """See ``RowWriter``."""
        return len(self._running)

    def submit(self, request: RowRequest) -> int:
        """See ``RowWriter``."""
        self._submitted += 1
        self._waiting.append(_Row(self._submitted, request))
        return self._submitted

    def cancel(self, handle: int) -> None:
        """See ``RowWriter``."""
        self._waiting = [row for row in self._waiting if row.handle != handle]
        self._running = [row for row in self._running if row.handle != handle]

    def hurry(self) -> None:
        """See ``RowWriter``."""
        for row in self._running:
            _hurry(row)

    def step(self) -> list[tuple[int, RowEvent]]:
        """See ``RowWriter``."""
        now = time.monotonic()
        events = self._turn_away(now)
        self._admit()
        for row in self._running:
            if row.request.finish_by is not None and now > row.request.finish_by:
                _hurry(row)
            events.append((row.handle, self._event(row)))
        ended = {handle for handle, event in events if event.is_last}
        self._running = [row for row in self._running if row.handle not in ended]
        return events

    def _turn_away(self, now: float) -> list[tuple[int, RowEvent]]:
        late = [row for row in self._waiting if row.request.start_by is not None and now > row.request.start_by]
        self._waiting = [row for row in self._waiting if row not in late]
        why = "The queue did not move fast enough for this request; ask again later."
        return [(row.handle, RowEvent("", error=QueueTimeoutError(why))) for row in late]

    def _admit(self) -> None:
        self._waiting.sort(key=lambda row: row.request.priority)  # stable: of equals, who came first
        room = max(0, self._max_rows - len(self._running))
        self._running += self._waiting[:room]
        del self._waiting[:room]

    def _event(self, row: _Row) -> RowEvent:
        """Make one step of a row."""
        try:
            if row.steps is None:
                row.output, row.steps = self._start(row.request)
            for _ in row.steps:
                break
        except Exception as error:  # whatever happens to one output, the others go on
            return RowEvent("", error=error)
        output = row.output
        assert output is not None
        tokens = tuple(output.choices(row.shown))
        row.shown += len(tokens)
        if output.finish_reason is None:
            return RowEvent(output.shown(output.settled_data()), tokens)
        end = RowEnd(output.finish_reason, output.log_prob, tuple(output.token_ids), output.stats)
        return RowEvent(output.text, tokens, end)

    def _start(self, request: RowRequest) -> tuple[RecordedOutput, Iterator[None]]:
        output = RecordedOutput(
            self._vocabulary,
            None if request.grammar is None else request.grammar.matcher(),
            request.params,
            max_new_tokens=request.max_new_tokens,
            stop=request.stop,
            prompt_ids=request.prompt_ids,
            top=request.top_logprobs,
        )
        return output, decode(self._model, [request.prompt_ids], [output])


def _hurry(row: _Row) -> None:
    if row.output is not None and not row.hurried:
        row.output.hurry()
        row.hurried = True
