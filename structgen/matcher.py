"""The matcher: where an output stands in its grammar. The only mutable state of a constraint."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NoReturn

import numpy as np
import numpy.typing as npt

from structgen.bitmask import row_address
from structgen.errors import MatcherStateError, TokenError
from structgen.kernels import json_machine as k
from structgen.machine.context import MAX_THREADS, Context

if TYPE_CHECKING:
    from structgen.compiled import CompiledGrammar

FIRST_ARENA = 64
# More scratch than this for one token means that a kernel is wrong, not that the token is long.
MAX_GROWTHS = 20


class FrameArena:
    """Append-only memory of open containers, shared by a matcher and its forks.

    Frames are never changed, so readers need no lock, not even of an array that has been replaced by a larger one.
    """

    __slots__ = ("array", "lock", "shared", "top")

    def __init__(self) -> None:
        self.array = np.empty(FIRST_ARENA, np.int64)
        self.top = 0
        self.shared = False
        self.lock = threading.Lock()

    def reserve(self, words: int) -> None:
        """Make room for ``words`` more (the lock is held)."""
        need = self.top + words
        if need > len(self.array):
            grown = np.empty(max(need, 2 * len(self.array)), np.int64)
            grown[: self.top] = self.array[: self.top]
            self.array = grown


class GrammarMatcher:
    """One output in progress. Make one with `CompiledGrammar.matcher`.

    Matchers of one grammar may be used in different threads at once, one matcher in one thread at a time.
    """

    __slots__ = ("_address", "_arena", "_count", "_grammar", "_history", "_terminated", "_threads", "dropped")

    def __init__(self, grammar: CompiledGrammar) -> None:
        self._grammar = grammar
        self._arena = FrameArena()
        whitespace = grammar.tables.grammar[k.H_WHITESPACE]
        self._set_threads(np.array([k.VALUE, grammar.tables.root, 0 if whitespace == k.ANY else 1, -1], np.int64))
        self._history: list[tuple[npt.NDArray[np.int64], int, bool]] = []
        self._terminated = False
        self.dropped = 0

    @property
    def grammar(self) -> CompiledGrammar:
        """The grammar that this matcher follows."""
        return self._grammar

    @property
    def stats(self) -> dict[str, int]:
        """``dropped_alternatives``: parses given up for want of room; each narrows what is allowed, none widens it."""
        return {"dropped_alternatives": self.dropped}

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
        self._fill(row_address(bitmask, index, self._grammar.vocabulary.size), bitmask, index)

    def _fill(self, out: int, bitmask: npt.NDArray[np.int32], index: int) -> None:
        row = bitmask[index] if bitmask.ndim == 2 else bitmask
        if self._terminated:
            row[:] = 0
            return
        context = self._enter()
        status = k.fill(context.address, self._count, out)
        while status >= k.MISS:
            self._resolve(context, status)
            status = k.fill(context.address, self._count, out)
        if k.accepting(context.address, self._count):
            for token in self._grammar.vocabulary.eos_token_ids:
                row[token >> 5] |= np.int32(np.uint32(1 << (token & 31)).view(np.int32))

    def accept_token(self, token_id: int) -> bool:
        """Advance by a token. False, and nothing changes, if it is not allowed here.

        Raises:
            TokenError: the id lies outside the vocabulary.
        """
        vocabulary = self._grammar.vocabulary
        if not 0 <= token_id < vocabulary.size:
            raise TokenError(f"token id {token_id} is out of range; the vocabulary has ids 0 to {vocabulary.size - 1}")
        if self._terminated:
            return False
        offsets = vocabulary.token_offsets
        start, end = int(offsets[token_id]), int(offsets[token_id + 1])
        if start == end:
            if token_id not in vocabulary.eos_token_ids or not self.is_accepting():
                return False
            self._history.append((self._threads[: 4 * self._count].copy(), self._arena.top, False))
            self._terminated = True
            return True
        return self._advance(vocabulary.token_bytes, start, end)

    def accept_bytes(self, data: bytes) -> bool:
        """Advance by text (UTF-8, any split). False, and nothing changes, if it is not allowed here.

        Counts as one step for `rollback`.
        """
        if self._terminated:
            return not data
        array = np.frombuffer(data, np.uint8)
        return self._advance(array, 0, len(array)) if len(array) else self._record_nothing()

    def rollback(self, steps: int = 1) -> None:
        """Undo the last ``steps`` accepted tokens or texts, the end of sequence included. O(1).

        Raises:
            MatcherStateError: fewer were accepted.
        """
        if not 0 <= steps <= len(self._history):
            raise MatcherStateError(f"cannot roll back {steps} steps; {len(self._history)} were accepted")
        if steps == 0:
            return
        threads, top, self._terminated = self._history[-steps]
        del self._history[-steps:]
        self._set_threads(threads)
        if not self._arena.shared:
            self._arena.top = top

    def fork(self) -> GrammarMatcher:
        """An independent matcher in the same state, which can be rolled back as far. O(1) but for the step list."""
        twin: GrammarMatcher = object.__new__(GrammarMatcher)
        twin._grammar = self._grammar
        twin._arena = self._arena
        self._arena.shared = True
        twin._set_threads(self._threads[: 4 * self._count].copy())
        twin._history = self._history.copy()
        twin._terminated = self._terminated
        twin.dropped = self.dropped
        return twin

    def reset(self) -> None:
        """Back to the start of the text; forgets the history."""
        self.__init__(self._grammar)  # type: ignore[misc]

    def is_accepting(self) -> bool:
        """Whether the text may stop here."""
        return not self._terminated and bool(k.accepting(self._enter().address, self._count))

    def is_terminated(self) -> bool:
        """Whether the end of sequence was accepted."""
        return self._terminated

    def next_bytes(self) -> npt.NDArray[np.bool_]:
        """Which bytes may come next, bool[256]."""
        out = np.zeros(8, np.int32)
        if not self._terminated:
            context = self._enter()
            status = k.next_bytes(context.address, self._count, out.ctypes.data)
            while status >= k.MISS:
                self._resolve(context, status)
                status = k.next_bytes(context.address, self._count, out.ctypes.data)
        return np.unpackbits(out.view(np.uint8), bitorder="little").astype(bool)

    def forced_bytes(self) -> bytes:
        """The longest text that every completion starts with from here (empty where the text may stop)."""
        forced = bytearray()
        walker = self.fork()
        while not walker.is_accepting():
            following = np.flatnonzero(walker.next_bytes())
            if len(following) != 1:
                break
            byte = bytes([int(following[0])])
            walker.accept_bytes(byte)
            forced += byte
        return bytes(forced)

    def shortest_completion(self) -> bytes:
        """A short text that completes the output from here (b"" if it may stop)."""
        if self._terminated or self.is_accepting():
            return b""
        return self._grammar.completions.complete(self)

    def configurations(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The parse state for inspection: int64[n, 4] configurations, and the arena their frames lie in."""
        return self._threads[: 4 * self._count].reshape(-1, 4), self._arena.array

    # --- internals ---
    def _set_threads(self, threads: npt.NDArray[np.int64]) -> None:
        self._threads = threads
        self._address = threads.ctypes.data
        self._count = len(threads) // 4

    def _enter(self) -> Context:
        """The thread's context, set to this matcher."""
        context = self._grammar.context()
        context.enter(self._address, len(self._threads), self._arena.array)
        return context

    def _record_nothing(self) -> bool:
        self._history.append((self._threads, self._arena.top, False))
        return True

    def _advance(self, data: npt.NDArray[np.uint8], start: int, end: int) -> bool:
        context = self._enter()
        context.set_data(data)
        status = k.advance(context.address, self._count, start, end)
        growths = 0
        while status >= k.MISS:
            growths += self._resolve(context, status)
            if growths > MAX_GROWTHS:
                raise AssertionError("scratch memory grows without end")
            status = k.advance(context.address, self._count, start, end)
        if status == k.DEAD:
            return False
        count, self.dropped = context.place, self.dropped + context.missing
        top = self._arena.top
        if context.used_scratch:
            with self._arena.lock:
                top = self._arena.top
                self._arena.reserve(context.used_scratch)
                context.set_arena(self._arena.array)
                self._arena.top = k.settle(context.address, top, count)
        self._history.append((self._threads, top, False))
        self._set_threads(context.result[: 4 * count].copy())
        return True

    def _resolve(self, context: Context, status: int) -> int:
        """Give a kernel what it asked for. 1 if that was scratch memory."""
        rows = self._grammar.rows
        if status == k.MISS:
            rows.pool.fill_number(context.missing)
        elif status == k.MISS_ROW:
            rows.compute(context.missing, context.place)
        elif status == k.FULL:
            context.grow()
            return 1
        else:
            _unknown(status)
        context.refresh()
        return 0


def _unknown(status: int) -> NoReturn:
    raise AssertionError(f"unknown kernel result {status}")


__all__ = ["MAX_THREADS", "FrameArena", "GrammarMatcher"]
