"""Outputs that a scheduler writes for a server: what is asked of each, and what a step brought."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from structgen.core.constraints.base import Constraint
from structgen.core.engines.capture import Captures
from structgen.core.engines.protocols import Grammar
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.generation.decoding.healing import HealedPrompt
from structgen.generation.decoding.output import FinishReason
from structgen.generation.decoding.recorded import TopTokens
from structgen.generation.decoding.regions import NO_REGIONS, FieldRegions
from structgen.generation.decoding.sections import SectionBudget
from structgen.generation.decoding.stats import GenerationStats
from structgen.generation.fields.asking import Fields
from structgen.generation.fields.layout import Layout
from structgen.generation.fields.results import FieldResults
from structgen.generation.models.defaults import ModelDefaults
from structgen.generation.models.threads import Asking, at_once
from structgen.generation.options import Spelling
from structgen.generation.sampling import SamplingParams
from structgen.generation.scheduler.budget import SchedulerLimits
from structgen.generation.scheduler.request import SequenceTerms
from structgen.generation.search.beam import Beam

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
        healed: see ``SequenceEvent``.
    """

    token_ids: tuple[int, ...] = ()
    log_probs: tuple[float, ...] = ()
    steered: int = 0
    healed: HealedPrompt | None = None

    def and_then(self, event: SequenceEvent) -> WrittenSoFar:
        """With what an event brought."""
        new = tuple(choice.token_id for choice in event.tokens), tuple(choice.logprob for choice in event.tokens)
        steered, healed = max(self.steered, event.steered), event.healed or self.healed
        return WrittenSoFar(self.token_ids + new[0], self.log_probs + new[1], steered, healed)


@dataclass(frozen=True)
class Beams:
    """How many outputs of a beam search are asked for, and how it searches; it has at least as many beams."""

    count: int
    method: Beam


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
        spelling, heal_prompt: see ``GenerationOptions``; the prompt is one that no template rendered.
        written: what another process had written of it; events go on after that.
        fields: whose probabilities are read when it is written; None: none are.
        layout: where they are in the output.
        regions: see ``Output``.
        beams: the best of a beam search are written in place of one that is drawn; the event has ``others``.
    """

    prompt_ids: Sequence[int]
    grammar: Grammar | None = None
    params: SamplingParams = field(default_factory=SamplingParams)
    max_new_tokens: int = 512
    stop: tuple[str, ...] = ()
    top_logprobs: int = 0
    traced: bool = False
    log_mass: bool = False
    spelling: Spelling = "any"
    heal_prompt: bool = False
    written: WrittenSoFar | None = None
    section: SectionBudget | None = None
    fields: Fields | None = None
    layout: Layout = field(default_factory=Layout)
    regions: FieldRegions = NO_REGIONS
    beams: Beams | None = None


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
        others: where beams were asked for, the events of the other outputs, best first.
        healed: how the prompt's end was spelled, in all events of an output that it was drawn with; the text begins
            with what that goes beyond the prompt.
    """

    text: str
    tokens: tuple[TokenChoice, ...] = ()
    end: SequenceEnd | None = None
    error: Exception | None = None
    steered: int = 0
    others: tuple[SequenceEvent, ...] = ()
    healed: HealedPrompt | None = None

    @property
    def is_last(self) -> bool:
        """Whether nothing follows."""
        return self.end is not None or self.error is not None

    def after(self, before: SequenceEvent) -> SequenceEvent:
        """Both as one event."""
        return replace(self, text=self.text or before.text, tokens=before.tokens + self.tokens)


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
    def output(self, request: SequenceRequest, asking: Asking = at_once) -> Any: ...
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
