"""What generation gives: results, events of streams, choices."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from structgen.constraints.base import Constraint
from structgen.decoding.output import FinishReason, GenerationStats, Output
from structgen.engines.capture import Captures, LazyCaptures
from structgen.engines.captures.capturing import captures_of, names_captures


@dataclass(frozen=True)
class GenerationResult:
    """A finished output.

    Attributes:
        value: what the constraint makes of the text; without a constraint, the text.
        text: the output; special tokens that the constraint names are shown by their names.
        token_ids: its tokens, without end of sequence (a stop string that was cut off is still in them).
        finish_reason: "stop", or "length" where the token budget shaped the end.
        logprob: nats, under the model at temperature 1 masked by the constraint and renormalised at each step.
        stats: counts and times, of the last attempt.
        captures: the named parts of the text, if the constraint names any; looked for when asked for.
        attempts: how many outputs were written until the type's own validators took one.
    """

    value: Any
    text: str
    token_ids: tuple[int, ...]
    finish_reason: FinishReason
    logprob: float
    stats: GenerationStats
    captures: Captures = field(default_factory=dict, repr=False, compare=False)
    attempts: int = field(default=1, compare=False)


@dataclass(frozen=True)
class StreamEvent:
    """A piece of an output. ``delta`` is new text, ``text`` all of it so far, ``result`` set on the last event only,
    ``captures`` the named parts of the text so far, looked for when asked for."""

    delta: str
    text: str
    result: GenerationResult | None = None
    _constraint: Constraint | None = None
    captures: Captures = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def partial(self) -> Any:
        """The value as far as it goes (plain JSON values; None before the first); computed when asked for."""
        return self.text if self._constraint is None else self._constraint.parse_partial(self.text)


@dataclass(frozen=True)
class ChoiceResult:
    """``value`` is the likeliest option; ``probs`` sum to 1 over the options, ``logprobs`` (nats) are the model's."""

    value: str
    probs: dict[str, float]
    logprobs: dict[str, float]


def result_of(output: Output, constraint: Constraint | None, attempts: int = 1) -> GenerationResult:
    """What a finished output gives.

    Raises:
        RefusedValueError: the type's own validators refuse the value.
    """
    assert output.finish_reason is not None
    return GenerationResult(
        value=output.text if constraint is None else constraint.parse(output.text),
        text=output.text,
        token_ids=tuple(output.token_ids),
        finish_reason=output.finish_reason,
        logprob=output.log_prob,
        stats=output.stats,
        captures=captures_so_far(output),
        attempts=attempts,
    )


def captures_so_far(output: Output) -> Captures:
    """Those of the text so far; nothing is copied for grammars that name nothing."""
    grammar = None if output.matcher is None else output.matcher.grammar
    if grammar is None or not names_captures(grammar):
        return {}
    is_finished = output.finish_reason is not None
    data = output.data if is_finished else output.settled_data()
    return LazyCaptures(lambda: captures_of(grammar, data, is_finished=is_finished))
