"""What one call of the model reads for many sequences, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from structgen.generation.decoding.choosing import guarded
from structgen.generation.decoding.output import Output
from structgen.generation.models.model_runner import Part, RaggedReader, Reading
from structgen.generation.scheduler.request import Handle, State
from structgen.generation.speculative.tree import DraftTree
from structgen.generation.speculative.verification import Walk, verify

MIN_SHARED = 32  # tokens of a prompt from which on others may take it over

Fail = Callable[[Handle, Exception], None]
Do = Callable[[Sequence[tuple[Handle, Callable[[], None]]]], Sequence[bool]]


class _Undrafted:
    """A sequence that a single token is chosen for."""

    rule = None
    last_read = 0

    def __init__(self, handle: Handle, looks_ahead: bool) -> None:
        self.output, self._handle, self.looks_ahead = handle.output, handle, looks_ahead

    def begin(self) -> None:
        """See ``Walk``."""
        self.output.pending.clear()
        self._handle.has_mask = self.looks_ahead

    def follow(self) -> bool:
        """See ``Walk``."""
        return False


@dataclass(slots=True)
class ModelStep:
    """One call of the model.

    Attributes:
        handles: the sequences that are read.
        parts: what is read of each.
        trees: drafts, by sequence of the reader.
        gained: tokens that each sequence was given, once it was ``taken``.
        chosen: sequences that a token was chosen for.
    """

    trees: dict[int, DraftTree]
    handles: list[Handle] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    gained: list[int] = field(default_factory=list)
    chosen: int = 0

    @property
    def tokens(self) -> int:
        """That the call reads."""
        return sum(len(part.tokens) for part in self.parts)

    def read_prompt(self, handle: Handle, chunk: list[int]) -> None:
        """Read on in succession's text."""
        self.handles.append(handle)
        self.parts.append(Part(handle.sequence, chunk))

    def read_written(self, handle: Handle) -> None:
        """Read what a sequence has written, and its drafts."""
        tree, pending = self.trees.get(handle.sequence), handle.output.pending
        part = (
            Part(handle.sequence, list(pending))
            if tree is None
            else Part(handle.sequence, *tree.flat(pending), last_only=False)
        )
        self.handles.append(handle)
        self.parts.append(part)

    def take(self, reading: Reading, reader: RaggedReader, do: Do, fail: Fail, *, overlapped: bool) -> None:
        """Choose a token of every sequence that was read to its end, and go along drafts as far as they were right.

        Args:
            do: see ``SequenceTasks.do``.
            fail: called with a sequence that raised, and what.
            overlapped: see ``Scheduler``.
        """
        before = [len(handle.output.token_ids) for handle in self.handles]
        by_output = {id(handle.output): handle for handle in self.handles}

        def failed(output: Output, error: Exception) -> None:
            fail(by_output[id(output)], error)

        def run(acts: Sequence[tuple[Walk, Callable[[], None]]]) -> Sequence[bool]:
            return do([(by_output[id(walk.output)], act) for walk, act in acts])

        walks, starts = list[Walk](), list[int]()
        for handle, start, count in zip(self.handles, reading.starts, reading.counts, strict=True):
            handle.output.stats.target_forwards += 1
            walk: Walk | None = handle.drafts
            if handle.sequence not in self.trees:
                with guarded(handle.output, failed):
                    walk = _arrived(handle, count, reader, overlapped)
            if walk is not None and handle.state is State.WRITING:
                walks.append(walk)
                starts.append(start)
        self.chosen = len(walks)
        verify(walks, reading.logits, starts, run, failed)
        for handle, part, start in zip(self.handles, self.parts, reading.starts, strict=True):
            if handle.sequence in self.trees and handle.drafts is not None and handle.state is State.WRITING:
                with guarded(handle.output, failed):
                    whole = reading.logits[start : start + len(part.tokens)]
                    kept = handle.drafts.finish(whole) if handle.task is None else handle.drafts.leave()
                    reader.keep(handle.sequence, kept)
                    handle.held += len(kept)
        pairs = zip(self.handles, before, strict=True)
        self.gained = [len(handle.output.token_ids) - cached if handle.task is None else 0 for handle, cached in pairs]


def _arrived(handle: Handle, count: int, reader: RaggedReader, overlapped: bool) -> Walk | None:
    """Note that ``count`` tokens of a sequence without drafts were read. The sequence, if a token can now be chosen for
    it."""
    output = handle.output
    handle.held += count
    if handle.state is State.WRITING:
        del output.pending[:count]
    if handle.held < handle.length:
        return None
    if handle.state is State.READING:
        output.pending.clear()
        handle.state = State.WRITING
        if reader.shares_prefixes and len(handle.request.prompt) >= MIN_SHARED:
            reader.remember(handle.sequence, handle.request.salt)
    if not handle.has_mask:
        output.advance_forced()
        handle.has_mask = True
    if output.finish_reason is not None or output.pending:
        return None
    return _Undrafted(handle, looks_ahead=handle.drafts is not None or handle.probation > 0 or not overlapped)
