"""Models and threads: one call of a model at a time, and none where its own threads are gone."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any
from weakref import WeakKeyDictionary

from structgen.errors import ModelError


class Turn:
    """A lock that threads get in the order in which they ask; a thread may take it again. Use it by ``with``.

    A plain lock would go to the thread that has just given it back, so that one long output would keep all others from
    beginning.
    """

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._owner = self._depth = 0
        self._waiting: deque[tuple[int, threading.Lock]] = deque()

    def __enter__(self) -> None:
        me = threading.get_ident()
        if self._owner == me:
            self._depth += 1
            return
        gate = threading.Lock()
        with self._mutex:
            if not self._owner:
                self._owner, self._depth = me, 1
                return
            gate.acquire()
            self._waiting.append((me, gate))
        try:
            gate.acquire()  # released by the one before, who has made this thread the owner
        except BaseException:
            self._give_up(me, gate)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._depth -= 1
        if not self._depth:
            with self._mutex:
                self._hand_over()

    def _hand_over(self) -> None:
        self._owner = 0
        if self._waiting:
            self._owner, gate = self._waiting.popleft()
            self._depth = 1
            gate.release()

    def _give_up(self, me: int, gate: threading.Lock) -> None:
        """Leave the queue, or hand over what has arrived meanwhile."""
        with self._mutex:
            if (me, gate) in self._waiting:
                self._waiting.remove((me, gate))
            else:
                self._hand_over()


_TURNS: WeakKeyDictionary[Any, Turn] = WeakKeyDictionary()
_MAKING = threading.Lock()


Asking = Callable[[Callable[[], Any]], Any]
"""What runs some work that calls a model, where and when that may be, and gives what comes of it."""


def at_once(work: Callable[[], Any]) -> Any:
    """Run it here and now: see ``Asking``."""
    return work()


def turn_of(model: Any) -> Turn:
    """The turn under which a model, or a reader of its sequences, is called: one for all that use the same model."""
    with _MAKING:
        try:
            return _TURNS.setdefault(model, Turn())
        except TypeError:  # it cannot be referred to weakly: a class with slots of its own
            return Turn()


def share_turn(reader: Any, model: Any) -> None:
    """Let a reader's turn be its model's; that of what it wraps, where it wraps another's (``TransformersModel``)."""
    turn = turn_of(getattr(model, "model", model))
    with _MAKING, suppress(TypeError):
        _TURNS[reader] = _TURNS[model] = turn


# Threads that a library keeps between calls are not in a child that this process forks; there, the library waits for
# them without end.
_STARTED: set[str] = set()
_LOST: set[str] = set()


def threads_in_use(library: str) -> None:
    """Note that a library is about to use threads that it keeps.

    Raises:
        ModelError: it kept some before this process was forked, which are gone.
    """
    if library in _LOST:
        raise ModelError(
            f"This process was forked from one in which {library} had read already, and its threads are not here: it "
            "would wait for them without end. Start processes by multiprocessing's 'spawn' or 'forkserver', or fork "
            "before the first output and make the Generator in the child."
        )
    _STARTED.add(library)


def _after_fork() -> None:
    global _MAKING
    _MAKING = threading.Lock()  # a thread that is not here may have held these
    _TURNS.clear()
    _LOST.update(_STARTED)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
