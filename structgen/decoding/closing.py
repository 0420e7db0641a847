"""How many tokens a text takes at least: what a decoder needs to know to close its output within a budget."""

from __future__ import annotations

from functools import cached_property, lru_cache

from structgen.engines.protocols import Matcher
from structgen.errors import CompletionTooLongError
from structgen.vocabulary.vocabulary import Vocabulary

# Longer tokens are left out of the search. The count stays an upper bound of the least number of tokens, and
# completions are mostly punctuation and keys, where tokens are short.
MAX_TOKEN_BYTES = 24


def shortest_completion(matcher: Matcher) -> bytes | None:
    """The text that completes an output; None if it is too long to be written."""
    try:
        return matcher.shortest_completion()
    except CompletionTooLongError:
        return None


class ClosingTokens:
    """The fewest tokens of a vocabulary that spell a given text. Shared by all outputs over one vocabulary.

    Attributes:
        vocabulary: the tokens.
        single_bytes: whether every byte is a token, so that a text takes at most as many tokens as it has bytes.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.single_bytes = not vocabulary.missing_bytes

    @cached_property
    def _ids(self) -> dict[bytes, int]:
        ids: dict[bytes, int] = {}
        for token_id, token in enumerate(self.vocabulary.tokens):
            if 0 < len(token) <= MAX_TOKEN_BYTES:
                ids.setdefault(token, token_id)
        return ids

    def fewest(self, text: bytes) -> list[int] | None:
        """The shortest list of tokens (of up to ``MAX_TOKEN_BYTES`` bytes) that spells ``text``; None if there is none.

        Dynamic programming from the end: O(len(text) · MAX_TOKEN_BYTES) look-ups. The tail of a shortest list is a
        shortest list of the tail, so taking its first token lowers the count by exactly one.
        """
        ids = self._ids
        unreachable = len(text) + 1
        count = [unreachable] * len(text) + [0]
        first = [0] * len(text)
        for start in range(len(text) - 1, -1, -1):
            for end in range(start + 1, min(start + MAX_TOKEN_BYTES, len(text)) + 1):
                if count[end] + 1 < count[start] and text[start:end] in ids:
                    count[start], first[start] = count[end] + 1, end
        if count[0] >= unreachable:
            return None
        tokens, start = [], 0
        while start < len(text):
            tokens.append(ids[text[start : first[start]]])
            start = first[start]
        return tokens

    def fits(self, text: bytes, budget: int) -> bool:
        """Whether ``text`` can be spelled in at most ``budget`` tokens (found by bytes first, which costs nothing)."""
        if self.single_bytes and len(text) <= budget:
            return True
        if len(text) > budget * MAX_TOKEN_BYTES:
            return False
        tokens = self.fewest(text)
        return tokens is not None and len(tokens) <= budget


@lru_cache(4)
def closing_tokens(vocabulary: Vocabulary) -> ClosingTokens:
    """Those of a vocabulary; kept for the last few."""
    return ClosingTokens(vocabulary)
