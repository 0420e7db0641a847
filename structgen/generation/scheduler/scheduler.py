"""One loop for one output and for many: sequences join and leave at every step, each with its own constraint and
drafts.

``step`` reads, in one call of the model, what every sequence that is being written waits for, with drafts of what may
follow, and pieces of the prompts of sequences that have joined; then it chooses tokens. Each sequence is what it would
be on its own, whatever is read beside it: tokens are chosen from the logits after exactly the tokens before them
(``choosing.choose``), and a sequence's random numbers depend on its seed and place only. An error of a sequence stays
in the sequence.

Policy only: keys, values and logits are the reader's and the sampler's. ``submit`` and ``cancel`` may be called from
any thread, ``step`` from one. Steps of schedulers of one model, each in a thread of its own, take turns.
"""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import partial

from structgen.errors import CancelledError, GenerationError, QueueError
from structgen.generation.decoding.choosing import OnError, guarded
from structgen.generation.decoding.closing_budget import MAX_TOKEN_BYTES
from structgen.generation.decoding.output import Output
from structgen.generation.models.model_runner import RaggedReader
from structgen.generation.models.threads import turn_of
from structgen.generation.scheduler.admission import Queue, SequenceAdmission, yields
from structgen.generation.scheduler.budget import PieceTime, SchedulerLimits, StepCost
from structgen.generation.scheduler.drafting import Drafting
from structgen.generation.scheduler.prompt_pieces import PromptPieces, Unread
from structgen.generation.scheduler.request import Event, Handle, Request, State, event_of
from structgen.generation.scheduler.sequence_tasks import SequenceTasks, SequenceTurns
from structgen.generation.scheduler.step import MIN_SHARED, ModelStep
from structgen.generation.speculative.prediction import Prediction
from structgen.generation.speculative.tree import DraftTree

MAX_PREEMPTIONS = 3  # then a sequence keeps what it has
LOOK_AGAIN = 0.01  # seconds, where all sequences are late: others may come


class Scheduler:
    """Writes requests, many at once.

    Args:
        reader: of the model; others may use it too, with sequences of their own.
        limits: what it is held to.
        overlapped: whether masks are made while the model reads, for models that only begin to read when they are
            called (on an accelerator). Forced tokens are then seen a step later; the outputs are the same.
        spell: the tokens of a predicted text; None: requests bring none.
        clock: seconds, for waiting, deadlines and what steps take.
    """

    def __init__(
        self,
        reader: RaggedReader,
        limits: SchedulerLimits | None = None,
        *,
        overlapped: bool = False,
        spell: Callable[[str], Sequence[int]] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.reader, self.limits = reader, limits or SchedulerLimits()
        self._max_bytes = _least(self.limits.max_bytes, reader.max_bytes)
        self.cost = StepCost()
        self._piece = PieceTime(self.limits)
        self._pieces = PromptPieces(self.limits, self.cost, self._piece)
        self._turns = SequenceTurns(self.limits, self.cost, self._piece)
        self._overlapped, self._spell, self._clock = overlapped, spell, clock
        self._turn = turn_of(reader)
        self._new: deque[Handle] = deque()
        self._withdrawn: deque[Handle] = deque()
        self._queue = Queue(self.limits.patience)
        self._open: list[Handle] = []  # being read or written, in the order of their admission
        self._most_sequences = _least(self.limits.sequences, reader.max_sequences) or 1  # fewer once memory has run out
        self._touched: list[Handle] = []
        self._drafting = Drafting()
        self._admission = SequenceAdmission(reader, self._max_bytes)
        patience = self.limits.late_seconds if reader.reads_apart else self.limits.max_mask_seconds
        self._tasks = SequenceTasks(patience, self.limits.max_mask_seconds, self._fail)

    def submit(self, request: Request) -> Handle:
        """Take a request in. From any thread.

        Raises:
            QueueError: too many wait.
            GenerationError: the prompt is empty, or prompt and budget are more than fits in memory, or there is a
                prediction and nothing that drafts it.
        """
        if not request.prompt:
            raise GenerationError("The prompt has no tokens; give at least one.")
        if request.prediction is not None and (request.speculator is None or self._spell is None):
            raise GenerationError(
                "prediction needs a scheduler with a speculator and a vocabulary; this one lacks one of them."
            )
        if self.limits.waiting is not None and self.waiting >= self.limits.waiting:
            raise QueueError(f"{self.waiting} requests wait already; try again later.")
        most = len(request.prompt) + len(request.output.token_ids) + request.output.remaining
        if self._max_bytes is not None and most * self.reader.token_bytes > self._max_bytes:
            fits = self._max_bytes // self.reader.token_bytes
            raise GenerationError(f"Prompt and budget are {most} tokens, {fits} fit in memory; shorten one of them.")
        arrived = self._clock() if request.arrived is None else request.arrived
        handle = Handle(request, arrived, streamed=request.streamed)
        self._new.append(handle)
        return handle

    def cancel(self, handle: Handle) -> None:
        """Withdraw a request at the next step; nothing where it is done. From any thread."""
        self._withdrawn.append(handle)

    @property
    def waiting(self) -> int:
        """Requests that are not begun."""
        return len(self._new) + len(self._queue)

    @property
    def running(self) -> int:
        """Requests that are being read or written."""
        return len(self._open)

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to do."""
        return not (self._open or self.waiting or self._withdrawn)

    def close(self) -> None:
        """Withdraw all that is not done, and forget its sequences."""
        with self._turn:
            self._intake()
            for handle in [*self._open, *self._queue]:
                self._fail(handle, CancelledError("The request was withdrawn."))
            self._leave()
            self._tasks.idle()

    def step(self) -> list[Event]:
        """One call of the model for all sequences, at most; what it did for each request."""
        with self._turn:
            return self._step()

    def _step(self) -> list[Event]:
        self._intake()
        self._settle()
        self._watch_the_clock()
        self._admit()
        step = self._plan()
        if step.parts:
            self._run(step)
        elif any(handle.task is not None for handle in [*self._open, *self._queue]):
            self._tasks.wait(LOOK_AGAIN)
        self._leave()
        touched = (event_of(handle) for handle in dict.fromkeys(self._touched))
        events = [event for event in touched if event is not None]
        self._touched.clear()
        if self.is_idle:
            self._tasks.idle()
        return events

    # Who is there.

    def _intake(self) -> None:
        while self._new:
            handle = self._new.popleft()
            self._piece.arrived(handle.request.key, self._clock())
            self._queue.add(handle, (each.request.key for each in self._open))
        while self._withdrawn:
            handle = self._withdrawn.popleft()
            self._fail(handle, CancelledError("The request was withdrawn."))

    def _settle(self) -> None:
        """Take up sequences that were late."""
        for handle in self._tasks.settled([*self._open, *self._queue]):
            self._touched.append(handle)
            output = handle.output
            self._queue.charge(handle.request.key, len(output.token_ids) - handle.streamed)
            if handle.drafts is not None and output.finish_reason is not None:
                with guarded(output, self._failed(handle)):
                    handle.drafts.end()
        self._leave()

    def _watch_the_clock(self) -> None:
        now = self._clock()
        for handle in list(self._queue):
            limit = handle.request.queue_seconds
            if limit is not None and now - handle.submitted > limit and not handle.preemptions:
                self._fail(handle, QueueError(f"The request has waited for {limit:g} seconds; try again later."))
        hurried = []
        for handle in self._open:
            limit = handle.request.seconds
            if limit is None or now - handle.submitted <= limit or handle.is_hurried or handle.task is not None:
                continue
            if handle.is_unread and limit:  # 0: all is to be closed, also what is read soon
                self._fail(handle, QueueError(_unread(handle, limit)))
            else:
                handle.is_hurried = True
                hurried.append((handle, partial(_hurry, handle.output, handle.has_mask)))
                self._touched.append(handle)
        self._tasks.do(hurried)
        self._leave()

    def _admit(self) -> None:
        sequences = Counter(handle.request.key for handle in self._open)
        is_full = len(self._open) >= self._most_sequences
        if not len(self._queue) or (
            is_full
            and not any(self._admission.is_owed(key, sequences, self._open) for key in self._queue.waiting_keys())
        ):
            return
        now = self._clock()
        for handle in self._queue.ordered(now, sequences):
            key = handle.request.key
            if len(self._open) >= self._most_sequences and not self._admission.is_owed(key, sequences, self._open):
                return
            if self.limits.sequences_a_key is not None and sequences[key] >= self.limits.sequences_a_key:
                continue
            if not handle.is_started and not self._start(handle):
                if handle.task is not None:
                    return  # one at a time is waited for
                continue
            if handle.task is not None or not self._prepare(handle):
                continue
            if self._admission.shares_unread(handle, self._open):
                continue
            if len(self._open) >= self._most_sequences:
                self._take_slot(sequences)
            if not self._admission.has_room(handle, self._open):
                return
            self._queue.remove(handle)
            self._begin(handle, now)
            sequences[key] += 1

    def _take_slot(self, sequences: Counter[str]) -> None:
        """Set aside the sequence that came last of the key that has most; what was read of it is kept for it."""
        victim = max((each for each in self._open if yields(each, sequences)), key=lambda each: each.admitted)
        with suppress(MemoryError):  # then it is read again
            self.reader.remember(victim.sequence, victim.request.salt)
        sequences[victim.request.key] -= 1
        self._set_aside([victim])

    def _start(self, handle: Handle) -> bool:
        """Look at what must come first. Whether it is known."""
        handle.is_started = handle.has_mask = True
        handle.output.stats.prompt_tokens = len(handle.request.prompt)
        return self._tasks.do([(handle, handle.output.advance_forced)])[0]

    def _prepare(self, handle: Handle) -> bool:
        """Make drafts ready. Whether there is anything to be read for."""
        output, request = handle.output, handle.request
        with guarded(output, self._failed(handle)):
            if request.prediction is not None and self._spell is not None and handle.prediction is None:
                handle.prediction = Prediction(self._spell(request.prediction[: output.remaining * MAX_TOKEN_BYTES]))
            if output.finish_reason is not None:
                self._queue.remove(handle)
                self._finish(handle)
            elif request.speculator is not None and handle.drafts is None:
                handle.drafts = request.speculator.start(request.prompt, output, handle.prediction)
        return handle.state is not State.DONE

    def _begin(self, handle: Handle, now: float) -> None:
        handle.sequence, handle.held = self.reader.open(handle.unread(), handle.request.salt)
        if not handle.preemptions:
            handle.admitted, handle.cached_tokens = now, min(handle.held, len(handle.request.prompt))
            self._queue.charge(handle.request.key, len(handle.request.prompt) - handle.cached_tokens)
        handle.state = State.READING
        self._open.append(handle)

    # What is read.

    def _plan(self) -> ModelStep:
        writing = [handle for handle in self._open if handle.state is State.WRITING and handle.task is None]
        reading = [handle for handle in self._open if handle.state is State.READING]
        later = set[str]()
        if self.reader.reads_apart:
            writing, later = self._turns.chosen(writing, reading)
        waiting = sum(len(handle.output.pending) for handle in writing)
        chunks = self._chunks(reading, waiting, {handle.request.key for handle in writing}, later)
        other_tokens = waiting + sum(map(len, chunks.values()))
        trees = self._draft(writing, other_tokens)
        self._leave()  # those whose drafters have failed
        self._make_room(other_tokens + sum(len(tree.nodes) for tree in trees.values()))
        step = ModelStep(trees)
        for handle in writing:
            if handle.state is State.WRITING:  # not set aside
                step.read_written(handle)
        for handle in reading:
            if handle.state is State.READING and handle.sequence in chunks:
                step.read_prompt(handle, chunks[handle.sequence])
        return step

    def _chunks(
        self, reading: Sequence[Handle], waiting: int, writing: Collection[str], later: Collection[str]
    ) -> dict[int, list[int]]:
        """What is read of the prompts, by sequence, beside sequences of the keys ``writing``; nothing of the keys
        ``later``."""
        if not self.reader.reads_apart and self.limits.piece_seconds == math.inf:
            return {handle.sequence: handle.unread() for handle in reading}  # whole, so that they stay together
        unread = [
            Unread(handle.length - handle.held, handle.length - handle.cached_tokens, handle.request.key)
            for handle in reading
        ]
        counts = self._pieces.counts(unread, waiting, writing, later)
        return {handle.sequence: handle.unread(count) for handle, count in zip(reading, counts, strict=True) if count}

    def _draft(self, writing: Sequence[Handle], other_tokens: int) -> dict[int, DraftTree]:
        """Trees of the sequences that have drafters, by sequence."""
        drafting = {id(each.output): each for each in writing if each.drafts is not None and not each.probation}
        trees = self._drafting.choose(
            [handle.drafts for handle in drafting.values() if handle.drafts is not None],
            other_tokens=other_tokens,
            writing=len(writing),
            room=max(0, self.limits.step_tokens - other_tokens),
            failed=lambda output, error: self._fail(drafting[id(output)], error),
        )
        pairs = zip(drafting.values(), trees, strict=True)
        return {handle.sequence: tree for handle, tree in pairs if tree is not None}

    def _make_room(self, tokens: int) -> None:
        """Give up prefixes, then sequences, until so many tokens fit."""
        limit, needed = self._max_bytes, tokens * self.reader.token_bytes
        if limit is None or self.reader.bytes + needed <= limit:
            return
        self.reader.forget_prefixes(max(0, limit - needed))
        while self.reader.bytes + needed > limit and self._preempt():
            pass

    def _preempt(self) -> bool:
        """Give up a sequence that was not given up too often; the first stays. False: there is none."""
        victims = [handle for handle in self._open[1:] if handle.preemptions < MAX_PREEMPTIONS]
        if victims:
            self._set_aside(victims)
        return bool(victims)

    def _set_aside(self, victims: Sequence[Handle]) -> None:
        """Give up the keys and values of the sequence that matters least; it will be read anew."""
        now = self._clock()
        victim = max(victims, key=lambda handle: (self._queue.rank(handle, now), handle.admitted))
        self._open.remove(victim)
        self._close(victim)
        victim.preemptions += 1
        victim.state = State.WAITING
        self._queue.add(victim, (handle.request.key for handle in self._open))

    # What comes of it.

    def _run(self, step: ModelStep) -> None:
        start = self._clock()
        chunks = sum(len(p.tokens) for h, p in zip(step.handles, step.parts, strict=True) if h.state is State.READING)
        try:
            reading = self.reader.read(step.parts)
        except Exception as error:
            self._model_failed(step, error)
            return
        try:
            step.take(reading, self.reader, self._tasks.do, self._fail, overlapped=self._overlapped)
        except Exception as error:  # not of a sequence: a sampler that cannot read these logits
            for handle in step.handles:
                self._fail(handle, error)
            return
        for handle, tokens in zip(step.handles, step.gained, strict=True):
            self._queue.charge(handle.request.key, tokens)
        self._touched += [handle for handle in step.handles if handle.task is None]
        seconds = self._clock() - start
        self._drafting.observe(step.chosen, sum(step.gained), step.tokens, None if chunks else seconds)
        self.cost.observe(step.tokens, chunks, seconds)

    def _model_failed(self, step: ModelStep, error: Exception) -> None:
        """Out of memory: half of the sequences wait; all of them where they share what the call may have spoiled, and
        half are taken up again. Anything else is the end of all sequences that were read."""
        out_of_memory = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
        if out_of_memory and len(self._open) > 1:
            self.reader.forget_prefixes()
            self._most_sequences = len(self._open) // 2
            while len(self._open) > (self._most_sequences if self.reader.reads_apart else 0):
                self._set_aside(self._open)
            return
        for handle in step.handles:
            self._fail(handle, error)

    # How it ends.

    def _failed(self, handle: Handle) -> OnError:
        return lambda _, error: self._fail(handle, error)

    def _fail(self, handle: Handle, error: Exception) -> None:
        if handle.state is State.DONE:
            return
        if handle.state is State.WAITING:
            self._queue.remove(handle)
        if isinstance(error, GenerationError) and error.text is None:
            error.text = handle.output.text
        handle.state, handle.error = State.DONE, error
        self._touched.append(handle)

    def _leave(self) -> None:
        """Sequences that have failed, and those whose outputs are whole, leave."""
        for handle in list(self._open):
            if handle.state is not State.DONE and (handle.task is not None or handle.output.finish_reason is None):
                continue
            self._open.remove(handle)
            goes_on = handle.error is None or isinstance(handle.error, QueueError)  # a chat; who asks again
            if goes_on and self.reader.shares_prefixes and handle.held >= MIN_SHARED:
                with suppress(MemoryError):  # no room for what may never be asked for
                    self.reader.remember(handle.sequence, handle.request.salt)
            self._close(handle)
            self._finish(handle)
        if not self._open and not len(self._queue):
            self._most_sequences = self.limits.sequences

    def _finish(self, handle: Handle) -> None:
        """Nothing more comes of it."""
        handle.state = State.DONE
        self._touched.append(handle)
        if handle.prediction is not None:
            stats, whole = handle.output.stats, len(handle.prediction.tokens)
            stats.accepted_prediction_tokens = handle.prediction.agreed(handle.output.token_ids)
            stats.rejected_prediction_tokens = whole - stats.accepted_prediction_tokens

    def _close(self, handle: Handle) -> None:
        """Forget what was read of a request."""
        self.reader.drop(handle.sequence)
        handle.sequence, handle.held = -1, 0


def _hurry(output: Output, has_mask: bool) -> None:
    """Close an output as soon as it can be."""
    output.hurry()
    if has_mask:
        output.advance_forced()


def _unread(handle: Handle, limit: float) -> str:
    return (
        f"{handle.held} of the prompt's {len(handle.request.prompt)} tokens were read within {limit:g} seconds, so "
        "that nothing could be written; shorten it, or try again later."
    )


def _least(one: int | None, other: int | None) -> int | None:
    """The lower of two limits; None is none."""
    return min((limit for limit in (one, other) if limit is not None), default=None)
