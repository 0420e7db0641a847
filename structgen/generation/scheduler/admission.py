"""Requests that wait: who is next, what another reads already of it, whether it fits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from structgen.generation.models.model_runner import RaggedReader
from structgen.generation.models.prefix_cache import common
from structgen.generation.scheduler.request import Handle, State
from structgen.generation.scheduler.shares import Shares
from structgen.generation.scheduler.step import MIN_SHARED


class Queue:
    """Requests that wait for room.

    The key first that has the fewest sequences, and of these the one that was given the fewest tokens (``Shares``): a
    class is what a request says of itself, and no key comes before others by it. Of a key the lowest class, one being
    gained for every ``patience`` seconds, then the oldest.
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._waiting: list[Handle] = []
        self._given = Shares()

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Handle]:
        return iter(self._waiting)

    def add(self, handle: Handle, active: Iterable[str] = ()) -> None:
        """Let a request wait; ``active``: keys that are being written for."""
        key = handle.request.key
        present = {*active, *(other.request.key for other in self._waiting)}
        if key not in present:
            self._given.arrive(key, present)
        self._waiting.append(handle)

    def charge(self, key: str, tokens: int) -> None:
        """A key was given so many tokens."""
        self._given.charge(key, tokens)

    def remove(self, handle: Handle) -> None:
        """It waits no longer."""
        self._waiting.remove(handle)

    def waiting_keys(self) -> set[str]:
        """Of all that wait."""
        return {handle.request.key for handle in self._waiting}

    def ordered(self, now: float, sequences: Mapping[str, int]) -> list[Handle]:
        """All that wait, the next one first; ``sequences``: how many each key has, of those that have any."""

        def place(handle: Handle) -> tuple[int, float, int, float]:
            key = handle.request.key
            return sequences.get(key, 0), self._given.used(key), self.rank(handle, now), handle.submitted

        return sorted(self._waiting, key=place)

    def rank(self, handle: Handle, now: float) -> int:
        """The class of a request at a time."""
        return handle.request.priority - int((now - handle.submitted) / self._patience)


ROOM = 64  # tokens that a sequence must find room for besides its prompt
FILL = 0.9  # of the memory that sequences are admitted to


class SequenceAdmission:
    """Questions about a request that waits, given those that are being read or written.

    Args:
        reader: of the model.
        max_bytes: what all sequences may take; None: no limit.
    """

    def __init__(self, reader: RaggedReader, max_bytes: int | None) -> None:
        self._reader, self._max_bytes = reader, max_bytes

    def is_owed(self, key: str, sequences: Counter[str], running: Sequence[Handle]) -> bool:
        """Whether a key is given a sequence of another one that has more by two or more, where all are taken."""
        if not self._reader.shares_prefixes:  # what was read would be read again
            return False
        has_more = max(sequences.values(), default=0) >= sequences[key] + 2
        return has_more and any(yields(handle, sequences) for handle in running)

    def shares_unread(self, handle: Handle, running: Sequence[Handle]) -> bool:
        """Whether another sequence is reading what this one could then take over. Once it has read that, it is kept for
        this one, however much follows."""
        if not self._reader.shares_prefixes:
            return False
        prompt, salt = handle.request.prompt, handle.request.salt
        reading = [other for other in running if other.state is State.READING and other.request.salt == salt]
        begins = list(prompt[:MIN_SHARED])
        alike = [
            (min(common(prompt, other.request.prompt), len(prompt) - 1), other)
            for other in reading
            if list(other.request.prompt[:MIN_SHARED]) == begins
        ]
        shared, other = max(alike, key=lambda pair: pair[0], default=(0, handle))
        if shared < MIN_SHARED or shared < self._reader.known(prompt, salt) + MIN_SHARED:
            return False
        if other.held >= shared:
            with suppress(MemoryError):  # then it is read again
                self._reader.remember(other.sequence, salt)
        return other.held < shared

    def has_room(self, handle: Handle, running: Sequence[Handle]) -> bool:
        """Whether the sequence fits, if need be where prefixes are."""
        limit, size = self._max_bytes, self._reader.token_bytes
        if limit is None or not running:
            return True
        needed = (handle.length + ROOM) * size
        if self._reader.bytes + needed > FILL * limit:
            self._reader.forget_prefixes(max(0, int(FILL * limit) - needed))
        return self._reader.bytes + needed <= FILL * limit


def yields(handle: Handle, sequences: Counter[str]) -> bool:
    """Whether a sequence can be set aside for another key's: its key has most."""
    most = max(sequences.values())
    return handle.state is State.WRITING and handle.task is None and sequences[handle.request.key] == most
