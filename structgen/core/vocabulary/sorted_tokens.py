"""The tokens of a vocabulary in the order of their bytes: which of them begin with some bytes, or are these."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from structgen.core.vocabulary.vocabulary import Vocabulary


class SortedTokens:
    """Tokens that have bytes, ascending by these and by id. Made in O(V log V).

    Args:
        tokens: bytes of each id; empty for ids that are no text.

    Attributes:
        texts: their bytes.
        ids: int64[n], of the same tokens.
    """

    def __init__(self, tokens: Sequence[bytes]) -> None:
        order = sorted((token for token, text in enumerate(tokens) if text), key=tokens.__getitem__)
        self.texts = [tokens[token] for token in order]
        self.ids = np.array(order, np.int64)

    def beginning_with(self, data: bytes) -> npt.NDArray[np.int64]:
        """The ids of tokens whose bytes begin with ``data``, in this order. O(log V)."""
        first = bisect_left(self.texts, data)
        return self.ids[first : bisect_right(self.texts, data, lo=first, key=lambda text: text[: len(data)])]

    def spelling(self, data: bytes) -> npt.NDArray[np.int64]:
        """The ids of tokens whose bytes are ``data``, ascending. O(log V)."""
        first = bisect_left(self.texts, data)
        return self.ids[first : bisect_right(self.texts, data, lo=first)]


@lru_cache(maxsize=4)
def sorted_tokens(vocabulary: Vocabulary) -> SortedTokens:
    """Those of a vocabulary; of the last few they are kept."""
    return SortedTokens(vocabulary.tokens)
