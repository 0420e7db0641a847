"""Outputs that engines close within their token budget: masks from which what would be too long is taken out.

structgen's own loop turns down drawn tokens after which the output could not be closed (`generation.decoding.output`).
An engine draws by itself, so here the same question is asked before: of the tokens of a mask, by the same `Closer`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from structgen.core.engines.bitmask import row_of
from structgen.core.engines.byte_sets import EVERY_BYTE
from structgen.core.engines.protocols import TOO_LONG, Matcher
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.generation.decoding.closing_budget import Closer, Speller, closing_tokens, shortest_completion
from structgen.integrations.engine_settings import OnBudget

REACH, FURTHEST = 48, 128
"""Tokens (or bytes) that one token is taken to add to what must follow, at least and at most, until more was seen."""
MOST_TRIED = 256
MOST_PLANS = 128
"""Completions that are kept for rollbacks."""
CUT = 4
"""More bytes than a cut character may lack."""
SAMPLED, MANY_SPARE = 16, 16
"""Of tokens that are too many to be tried: how many are, and the tokens to spare without which none is let through."""

Mask = npt.NDArray[np.int32]
Ids = npt.NDArray[np.int64]


class BudgetedMask:
    """What the budget of one output takes out of its masks. Follows the output's matcher, which is someone else's.

    Far from the end nothing is looked at. Nearer, the bound of the completion is. Where one token may lead from "it can
    be closed" to "it cannot", the tokens of the mask are tried; where they are many and none is to spare, the
    completion is followed.

    Args:
        matcher: its state may be moved while a mask is narrowed, and is the same afterwards.
        total: from the tokens that the matcher has taken to those that it may take in all, the end included.
        mode: "close" or "length".

    Attributes:
        awake_at: tokens taken, from which on the output must be looked at.
        looked_at: tokens taken when it was.
        lost: masks that were left as they are since no completion that fits is known.
    """

    def __init__(self, matcher: Matcher, total: Callable[[int], int], mode: OnBudget = "close") -> None:
        vocabulary = matcher.grammar.vocabulary
        self._matcher, self._total, self._end = matcher, total, int(mode == "close")
        self._speller = Speller(closing_tokens(vocabulary))
        self._closer = Closer(matcher, self._speller)
        self._tokens = tokens_by_bytes(vocabulary)
        self._plans: dict[int, bytes] = {}  # texts that complete the output, by tokens taken
        self._reach, self._last = 0, (0, TOO_LONG)
        self.awake_at = self.looked_at = self.lost = 0

    def narrow(self, row: Mask, taken: int) -> None:
        """Take out of a mask the tokens after which the output cannot be closed within the budget.

        Args:
            row: int32[ceil(V / 32)], the matcher's mask; mutated. Bits of the ends stay.
            taken: tokens that the matcher has taken.
        """
        budget = self._total(taken) - taken - self._end
        self.looked_at = taken
        if self._is_far(budget, taken):
            return
        plan, tokens = self._plan(taken)
        if plan is None or len(tokens) > budget:
            self.lost += 1
        elif budget - len(tokens) <= max(REACH, self._reach):
            self._try(row, plan, tokens, budget)

    def fits(self, taken: int) -> bool:
        """Whether the output can be closed within the budget from where its matcher stands."""
        budget = self._total(taken) - taken - self._end
        if self._matcher.completion_bound() <= budget and self._matcher.completion_is_spelled():
            return True
        plan, tokens = self._plan(taken)
        return plan is not None and len(tokens) <= budget

    def follow(self, token: int, taken: int) -> None:
        """A token was accepted after ``taken`` others: a completion that it begins goes on behind it."""
        plan, text = self._plans.get(taken), self._matcher.grammar.vocabulary.tokens[token]
        if plan is not None and text and plan.startswith(text):
            self._plans[taken + 1] = plan[len(text) :]
        else:
            self._plans.pop(taken + 1, None)

    def back(self, taken: int) -> None:
        """The matcher was rolled back to so many tokens."""
        if self.looked_at > taken:
            self.awake_at = min(self.awake_at, taken)

    def _is_far(self, budget: int, taken: int) -> bool:
        """Whether no token leads to where the output cannot be closed; then also notes how long that holds."""
        bound = self._matcher.completion_bound()
        before, bound_then = self._last
        if bound_then < TOO_LONG and bound < TOO_LONG and taken > before:
            self._reach = max(self._reach, -(-(bound - bound_then) // (taken - before)))
        elif not self._reach and bound < TOO_LONG:
            self._reach = min(max(REACH, bound), FURTHEST)
        self._last = taken, bound
        reach = max(REACH, self._reach)
        steps = (budget - bound) // (reach + 1)
        if steps < 1 or not self._matcher.completion_is_spelled():
            self.awake_at = taken
            return False
        self.awake_at = taken + steps
        return True

    def _plan(self, taken: int) -> tuple[bytes | None, Sequence[int]]:
        """A text that completes the output, and the fewest tokens that spell it: the matcher's, or the one before."""
        best: tuple[bytes | None, Sequence[int]] = None, ()
        for text in (shortest_completion(self._matcher), self._plans.get(taken)):
            tokens = None if text is None else self._speller.fewest(text)
            if tokens is not None and (best[0] is None or len(tokens) < len(best[1])):
                best = text, tokens
        if len(self._plans) > MOST_PLANS:
            self._plans = {count: text for count, text in self._plans.items() if count > taken - MOST_PLANS // 2}
        if best[0] is not None:
            self._plans[taken] = best[0]
        return best

    def _try(self, row: Mask, plan: bytes, tokens: Sequence[int], budget: int) -> None:
        """Take out the tokens that fail; the first of the plan always stays."""
        allowed = _ids(row)
        allowed = allowed[~np.isin(allowed, self._matcher.grammar.vocabulary.eos_token_ids)]
        tried = allowed
        if len(allowed) > MOST_TRIED:
            if len(tokens) == budget:
                _keep_only(row, tokens[:1], self._matcher)
                return
            tried = self._chosen(row, allowed, plan, budget, budget - len(tokens))
        first = tokens[0] if tokens else -1
        failing = [token for token in tried.tolist() if token != first and not self._closes(token, plan, budget)]
        if failing:
            row &= ~row_of(failing, len(row))

    def _chosen(self, row: Mask, allowed: Ids, plan: bytes, budget: int, spare: int) -> Ids:
        """Which of many tokens are tried; others stay if they can hardly matter, else they are taken out."""
        stops = self._matcher.bytes_to_stop()
        matters = self._tokens.hold(stops)[allowed]
        free, asked = allowed[~matters], allowed[matters]
        needed = MANY_SPARE if stops == EVERY_BYTE else CUT
        if stops == EVERY_BYTE:
            free = asked[np.argsort(self._tokens.lengths[asked], kind="stable")][MOST_TRIED:]
            asked = asked[~np.isin(asked, free)]
        sample = free[:: max(1, len(free) // SAMPLED)].tolist()
        if spare <= needed or not all(self._closes(token, plan, budget - CUT) for token in sample):
            asked = allowed
        asked = asked[np.argsort(self._tokens.lengths[asked], kind="stable")]
        row &= ~row_of(asked[MOST_TRIED:], len(row))
        first = self._speller.fewest(plan)
        if first and first[0] in asked[MOST_TRIED:]:
            _set(row, first[0])
        return asked[:MOST_TRIED]

    def _closes(self, token: int, plan: bytes, budget: int) -> bool:
        """Whether the output can be closed behind a token, which the budget has room for."""
        matcher = self._matcher
        self._closer.plan = plan
        if budget < 1 or not matcher.accept_token(token):
            return False
        try:
            return self._closer.closes_after(token, budget - 1)
        finally:
            matcher.rollback(1)


class Total:
    """The tokens that an engine's request may write, as its grammar counts them. Holds the request weakly.

    Tokens that the grammar does not see, such as thinking, are those that the request has and the grammar has not
    taken; in the middle of a draft these are too few, so the most that were ever seen count.

    Args:
        request: the engine's.
        written, most: of the request: the tokens that it has, and those that it may have.
    """

    def __init__(self, request: Any, written: Callable[[Any], int], most: Callable[[Any], int]) -> None:
        self._request, self._written, self._most = weakref.proxy(request), written, most
        self._unseen = 0

    def __call__(self, taken: int) -> int:
        """Tokens that the grammar may take in all, given that it has taken so many."""
        try:
            self._unseen = max(self._unseen, self._written(self._request) - taken)
            return self._most(self._request) - self._unseen
        except ReferenceError:  # the engine has done with it
            return TOO_LONG


class TokensByBytes:
    """What bytes the tokens of a vocabulary hold. Shared by all outputs over it.

    Attributes:
        lengths: bytes of each token, int64[V].
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self.lengths: Ids = np.diff(vocabulary.token_offsets).astype(np.int64)
        self._holding: dict[int, npt.NDArray[np.bool_]] = {}

    def hold(self, byte_set: int) -> npt.NDArray[np.bool_]:
        """Which tokens hold one of a set of bytes (bit b for byte b), bool[V]; tokens without text do."""
        holding = self._holding.get(byte_set)
        if holding is None:
            inside = np.array([byte_set >> byte & 1 for byte in range(256)], np.int64)
            counts = np.concatenate(([0], np.cumsum(inside[self._vocabulary.token_bytes])))
            inner = np.diff(counts[self._vocabulary.token_offsets]) > 0
            holding = self._holding[byte_set] = inner | (self.lengths == 0)
        return holding


@lru_cache(4)
def tokens_by_bytes(vocabulary: Vocabulary) -> TokensByBytes:
    """Those of a vocabulary; kept for the last few."""
    return TokensByBytes(vocabulary)


def _ids(row: Mask) -> Ids:
    """The tokens of a mask, ascending."""
    words = np.flatnonzero(row)
    bits = np.unpackbits(row[words].view(np.uint8).reshape(len(words), 4), axis=1, bitorder="little")
    which, bit = np.nonzero(bits)
    return (words[which] << 5) + bit


def _set(row: Mask, token: int) -> None:
    row.view(np.uint32)[token >> 5] |= np.uint32(1 << (token & 31))


def _keep_only(row: Mask, tokens: Sequence[int], matcher: Matcher) -> None:
    """Of a mask the tokens given, and the ends that it has."""
    unsigned = row.view(np.uint32)
    kept = [*tokens, *(end for end in matcher.grammar.vocabulary.eos_token_ids if unsigned[end >> 5] >> (end & 31) & 1)]
    row[:] = 0
    for token in kept:
        _set(row, token)
