"""Bounds of the work that making an automaton, or reading a grammar, may take: steps, and the thread's own time."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from structgen.errors import TooComplexError

thread_seconds = getattr(time, "thread_time", time.process_time)
"""Seconds of the processor that this thread has had (where the system does not tell: this process)."""
_CHECK_EVERY = 1_000


class OutOfTime(BaseException):
    """The time of `time_limit` is up. Not an Exception, so that nobody on the way takes it for theirs."""


class _Deadline(threading.local):
    """When this thread's time is up, by `thread_seconds`; None: never."""

    end: float | None = None


_deadline = _Deadline()


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Give a block so many seconds of this thread's processor time. Not for a block inside another."""
    _deadline.end = thread_seconds() + seconds
    try:
        yield
    finally:
        _deadline.end = None


def is_time_limited() -> bool:
    """Whether this thread is in a block of `time_limit`."""
    return _deadline.end is not None


def check_time() -> None:
    """Raise `OutOfTime` where the time of `time_limit` is up. Half a microsecond: for every round of a loop."""
    if _deadline.end is not None and thread_seconds() > _deadline.end:
        raise OutOfTime


class Steps:
    """Steps that are left of ``limit``. ``message`` says what takes more; ``{}`` in it stands for the limit."""

    __slots__ = ("_left", "_limit", "_message", "_unchecked")

    def __init__(self, limit: int, message: str) -> None:
        self._left = self._limit = limit
        self._unchecked = 0
        self._message = message

    def spend(self, steps: int) -> None:
        """Take off some steps. Raises TooComplexError when there are none left, OutOfTime when the time is up."""
        self._left -= steps
        self._unchecked += steps
        if self._left < 0:
            raise TooComplexError(self._message.format(self._limit), budget="automaton steps", limit=self._limit)
        if self._unchecked > _CHECK_EVERY:
            self._unchecked = 0
            check_time()
