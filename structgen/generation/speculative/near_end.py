"""Drafts the text that closes an output whose token budget is nearly used up: there, what would be too long is turned
down (``decoding.output``), until the shortest completion is all that is left."""

from __future__ import annotations

from collections.abc import Sequence

from structgen.generation.decoding.closing_budget import Speller, closing_tokens, shortest_completion
from structgen.generation.speculative.drafter import Proposal, Source, Written
from structgen.generation.speculative.tree import Node

NAME = "closing"
SPARE = 3  # tokens that may be left over after the closing text where it is drafted
LOOK = 48  # tokens before the end of the budget from which on the closing text is looked at
PRIORS = (0.8, 0.4, 0.2, 0.1)  # by the tokens to spare


class ClosingDrafter:
    """Proposes the fewest tokens that close the output, where hardly more are left of its budget."""

    name = NAME

    def start(self, prompt: Sequence[int], output: Written) -> Source:
        """See ``Drafter.start``."""
        return _ClosingSource(output)


class _ClosingSource(Source):
    name = NAME

    def __init__(self, output: Written) -> None:
        self._output = output
        self._speller = Speller(closing_tokens(output.vocabulary))
        self._remaining_at: dict[Node, Sequence[int]] = {}  # what closes the output after nodes

    def prepare(self, root: Node, depth: int) -> None:
        """See ``Source``."""
        self._remaining_at.clear()

    def propose(self, node: Node) -> list[Proposal]:
        """See ``Source``. Looks for a completion near the end only."""
        left = self._output.remaining - node.depth
        if left > LOOK or node.matcher is None:
            return []
        remaining = self._remaining_at[node] = self._remaining(node)
        spare = left - len(remaining)
        if not remaining or not 0 <= spare <= SPARE:
            return []
        return [Proposal(remaining[0], (NAME, spare, len(remaining) > 1), PRIORS[spare])]

    def _remaining(self, node: Node) -> Sequence[int]:
        above = self._remaining_at.get(node.parent, ()) if node.parent is not None else ()
        if above and above[0] == node.token:
            return above[1:]
        assert node.matcher is not None
        text = shortest_completion(node.matcher)
        return (None if text is None else self._speller.fewest(text)) or ()
