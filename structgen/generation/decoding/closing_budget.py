"""How many tokens a text takes at least: what a decoder needs to know to close its output within a budget."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Protocol

from structgen.core.engines.protocols import Matcher
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import CompletionTooLongError

# Longer tokens are left out of the search. The count stays an upper bound of the least number of tokens, and
# completions are mostly punctuation and keys, where tokens are short.
MAX_TOKEN_BYTES = 24


def shortest_completion(matcher: Matcher) -> bytes | None:
    """The text that completes an output; None if it is too long to be written."""
    try:
        return matcher.shortest_completion()
    except CompletionTooLongError:
        return None


class TextSpeller(Protocol):
    """What spells completions: in the fewest tokens (``Speller``), or as the tokenizer does."""

    def fewest(self, text: bytes) -> list[int] | None:
        """See ``Speller.fewest``."""
        ...

    def fits(self, text: bytes, budget: int) -> bool:
        """See ``Speller.fits``."""
        ...


class Closer:
    """How an output can be closed within a budget of tokens. Follows the output's matcher, which is someone else's.

    Attributes:
        plan: the text that completes the output from where the matcher stands, if it had to be written; None: the
            matcher's own is at most as long as its bound.
    """

    def __init__(self, matcher: Matcher, speller: TextSpeller) -> None:
        self._matcher, self._speller = matcher, speller
        self.plan: bytes | None = None

    def closes(self, budget: int) -> bool:
        """Whether the matcher's completion fits in so many tokens. Keeps the text where it has to be written."""
        matcher = self._matcher
        if matcher.completion_bound() <= budget and matcher.completion_is_spelled():
            self.plan = None
            return True
        text = shortest_completion(matcher)
        if text is None or not self._speller.fits(text, budget):
            return False
        self.plan = text
        return True

    def closes_after(self, token: int, budget: int) -> bool:
        """Whether the output can be closed in so many tokens after ``token``, which the matcher has just accepted.

        Should the matcher know no completion so short, the one from before the token may go on with it.
        """
        return self.closes(budget) or self._remaining_closes(token, budget)

    def bound(self) -> int:
        """Bytes of `completion`, or more."""
        return self._matcher.completion_bound() if self.plan is None else len(self.plan)

    def completion(self) -> bytes:
        """A text that completes the output from here.

        Raises:
            CompletionTooLongError: every known one is too long to be written.
        """
        return self._matcher.shortest_completion() if self.plan is None else self.plan

    def lacks_budget(self) -> bool:
        """Whether it is for the budget that a token was turned down, which the matcher has accepted."""
        return True

    def check_spelled(self) -> None:
        """Raise where no budget would do, since what completes the output cannot be spelled; here, all can."""

    def _remaining_closes(self, token: int, budget: int) -> bool:
        matcher = self._matcher
        if self.plan is None:
            matcher.rollback(1)
            self.plan = shortest_completion(matcher)
            matcher.accept_token(token)
        spelled, plan = matcher.grammar.vocabulary.tokens[token], self.plan
        if plan is None or not plan.startswith(spelled):
            return False
        remaining = plan[len(spelled) :]
        if not self._speller.fits(remaining, budget):
            return False
        self.plan = remaining
        return True


class ClosingTokens:
    """The tokens of a vocabulary by their bytes. Shared by all outputs over one vocabulary.

    Attributes:
        single_bytes: whether every byte is a token, so that a text takes at most as many tokens as it has bytes.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self.single_bytes = not vocabulary.missing_bytes

    @cached_property
    def ids(self) -> dict[bytes, int]:
        """The lowest id of each text of up to ``MAX_TOKEN_BYTES`` bytes that is a token."""
        ids: dict[bytes, int] = {}
        for token_id, token in enumerate(self._vocabulary.tokens):
            if 0 < len(token) <= MAX_TOKEN_BYTES:
                ids.setdefault(token, token_id)
        return ids

    def fewest(self, text: bytes) -> list[int] | None:
        """See ``Speller.fewest``."""
        return Speller(self).fewest(text)

    def fits(self, text: bytes, budget: int) -> bool:
        """See ``Speller.fits``."""
        return Speller(self).fits(text, budget)


@lru_cache(4)
def closing_tokens(vocabulary: Vocabulary) -> ClosingTokens:
    """Those of a vocabulary; kept for the last few."""
    return ClosingTokens(vocabulary)


class Speller:
    """The fewest tokens of texts that come one after the other and mostly end alike, as one output's completions do.

    Dynamic programming from a text's end: what is known of the end that it shares with the text before is kept.
    """

    def __init__(self, closing: ClosingTokens) -> None:
        self._closing = closing
        self._text = b""
        self._count = [0]  # of the last n bytes: the fewest tokens, or more than there are bytes
        self._size = [0]  # and bytes of the first of them

    def fewest(self, text: bytes) -> list[int] | None:
        """The shortest list of tokens (of up to ``MAX_TOKEN_BYTES`` bytes) that spells ``text``; None if there is none.

        The tail of a shortest list is a shortest list of the tail, so taking its first token lowers the count by
        exactly one. O(bytes before the shared end · MAX_TOKEN_BYTES) look-ups.
        """
        if self._least(text) > len(text):
            return None
        tokens, left, ids = [], len(text), self._closing.ids
        while left:
            size = self._size[left]
            start = len(text) - left
            tokens.append(ids[text[start : start + size]])
            left -= size
        return tokens

    def fits(self, text: bytes, budget: int) -> bool:
        """Whether ``text`` can be spelled in at most ``budget`` tokens (found by bytes first, which costs nothing)."""
        if self._closing.single_bytes and len(text) <= budget:
            return True
        return len(text) <= budget * MAX_TOKEN_BYTES and self._least(text) <= min(budget, len(text))

    def _least(self, text: bytes) -> int:
        """The fewest tokens; more than the text has bytes if there are none."""
        shared = shared_end(self._text, text)
        count, size, ids = self._count, self._size, self._closing.ids
        del count[shared + 1 :], size[shared + 1 :]
        whole = len(text)
        for left in range(shared + 1, whole + 1):
            start, best, first = whole - left, _NEVER, 0
            for taken in range(1, min(MAX_TOKEN_BYTES, left) + 1):
                if count[left - taken] + 1 < best and text[start : start + taken] in ids:
                    best, first = count[left - taken] + 1, taken
            count.append(best)
            size.append(first)
        self._text = text
        return count[whole]


_NEVER = 1 << 40


def shared_end(one: bytes, two: bytes) -> int:
    """How many bytes two texts end alike in. O(n log n) of comparing memory."""
    low, high = 0, min(len(one), len(two))
    while low < high:
        middle = (low + high + 1) // 2
        if one[len(one) - middle :] == two[len(two) - middle :]:
            low = middle
        else:
            high = middle - 1
    return low
