"""Drafts copy a text that the output is expected to be much like (OpenAI's predicted outputs): a file that is to be
edited, an earlier answer. Where the output departs from it, it is taken up again after the last tokens, as near as can
be.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import cached_property

from structgen.generation.speculative.drafter import Proposal, Source
from structgen.generation.speculative.ngram import LENGTHS, PRIORS
from structgen.generation.speculative.tree import TAIL, Node

NAME = "prediction"
SURE = LENGTHS[0]  # tokens that agreed in a row, beyond which more say nothing more
SUBSTITUTED = 0.3  # the chance that one token was put in the place of another where nothing else is known


class Prediction:
    """The tokens of a predicted text.

    A *place* in it is the index of the token that is expected next, with the number of tokens before it that the output
    agrees with.
    """

    START = (0, SURE)

    def __init__(self, tokens: Iterable[int]) -> None:
        self.tokens = tuple(tokens)

    def after(self, position: tuple[int, int], tail: tuple[int, ...]) -> tuple[int, int]:
        """The place after one more token, the last of ``tail`` (the last ``TAIL`` of the output)."""
        index, agreed = position
        if index < len(self.tokens) and self.tokens[index] == tail[-1]:
            return index + 1, min(agreed + 1, SURE)
        for length in LENGTHS:
            places = self._places.get(tail[-length:], []) if length <= len(tail) else []
            if places and (length > 1 or len(places) == 1):  # of one token many are alike
                right = bisect_left(places, index)
                near = places[max(0, right - 1) : right + 1]
                return min(near, key=lambda each: abs(each - index)), length
        return index + 1, 0

    def agreed(self, tokens: Sequence[int]) -> int:
        """How many of its tokens came where they were expected, in an output of these tokens."""
        position, tail, count = self.START, tuple[int, ...](), 0
        for token in tokens:
            count += position[0] < len(self.tokens) and self.tokens[position[0]] == token
            tail = (*tail[1 - TAIL :], token)
            position = self.after(position, tail)
        return min(count, len(self.tokens))

    @cached_property
    def _places(self) -> dict[tuple[int, ...], list[int]]:
        """After which places each context stands, ascending. Made once an output has departed."""
        places: dict[tuple[int, ...], list[int]] = {}
        for length in LENGTHS:
            for end in range(length, len(self.tokens)):
                places.setdefault(self.tokens[end - length : end], []).append(end)
        return places


class PredictionSource(Source):
    """Proposes the next token of a prediction."""

    name = NAME

    def __init__(self, prediction: Prediction) -> None:
        self._prediction = prediction
        self._written: tuple[int, ...] = ()  # the last of them
        self._place = Prediction.START

    def extend(self, tokens: Sequence[int]) -> None:
        """See ``Source``."""
        self._place, self._written = self._advanced(tokens)

    def propose(self, node: Node) -> list[Proposal]:
        """See ``Source``. O(depth)."""
        (index, agreed), _ = self._advanced(node.path())
        if index >= len(self._prediction.tokens):
            return []
        length = next((length for length in LENGTHS if length <= agreed), 0)
        return [Proposal(self._prediction.tokens[index], (NAME, length), PRIORS.get(length, SUBSTITUTED))]

    def _advanced(self, tokens: Sequence[int]) -> tuple[tuple[int, int], tuple[int, ...]]:
        position, tail = self._place, self._written
        for token in tokens:
            tail = (*tail[1 - TAIL :], token)
            position = self._prediction.after(position, tail)
        return position, tail
