"""`RequestMatcher`: a matcher as inference engines drive it, with the ends of one request and bitmasks as tensors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from structgen.core.engines.bitmask import fill_bitmask_rows
from structgen.core.engines.protocols import Grammar, Matcher
from structgen.integrations.budgets import BudgetedMask

Bitmask = npt.NDArray[np.int32]


class RequestMatcher:
    """One request's matcher.

    Engines name the ends of each request: an id that is not among the vocabulary's ends is masked like these, and
    accepted as the end of sequence; an end of the vocabulary that is not among them is never allowed. Tokens after the
    end are taken and counted, so that they can be rolled back, and change nothing.

    Args:
        grammar: the compiled constraint.
        ends: ids that end this request's output; those outside the vocabulary, and those that the grammar names as
            parts of the text, are passed over. None: the vocabulary's.

    Attributes:
        matcher: where the output stands in its grammar.
        budget: what its token budget takes out of its masks; None: nothing.
        taken: tokens that were accepted, without those after the end.
        changes_ends: whether the request's ends are others than the vocabulary's.
    """

    __slots__ = (
        "_added", "_after_end", "_end", "_ends", "_removed", "_seen", "budget", "changes_ends", "matcher", "taken",
    )  # fmt: skip

    def __init__(self, grammar: Grammar, ends: Iterable[int] | None = None) -> None:
        vocabulary = grammar.vocabulary
        vocabulary_ends = frozenset(vocabulary.eos_token_ids)
        given = {token for token in ends or () if 0 <= token < vocabulary.size} - vocabulary.named
        self._ends = frozenset(given) if given else vocabulary_ends
        self._added, self._removed = self._ends - vocabulary_ends, vocabulary_ends - self._ends
        self.changes_ends = bool(self._added or self._removed)
        self._end = vocabulary.eos_token_ids[0]
        self._seen: tuple[Any, Bitmask | None] = (None, None)  # the last tensor, and its array
        self._after_end = self.taken = 0
        self.matcher: Matcher = grammar.matcher()
        self.budget: BudgetedMask | None = None

    def fresh(self) -> RequestMatcher:
        """A matcher of the same request kind at the start of the text."""
        return RequestMatcher(self.matcher.grammar, self._ends)

    def rows(self, bitmask: Any) -> Bitmask:
        """The array of a tensor on the processor; that of the last one is kept, as engines fill the same again."""
        if self._seen[0] is not bitmask or self._seen[1] is None:
            self._seen = (bitmask, bitmask if isinstance(bitmask, np.ndarray) else bitmask.numpy())
        rows_seen = self._seen[1]
        assert rows_seen is not None
        return rows_seen

    def fill(self, bitmask: Any, index: int) -> None:
        """Write the mask of the next token into a row of int32[rows, ceil(V / 32)], array or tensor on the processor.

        After the end all tokens are allowed: whatever the engine draws there, it throws away.

        Raises:
            BitmaskError: wrong dtype, shape or layout.
        """
        rows = self.rows(bitmask)
        self.matcher.fill_next_token_bitmask(rows, index)
        self.finish(rows[index])

    def finish(self, row: Bitmask) -> None:
        """Complete a row that the matcher has filled, by the budget and the request's ends; mutates it."""
        if self.matcher.is_terminated():
            row[:] = -1
            return
        if self.budget is not None and self.taken >= self.budget.awake_at:
            self.budget.narrow(row, self.taken)
        if self._added and _bit(row, self._end):
            for token in self._added:
                row[token >> 5] |= np.int32(_BITS[token & 31])
        for token in self._removed:
            row[token >> 5] &= ~np.int32(_BITS[token & 31])

    def finish_ends(self, bitmask: Bitmask, rows: npt.NDArray[np.int64]) -> None:
        """Write the ends of this request, and of others with the same, into rows that the matchers have filled."""
        ended = rows[bitmask[rows, self._end >> 5] & _BITS[self._end & 31] != 0]
        for token in self._added if len(ended) else ():
            bitmask[ended, token >> 5] |= _BITS[token & 31]
        for token in self._removed:
            there = rows[bitmask[rows, token >> 5] & _BITS[token & 31] != 0]
            bitmask[there, token >> 5] &= ~_BITS[token & 31]

    @property
    def ends(self) -> tuple[frozenset[int], int]:
        """What `finish_ends` is about: two requests with the same write the same."""
        return self._ends, id(self.matcher.grammar.vocabulary)

    def accept(self, token: int) -> bool:
        """Advance by a token; False, and nothing changes, where it is not allowed or lies outside the vocabulary."""
        if self.matcher.is_terminated():
            self._after_end += 1
            return True
        if token in self._added:
            token = self._end
        elif token in self._removed or not 0 <= token < self.matcher.grammar.vocabulary.size:
            return False
        if not self.matcher.accept_token(token):
            return False
        self._count(token)
        return True

    def accept_and_fill(self, token: int, bitmask: Any, index: int) -> bool:
        """`accept`, and if it is taken `fill` behind it, in one call where the engine has one."""
        if token in self._ends or token in self._removed or not 0 <= token < self.matcher.grammar.vocabulary.size:
            taken = self.accept(token)
            if taken:
                self.fill(bitmask, index)
            return taken
        if self.matcher.is_terminated():
            return False
        rows = self.rows(bitmask)
        if not self.matcher.advance_and_fill(token, rows, index):
            return False
        self._count(token)
        self.finish(rows[index])
        return True

    def _count(self, token: int) -> None:
        if self.budget is not None:
            self.budget.follow(token, self.taken)
        self.taken += 1

    def accept_all(self, tokens: Sequence[int]) -> bool:
        """Advance by tokens up to the end; False, and nothing changes, if one is not allowed."""
        for taken, token in enumerate(tokens):
            if not self.accept(token):
                self.rollback(taken)
                return False
        return True

    def valid_prefix(self, tokens: Sequence[int]) -> list[int]:
        """The longest beginning that would be accepted, up to the end, and behind which the output can be closed within
        its budget; the state is the same afterwards."""
        taken = fitting = 0
        try:
            while taken < len(tokens) and not self.matcher.is_terminated() and self.accept(tokens[taken]):
                taken += 1
                if not self._fits():
                    break
                fitting = taken
        finally:
            self.rollback(taken)
        return list(tokens[:fitting])

    def _fits(self) -> bool:
        budget = self.budget
        is_near = budget is not None and self.taken >= budget.awake_at and not self.matcher.is_terminated()
        return not is_near or budget is None or budget.fits(self.taken)

    def rollback(self, count: int) -> None:
        """Undo the last tokens.

        Raises:
            MatcherStateError: fewer were accepted.
        """
        after = min(count, self._after_end)
        if count > after:
            self.matcher.rollback(count - after)
            self.taken -= count - after
            if self.budget is not None:
                self.budget.back(self.taken)
        self._after_end -= after

    def reset(self) -> None:
        """Back to the start of the text."""
        self.matcher.reset()
        self._after_end = self.taken = 0
        if self.budget is not None:
            self.budget.back(0)


def fill_rows(places: Sequence[tuple[int, RequestMatcher]], bitmask: Any) -> None:
    """Fill the rows of many requests in one call; other rows stay. Large batches use several threads.

    Args:
        places: of each request its row.
        bitmask: see `RequestMatcher.fill`; mutated.

    Raises:
        BitmaskError: wrong dtype, shape or layout, or one request twice.
    """
    if not places:
        return
    rows = places[0][1].rows(bitmask)
    fill_bitmask_rows([request.matcher for _, request in places], rows, [row for row, _ in places])
    ends: dict[Any, tuple[RequestMatcher, list[int]]] = {}
    for row, request in places:
        budget = request.budget
        if request.matcher.is_terminated() or (budget is not None and request.taken >= budget.awake_at):
            request.finish(rows[row])
        elif request.changes_ends:
            ends.setdefault(request.ends, (request, []))[1].append(row)
    for request, numbers in ends.values():
        request.finish_ends(rows, np.array(numbers, np.int64))


_BITS = np.left_shift(np.uint32(1), np.arange(32, dtype=np.uint32)).view(np.int32)


def _bit(row: Bitmask, token: int) -> bool:
    return bool(row[token >> 5] & _BITS[token & 31])
