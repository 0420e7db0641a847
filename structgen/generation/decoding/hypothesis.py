"""One of several outputs that a search weighs: its tokens, where it stands in its constraint, how it could be closed.

`Output` is written once, and in place; hypotheses branch, so each is left as it is and gives others by a token more.
What both keep is the same: there is a text that completes it, which can be spelled in the tokens that remain.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from structgen.core.constraints.parts import without_regions
from structgen.core.engines.protocols import Grammar, Matcher
from structgen.errors import GenerationError, IncompleteOutputError
from structgen.generation.decoding.closing_budget import Closer, Speller, closing_tokens
from structgen.generation.decoding.few_tokens import allow_all
from structgen.generation.sampling import Ids, allowed_token_ids

END = -1
"""The event of ending, whatever id the model spells it with."""


class Rules:
    """What all hypotheses of one search have in common.

    Args:
        stop: texts that end an output and are cut off; it must be whole by then.

    Raises:
        ConstraintError: the grammar has regions, which a search does not keep.
    """

    def __init__(self, grammar: Grammar, stop: Sequence[str] = ()) -> None:
        self.grammar = without_regions(grammar)
        self.vocabulary = grammar.vocabulary
        self.ends = np.array(self.vocabulary.eos_token_ids, np.int64)
        self.stop = [text.encode() for text in stop if text]
        self.speller = Speller(closing_tokens(self.vocabulary))
        self.bitmask = allow_all(self.vocabulary)

    @cached_property
    def longest_token(self) -> int:
        """Bytes."""
        return int(np.diff(self.vocabulary.token_offsets).max(initial=1))

    def may_end(self, matcher: Matcher, budget: int) -> bool:
        """Whether some completion might fit in so many tokens, as far as the automaton can rule it out."""
        if matcher.is_accepting():
            return True
        if budget <= 0:
            return False
        if not self.grammar.completions_are_shortest:
            return True
        return len(matcher.shortest_completion()) <= budget * self.longest_token


class Hypothesis:
    """Tokens of an output, immutable.

    Attributes:
        tokens: without the end of sequence.
        data: the bytes of the text; what a stop string cut off is not in them.
        remaining: tokens that are left of the budget; the end costs none.
        is_finished: whether it has ended.
        is_cut_off: whether more could follow and the budget is used up; known once ``allowed`` was asked for.
        closes: whether a completion is known that fits in what remains. Those that follow only such hypotheses never
            lead nowhere; those that follow all leave nothing out.
    """

    __slots__ = (
        "_allowed", "_follower", "_matcher", "_plan", "_rules", "closes", "data", "is_cut_off", "is_finished",
        "remaining", "tokens",
    )  # fmt: skip

    def __init__(
        self, rules: Rules, matcher: Matcher, tokens: tuple[int, ...], data: bytes, remaining: int, plan: bytes | None
    ) -> None:
        self._rules, self._matcher, self._plan = rules, matcher, plan
        self.tokens, self.data, self.remaining = tokens, data, remaining
        self.is_finished, self.closes = False, True
        self.is_cut_off = False
        self._allowed: tuple[Ids, bool] | None = None
        self._follower: Hypothesis | None = None

    @classmethod
    def root(cls, rules: Rules, max_new_tokens: int) -> Hypothesis:
        """Nothing yet."""
        matcher = rules.grammar.matcher()
        closer = Closer(matcher, rules.speller)
        closes = closer.closes(max_new_tokens)
        root = cls(rules, matcher, (), b"", max_new_tokens, closer.plan)
        root.closes = closes
        return root

    def check_closes(self) -> None:
        """Raise where it is not known to close.

        Raises:
            IncompleteOutputError: so it is.
        """
        if not self.closes:
            shortest = self._rules.speller.fewest(self._matcher.shortest_completion())
            need = "more" if shortest is None else f"at least {len(shortest)}"
            raise IncompleteOutputError(
                f"The shortest output does not fit in {self.remaining} tokens; raise max_new_tokens to {need}.",
                partial=self.text,
            )

    @property
    def text(self) -> str:
        """The text; bytes that are no UTF-8 become U+FFFD."""
        return self._rules.vocabulary.rendered(self.data).decode("utf-8", errors="replace")

    @property
    def grammar(self) -> Grammar:
        """What it follows."""
        return self._rules.grammar

    @property
    def ends(self) -> Ids:
        """The ids that the model spells the end with."""
        return self._rules.ends

    def allowed(self) -> tuple[Ids, bool]:
        """The ids that may follow, those of the end aside, and whether it may end.

        Raises:
            GenerationError: nothing may.
        """
        if self._allowed is None:
            rules = self._rules
            self._matcher.fill_next_token_bitmask(rules.bitmask, 0)
            ids = allowed_token_ids(rules.bitmask[0], rules.vocabulary.size)
            is_end = np.isin(ids, rules.ends)
            may_end = bool(is_end.any())
            ids = ids[~is_end]
            self.is_cut_off = self.remaining <= 0 < len(ids)
            ids = ids[:0] if self.is_cut_off else ids
            if not len(ids) and not may_end and self.remaining > 0:
                raise GenerationError(f"The constraint allows no token after {self.text[-80:]!r}.", text=self.text)
            self._allowed = ids, may_end
        return self._allowed

    def follower(self) -> Hypothesis | None:
        """With the only token that may follow; None: there are several, none, or the end."""
        if self._follower is None and not self.is_finished:
            ids, may_end = self.allowed()
            if len(ids) == 1 and not may_end:
                self._follower = self.extended(int(ids[0]))
        return self._follower

    def extended(self, token: int) -> Hypothesis | None:
        """With an allowed token more, or the ``END``; None where it can then not be closed within the budget for
        certain, or a stop string comes before it is whole. See ``closes``."""
        if token == END:
            return self._ended(self.tokens, self.data)
        if self._follower is not None:  # the only one that it can be
            return self._follower
        rules, matcher = self._rules, self._matcher.copy()
        if not matcher.accept_token(token):
            raise GenerationError(
                f"The mask allows token {token} after {self.text[-80:]!r}, but the matcher refuses it. Please report "
                "this as a bug.",
                text=self.text,
            )
        tokens, data = (*self.tokens, token), self.data + rules.vocabulary.tokens[token]
        if rules.stop and (cut := self._stop_in(data)) >= 0:
            return self._ended(tokens, data[:cut]) if self._is_whole(data[:cut]) else None
        closer = Closer(matcher, rules.speller)
        closer.plan = self._plan
        closes = self.remaining > 0 and closer.closes_after(token, self.remaining - 1)
        if not closes and not rules.may_end(matcher, self.remaining - 1):
            return None
        extended = Hypothesis(rules, matcher, tokens, data, self.remaining - 1, closer.plan if closes else None)
        extended.closes = closes
        return extended

    def planned(self) -> int:
        """What the known completion goes on with, in the fewest tokens."""
        closer = Closer(self._matcher, self._rules.speller)
        closer.plan = self._plan
        tokens = self._rules.speller.fewest(closer.completion())
        if tokens is None:
            raise GenerationError("The vocabulary cannot spell the known completion.", text=self.text)
        return tokens[0] if tokens else END

    def _ended(self, tokens: tuple[int, ...], data: bytes) -> Hypothesis:
        ended = Hypothesis(self._rules, self._matcher, tokens, data, self.remaining, None)
        ended.is_finished = True
        return ended

    def _stop_in(self, data: bytes) -> int:
        """Where the earliest stop string begins that ends in the last token's bytes; -1: none does."""
        before = len(self.data)
        starts = (data.find(stop, max(0, before - len(stop) + 1)) for stop in self._rules.stop)
        return min((start for start in starts if start >= 0), default=-1)

    def _is_whole(self, data: bytes) -> bool:
        matcher = self._rules.grammar.matcher()
        return matcher.accept_bytes(data) and matcher.is_accepting()
