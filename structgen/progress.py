"""Telling whoever waits what takes so long: one way for callbacks, logs and terminals.

Work that may take long runs under ``waiting``. Where it takes over a second, it is told *while* it goes on: to the
callback of ``report_progress`` (the ``progress=`` of generators and engines), else to the logger "structgen".
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec, TypeAlias, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")
LOG = logging.getLogger("structgen")
CONSTRAINT_LOG = logging.getLogger("structgen.constraints")
"""What is odd about constraints: lines that hold names of schemas and tools, which a server keeps out of its log."""
SECONDS = 1.0  # before anything is told, and between two tellings to a callback
PART_SECONDS = 0.1  # at least, between two tellings of parts that are done


@dataclass(frozen=True, slots=True)
class ProgressEvent:
    """Something that takes over a second, and how far it is.

    Attributes:
        what: is done, such as "loading the model gpt2".
        done: how many of ``total`` parts are.
        total: parts; None: they are not counted.
        seconds: since it began.
        is_over: whether this is the last event of it (also where it failed).
        is_once: whether it is done once per installation only.
    """

    what: str
    done: int
    total: int | None
    seconds: float
    is_over: bool = False
    is_once: bool = False

    def __str__(self) -> str:
        if self.is_over:
            return f"{self.what}: {self.seconds:.1f} s"
        done = f" ({self.done} of {self.total})" if self.total is not None else f" ({self.done})" if self.done else ""
        return f"{self.what}{done} ..."


ProgressCallback: TypeAlias = "Callable[[ProgressEvent], object]"
_CALLBACK: ContextVar[ProgressCallback | None] = ContextVar("structgen_progress", default=None)


@contextmanager
def report_progress(progress: ProgressCallback | None) -> Iterator[None]:
    """Have what takes over a second in this block told to a callback, in place of the log.

    Args:
        progress: called after a second, every second from then on, and at the end; mostly in another thread. What it
            raises is logged. None changes nothing.

    Raises:
        OptionsError: it cannot be called.
    """
    check_progress(progress)
    if progress is None:
        yield
        return
    token = _CALLBACK.set(progress)
    try:
        yield
    finally:
        _CALLBACK.reset(token)


def check_progress(progress: Any) -> None:
    """Refuse what is neither None nor can be called.

    Raises:
        OptionsError: what was found.
    """
    if progress is not None and not callable(progress):
        from structgen.errors import OptionsError  # kernels stand without the rest of the package

        raise OptionsError(f"progress must be a function that takes an event, or None, not {progress!r:.100}")


class Wait:
    """Work that is going on: a block, or each call of a function. ``waiting`` makes it."""

    def __init__(self, what: str, total: int | None, once: bool, each: bool) -> None:
        self._what, self._total, self._once, self._each = what, total, once, each
        self._done = 0
        self._callback = _CALLBACK.get()
        self._began = time.monotonic()
        self.due = self._began + SECONDS  # when it is told next
        self._is_reported = self._is_over = False
        self._next_part, self._logged = 0.0, 0
        self.telling: threading.Lock | None = None  # so that nothing comes after the last event; None: it was not due

    def __enter__(self) -> Wait:
        return _WATCH.begin(self)

    def __exit__(self, *error: object) -> None:
        _WATCH.end(self)

    def __call__(self, function: Callable[_P, _R]) -> Callable[_P, _R]:
        @wraps(function)
        def waited(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            wait = _WATCH.begin(Wait(self._what, self._total, self._once, self._each))
            try:
                return function(*args, **kwargs)
            finally:
                _WATCH.end(wait)

        return waited

    def advance(self, parts: int = 1) -> None:
        """So many parts more are done."""
        self._done += parts
        now = time.monotonic()
        if self._each and self._is_reported and now >= self._next_part:
            self._next_part = now + PART_SECONDS
            self.report()

    def is_due(self, now: float) -> bool:
        """Whether it is to be told. The watch's lock is held, and taken once more before the wait is over."""
        if self.due > now:
            return False
        self.telling = self.telling or threading.Lock()
        return True

    def report(self) -> None:
        """Say that it goes on, unless it is over."""
        assert self.telling is not None, "it was due"
        with self.telling:
            if not self._is_over:
                self.due = time.monotonic() + SECONDS
                self._say(first=not self._is_reported)
                self._is_reported = True

    def end(self) -> None:
        """Say that it is over, if it was told of. It was due."""
        assert self.telling is not None, "it was due"
        with self.telling:
            self._is_over = True
            if self._is_reported:
                self._say(first=False)

    def _say(self, *, first: bool) -> None:
        seconds = time.monotonic() - self._began
        event = ProgressEvent(self._what, self._done, self._total, seconds, self._is_over, self._once)
        if self._callback is None:
            is_part = self._each and self._logged != self._done
            if first or event.is_over or is_part:
                self._logged = self._done
                # What is done once per installation nobody expects: it is seen where no logging is set up, too.
                LOG.log(logging.WARNING if self._once else logging.INFO, "%s", event)
            return
        try:
            self._callback(event)
        except Exception:
            LOG.exception("progress=%r failed", self._callback)


def waiting(what: str, total: int | None = None, *, once: bool = False, each: bool = False) -> Wait:
    """Tell of the work in this block, or in each call of this function, if it takes over a second. Costs a microsecond
    or two.

    Args:
        what: is done, as a phrase like "loading the model gpt2".
        total: parts that it has, if they are counted with ``Wait.advance``.
        once: whether it is done once per installation only.
        each: whether every part that is done after the first second is told at once, to the log, too; of many in a
            tenth of a second the last.
    """
    return Wait(what, total, once, each)


class _Watch:
    """A thread that tells of waits when they are due. It lives while there are some, and up to a second longer, so
    that many short ones in a row start one thread a second.

    A new wait is due in a second, no sooner than what the thread sleeps for: nobody need wake it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()  # of the two below
        self._waits: list[Wait] = []
        self._thread: threading.Thread | None = None

    def begin(self, wait: Wait) -> Wait:
        """Look after a wait."""
        with self._lock:
            self._waits.append(wait)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="structgen-progress", daemon=True)
                try:
                    self._thread.start()
                except RuntimeError:  # the interpreter ends, or there are no more threads
                    self._thread = None
        return wait

    def end(self, wait: Wait) -> None:
        """Look after it no longer."""
        with self._lock:
            if wait in self._waits:  # not in a process that was forked meanwhile
                self._waits.remove(wait)
        if wait.telling is not None:
            wait.end()

    def _run(self) -> None:
        pause = SECONDS
        while True:
            time.sleep(pause)
            now = time.monotonic()
            with self._lock:
                if not self._waits:
                    self._thread = None
                    return
                due = [wait for wait in self._waits if wait.is_due(now)]
            for wait in due:
                wait.report()
            with self._lock:
                pause = max(0.0, min((wait.due for wait in self._waits), default=now) - time.monotonic())


_WATCH = _Watch()


def _forget() -> None:
    """In a forked process, which has the waits of its parent without the thread."""
    global _WATCH
    _WATCH = _Watch()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
