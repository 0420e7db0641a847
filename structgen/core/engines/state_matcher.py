"""Matchers whose whole state is one integer: a state that a machine interns in its memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from structgen.core.engines.matcher import BaseMatcher, GrammarT
from structgen.core.kernels.heap_layout import ACCEPT, ADVANCE, DEAD, ENDS, FILL, NEXT_BYTES
from structgen.errors import MatcherStateError, TokenError


class StateMatcher(BaseMatcher[GrammarT]):
    """One output in progress; see `structgen.core.engines.protocols.Matcher`."""

    __slots__ = ("_history", "_lock", "_machine", "_root", "_size", "_state")

    _run: ClassVar[Callable[..., int]]
    """The kernel's entry point: (address of the memory's address, operation, x, y, z) to a state, or below 0 what it
    lacks, which ``provide`` of the machine gives it. It is called under the machine's lock."""

    def __init__(self, grammar: Any) -> None:
        super().__init__(grammar)
        self._size = grammar.vocabulary.size
        self._machine = grammar.machine()
        self._root, self._lock = self._machine.root, self._machine.lock
        self._state = self._machine.start
        self._history: list[int] = []  # states before each step; negative: and the output had ended

    @property
    def state_is_shared(self) -> bool:
        """See `Matcher.state_is_shared`: states are interned."""
        return True

    def _fill(self, bitmask: npt.NDArray[np.int32], index: int, out: int) -> None:
        lock = self._lock
        lock.acquire()  # half the time of ``with``
        try:
            result = self._run(self._root, FILL, self._state, out, 0)
        finally:
            lock.release()
        if result < 0:
            self._make_room()
            self._machine.call(FILL, self._state, out)

    def _make_room(self) -> None:
        """Called before the machine gives the kernel what a call lacked. A matcher may move to another machine here."""

    def accept_token(self, token_id: int) -> bool:
        """See `Matcher.accept_token`."""
        if not 0 <= token_id < self._size:
            raise TokenError.out_of_range(token_id, self._size)
        if self._in_use:
            raise MatcherStateError.in_use()
        if self._terminated:
            return False
        self._in_use, lock = True, self._lock
        try:
            lock.acquire()
            try:
                state = self._run(self._root, ACCEPT, self._state, token_id, 0)
            finally:
                lock.release()
            if state < 0:
                self._make_room()
                state = self._machine.call(ACCEPT, self._state, token_id)
            if state == DEAD:
                return token_id in self._grammar.vocabulary.eos_token_ids and self._terminate()
            self._history.append(self._state)
            self._state = state
            return True
        finally:
            self._in_use = False

    def _accept(self, data: bytes) -> bool:
        if self._terminated and data:
            return False
        text = np.frombuffer(data, np.uint8)
        if data:
            self._make_room()
        before = -self._state if self._terminated else self._state
        if data:
            state = self._machine.call(ADVANCE, self._state, text.ctypes.data, len(data))
            if state == DEAD:
                return False
            self._state = state
        self._history.append(before)
        return True

    def _rollback(self, steps: int) -> None:
        """O(1)."""
        if not 0 <= steps <= len(self._history):
            raise MatcherStateError.past_the_start(steps, len(self._history))
        if steps:
            before = self._history[-steps]
            self._state, self._terminated = abs(before), before < 0
            del self._history[-steps:]

    def _fork(self) -> Self:
        """O(1) but for the step list."""
        twin = self._copy()
        twin._history = self._history.copy()
        return twin

    def _copy(self) -> Self:
        """O(1)."""
        twin = object.__new__(type(self))
        BaseMatcher.__init__(twin, self._grammar)
        twin._size = self._size
        twin._machine, twin._root, twin._lock, twin._state = self._machine, self._root, self._lock, self._state
        twin._history, twin._terminated = [], self._terminated
        return twin

    def is_accepting(self) -> bool:
        """See `Matcher.is_accepting`."""
        if self._in_use:
            raise MatcherStateError.in_use()
        return self._may_stop()

    def _may_stop(self) -> bool:
        return not self._terminated and bool(self._machine.call(ENDS, self._state) & 1)

    def _mark_next_bytes(self, out: npt.NDArray[np.int32]) -> None:
        self._machine.call(NEXT_BYTES, self._state, out.ctypes.data)

    def _is_open(self) -> bool:
        return bool(self._machine.call(ENDS, self._state))

    def state_key(self, *, same_matcher: bool = False) -> Hashable:
        """See `Matcher.state_key`."""
        return self._machine, self._state, self._terminated

    def _terminate(self) -> bool:
        if not self._may_stop():
            return False
        self._history.append(self._state)
        self._terminated = True
        return True
