"""What a remote server's answers came to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Literal

from structgen.core.constraints.base import Constraint, T_co, partial_of

if TYPE_CHECKING:
    from structgen.core.answers.occurrences import Occurrence

Outcome = Literal["conforms", "violates", "truncated", "refused"]


@dataclass(frozen=True)
class Attempt:
    """One request and what came of it.

    Attributes:
        form: how the constraint was asked for: ``json_schema``, ``structured_outputs``, ``continue``, ``prompt``, ...
        outcome: "conforms"; "violates": the answer does not satisfy the constraint; "truncated": what there is fits,
            but it is not whole; "refused": the server does not know this form.
        text: what the server wrote, as it came; of a stream that was stopped, up to the first wrong byte and a little.
        reason: what is wrong; None where it conforms.
        position: bytes of the text that fit, where it does not conform.
        kept: characters taken over from earlier attempts, which ``text`` continues.
        finish_reason: of the server.
        usage: tokens as the server counts them.
    """

    form: str
    outcome: Outcome
    text: str = ""
    reason: str | None = None
    position: int | None = None
    kept: int = 0
    finish_reason: str | None = None
    usage: Mapping[str, int] = field(default_factory=dict)
    _judged: tuple[Constraint[Any], str] | None = field(default=None, repr=False, compare=False)

    @cached_property
    def reasons(self) -> tuple[Occurrence, ...]:
        """Of an answer that violates a schema, the keyword occurrences that refuse it (see `structgen.reasons`). Worked
        out when asked for: the schema without each of them is compiled, some milliseconds in all."""
        if self._judged is None:
            return ()
        from structgen.core.answers.refused_texts import reasons_of

        return reasons_of(*self._judged)


@dataclass(frozen=True)
class RemoteResult(Generic[T_co]):
    """An answer that conforms, whose value is an instance of the type parameter.

    Attributes:
        value: what the constraint makes of the text; without a constraint, the text.
        text: the part of the answer that conforms; all of it, but where other text stood around the only JSON value.
        finish_reason: of the server's last answer.
        usage: tokens of all attempts together, by the server's names.
        attempts: what was asked and what came, in order; the last one conforms.
    """

    value: T_co
    text: str
    finish_reason: str | None
    usage: Mapping[str, int]
    attempts: tuple[Attempt, ...]


@dataclass(frozen=True)
class RemoteEvent(Generic[T_co]):
    """A piece of an answer that is being written, checked as far as it goes.

    Attributes:
        delta: new text.
        text: all text so far. It begins anew where ``attempt`` is another than that of the event before.
        attempt: number of the attempt, from 0 on.
        result: set on the last event only.
    """

    delta: str
    text: str
    attempt: int
    result: RemoteResult[T_co] | None = None
    _constraint: Constraint[T_co] | None = None

    @cached_property
    def partial(self) -> T_co | None:
        """The value as far as it goes; None before it begins. Computed when asked for; see ``StreamEvent.partial``."""
        return partial_of(self._constraint, self.text) if self.result is None else self.result.value


def total(attempts: tuple[Attempt, ...]) -> dict[str, int]:
    """The sum of all counts."""
    counts: dict[str, int] = {}
    for attempt in attempts:
        for name, count in attempt.usage.items():
            counts[name] = counts.get(name, 0) + count
    return counts
