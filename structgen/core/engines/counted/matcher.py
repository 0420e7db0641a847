"""The matcher of texts with bounds on their characters."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt

from structgen.core.engines.matcher import BaseMatcher
from structgen.errors import MatcherStateError

if TYPE_CHECKING:
    from structgen.core.engines.counted.grammar import CountedTexts


class CountedMatcher(BaseMatcher["CountedTexts"]):
    """One output in progress; see `structgen.core.engines.protocols.Matcher`. Its state is two numbers."""

    __slots__ = ("_count", "_history", "_state")

    def __init__(self, grammar: CountedTexts) -> None:
        super().__init__(grammar)
        self._state = self._count = 0
        self._history: list[tuple[int, int, bool]] = []  # state, characters, and whether it had ended, before each step

    def _fill(self, bitmask: npt.NDArray[np.int32], index: int, address: int) -> None:
        (bitmask[index] if bitmask.ndim == 2 else bitmask)[:] = self._grammar.machine.mask(
            self._state, *self._grammar.bounds(self._count)
        )

    def _accept_token(self, token_id: int) -> bool:
        vocabulary = self._grammar.vocabulary
        data = vocabulary.tokens[token_id]
        if data:
            return self._step(data)
        if token_id not in vocabulary.eos_token_ids or not self.is_accepting():
            return False
        self._history.append((self._state, self._count, False))
        self._terminated = True
        return True

    def _accept(self, data: bytes) -> bool:
        return self._step(bytes(memoryview(data)))

    def _step(self, data: bytes) -> bool:
        after = (self._state, self._count) if not data else None if self._terminated else self._after(data)
        if after is None:
            return False
        self._history.append((self._state, self._count, self._terminated))
        self._state, self._count = after
        return True

    def _after(self, data: bytes) -> tuple[int, int] | None:
        """State and characters after some bytes; None where they cannot come."""
        grammar = self._grammar
        table, inside = grammar.machine.table, grammar.lengths.inside
        state, count = self._state, self._count
        for byte in data:
            count += byte & 0xC0 != 0x80 and not inside[state]
            state = table[256 * state + byte]
            if state < 0:
                return None
        return (state, count) if grammar.lengths.complete(state, *grammar.bounds(count)) else None

    def _rollback(self, steps: int) -> None:
        """O(1)."""
        if not 0 <= steps <= len(self._history):
            raise MatcherStateError.past_the_start(steps, len(self._history))
        if steps:
            self._state, self._count, self._terminated = self._history[-steps]
            del self._history[-steps:]

    def _fork(self) -> Self:
        twin = self._copy()
        twin._history = self._history.copy()
        return twin

    def _copy(self) -> Self:
        """O(1)."""
        twin = type(self)(self._grammar)
        twin._state, twin._count, twin._terminated = self._state, self._count, self._terminated
        return twin

    def is_accepting(self) -> bool:
        """See `Matcher.is_accepting`."""
        grammar = self._grammar
        return (
            not self._terminated and bool(grammar.lengths.dfa.accepting[self._state]) and self._count >= grammar.least
        )

    def _mark_next_bytes(self, out: npt.NDArray[np.int32]) -> None:
        for byte in range(256):
            if self._after(bytes([byte])) is not None:
                out.view(np.uint8)[byte >> 3] |= 1 << (byte & 7)

    def shortest_completion(self) -> bytes:
        """See `Matcher.shortest_completion`: one of the fewest characters."""
        if self._terminated:
            return b""
        return self._grammar.machine.completion(self._state, self._grammar.least - self._count)

    def state_key(self, *, same_matcher: bool = False) -> Hashable:
        """See `Matcher.state_key`."""
        grammar = self._grammar
        least = max(grammar.least - self._count, 0)
        return self._state, least, None if grammar.most is None else grammar.most - self._count, self._terminated

    def bytes_to_stop(self) -> int:
        """See `Matcher.bytes_to_stop`: one byte that they all hold, where there is one."""
        return self._grammar.machine.needed_bytes[self._state]
