"""Outputs that a scheduler writes for a server: what is asked of each, and what a step brought."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from structgen.core.constraints.base import Constraint
from structgen.core.engines.capture import Captures, LazyCaptures
from structgen.core.engines.captures.capturing import captures_of
from structgen.core.engines.protocols import Grammar
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import IncompleteOutputError, StructgenError
from structgen.generation.decoding.output import FinishReason, Output
from structgen.generation.decoding.recorded import RecordedOutput, TopTokens
from structgen.generation.decoding.sections import SectionBudget
from structgen.generation.decoding.stats import GenerationStats
from structgen.generation.fields.asking import Fields
from structgen.generation.fields.layout import Layout
from structgen.generation.fields.results import FieldResults
from structgen.generation.generator import Generator
from structgen.generation.models.defaults import ModelDefaults
from structgen.generation.sampling import SamplingParams
from structgen.generation.scheduler.budget import SchedulerLimits
from structgen.generation.scheduler.request import Event, Handle, Request, SequenceTerms

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TokenChoice:
    """A token of an output.

    Attributes:
        token_id: the token.
        logprob: nats, under the model at temperature 1 masked by the constraint and renormalised; 0 if it was forced.
        top: the likeliest tokens there.
        allowed: how many tokens were allowed there; 0: it was not asked for.
        drafted: whether it was drafted, and the model, which read it in advance, agreed.
        log_mass: see ``Output.token_log_mass``; None where it was not asked for, too.
    """

    token_id: int
    logprob: float
    top: TopTokens = ()
    allowed: int = 0
    drafted: bool = False
    log_mass: float | None = None


@dataclass(frozen=True)
class WrittenSoFar:
    """What there is of an output that another process goes on with: with its request, which has a seed, all that the
    remaining tokens depend on.

    Attributes:
        token_ids, log_probs, steered: see ``Output.take_up``.
    """

    token_ids: tuple[int, ...] = ()
    log_probs: tuple[float, ...] = ()
    steered: int = 0

    def and_then(self, event: SequenceEvent) -> WrittenSoFar:
        """With what an event brought."""
        new = tuple(choice.token_id for choice in event.tokens), tuple(choice.logprob for choice in event.tokens)
        return WrittenSoFar(self.token_ids + new[0], self.log_probs + new[1], max(self.steered, event.steered))


@dataclass(eq=False)
class SequenceRequest(SequenceTerms):
    """One output that is to be written. Nobody changes it: ``dataclasses.replace`` makes another.

    Attributes:
        prompt_ids: tokens of the prompt, at least one.
        grammar: what the output must be, compiled; None: free text.
        params: how tokens are drawn.
        max_new_tokens, stop, section: see ``Output``.
        top_logprobs: how many of the likeliest tokens to report with each.
        traced: whether to report of each token how many were allowed, and whether it was drafted.
        log_mass: whether to report of each token what the mask left of the model's distribution.
        written: what another process had written of it; events go on after that.
        fields: whose probabilities are read when it is written; None: none are.
        layout: where they are in the output.
    """

    prompt_ids: Sequence[int]
    grammar: Grammar | None = None
    params: SamplingParams = field(default_factory=SamplingParams)
    max_new_tokens: int = 512
    stop: tuple[str, ...] = ()
    top_logprobs: int = 0
    traced: bool = False
    log_mass: bool = False
    written: WrittenSoFar | None = None
    section: SectionBudget | None = None
    fields: Fields | None = None
    layout: Layout = field(default_factory=Layout)


@dataclass(frozen=True)
class SequenceTimes:
    """When an output came to the queue, its turn, its first token and its end: seconds of ``time.monotonic``."""

    submitted: float = 0.0
    admitted: float = 0.0
    first: float = 0.0
    ended: float = 0.0


@dataclass(frozen=True)
class SequenceEnd:
    """How an output ended.

    Attributes:
        finish_reason, logprob, token_ids, stats, captures: see ``GenerationResult``.
        cached_tokens, preemptions, late_masks: see ``Handle``.
        times: when.
        is_hurried: whether it was closed early, because it took too long or the server stops.
        fields: how likely the values were; None where that was not asked for, or there was no room to read it.
    """

    finish_reason: FinishReason
    logprob: float
    token_ids: tuple[int, ...]
    stats: GenerationStats
    cached_tokens: int = 0
    preemptions: int = 0
    times: SequenceTimes = SequenceTimes()
    is_hurried: bool = False
    late_masks: int = 0
    captures: Captures = field(default_factory=dict, repr=False, compare=False)
    fields: FieldResults | None = None


@dataclass(frozen=True)
class SequenceEvent:
    """What a step brought of one output.

    Attributes:
        text: all text so far that later tokens cannot change; "" before the end where nothing is streamed.
        tokens: tokens since the event before.
        end: set on the last event, unless it failed.
        error: why it failed; nothing follows.
        steered: see ``GenerationStats.steered_tokens``, so far.
    """

    text: str
    tokens: tuple[TokenChoice, ...] = ()
    end: SequenceEnd | None = None
    error: Exception | None = None
    steered: int = 0

    @property
    def is_last(self) -> bool:
        """Whether nothing follows."""
        return self.end is not None or self.error is not None

    def after(self, before: SequenceEvent) -> SequenceEvent:
        """Both as one event."""
        return SequenceEvent(self.text or before.text, before.tokens + self.tokens, self.end, self.error, self.steered)


class OutputWriter(Protocol):
    """Writes outputs for an engine. ``SequenceWriter`` says what each does; its handles are any objects."""

    @property
    def waiting(self) -> int: ...
    @property
    def running(self) -> int: ...
    @property
    def is_idle(self) -> bool: ...
    @property
    def cache_bytes(self) -> int: ...

    def prepare(self) -> None: ...
    def output(self, request: SequenceRequest) -> Any: ...
    def submit(self, request: SequenceRequest, output: Any) -> Any: ...
    def cancel(self, handle: Any) -> None: ...
    def hurry(self) -> None: ...
    def step(self) -> list[tuple[Any, SequenceEvent]]: ...
    def close(self) -> None: ...


class ServedModel(Protocol):
    """A model as an engine sees it, wherever it is.

    Attributes:
        tokenizer, vocabulary: its own.
        context_length: tokens that it reads at most; None: any number.
        defaults: what is done with it where a request does not say.
        drafts: see ``Generator.drafts``.
    """

    tokenizer: Any
    vocabulary: Vocabulary
    context_length: int | None
    defaults: ModelDefaults
    drafts: bool

    def writer(self, limits: SchedulerLimits) -> OutputWriter:
        """What writes its outputs."""
        ...

    def placed(self, constraint: Constraint, grammar: Grammar) -> Grammar:
        """A constraint that was compiled here, as ``SequenceRequest.grammar`` of this model has it."""
        ...

    def close(self) -> None:
        """The engine is closed."""
        ...


class LocalModel:
    """The model of a generator, which is not to be used along with it. See ``ServedModel``."""

    def __init__(self, generator: Generator) -> None:
        self._generator = generator
        self.tokenizer, self.vocabulary = generator.tokenizer, generator.vocabulary
        self.context_length, self.drafts = generator.model.context_length, generator.drafts
        self.defaults = generator.defaults

    def writer(self, limits: SchedulerLimits) -> OutputWriter:
        """See ``ServedModel``."""
        return SequenceWriter(self._generator, limits)

    def placed(self, _: Constraint, grammar: Grammar) -> Grammar:
        """See ``ServedModel``."""
        return grammar

    def close(self) -> None:
        """See ``ServedModel``; the generator is its owner's."""


class _TooLong:
    """Grammars whose shortest output did not fit in a budget: that takes a while to find. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: WeakKeyDictionary[Any, tuple[int, str]] = WeakKeyDictionary()

    def check(self, grammar: Grammar, budget: int) -> None:
        """Raise IncompleteOutputError where it did not fit in as many tokens, or more."""
        with self._lock:
            known, message = self._found.get(grammar, (0, ""))
        if budget <= known:
            text = message.replace(f"{known} of {known} tokens", f"{budget} of {budget} tokens")
            raise IncompleteOutputError(text, partial="")

    def note(self, grammar: Grammar | None, budget: int, error: IncompleteOutputError) -> None:
        """It did not fit."""
        with self._lock:
            if grammar is not None and budget > self._found.get(grammar, (0, ""))[0]:
                self._found[grammar] = budget, str(error)


class SequenceWriter:
    """Writes outputs, a step of all at a time. One thread uses it; others only read ``waiting`` and ``running``.

    Args:
        generator: model, vocabulary and drafts; not to be used along with it.
        limits: what the scheduler is held to.
    """

    def __init__(self, generator: Generator, limits: SchedulerLimits) -> None:
        self._vocabulary = generator.vocabulary
        self._generator = generator
        self._scheduler = generator.scheduler(limits)
        self._too_long = _TooLong()
        self._fields: dict[Handle, tuple[Fields, Layout]] = {}
        self._handles: dict[Handle, float] = {}  # and when they had their first token; 0: they had none

    def prepare(self) -> None:
        """Make ready what drafts, before the first step: a draft model is loaded, weights may be copied.

        Raises:
            StructgenError: the drafts cannot be used.
        """
        self._generator.speculator()

    @property
    def waiting(self) -> int:
        """Outputs that were not begun."""
        return self._scheduler.waiting

    @property
    def running(self) -> int:
        """Outputs that were begun and are not finished."""
        return self._scheduler.running

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to do."""
        return self._scheduler.is_idle

    @property
    def cache_bytes(self) -> int:
        """What keys and values take."""
        return self._scheduler.reader.bytes

    def output(self, request: SequenceRequest) -> Output:
        """The output of a request. In any thread: whether the shortest one fits its budget may take a while to find.

        Raises:
            IncompleteOutputError: not even the shortest output fits in the budget.
            GenerationError: what was written before is not of this request.
        """
        if request.grammar is not None:
            self._too_long.check(request.grammar, request.max_new_tokens)
        matcher = None if request.grammar is None else request.grammar.matcher()
        options: dict[str, Any] = {
            "max_new_tokens": request.max_new_tokens,
            "stop": request.stop,
            "prompt_ids": request.prompt_ids,
            "section": request.section,
            "keeps_mass": request.log_mass,
        }
        try:
            output = (
                RecordedOutput(self._vocabulary, matcher, request.params, top=request.top_logprobs, **options)
                if request.top_logprobs or request.traced
                else Output(self._vocabulary, matcher, request.params, **options)
            )
        except IncompleteOutputError as error:
            self._too_long.note(request.grammar, request.max_new_tokens, error)
            raise
        if request.written is not None:
            output.take_up(request.written.token_ids, request.written.log_probs, request.written.steered)
        return output

    def submit(self, request: SequenceRequest, output: Output) -> Handle:
        """Take on an output that ``output`` has made.

        Raises:
            GenerationError: the prompt is empty, or prompt and budget are more than fits in memory.
        """
        terms = request.terms()
        if not self._generator.reads_drafts:
            terms["prediction"] = None  # it changes the speed
        scheduled = Request(
            self._generator.in_written_tokens(request.prompt_ids, output.remaining, request.salt),
            output,
            self._generator.speculator(predicts=terms["prediction"] is not None),
            streamed=0 if request.written is None else len(request.written.token_ids),
            **terms,
        )
        handle = self._scheduler.submit(scheduled)
        self._handles[handle] = 0.0
        if request.fields is not None and request.grammar is not None:
            self._fields[handle] = request.fields, request.layout
        return handle

    def cancel(self, handle: Handle) -> None:
        """Forget an output; nothing more comes of it."""
        self._handles.pop(handle, None)
        self._fields.pop(handle, None)
        self._scheduler.cancel(handle)

    def close(self) -> None:
        """Forget all outputs, and end what works on them."""
        self._handles.clear()
        self._fields.clear()
        self._scheduler.close()

    def hurry(self) -> None:
        """Close all outputs, validly and soon."""
        for handle in self._handles:
            handle.request.seconds = 0.0

    def step(self) -> list[tuple[Handle, SequenceEvent]]:
        """One step of all outputs, and what it brought. An output's error is its own event."""
        events, now = [], 0.0
        for event in self._scheduler.step():
            if event.handle in self._handles:
                now = now or time.monotonic()
                first = self._handles[event.handle] = self._handles[event.handle] or now
                if event.is_last:
                    del self._handles[event.handle]
                events.append((event.handle, _sequence_event(event, first, now, self._read_fields(event))))
        return events

    def _read_fields(self, event: Event) -> FieldResults | None:
        """How likely the fields of an output were that has ended, where that was asked for."""
        asked = self._fields.pop(event.handle, None) if event.is_last else None
        if asked is None or event.error is not None:
            return None
        try:
            return self._generator.read_fields(event.handle.request, asked[1], asked[0])
        except (MemoryError, StructgenError) as error:  # the output is there
            _LOGGER.warning("fields of an output could not be read: %s: %s", type(error).__name__, error)
            return None


def _sequence_event(event: Event, first: float, now: float, fields: FieldResults | None) -> SequenceEvent:
    """What a scheduler's event says of an output, whose first came at ``first``; in the thread that steps."""
    handle, output = event.handle, event.handle.output
    if isinstance(output, RecordedOutput):
        tokens = tuple(_recorded(output, range(handle.streamed - len(event.token_ids), handle.streamed)))
    else:
        mass = output.token_log_mass[handle.streamed - len(event.token_ids) : handle.streamed]
        chosen = zip(event.token_ids, event.log_probs, mass, strict=True)
        tokens = tuple(TokenChoice(token, logprob, log_mass=log_mass) for token, logprob, log_mass in chosen)
    if event.error is not None:
        return SequenceEvent("", tokens, error=event.error)
    if event.finish_reason is None:
        return SequenceEvent(handle.shown, tokens, steered=output.stats.steered_tokens)
    grammar, data = None if output.matcher is None else output.matcher.grammar, output.data
    end = SequenceEnd(
        event.finish_reason,
        output.log_prob,
        tuple(output.token_ids),
        output.stats,
        handle.cached_tokens,
        handle.preemptions,
        SequenceTimes(handle.submitted, handle.admitted or now, first, now),
        handle.is_hurried,
        handle.late_masks,
        LazyCaptures(lambda: captures_of(grammar, data, is_finished=True)) if grammar is not None else {},
        fields,
    )
    return SequenceEvent(output.text, tokens, end)


def _recorded(output: RecordedOutput, places: range) -> Iterator[TokenChoice]:
    """The tokens that a step brought. All that were chosen in it but the last had been drafted: else the model would
    not have read what comes after them."""
    chosen = [place for place in places if output.allowed(place) > 1]
    for place in places:
        yield TokenChoice(
            output.token_ids[place],
            output.token_log_probs[place],
            output.top(place),
            output.allowed(place),
            drafted=place in chosen[:-1],
            log_mass=output.token_log_mass[place],
        )
