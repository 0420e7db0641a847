"""One row of a batch under a constraint: a matcher that follows whatever sequence it is shown."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from structgen.core.engines.protocols import Grammar, Matcher
from structgen.errors import IncompleteOutputError
from structgen.generation.decoding.closing_budget import Closer, Speller, closing_tokens


class ConstrainedRow:
    """The text that one row has written after its prompt, and where its constraint stands.

    Args:
        matcher: at the beginning of the text.
        max_new_tokens: the budget that the text is to be closed in; None: there is none.
    """

    def __init__(self, matcher: Matcher, max_new_tokens: int | None) -> None:
        self.matcher = matcher
        self._budget = max_new_tokens
        self._speller = Speller(closing_tokens(matcher.grammar.vocabulary))
        self._closer = Closer(matcher, self._speller)
        self._taken: list[int] = []
        self._length = 0  # of the text; beyond what was taken once it is finished or dead

    def fork(self) -> ConstrainedRow:
        """An independent row in the same state."""
        other = ConstrainedRow(self.matcher.fork(), self._budget)
        other._closer.plan = self._closer.plan
        other._taken, other._length = self._taken.copy(), self._length
        return other

    @property
    def has_budget(self) -> bool:
        """Whether the text is to be closed in so many tokens."""
        return self._budget is not None

    @property
    def is_finished(self) -> bool:
        """Whether the text has ended; what comes after its end is padding."""
        return self.matcher.is_terminated()

    @property
    def is_overrun(self) -> bool:
        """Whether something was written after its end."""
        return self.is_finished and self._length > len(self._taken)

    @property
    def may_only_end(self) -> bool:
        """Whether the text is finished or dead."""
        return self.is_finished or self._length > len(self._taken)

    @property
    def is_dead(self) -> bool:
        """Whether the constraint does not allow the text: a draft that is about to be turned down, or a beam that took
        a token whose score was -inf, for want of others."""
        return self._length > len(self._taken) and not self.is_finished

    def follow(self, text: npt.NDArray[np.int64]) -> None:
        """Go to this text from wherever the row is: back to what they share, then on.

        A text that is a token longer than the last one goes on from it. O(tokens that differ), and one comparison of
        arrays for other texts.
        """
        taken = self._taken
        if len(text) != self._length + 1:
            shared = _shared(np.array(taken, np.int64), text)
            self.matcher.rollback(len(taken) - shared)
            self._closer.plan = None
            del taken[shared:]
            self._length = shared
        for token in text[self._length :].tolist():
            self.follow_one(token)

    def follow_one(self, token: int) -> None:
        """Go on by one token."""
        taken = self._taken
        if self._length == len(taken) and not self.is_finished and self._takes(token):
            taken.append(token)
            if not (self._budget is None or self.is_finished or self._closes_after(token, len(taken))):
                self._closer.plan = None
        self._length += 1

    @property
    def is_open(self) -> bool:
        """Whether nothing but its matcher is to be asked about one more token: `stepped` says what came of it. A
        matcher whose text has ended takes none."""
        return self._budget is None and self._length == len(self._taken)

    def stepped(self, token: int, is_taken: bool) -> None:
        """Note that the matcher was shown a token more, and whether it took it."""
        if is_taken:
            self._taken.append(token)
        self._length += 1

    def closable(self, tokens: Iterable[int]) -> list[int]:
        """Those of some allowed tokens after which the text can be closed within the budget, ends included; if there is
        none, the next token of the shortest text known that closes it.
        """
        kept = [token for token in tokens if self._can_close_after(token)]
        if not kept and (plan := self._speller.fewest(self._closer.completion())):
            return plan[:1]
        return kept

    def _can_close_after(self, token: int) -> bool:
        """Whether the text can be closed after this token; all stays as it is."""
        plan = self._closer.plan
        self.matcher.accept_token(token)
        closes = self.is_finished or self._closes_after(token, len(self._taken) + 1)
        self.matcher.rollback(1)
        self._closer.plan = plan
        return closes

    def _closes_after(self, token: int, written: int) -> bool:
        """Whether the text can be closed after this token, which the matcher has accepted as number ``written``."""
        assert self._budget is not None
        return self._closer.closes_after(token, self._budget - written)

    def _takes(self, token: int) -> bool:
        """Drafts may hold ids that the constraint's vocabulary does not have."""
        return 0 <= token < self.matcher.grammar.vocabulary.size and self.matcher.accept_token(token)


def check_budget(grammar: Grammar, max_new_tokens: int) -> None:
    """Refuse a budget that the shortest text known does not fit in.

    Raises:
        IncompleteOutputError: what is needed.
    """
    matcher = grammar.matcher()
    speller = Speller(closing_tokens(grammar.vocabulary))
    closer = Closer(matcher, speller)
    if not closer.closes(max_new_tokens):
        tokens = speller.fewest(closer.completion())
        need = f"at least {len(tokens)}" if tokens else "more"
        raise IncompleteOutputError(
            f"Even the shortest output known does not fit in max_new_tokens={max_new_tokens}. Raise it to {need}.",
            partial="",
        )


def _shared(one: npt.NDArray[np.int64], two: npt.NDArray[np.int64]) -> int:
    """How many tokens two texts begin alike in."""
    least = min(len(one), len(two))
    differ = np.flatnonzero(one[:least] != two[:least])
    return int(differ[0]) if len(differ) else least
