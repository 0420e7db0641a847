"""Matchers whose whole state is one integer: a state that a machine interns in its memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from structgen.bitmask import check_row
from structgen.errors import MatcherStateError, TokenError

# The operations that the kernels of such machines have in common; ENDS gives bits, of which the lowest is "may stop".
FILL, ACCEPT, ADVANCE, ENDS, NEXT_BYTES = range(5)
DEAD = 0
_NOT_CHECKED = object()


class StateMatcher:
    """One output in progress; see `structgen.protocols.Matcher`.

    Matchers of one grammar may be used in different threads at once, one matcher in one thread at a time.
    """

    __slots__ = ("_checked", "_grammar", "_history", "_lock", "_machine", "_root", "_size", "_state", "_terminated")

    _run: ClassVar[Callable[..., int]]
    """The kernel's entry point: (address of the memory's address, operation, x, y, z) to a state, or below 0 what it
    lacks, which ``provide`` of the machine gives it. It is called under the machine's lock."""

    def __init__(self, grammar: Any) -> None:
        self._grammar = grammar
        self._size = grammar.vocabulary.size
        self._machine = grammar.machine()
        self._root, self._lock = self._machine.root, self._machine.lock
        self._state = self._machine.start
        self._history: list[int] = []  # states before each step; negative: and the output had ended
        self._terminated = False
        self._checked = (_NOT_CHECKED, 0, 0)  # the last bitmask, its address and rows

    def fill_next_token_bitmask(self, bitmask: npt.NDArray[np.int32], index: int = 0) -> None:
        """Write the mask of the next token into row ``index`` of ``bitmask``.

        Bit t % 32 of word t // 32 is set exactly if `accept_token` would take token t. End-of-sequence bits are set
        exactly if `is_accepting`. After the end of sequence the row is all zero.

        Args:
            bitmask: int32[batch, ceil(V / 32)] or int32[ceil(V / 32)], C-contiguous; mutated.
            index: the row.

        Raises:
            BitmaskError: wrong dtype, shape or layout.
        """
        checked, address, rows = self._checked
        if bitmask is not checked or not 0 <= index < rows:
            address, rows = check_row(bitmask, index, self._size)
            self._checked = (bitmask, address, rows)
        if self._terminated:
            (bitmask[index] if bitmask.ndim == 2 else bitmask)[:] = 0
            return
        out = address + 4 * self._machine.width * index if index else address
        lock = self._lock
        lock.acquire()  # half the time of ``with``
        try:
            while (result := self._run(self._root, FILL, self._state, out, 0)) < 0:
                self._machine.provide(result)
        finally:
            lock.release()

    def accept_token(self, token_id: int) -> bool:
        """Advance by a token. False, and nothing changes, if it is not allowed here.

        Raises:
            TokenError: the id lies outside the vocabulary.
        """
        if not 0 <= token_id < self._size:
            raise TokenError.out_of_range(token_id, self._size)
        if self._terminated:
            return False
        before = self._state
        lock = self._lock
        lock.acquire()
        try:
            while (state := self._run(self._root, ACCEPT, before, token_id, 0)) < 0:
                self._machine.provide(state)
        finally:
            lock.release()
        if state == DEAD:
            return token_id in self._grammar.vocabulary.eos_token_ids and self._terminate()
        self._history.append(before)
        self._state = state
        return True

    def accept_bytes(self, data: bytes) -> bool:
        """Advance by text (UTF-8, any split). False, and nothing changes, if it is not allowed here.

        Counts as one step for `rollback`.
        """
        if self._terminated and data:
            return False
        before = -self._state if self._terminated else self._state
        text = np.frombuffer(data, np.uint8)
        if data:
            state = self._machine.call(ADVANCE, self._state, text.ctypes.data, len(data))
            if state == DEAD:
                return False
            self._state = state
        self._history.append(before)
        return True

    def rollback(self, steps: int = 1) -> None:
        """Undo the last ``steps`` accepted tokens or texts, the end of sequence included. O(1).

        Raises:
            MatcherStateError: fewer were accepted.
        """
        if not 0 <= steps <= len(self._history):
            raise MatcherStateError.past_the_start(steps, len(self._history))
        if steps:
            before = self._history[-steps]
            self._state, self._terminated = abs(before), before < 0
            del self._history[-steps:]

    def fork(self) -> Self:
        """An independent matcher in the same state, which can be rolled back as far. O(1) but for the step list."""
        twin = self.copy()
        twin._history = self._history.copy()
        return twin

    def copy(self) -> Self:
        """An independent matcher in the same state, without the history. O(1)."""
        twin = object.__new__(type(self))
        twin._grammar, twin._size = self._grammar, self._size
        twin._machine, twin._root, twin._lock, twin._state = self._machine, self._root, self._lock, self._state
        twin._history, twin._terminated = [], self._terminated
        twin._checked = (_NOT_CHECKED, 0, 0)
        return twin

    def reset(self) -> None:
        """Back to the start of the text; forgets the history."""
        self.__init__(self._grammar)  # type: ignore[misc]

    def is_accepting(self) -> bool:
        """Whether the text may stop here."""
        return not self._terminated and bool(self._machine.call(ENDS, self._state) & 1)

    def is_terminated(self) -> bool:
        """Whether the end of sequence was accepted."""
        return self._terminated

    def next_bytes(self) -> npt.NDArray[np.bool_]:
        """Which bytes may come next, bool[256]."""
        out = np.zeros(8, np.int32)
        if not self._terminated:
            self._machine.call(NEXT_BYTES, self._state, out.ctypes.data)
        return np.unpackbits(out.view(np.uint8), bitorder="little").astype(bool)

    def forced_bytes(self) -> bytes:
        """The longest text that every completion starts with (empty where the text may stop or embed another)."""
        forced = bytearray()
        if self._terminated:
            return b""
        walker = self.copy()
        while not self._machine.call(ENDS, walker._state):
            following = np.flatnonzero(walker.next_bytes())
            if len(following) != 1:
                break
            byte = bytes([int(following[0])])
            walker.accept_bytes(byte)
            forced += byte
        return bytes(forced)

    def state_key(self, *, own: bool = False) -> Hashable:
        """See `structgen.protocols.Matcher`."""
        return self._machine, self._state, self._terminated

    def _terminate(self) -> bool:
        if not self.is_accepting():
            return False
        self._history.append(self._state)
        self._terminated = True
        return True
