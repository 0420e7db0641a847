"""Drafts punctuation in the output's own spelling: which quotes, colons, commas and brackets, in which tokens, followed
the same punctuation before, whatever words stood in between.

A text is seen as its shape: tokens with brackets, quotes, colons and commas are themselves, and a run of others is one
thing, whatever it says. So what was learned from one member of an object holds for the next, and for outputs of other
schemas.
"""

from __future__ import annotations

from collections.abc import Sequence

from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.generation.speculative.drafter import Proposal, Source, Written
from structgen.generation.speculative.tree import Node

NAME = "shape"
LENGTHS = (8, 6, 4, 3, 2, 1)  # of shapes that are looked up, longest first
BRANCHES = 3
WORDS, DIGITS = -1, -2
RUN = 6  # tokens, beyond which runs are alike
CONTEXTS = 50_000  # that are kept
PRIORS = (0.5, 0.2, 0.1)  # of a proposal, by its rank
WITHIN = 0.15  # the chance that a run ends where runs have ended
_MARKS = frozenset(b'"{}[],:')

Shape = tuple[int, ...]
"""Of a text's end: tokens that are punctuation, and ``WORDS`` or ``DIGITS`` for a run of others."""


class ShapeDrafter:
    """Proposes punctuation that followed the same shape; what is learned is for all outputs."""

    name = NAME

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._followers: dict[Shape, dict[int, None]] = {}  # the latest last

    def start(self, prompt: Sequence[int], output: Written) -> Source:
        """See ``Drafter.start``."""
        return _ShapeSource(self)

    def after(self, shape: Shape, token: int) -> Shape:
        """The shape with one more token."""
        kind = self._kind(token)
        if kind < 0 and shape[-1:] == (kind,):
            return shape
        return (*shape[1 - LENGTHS[0] :], kind)

    def learn(self, shape: Shape, token: int) -> None:
        """A token followed a shape."""
        if self._kind(token) < 0:
            return
        if len(self._followers) > CONTEXTS:
            self._followers.clear()
        for length in LENGTHS:
            if length <= len(shape):
                followers = self._followers.setdefault(shape[-length:], {})
                followers.pop(token, None)
                followers[token] = None

    def propose(self, shape: Shape, run: int) -> list[Proposal]:
        """What followed the longest known ends of a shape, the latest first. ``run``: tokens since the punctuation."""
        proposals: dict[int, Proposal] = {}
        within = WITHIN if run else 1.0
        for length in LENGTHS:
            followers = self._followers.get(shape[-length:]) if length <= len(shape) else None
            for token in reversed(followers) if followers else ():
                if len(proposals) >= BRANCHES:
                    return list(proposals.values())
                if token not in proposals:
                    rank = len(proposals)
                    proposals[token] = Proposal(token, (NAME, length, rank, min(run, RUN)), PRIORS[rank] * within)
        return list(proposals.values())

    def _kind(self, token: int) -> int:
        data = self._vocabulary.tokens[token] if token < self._vocabulary.size else b""
        if not _MARKS.isdisjoint(data):
            return token
        return DIGITS if data.strip().isdigit() else WORDS


class _ShapeSource(Source):
    name = NAME

    def __init__(self, drafter: ShapeDrafter) -> None:
        self._drafter = drafter
        self._written: tuple[Shape, int] = (), 0  # with the tokens of the run at its end
        self._shapes: dict[Node, tuple[Shape, int]] = {}

    def extend(self, tokens: Sequence[int]) -> None:
        """See ``Source``."""
        for token in tokens:
            self._drafter.learn(self._written[0], token)
            self._written = self._after(self._written, token)

    def prepare(self, root: Node, depth: int) -> None:
        """See ``Source``."""
        self._shapes = {root: self._written}

    def propose(self, node: Node) -> list[Proposal]:
        """See ``Source``."""
        if node.parent is not None:
            self._shapes[node] = self._after(self._shapes[node.parent], node.token)
        return self._drafter.propose(*self._shapes[node])

    def _after(self, shape_and_count: tuple[Shape, int], token: int) -> tuple[Shape, int]:
        shape = self._drafter.after(shape_and_count[0], token)
        return shape, shape_and_count[1] + 1 if shape[-1] < 0 else 0
