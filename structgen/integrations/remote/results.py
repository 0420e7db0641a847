"""What a remote server's answers came to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from structgen.constraints.base import Constraint

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


@dataclass(frozen=True)
class RemoteResult:
    """An answer that conforms.

    Attributes:
        value: what the constraint makes of the text; without a constraint, the text.
        text: the part of the answer that conforms; all of it, but where other text stood around the only JSON value.
        finish_reason: of the server's last answer.
        usage: tokens of all attempts together, by the server's names.
        attempts: what was asked and what came, in order; the last one conforms.
    """

    value: Any
    text: str
    finish_reason: str | None
    usage: Mapping[str, int]
    attempts: tuple[Attempt, ...]


@dataclass(frozen=True)
class RemoteEvent:
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
    result: RemoteResult | None = None
    _constraint: Constraint | None = None

    @cached_property
    def partial(self) -> Any:
        """The value as far as it goes; computed when asked for."""
        return self.text if self._constraint is None else self._constraint.parse_partial(self.text)


def total(attempts: tuple[Attempt, ...]) -> dict[str, int]:
    """The sum of all counts."""
    found: dict[str, int] = {}
    for attempt in attempts:
        for name, count in attempt.usage.items():
            found[name] = found.get(name, 0) + count
    return found
