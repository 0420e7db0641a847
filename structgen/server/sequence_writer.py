"""Writes the outputs of a server in its model's thread, a step of all at a time: what is drawn, and beams."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from structgen.core.constraints.base import Constraint
from structgen.core.engines.capture import LazyCaptures
from structgen.core.engines.captures.capturing import captures_of
from structgen.core.engines.protocols import Grammar
from structgen.core.tokenization.canonical import AT_START, CanonicalSpelling, SpelledSoFar
from structgen.errors import GenerationError, IncompleteOutputError, StructgenError, TokenizerError
from structgen.generation.decoding.healing import HealedPrompt
from structgen.generation.decoding.hypothesis import Hypothesis
from structgen.generation.decoding.output import Output
from structgen.generation.decoding.recorded import RecordedOutput
from structgen.generation.fields.asking import Fields
from structgen.generation.fields.layout import Layout
from structgen.generation.fields.results import FieldResults
from structgen.generation.generator import Generator
from structgen.generation.models.threads import Asking, at_once
from structgen.generation.options import Spelling
from structgen.generation.scheduler.budget import SchedulerLimits
from structgen.generation.scheduler.request import Event, Handle, Request
from structgen.server.beam_search import BeamQueue, BeamTask, root_of
from structgen.server.errors import RequestError
from structgen.server.sequences import (
    OutputWriter,
    SequenceEnd,
    SequenceEvent,
    SequenceRequest,
    SequenceTimes,
    TokenChoice,
)

_LOGGER = logging.getLogger(__name__)


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
            tried, message = self._found.get(grammar, (0, ""))
        if budget <= tried:
            text = message.replace(f"{tried} of {tried} tokens", f"{budget} of {budget} tokens")
            raise IncompleteOutputError(text, partial="")

    def note(self, grammar: Grammar, budget: int, error: IncompleteOutputError) -> None:
        """It did not fit."""
        with self._lock:
            if budget > self._found.get(grammar, (0, ""))[0]:
                self._found[grammar] = budget, str(error)


@dataclass(frozen=True)
class MadeOutput:
    """An output, the prompt that it is written after, and how the prompt's end was spelled, where that was drawn."""

    output: Output
    prompt_ids: Sequence[int]
    healed: HealedPrompt | None = None


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
        self._beams = BeamQueue(generator.model)
        self._too_long: dict[Spelling, _TooLong] = {"any": _TooLong(), "canonical": _TooLong()}
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
        return self._scheduler.waiting + self._beams.waiting

    @property
    def running(self) -> int:
        """Outputs that were begun and are not finished."""
        return self._scheduler.running + self._beams.running

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to do."""
        return self._scheduler.is_idle and not (self._beams.waiting or self._beams.running)

    @property
    def cache_bytes(self) -> int:
        """What keys and values take."""
        return self._scheduler.reader.bytes

    def output(self, request: SequenceRequest, asking: Asking = at_once) -> MadeOutput | Hypothesis:
        """The output of a request, or what its beams begin with. In any thread: whether the shortest one fits its
        budget may take a while to find.

        Args:
            asking: runs what reads the model in the thread that steps.

        Raises:
            IncompleteOutputError: not even the shortest output fits in the budget.
            GenerationError: what was written before is not of this request.
            RequestError: the tokenizer's canonical spelling is not known, or the prompt's end cannot be healed.
        """
        too_long, grammar = self._too_long[request.spelling], request.grammar
        if request.heal_prompt or grammar is None:  # what fits depends on the prompt
            return self._made(request, asking) if request.beams is None else root_of(request)
        too_long.check(grammar, request.max_new_tokens)
        try:
            return self._made(request, asking) if request.beams is None else root_of(request)
        except IncompleteOutputError as error:
            if error.option != "stop":  # which is the request's own
                too_long.note(grammar, request.max_new_tokens, error)
            raise

    def _made(self, request: SequenceRequest, asking: Asking) -> MadeOutput:
        ids, spelling, written = list(request.prompt_ids), None, request.written
        if request.spelling == "canonical":
            spelling = self._spelling("spelling")

        def begun(ids: Sequence[int], text: bytes = b"", position: SpelledSoFar = AT_START) -> Output:
            return self._output(request, ids, spelling, text, position)

        if not request.heal_prompt:
            return MadeOutput(begun(ids), ids)
        self._spelling("heal_prompt")
        try:
            ids, output, healed = self._generator.healed(
                ids, request.grammar, request.params, begun,
                is_canonical=spelling is not None, salt=request.salt, asking=asking,
                before=None if written is None else written.healed,
            )  # fmt: skip
        except (IncompleteOutputError, RequestError):
            raise
        except (GenerationError, TokenizerError) as error:  # of this prompt and constraint
            raise RequestError.at(("structgen", "heal_prompt"), str(error), "unsupported_value") from error
        return MadeOutput(output, ids, healed)

    def _output(
        self,
        request: SequenceRequest,
        ids: Sequence[int],
        spelling: CanonicalSpelling | None,
        text: bytes,
        position: SpelledSoFar,
    ) -> Output:
        """An output after a prompt, whose text begins so."""
        matcher = None if request.grammar is None else request.grammar.matcher()
        if matcher is None and spelling is not None:
            matcher = self._generator.any_text()
        longest = self._generator.model.context_length
        budget = request.max_new_tokens if longest is None else min(request.max_new_tokens, longest - len(ids))
        if budget < 1:
            raise GenerationError(f"The prompt has {len(ids)} tokens, the model reads {longest}; shorten it")
        options: dict[str, Any] = {
            "max_new_tokens": budget,
            "stop": request.stop,
            "prompt_ids": ids,
            "begun": text,
            "position": position,
            "section": request.section,
            "keeps_mass": request.log_mass,
            "keeps_probs": request.fields is not None,
            "regions": request.regions,
            "spelling": spelling,
        }
        output = (
            RecordedOutput(self._vocabulary, matcher, request.params, top=request.top_logprobs, **options)
            if request.top_logprobs or request.traced
            else Output(self._vocabulary, matcher, request.params, **options)
        )
        if request.written is not None:
            output.take_up(request.written.token_ids, request.written.log_probs, request.written.steered)
        return output

    def _spelling(self, asked: str) -> CanonicalSpelling:
        """The tokenizer's, for the field of requests that asks for it."""
        try:
            return self._generator.spelling()
        except TokenizerError as error:
            raise RequestError.at(("structgen", asked), str(error), "unsupported_value") from error

    def submit(self, request: SequenceRequest, made: MadeOutput | Hypothesis) -> Handle | BeamTask:
        """Take on an output that ``output`` has made.

        Raises:
            GenerationError: the prompt is empty, or prompt and budget are more than fits in memory.
        """
        if isinstance(made, Hypothesis):
            return self._beams.submit(request, made)
        output, ids = made.output, made.prompt_ids
        if made.healed is None:
            ids = self._generator.in_written_tokens(ids, output.remaining, request.salt)
        terms = request.terms()
        if not self._generator.reads_drafts:
            terms["prediction"] = None  # it changes the speed
        scheduled = Request(
            ids,
            output,
            self._generator.speculator(predicts=terms["prediction"] is not None),
            healed=made.healed,
            streamed=0 if request.written is None else len(request.written.token_ids),
            **terms,
        )
        handle = self._scheduler.submit(scheduled)
        self._handles[handle] = 0.0
        if request.fields is not None and request.grammar is not None:
            self._fields[handle] = request.fields, request.layout
        return handle

    def cancel(self, handle: Handle | BeamTask) -> None:
        """Forget an output; nothing more comes of it."""
        if isinstance(handle, BeamTask):
            return self._beams.cancel(handle)
        self._handles.pop(handle, None)
        self._fields.pop(handle, None)
        self._scheduler.cancel(handle)

    def close(self) -> None:
        """Forget all outputs, and end what works on them."""
        self._handles.clear()
        self._fields.clear()
        self._beams.clear()
        self._scheduler.close()

    def hurry(self) -> None:
        """Close all outputs, validly and soon."""
        for handle in self._handles:
            handle.request.seconds = 0.0
        self._beams.hurry()

    def step(self) -> list[tuple[Handle | BeamTask, SequenceEvent]]:
        """One step of all outputs, and what it brought. An output's error is its own event."""
        events: list[tuple[Handle | BeamTask, SequenceEvent]] = [*self._beams.step()]
        now = 0.0
        for event in () if self._scheduler.is_idle else self._scheduler.step():
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
        return SequenceEvent(handle.shown, tokens, steered=output.stats.steered_tokens, healed=handle.request.healed)
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
    return SequenceEvent(output.text, tokens, end, healed=handle.request.healed)


def _recorded(output: RecordedOutput, places: range) -> Iterator[TokenChoice]:
    """The tokens that a step brought. All that were chosen in it but the last had been drafted: else the model would
    not have read what comes after them."""
    chosen = [index for index in places if output.allowed(index) > 1]
    for index in places:
        yield TokenChoice(
            output.token_ids[index],
            output.token_log_probs[index],
            output.top(index),
            output.allowed(index),
            drafted=index in chosen[:-1],
            log_mass=output.token_log_mass[index],
        )
