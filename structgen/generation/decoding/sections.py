"""A section of an output with a budget of its own, such as thinking: it is closed before it has more tokens."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.generation.decoding.closing_budget import Speller, closing_tokens

CUT = 4
"""More bytes than a cut character may lack, so that what remains of it takes fewer tokens (of a byte)."""


@dataclass(frozen=True)
class SectionBudget:
    """The most tokens of a section: of those that hold some of its text, without the marks around it.

    Attributes:
        begin: the mark that begins it, at the start of the output; "": it has begun.
        end: the mark that ends it, which its text does not hold.
        max_tokens: the budget.
    """

    begin: str
    end: str
    max_tokens: int


class SectionMeter:
    """How much of its budget the section of one output has used. Told of each token that is written.

    Args:
        vocabulary: of the grammar; marks that it names as special tokens are these.

    Attributes:
        is_over: whether it was closed, or was never begun.
    """

    def __init__(self, budget: SectionBudget, vocabulary: Vocabulary) -> None:
        self._begin, self._end = (_data(mark, vocabulary) for mark in (budget.begin, budget.end))
        self._most, self._speller = budget.max_tokens, Speller(closing_tokens(vocabulary))
        self._starts: list[int] = []  # where tokens begin, of those that hold text after the opening mark
        self.is_over = False

    def add(self, data: bytes | bytearray, start: int) -> None:
        """A token was written, and the text is now ``data``, its own from ``start`` on."""
        begin = len(self._begin)
        if not data.startswith(self._begin[: len(data)]):
            self.is_over = True  # it was never begun
        elif len(data) > begin:
            self._starts.append(start)
            self.is_over = data.find(self._end, begin) >= 0

    def is_near(self, more: int) -> bool:
        """Whether the budget may be used up with ``more`` tokens: only then the completion matters."""
        return not self.is_over and len(self._starts) + more + CUT > self._most

    def fits(self, data: bytes | bytearray, start: int, completion: bytes) -> bool:
        """Whether the section can be closed within its budget after another token.

        Args:
            data: the text with the token, which begins at ``start``.
            completion: what completes it.
        """
        if not data.startswith(self._begin):
            return True
        used, remaining, _ = self._closing(data, start, completion)
        return used + len(self._speller.fewest(remaining) or ()) <= self._most

    def closing(self, data: bytes | bytearray, completion: bytes) -> list[int]:
        """The tokens to be written next, up to the end of a character or of the closing mark; none as long as another
        fits."""
        if len(data) < len(self._begin):
            return []
        used, remaining, mark = self._closing(data, len(data), completion)
        lacking = self._speller.fewest(remaining) or []
        if used + len(lacking) < self._most:
            return []
        return lacking or self._speller.fewest(mark) or []

    def _closing(self, data: bytes | bytearray, start: int, completion: bytes) -> tuple[int, bytes, bytes]:
        """Tokens used if the completion follows; its text within the section; and what then lacks of the mark."""
        whole = bytes(data) + completion
        end = whole.find(self._end, len(self._begin))
        if end < 0:  # it holds no mark: the section cannot be closed by it
            return 0, b"", b""
        used, written = 0, min(end, len(data))
        if written > len(self._begin):
            used = bisect_left(self._starts, written) + (start < written)
        return used, whole[len(data) : max(end, len(data))], whole[max(end, len(data)) : end + len(self._end)]


def _data(mark: str, vocabulary: Vocabulary) -> bytes:
    """The bytes of a mark: of the special token of that name where the grammar has it, else the text's."""
    token = vocabulary.special_tokens.get(mark)
    if token is not None and token in vocabulary.named:
        return vocabulary.tokens[token] or mark.encode()
    return mark.encode()
