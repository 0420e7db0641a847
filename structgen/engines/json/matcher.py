"""The matcher: where an output stands in its grammar. The only mutable state of a constraint."""

from __future__ import annotations

from array import array
from collections.abc import Hashable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from structgen.engines.byte_sets import EVERY_BYTE, byte_set
from structgen.engines.matcher import BaseMatcher
from structgen.engines.protocols import TOO_LONG
from structgen.errors import MatcherStateError, TokenError
from structgen.kernels.json import layout, machine

if TYPE_CHECKING:
    from structgen.engines.json.compiled import JsonGrammar
    from structgen.engines.json.masks.context import KernelContext

FIRST_ARENA = 64
# Equal configurations are merged at the end of each kernel call, so long texts are read in pieces: a text with many
# values that each have several alternatives would otherwise be read once for each combination.
PIECE = 16
FIRST_TEXT = 256
_QUOTE = byte_set(b'"')


class FrameArena:
    """Memory of a matcher's open containers, a stack: what is rolled back makes room. Frames are never changed."""

    __slots__ = ("array", "top")

    def __init__(self) -> None:
        self.array = array("q", bytes(8 * FIRST_ARENA))
        self.top = 0

    def copy(self) -> FrameArena:
        """The frames so far. O(frames)."""
        twin = FrameArena()
        twin.array = self.array[: max(self.top, FIRST_ARENA)]
        twin.top = self.top
        return twin

    def reserve(self, words: int) -> None:
        """Make room for ``words`` more."""
        need = self.top + words
        if need > len(self.array):
            grown = array("q", bytes(8 * max(need, 2 * len(self.array))))
            grown[: self.top] = self.array[: self.top]
            self.array = grown


class Written:
    """The text so far, which arrays of distinct items are compared in. Kernels write what they try behind its end."""

    __slots__ = ("array", "length")

    def __init__(self, array_: array[int] | None = None, length: int = 0) -> None:
        self.array = array("B", bytes(FIRST_TEXT)) if array_ is None else array_
        self.length = length

    def append(self, data: bytes | memoryview) -> None:
        """Add to the text."""
        end = self.length + len(data)
        if end > len(self.array):
            self.array.extend(bytes(end))
        self.array[self.length : end] = array("B", data)
        self.length = end

    def copy(self) -> Written:
        """The same text, apart."""
        return Written(self.array[:], self.length)


class JsonMatcher(BaseMatcher["JsonGrammar"]):
    """One output in progress; see `structgen.engines.protocols.Matcher`. Make one with `JsonGrammar.matcher`."""

    __slots__ = (
        "_arena", "_history", "_rests", "_rows", "_tables", "_threads", "_vocabulary", "_written", "dropped",
        "searches",
    )  # fmt: skip

    def __init__(self, grammar: JsonGrammar) -> None:
        super().__init__(grammar)
        self._rows = grammar.rows
        self._tables = grammar.tables
        self._vocabulary = grammar.vocabulary
        self._arena = FrameArena()
        blocked = 0 if grammar.tables.grammar[layout.H_WHITESPACE] == layout.ANY else 1
        self._threads = array("q", [layout.VALUE, grammar.tables.root, blocked, -1])
        self._history: list[tuple[array[int], int, bool, int]] = []
        self._written = Written() if grammar.tables.distinct else _NOTHING
        self._rests: dict[int, int] = {}  # bytes from the end of a value in a frame on, of frames that were asked for
        self.dropped = 0
        self.searches = 0

    @property
    def stats(self) -> dict[str, int]:
        """Budget hits so far; each may narrow what is allowed, none widens it.

        ``dropped_alternatives``: parses given up for want of room. ``exhausted_searches``: searches for a distinct item
        that ended without one when their steps ran out (most often there is none).
        """
        return {"dropped_alternatives": self.dropped, "exhausted_searches": self.searches}

    def _fill(self, bitmask: npt.NDArray[np.int32], index: int, out: int) -> None:
        context = self._rows.context()
        count = len(self._threads) >> 2
        first = 0
        while (status := machine.fill(self._enter(context), count, out, first)) >= layout.MISS:
            first = context.registers[layout.RESUME]
            context.resolve(status)
        if self._written is not _NOTHING:
            self.searches += context.registers[layout.GIVEN_UP]

    def accept_token(self, token_id: int) -> bool:
        """See `Matcher.accept_token`."""
        if not 0 <= token_id < self._vocabulary.size:
            raise TokenError.out_of_range(token_id, self._vocabulary.size)
        if self._terminated:
            return False
        arena = self._arena
        context = self._rows.context()
        count = len(self._threads) >> 2
        top = arena.top
        while context.is_short(status := machine.accept(self._enter(context), count, token_id, top)):
            context.resolve(status)
        if status == layout.DEAD:
            return token_id in self._vocabulary.eos_token_ids and self._terminate()
        registers = context.registers
        self._history.append((self._threads, arena.top, False, self._written.length))
        if self._written is not _NOTHING:
            self._written.append(self._vocabulary.tokens[token_id])
        if registers[layout.TOP] < 0:
            self._settle(context, registers[layout.FRESH])
        else:
            if top >= 0:
                arena.top = registers[layout.TOP]
            self._take(context)
        return True

    def accept_bytes(self, data: bytes) -> bool:
        """See `Matcher.accept_bytes`."""
        if self._terminated and data:
            return False
        before = (self._threads, self._arena.top, self._terminated, self._written.length)
        dropped = self.dropped
        context = self._rows.context()
        context.set_data(np.frombuffer(data, np.uint8))
        try:
            for start in range(0, len(data), PIECE):
                end = min(start + PIECE, len(data))
                count = len(self._threads) >> 2
                while context.is_short(status := machine.advance(self._enter(context), count, start, end)):
                    context.resolve(status)
                if status == layout.DEAD:
                    self._threads, self._written.length, self.dropped = before[0], before[3], dropped
                    self._arena.top = before[1]
                    return False
                self._settle(context, context.registers[layout.TOP])
                if self._written is not _NOTHING:
                    self._written.append(data[start:end])
        finally:
            context.set_data(self._vocabulary.token_bytes)
        self._history.append(before)
        return True

    def rollback(self, steps: int = 1) -> None:
        """See `Matcher.rollback`. O(1)."""
        if not 0 <= steps <= len(self._history):
            raise MatcherStateError.past_the_start(steps, len(self._history))
        if steps == 0:
            return
        self._threads, top, self._terminated, self._written.length = self._history[-steps]
        del self._history[-steps:]
        if top != self._arena.top:
            self._arena.top = top
            self._rests.clear()

    def fork(self) -> JsonMatcher:
        """See `Matcher.fork`. O(steps), as memory is copied."""
        twin = JsonMatcher(self._grammar)
        twin._arena = self._arena.copy()
        twin._threads = self._threads
        twin._history = self._history.copy()
        if self._written is not _NOTHING:
            twin._written = self._written.copy()
        twin._terminated = self._terminated
        twin.dropped = self.dropped
        return twin

    def copy(self) -> JsonMatcher:
        """See `Matcher.copy`. O(size of the arena)."""
        twin = JsonMatcher(self._grammar)
        twin._arena = self._arena.copy()
        twin._threads = self._threads
        twin._terminated = self._terminated
        if self._written is not _NOTHING:
            twin._written = self._written.copy()
        return twin

    def is_accepting(self) -> bool:
        """See `Matcher.is_accepting`."""
        if self._terminated:
            return False
        context = self._rows.context()
        return bool(machine.accepting(self._enter(context), len(self._threads) >> 2))

    def _mark_next_bytes(self, out: npt.NDArray[np.int32]) -> None:
        context = self._rows.context()
        count = len(self._threads) >> 2
        while (status := machine.next_bytes(self._enter(context), count, out.ctypes.data)) >= layout.MISS:
            context.resolve(status)

    def shortest_completion(self) -> bytes:
        """See `Matcher.shortest_completion`; O(depth) for values whose goals were completed before."""
        if self._terminated or self.is_accepting():
            return b""
        text = self._grammar.completions.complete(self)
        self._grammar.lengths.bytes_of(text)  # which notes bytes that are no tokens
        return text

    def likely_texts(self, written: bytes) -> list[bytes]:
        """See `Matcher.likely_texts`."""
        return [] if self._terminated else self._grammar.completions.likely(self, written)

    def completion_bound(self) -> int:
        """See `Matcher.completion_bound`. O(threads), and O(depth) for frames that were not asked for before."""
        if self._terminated:
            return 0
        bound = self._grammar.lengths.least(self._threads, self._arena.array, self._rests)
        return bound if bound < TOO_LONG else super().completion_bound()

    def completion_is_spelled(self) -> bool:
        """See `Matcher.completion_is_spelled`: whether no piece of any text so far had a byte that is no token."""
        return self._grammar.lengths.all_spelled

    def state_key(self, *, own: bool = False) -> Hashable:
        """See `Matcher.state_key`. None where items must be distinct, and for other matchers within a container."""
        if self._written is not _NOTHING:
            return None
        # Frames are this matcher's own, and never changed.
        if not own and any(frame >= 0 for frame in self._threads[3::4]):
            return None
        return self._threads.tobytes(), self._terminated

    def bytes_to_stop(self) -> int:
        """See `Matcher.bytes_to_stop`: outside of strings JSON has no A, so here is one, and only a quote ends it."""
        return _QUOTE if self.next_bytes()[ord("A")] else EVERY_BYTE

    def configurations(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The parse state for inspection: int64[n, 4] configurations, and the arena their frames lie in."""
        return np.array(self._threads, np.int64).reshape(-1, 4), np.array(self._arena.array, np.int64)

    # --- internals ---
    def _enter(self, context: KernelContext) -> int:
        """Set the thread's context to this matcher; again before each call, since resolving may use it for others."""
        written = self._written
        return context.enter(self._tables, self._threads, self._arena.array, written.array, written.length)

    def _terminate(self) -> bool:
        if not self.is_accepting():
            return False
        self._history.append((self._threads, self._arena.top, False, self._written.length))
        self._terminated = True
        return True

    def _take(self, context: KernelContext) -> None:
        """The configurations that the kernel found are the state now."""
        registers = context.registers
        self._threads = context.result[: 4 * registers[layout.ALTERNATIVES]]
        self.dropped += registers[layout.MISSING]

    def _settle(self, context: KernelContext, words: int) -> None:
        """Take the configurations found after moving their frames, of that many words, into the arena."""
        arena = self._arena
        if words:
            top = arena.top
            arena.reserve(words)
            arena.top = machine.settle(self._enter(context), top, context.registers[layout.ALTERNATIVES])
        self._take(context)


_NOTHING = Written()  # of grammars that need no text; never written to
