"""The matcher of Lark's LALR parser with its contextual lexer: where an output stands."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from structgen.bitmask import check_row
from structgen.errors import MatcherStateError, TokenError
from structgen.kernels import lalr_machine as k
from structgen.kernels.lalr_machine import ACCEPT, DEAD, FILL, call

if TYPE_CHECKING:
    from structgen.contextual.compiled import LalrGrammar

_NOT_CHECKED: Any = None


class LalrMatcher:
    """One output in progress. Make one with `LalrGrammar.matcher`; see `structgen.protocols.Matcher`.

    Its state is one integer in the memory of the grammar's machine. Matchers of one grammar may be used in different
    threads at once, one matcher in one thread at a time.
    """

    __slots__ = ("_checked", "_grammar", "_history", "_machine", "_root", "_size", "_state", "_terminated")

    def __init__(self, grammar: LalrGrammar) -> None:
        self._grammar = grammar
        self._size = grammar.vocabulary.size
        self._machine = grammar.machine()
        self._root = self._machine.root
        self._state = self._machine.start
        self._history: list[int] = []  # states before each step; negative: the step was the end of sequence
        self._terminated = False
        self._checked = (_NOT_CHECKED, 0, 0)  # the last bitmask, its address and rows

    @property
    def grammar(self) -> LalrGrammar:
        """The grammar that this matcher follows."""
        return self._grammar

    @property
    def stats(self) -> dict[str, int]:
        """``undecided``: states that were given up because no completion was found in bounded time."""
        return {"undecided": self._machine.witnesses.undecided}

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
        out = address + 4 * self._machine.width * index
        while (result := call(self._root, FILL, self._state, out, 0)) < 0:
            self._machine.provide(result)

    def accept_token(self, token_id: int) -> bool:
        """Advance by a token. False, and nothing changes, if it is not allowed here.

        Raises:
            TokenError: the id lies outside the vocabulary.
        """
        if not 0 <= token_id < self._size:
            raise TokenError(f"token id {token_id} is out of range; the vocabulary has ids 0 to {self._size - 1}")
        if self._terminated:
            return False
        before = self._state
        while (state := call(self._root, ACCEPT, before, token_id, 0)) < 0:
            self._machine.provide(state)
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
            state = self._machine.call(k.ADVANCE, self._state, text.ctypes.data, len(data))
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
            raise MatcherStateError(f"cannot roll back {steps} steps; {len(self._history)} were accepted")
        if steps:
            before = self._history[-steps]
            self._state, self._terminated = abs(before), before < 0
            del self._history[-steps:]

    def fork(self) -> LalrMatcher:
        """An independent matcher in the same state, which can be rolled back as far. O(1) but for the step list."""
        twin = self.copy()
        twin._history = self._history.copy()
        return twin

    def copy(self) -> LalrMatcher:
        """An independent matcher in the same state, without the history. O(1)."""
        twin = LalrMatcher.__new__(LalrMatcher)
        twin._grammar, twin._size = self._grammar, self._size
        twin._machine, twin._root, twin._state = self._machine, self._root, self._state
        twin._history, twin._terminated = [], self._terminated
        twin._checked = (_NOT_CHECKED, 0, 0)
        return twin

    def reset(self) -> None:
        """Back to the start of the text; forgets the history."""
        self.__init__(self._grammar)  # type: ignore[misc]

    def is_accepting(self) -> bool:
        """Whether the text may stop here."""
        return not self._terminated and bool(self._machine.call(k.ENDS, self._state))

    def is_terminated(self) -> bool:
        """Whether the end of sequence was accepted."""
        return self._terminated

    def next_bytes(self) -> npt.NDArray[np.bool_]:
        """Which bytes may come next, bool[256]."""
        out = np.zeros(8, np.int32)
        if not self._terminated:
            self._machine.call(k.NEXT_BYTES, self._state, out.ctypes.data)
        return np.unpackbits(out.view(np.uint8), bitorder="little").astype(bool)

    def forced_bytes(self) -> bytes:
        """The longest text that every completion starts with (empty where the text may stop)."""
        forced = bytearray()
        walker = self.copy()
        while not self._terminated and not walker.is_accepting():
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

    def shortest_completion(self) -> bytes:
        """A short text that completes the output from here (b"" if it may stop); mostly a shortest one.

        Raises:
            MatcherStateError: none was found (the grammar resists all bounded search; none has been seen to).
        """
        if self._terminated or self.is_accepting():
            return b""
        walker, first = self.copy(), bytearray()
        while walker._state >> k.STATE_BITS:  # within a character
            byte = bytes([int(np.flatnonzero(walker.next_bytes())[0])])
            walker.accept_bytes(byte)
            first += byte
        rest = walker._machine.witnesses.complete(walker._state)
        if rest is None:
            raise MatcherStateError("no completion was found")
        return bytes(first) + rest.encode()

    def _terminate(self) -> bool:
        if not self.is_accepting():
            return False
        self._history.append(self._state)
        self._terminated = True
        return True
