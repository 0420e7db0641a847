"""Drafts what the constraint makes likely: keys, punctuation, words of enumerations and what formats ask for, in the
tokenizer's own spelling, also where the constraint leaves a choice (of spaces, of optional members)."""

from __future__ import annotations

from collections.abc import Sequence

from structgen.generation.speculative.drafter import Proposal, Source, Written
from structgen.generation.speculative.forced import CanonicalTokens
from structgen.generation.speculative.tree import Node

NAME = "structure"
HABITS = 256  # bytes of the output that tell how it is spelled
BEGUN = 0.8  # the chance that a text which was begun goes on, as long as nothing else is known
Kind = tuple[int, bytes]
"""Rank of a text among the likely ones, and the punctuation that it begins with."""
FIRST = (0.5, 0.25, 0.15, 0.1)  # that a text begins, by its rank


class StructureDrafter:
    """Proposes the likely texts of `Matcher.likely_texts`; nothing for free text. A look at the matcher a node."""

    name = NAME

    def __init__(self, canonical: CanonicalTokens) -> None:
        self._canonical = canonical

    def start(self, prompt: Sequence[int], output: Written) -> Source:
        """See ``Drafter.start``."""
        return _StructureSource(self._canonical, output)


class _StructureSource(Source):
    name = NAME

    def __init__(self, canonical: CanonicalTokens, output: Written) -> None:
        self._canonical, self._output = canonical, output
        self._written = b""
        self._begun: dict[Node, list[tuple[Kind, tuple[int, ...]]]] = {}  # kinds and what remains, by nodes within

    def prepare(self, root: Node, depth: int) -> None:
        """See ``Source``."""
        self._begun.clear()
        self._written = self._output.data[-HABITS:]

    def propose(self, node: Node) -> list[Proposal]:
        """See ``Source``."""
        if node.matcher is None:
            return []
        begun = self._remaining(node)
        likely = enumerate(node.matcher.likely_texts(self._written))
        fresh = [((rank, _sign(text)), self._canonical(text)) for rank, text in likely]
        self._begun[node] = begun + [(kind, tokens) for kind, tokens in fresh if tokens]
        proposals: dict[int, Proposal] = {}
        for index, ((rank, sign), tokens) in enumerate(self._begun[node]):
            if tokens[0] not in proposals:
                stage = 0 if index >= len(begun) else 1 if len(tokens) > 1 else 2
                prior = BEGUN if stage else FIRST[min(rank, len(FIRST) - 1)]
                proposals[tokens[0]] = Proposal(tokens[0], (NAME, stage, rank, sign), prior)
        return list(proposals.values())

    def _remaining(self, node: Node) -> list[tuple[Kind, tuple[int, ...]]]:
        """What is left of the texts that the node stands in."""
        above = self._begun.get(node.parent, []) if node.parent is not None else []
        return [(kind, tokens[1:]) for kind, tokens in above if len(tokens) > 1 and tokens[0] == node.token]


def _sign(text: bytes) -> bytes:
    """The punctuation that a text begins with."""
    return text[: next((length for length, byte in enumerate(text) if chr(byte).isalnum()), len(text))][:4]
