"""What matchers of all engines have in common: the check of the bitmask, resetting, forced bytes, the end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, Self, TypeVar

import numpy as np
import numpy.typing as npt

from structgen.core.engines.bitmask import check_row
from structgen.core.engines.byte_sets import EVERY_BYTE
from structgen.core.engines.capture import Captures
from structgen.core.engines.draft_trees import DraftTrees, walk_tree
from structgen.core.engines.protocols import MAX_FORCED_BYTES, TOO_LONG, Grammar
from structgen.core.regions import PartialParse
from structgen.errors import CompletionTooLongError, MatcherStateError, TokenError

GrammarT = TypeVar("GrammarT", bound=Grammar)
ResultT = TypeVar("ResultT")
_NOT_CHECKED = object()
MAX_FOLLOWED = 4  # bytes that may come next, of which each is followed up as a likely text


class BaseMatcher(ABC, Generic[GrammarT]):
    """A matcher but for what an engine does; `structgen.core.engines.protocols.Matcher` says what methods promise.

    A subclass is made with the grammar alone, and sets ``_terminated`` when it accepts the end of sequence. Calls that
    read or move its state set ``_in_use`` while they do, and refuse where it is set: a thread that came between would
    leave another's kernel with memory that is no more. The test and the setting are bytecodes that CPython does not
    switch threads between, a third of the price of a lock.
    """

    __slots__ = ("_checked", "_grammar", "_in_use", "_terminated")

    def __init__(self, grammar: GrammarT) -> None:
        self._grammar = grammar
        self._terminated = self._in_use = False
        self._checked: tuple[Any, int, int, int] = (_NOT_CHECKED, 0, 0, 0)  # the last bitmask; address, rows, row bytes

    @property
    def grammar(self) -> GrammarT:
        """See `Matcher.grammar`."""
        return self._grammar

    @property
    def stats(self) -> dict[str, int]:
        """See `Matcher.stats`; an engine without budgets counts nothing."""
        return {}

    @property
    def state_is_shared(self) -> bool:
        """See `Matcher.state_is_shared`."""
        return False

    def fill_next_token_bitmask(self, bitmask: npt.NDArray[np.int32], index: int = 0) -> None:
        """See `Matcher.fill_next_token_bitmask`."""
        address = self._row_address(bitmask, index)
        if self._in_use:
            raise MatcherStateError.in_use()
        self._in_use = True
        try:
            if self._terminated:
                (bitmask[index] if bitmask.ndim == 2 else bitmask)[:] = 0
            else:
                self._fill(bitmask, index, address)
        finally:
            self._in_use = False

    @classmethod
    def fill_all(cls, matchers: Sequence[Self], bitmask: npt.NDArray[np.int32], rows: Sequence[int]) -> None:
        """See `Matcher.fill_all`; here, one after the other."""
        for matcher, row in zip(matchers, rows, strict=True):
            matcher.fill_next_token_bitmask(bitmask, row)

    @classmethod
    def fill_trees(
        cls, matchers: Sequence[Self], trees: DraftTrees, bitmask: npt.NDArray[np.int32], rows: Sequence[int]
    ) -> npt.NDArray[np.bool_]:
        """See `Matcher.fill_trees`; here, step by step and back."""
        walks = enumerate(zip(matchers, rows, strict=True))
        return np.array([walk_tree(matcher, trees, tree, bitmask, row) for tree, (matcher, row) in walks], np.bool_)

    def advance_and_fill(self, token_id: int, bitmask: npt.NDArray[np.int32], index: int = 0) -> bool:
        """See `Matcher.advance_and_fill`; here, one after the other."""
        self._row_address(bitmask, index)
        if not self.accept_token(token_id):
            return False
        self.fill_next_token_bitmask(bitmask, index)
        return True

    @classmethod
    def advance_and_fill_all(
        cls, matchers: Sequence[Self], token_ids: Sequence[int], bitmask: npt.NDArray[np.int32], rows: Sequence[int]
    ) -> list[bool]:
        """See `Matcher.advance_and_fill_all`; here, one after the other."""
        steps = zip(matchers, token_ids, rows, strict=True)
        return [matcher.advance_and_fill(token_id, bitmask, row) for matcher, token_id, row in steps]

    def _row_address(self, bitmask: npt.NDArray[np.int32], index: int) -> int:
        """The address of a row, after a look at the bitmask (if it is not the one that was looked at last)."""
        checked, address, rows, row_bytes = self._checked
        if bitmask is not checked or not 0 <= index < rows:
            address, rows = check_row(bitmask, index, self._grammar.vocabulary.size)
            row_bytes = 4 * bitmask.shape[-1]
            self._checked = (bitmask, address, rows, row_bytes)
        return address + index * row_bytes

    @abstractmethod
    def _fill(self, bitmask: npt.NDArray[np.int32], index: int, address: int) -> None:
        """Write the mask into a row of a bitmask that fits; ``address`` is the row's. The output has not ended."""

    def accept_token(self, token_id: int) -> bool:
        """See `Matcher.accept_token`. Engines on kernels do it in one call instead."""
        size = self._grammar.vocabulary.size
        if not 0 <= token_id < size:
            raise TokenError.out_of_range(token_id, size)
        return self._alone(self._accept_token, token_id)

    def _accept_token(self, token_id: int) -> bool:
        """Take a token of the vocabulary, or refuse it and stay as before."""
        raise NotImplementedError

    def accept_bytes(self, data: bytes) -> bool:
        """See `Matcher.accept_bytes`."""
        if self._in_use:
            raise MatcherStateError.in_use()
        self._in_use = True
        try:
            return self._accept(data)
        except TypeError:
            if isinstance(data, (bytes, bytearray, memoryview)):
                raise
            raise TypeError(f"accept_bytes takes bytes, not {type(data).__name__}; a text is text.encode()") from None
        finally:
            self._in_use = False

    @abstractmethod
    def _accept(self, data: bytes) -> bool:
        """Take a text, or refuse it and stay as before: see `Matcher.accept_bytes`."""

    def rollback(self, steps: int = 1) -> None:
        """See `Matcher.rollback`."""
        self._alone(self._rollback, steps)

    @abstractmethod
    def _rollback(self, steps: int) -> None: ...

    def fork(self) -> Self:
        """See `Matcher.fork`."""
        return self._alone(self._fork)

    @abstractmethod
    def _fork(self) -> Self: ...

    def copy(self) -> Self:
        """See `Matcher.copy`."""
        return self._alone(self._copy)

    @abstractmethod
    def _copy(self) -> Self: ...

    def _alone(self, call: Callable[..., ResultT], *given: Any) -> ResultT:
        """Make a call of this matcher that excludes all others.

        Raises:
            MatcherStateError: another thread is in a call of it.
        """
        if self._in_use:
            raise MatcherStateError.in_use()
        self._in_use = True
        try:
            return call(*given)
        finally:
            self._in_use = False

    def reset(self) -> None:
        """See `Matcher.reset`."""
        if self._in_use:
            raise MatcherStateError.in_use()
        self.__init__(self._grammar)  # type: ignore[misc]

    @abstractmethod
    def is_accepting(self) -> bool:
        """See `Matcher.is_accepting`."""

    def is_terminated(self) -> bool:
        """See `Matcher.is_terminated`."""
        return self._terminated

    def next_bytes(self) -> npt.NDArray[np.bool_]:
        """See `Matcher.next_bytes`."""
        out = np.zeros(8, np.int32)
        if self._in_use:
            raise MatcherStateError.in_use()
        self._in_use = True
        try:
            if not self._terminated:
                self._mark_next_bytes(out)
        finally:
            self._in_use = False
        return np.unpackbits(out.view(np.uint8), bitorder="little").astype(bool)

    @abstractmethod
    def _mark_next_bytes(self, out: npt.NDArray[np.int32]) -> None:
        """Set the bits of the bytes that may come next in int32[8], all zero. The output has not ended."""

    def forced_bytes(self) -> bytes:
        """See `Matcher.forced_bytes`. A look at the next bytes for each, on a copy."""
        forced = bytearray()
        walker = self.copy()
        while len(forced) < MAX_FORCED_BYTES and not walker._is_open():
            following = np.flatnonzero(walker.next_bytes())
            if len(following) != 1:
                break
            byte = bytes([int(following[0])])
            walker.accept_bytes(byte)
            forced += byte
        return bytes(forced)

    def likely_texts(self, written: bytes) -> list[bytes]:
        """See `Matcher.likely_texts`; here, where few bytes may come next, each with what it forces."""
        following = np.flatnonzero(self.next_bytes()).tolist()
        if len(following) > MAX_FOLLOWED:
            return []
        texts = []
        for byte in following:
            walker = self.copy()
            walker.accept_bytes(bytes([byte]))
            texts.append(bytes([byte]) + walker.forced_bytes())
        return texts

    def _is_open(self) -> bool:
        """Whether something else than a byte of its own can follow: the end, or another text."""
        return self.is_accepting()

    @abstractmethod
    def shortest_completion(self) -> bytes:
        """See `Matcher.shortest_completion`."""

    def completion_bound(self) -> int:
        """See `Matcher.completion_bound`; here, by writing the text."""
        try:
            return len(self.shortest_completion())
        except CompletionTooLongError:
            return TOO_LONG

    def completion_is_spelled(self) -> bool:
        """See `Matcher.completion_is_spelled`; here, whether every byte is a token."""
        return not self._grammar.vocabulary.missing_bytes

    def state_key(self, *, same_matcher: bool = False) -> Hashable:
        """See `Matcher.state_key`; here, that states cannot be compared."""
        return None

    def captures(self) -> Captures:
        """See `Matcher.captures`; here, that nothing is named."""
        return {}

    def partial_parses(self) -> list[PartialParse] | None:
        """See `Matcher.partial_parses`; here, that there are no regions."""
        return None

    def bytes_to_stop(self) -> int:
        """See `Matcher.bytes_to_stop`; here, that nothing is known."""
        return EVERY_BYTE
