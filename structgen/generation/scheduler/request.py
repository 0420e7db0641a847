"""What is asked of a scheduler, where it stands, and what it says while it writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any

from structgen.generation.decoding.healing import HealedPrompt
from structgen.generation.decoding.output import FinishReason, Output
from structgen.generation.scheduler.tasks import Task
from structgen.generation.speculative.prediction import Prediction
from structgen.generation.speculative.speculator import DraftedSequence, Speculator


class State(Enum):
    """Where a request stands: in the queue, while its text is read, while its output is written, at its end."""

    WAITING = "waiting"
    READING = "reading"
    WRITING = "writing"
    DONE = "done"


@dataclass(eq=False, kw_only=True)
class SequenceTerms:
    """When a sequence is written, for whom, and how it is given out: the same from who asks for it to the scheduler.
    What a server's request says of these is a field of the same name (``sequence_of``).

    Attributes:
        priority: lower goes first; a class is gained for every ``SchedulerLimits.patience`` seconds of waiting.
        key: whom it is written for. Keys take turns, by the tokens that they were given.
        salt: whom prefixes are shared with.
        seconds: after which the output is closed as soon as it can be (``Output.hurry``), and fails if its prompt is
            not read yet; None: never.
        queue_seconds: after which it fails if it still waits; None: never.
        streams: whether events have its text.
        prediction: a text that the output may be much like, drafted along by the speculator.
        arrived: when it was asked for (seconds of the scheduler's clock), such as before its constraint was compiled:
            its place in the queue and its deadlines count from there; None: when it is submitted.
    """

    priority: int = 0
    key: str = ""
    salt: str = ""
    seconds: float | None = None
    queue_seconds: float | None = None
    streams: bool = False
    prediction: str | None = None
    arrived: float | None = None

    def terms(self) -> dict[str, Any]:
        """These alone, by name."""
        return {field.name: getattr(self, field.name) for field in fields(SequenceTerms)}


@dataclass(eq=False)
class Request(SequenceTerms):
    """An output that is to be written.

    Attributes:
        prompt: its token ids, at least one.
        output: fresh; it is the scheduler's while it is written.
        speculator: what drafts; None: nothing.
        streamed: how many tokens of the output, which then was ``take_up``, were streamed elsewhere, and are not again.
        without: the prompt that it is guided away from, for a reader that does (`GuidedSequences`); None: it is not
            guided.
        healed: how the prompt's end was spelled, where that was drawn with the output.
    """

    prompt: Sequence[int]
    output: Output
    speculator: Speculator | None = None
    streamed: int = 0
    without: Sequence[int] | None = None
    healed: HealedPrompt | None = None


@dataclass(eq=False)
class Handle:
    """A request in a scheduler. To be read only, and its output not before it is done.

    Attributes:
        request: it.
        state: where it stands.
        error: why it failed; None: it did not.
        submitted, admitted: when it arrived, and when it was begun (seconds of the scheduler's clock).
        preemptions: how often its keys and values were given up for others.
        cached_tokens: of the prompt, how many were known and not read.
        late_masks: how often the others went on without it.
    """

    request: Request
    submitted: float
    state: State = State.WAITING
    error: Exception | None = None
    admitted: float = 0.0
    preemptions: int = 0
    cached_tokens: int = 0
    sequence: int = -1  # of the reader, while it is open
    held: int = 0  # tokens of prompt and output that the sequence holds
    drafts: DraftedSequence | None = None
    prediction: Prediction | None = None
    is_started: bool = False  # whether the output's beginning was looked at
    has_mask: bool = False  # whether what may come next is known
    late_masks: int = 0
    task: Task | None = None  # what is late: till it is done, the output is not the loop's
    probation: int = 0  # tasks that must be in time till the sequence is waited for again
    owed: int = 0  # so many of them the last time that it was late
    is_hurried: bool = False
    turn: int = 0  # the step in which it was written last
    streamed: int = 0  # tokens that events have had
    shown: str = field(default="", repr=False)  # text that they have had

    @property
    def output(self) -> Output:
        """Of the request."""
        return self.request.output

    @property
    def length(self) -> int:
        """Tokens of prompt and output."""
        return len(self.request.prompt) + len(self.output.token_ids)

    @property
    def is_unread(self) -> bool:
        """Whether its prompt is being read for the first time, so that nothing was written that could be closed."""
        return self.state is State.READING and not self.preemptions and not self.request.streamed

    def unread(self, most: int | None = None) -> list[int]:
        """Tokens of prompt and output that the sequence does not hold; at most so many, the first."""
        prompt, written = self.request.prompt, self.output.token_ids
        end = self.length if most is None else self.held + most
        after = slice(max(0, self.held - len(prompt)), max(0, end - len(prompt)))
        return [*prompt[self.held : end], *written[after]]


@dataclass(frozen=True, slots=True)
class Event:
    """What a step did for one request.

    Attributes:
        handle: of the request.
        token_ids: new tokens, in order.
        log_probs: of each (nats), masked by the constraint and renormalised, at temperature 1; 0 where it was forced.
        text: new text that later tokens cannot change; only for requests that stream.
        finish_reason: set on the last event of a request that was written whole.
        error: set on the last event of one that was not.
    """

    handle: Handle
    token_ids: tuple[int, ...]
    log_probs: tuple[float, ...]
    text: str = ""
    finish_reason: FinishReason | None = None
    error: Exception | None = None

    @property
    def is_last(self) -> bool:
        """Whether the request is done."""
        return self.finish_reason is not None or self.error is not None


def event_of(handle: Handle) -> Event | None:
    """What is new of a request since its last event, which is noted in the handle; None: nothing."""
    output, before = handle.output, handle.streamed
    if handle.task is not None:  # failed, and something is still done for it: no look at the output
        return Event(handle, (), (), error=handle.error)
    text, is_done = "", handle.state is State.DONE
    if handle.request.streams and handle.error is None:
        whole = output.text if is_done else output.shown(output.settled_data())
        text, handle.shown = whole[len(handle.shown) :], max(handle.shown, whole, key=len)
    handle.streamed = len(output.token_ids)
    if not (is_done or handle.streamed > before or text):
        return None
    reason = output.finish_reason if is_done and handle.error is None else None
    new = tuple(output.token_ids[before:]), tuple(output.token_log_probs[before:])
    return Event(handle, *new, text, reason, handle.error)
