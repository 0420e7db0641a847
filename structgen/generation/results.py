"""What generation gives: results, events of streams, choices."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic

from typing_extensions import TypeVar

from structgen.core.constraints.base import Constraint, T, T_co, partial_of, value_of
from structgen.core.engines.capture import Captures, LazyCaptures
from structgen.core.engines.captures.capturing import captures_of, names_captures
from structgen.errors import ConstraintError, OptionsError
from structgen.generation.decoding.drawing import Surprise
from structgen.generation.decoding.healing import HealedPrompt
from structgen.generation.decoding.loops import Loop, loop_of
from structgen.generation.decoding.output import FinishReason, Output
from structgen.generation.decoding.stats import GenerationStats
from structgen.generation.fields.results import FieldResults
from structgen.generation.scheduler.request import Event

Option = TypeVar("Option", bound=str, default=str)


@dataclass(frozen=True)
class GenerationResult(Generic[T_co]):
    """A finished output, whose value is an instance of the type parameter.

    Attributes:
        value: what the constraint makes of the text; without a constraint, the text.
        text: the output; special tokens that the constraint names are shown by their names.
        token_ids: its tokens, without end of sequence (a stop string that was cut off is still in them).
        finish_reason: "stop", or "length" where the token budget shaped the end.
        logprob: nats, under the model at temperature 1 masked by the constraint and renormalised at each step.
        stats: counts and times, of the last attempt.
        captures: the named parts of the text, if the constraint names any; looked for when asked for.
        attempts: how many outputs were written until the type's own validators took one.
        token_log_probs: of each token, as ``logprob`` has it; 0 where it was forced.
        token_log_mass: the mass (log, nats) that the mask left of the model's distribution where each token was chosen;
            with ``token_log_probs`` added, the model's own log-probability. None for tokens that were forced. Empty
            unless ``log_mass=True`` was asked for.
        loop: the repetition that it ended in, where ``finish_reason`` is "length"; None: there is none.
        healed: how the prompt's end was spelled (``heal_prompt``); None: as the tokenizer spells it. What the last of
            its tokens has beyond the prompt is the beginning of ``text``, and no token of ``token_ids``.
        log_mass: their sum, end of sequence included: ``logprob`` plus this is what the model, unmasked, gave to the
            choices that were made. None unless it was asked for.
    """

    value: T_co
    text: str
    token_ids: tuple[int, ...]
    finish_reason: FinishReason
    logprob: float
    stats: GenerationStats
    captures: Captures = field(default_factory=dict, repr=False, compare=False)
    attempts: int = field(default=1, compare=False)
    token_log_probs: tuple[float, ...] = field(default=(), repr=False, compare=False)
    token_log_mass: tuple[float | None, ...] = field(default=(), repr=False, compare=False)
    log_mass: float | None = field(default=None, compare=False)
    loop: Loop | None = field(default=None, compare=False)
    healed: HealedPrompt | None = field(default=None, compare=False)
    _surprises: tuple[Surprise, ...] = field(default=(), repr=False, compare=False)
    _fields: FieldResults | None = field(default=None, repr=False, compare=False)

    @property
    def fields(self) -> FieldResults:
        """How likely the values of its fields were.

        Raises:
            OptionsError: ``fields=True`` was not asked for.
        """
        if self._fields is None:
            raise OptionsError("result.fields needs fields=True, an option of generate and batch", option="fields")
        return self._fields

    def surprises(self, below: float = 0.5) -> tuple[Surprise, ...]:
        """Where the mask left less than ``below`` of the model's mass, and what the model wanted instead.

        Raises:
            OptionsError: ``log_mass=True`` was not asked for, or ``below`` is not in (0, 0.5].
        """
        if self.log_mass is None:
            raise OptionsError(
                "surprises needs log_mass=True, an option of generate, stream and batch", option="log_mass"
            )
        if not (isinstance(below, (int, float)) and 0 < below <= 0.5):
            raise OptionsError(
                f"below must be above 0 and at most 0.5, not {below!r:.100}", option="below", value=below
            )
        return tuple(each for each in self._surprises if each.kept < below)


@dataclass(frozen=True)
class StreamEvent(Generic[T_co]):
    """A piece of an output. ``delta`` is new text, ``text`` all of it so far, ``result`` set on the last event only,
    ``captures`` the named parts of the text so far, looked for when asked for."""

    delta: str
    text: str
    result: GenerationResult[T_co] | None = None
    _constraint: Constraint[T_co] | None = None
    captures: Captures = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def partial(self) -> T_co | None:
        """The value as far as it goes; None before it begins; that of the ``result`` on the last event. Computed when
        asked for. See ``Constraint.parse_partial``."""
        return partial_of(self._constraint, self.text) if self.result is None else self.result.value


@dataclass(frozen=True)
class ChoiceResult(Generic[Option]):
    """``value`` is the likeliest option; ``probs`` sum to 1 over the options, ``logprobs`` (nats) are the model's."""

    value: Option
    probs: dict[Option, float]
    logprobs: dict[Option, float]

    @classmethod
    def of(cls, logprobs: dict[Option, float]) -> ChoiceResult[Option]:
        """From what the model gives to each option."""
        highest = max(logprobs.values())
        weights = {option: math.exp(value - highest) for option, value in logprobs.items()}
        total = sum(weights.values())
        probs = {option: weight / total for option, weight in weights.items()}
        return cls(max(probs, key=probs.__getitem__), probs, logprobs)


def result_of(output: Output, constraint: Constraint[T] | None, attempts: int = 1) -> GenerationResult[T]:
    """What a finished output gives.

    Raises:
        RefusedValueError: the type's own validators refuse the value.
    """
    assert output.finish_reason is not None
    return GenerationResult(
        value=value_of(constraint, output.text),
        text=output.text,
        token_ids=tuple(output.token_ids),
        finish_reason=output.finish_reason,
        logprob=output.log_prob,
        stats=output.stats,
        captures=captures_so_far(output),
        attempts=attempts,
        token_log_probs=tuple(output.token_log_probs),
        token_log_mass=tuple(output.token_log_mass) if output.keeps_mass else (),
        log_mass=output.log_mass if output.keeps_mass else None,
        loop=loop_of(output.data) if output.finish_reason == "length" else None,
        _surprises=tuple(output.surprises.values()),
    )


def captures_so_far(output: Output) -> Captures:
    """Those of the text so far; nothing is copied for grammars that name nothing."""
    grammar = None if output.matcher is None else output.matcher.grammar
    if grammar is None or not names_captures(grammar):
        return {}
    is_finished = output.finish_reason is not None
    data = output.data if is_finished else output.settled_data()
    return LazyCaptures(lambda: captures_of(grammar, data, is_finished=is_finished))


def events_of(
    steps: Iterator[list[Event]], constraint: Constraint[T] | None, end: Callable[[], GenerationResult[T]]
) -> Iterator[StreamEvent[T]]:
    """The events of the only request of a scheduler's steps; ``end`` gives its result."""
    shown = ""
    for step in steps:
        for event in step:
            shown += event.text
            if event.is_last:
                result = end()
                yield StreamEvent(event.text, shown, result, constraint, result.captures)
            elif event.text:
                yield StreamEvent(event.text, shown, None, constraint, captures_so_far(event.handle.output))


def items_of(events: Iterable[StreamEvent[Sequence[T]]]) -> Iterator[T]:
    """The items of a list that is streamed, each as soon as it is known to be whole: when the next one, or the end, has
    begun.

    Raises:
        ConstraintError: what is written is no list.
    """
    given = 0
    for event in events:
        items = event.partial
        if items is None:
            continue
        if isinstance(items, str) or not isinstance(items, Sequence):
            raise ConstraintError(
                f"what is written is no list but {type(items).__name__}, which has no items to stream; "
                "ask for list[...] or json_lines(...), or use stream and each event's partial"
            )
        whole = len(items) if event.result is not None else len(items) - 1
        yield from items[given:whole] if isinstance(items, list) else list(items)[given:whole]
        given = max(given, whole)
