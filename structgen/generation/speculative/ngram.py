"""Drafts copies: what followed the same tokens before, in the prompt or the output (prompt lookup, CopySpec)."""

from __future__ import annotations

from collections.abc import Sequence

from structgen.generation.decoding.output import Output
from structgen.generation.speculative.drafter import Proposal, Source, Written
from structgen.generation.speculative.tree import TAIL, Node
from structgen.options import check_count

NAME = "ngram"
LENGTHS = (16, 12, 8, 6, 4, 3, 2, 1)  # of the contexts that are looked up, longest first
BRANCHES = 4
# Chance of acceptance of the latest continuation by length of the match, measured with SmolLM2-135M on JSON.
PRIORS = {1: 0.2, 2: 0.45, 3: 0.65, 4: 0.8, 6: 0.9, 8: 0.95, 12: 0.97, 16: 0.98}
LATER_BRANCH = 0.25  # of that, for each further continuation


class NgramIndex:
    """Which tokens followed each context of up to 16 tokens, the latest last. O(1) a token to add and to look up."""

    def __init__(self) -> None:
        self._followers: dict[tuple[int, ...], dict[int, None]] = {}
        self._tail: tuple[int, ...] = ()

    def extend(self, tokens: Sequence[int]) -> None:
        """Add tokens to the text."""
        tail = self._tail
        for token in tokens:
            for length in LENGTHS:
                if length <= len(tail):
                    followers = self._followers.setdefault(tail[-length:], {})
                    followers.pop(token, None)
                    followers[token] = None
            tail = (*tail[1 - TAIL :], token)
        self._tail = tail

    def separate(self) -> None:
        """The next token begins another text."""
        self._tail = ()

    def propose(self, name: str, tail: tuple[int, ...]) -> list[Proposal]:
        """Up to ``BRANCHES`` tokens that followed the longest known contexts, by its length, then the latest first."""
        proposals: dict[int, Proposal] = {}
        for length in LENGTHS:
            followers = self._followers.get(tail[-length:]) if length <= len(tail) else None
            if followers is None:
                continue
            others = min(len(followers), 3)
            prior = PRIORS[length] if others == 1 else 0.7 * PRIORS[length]
            for rank, token in enumerate(reversed(followers)):
                if len(proposals) >= BRANCHES:
                    return list(proposals.values())
                if token not in proposals:
                    proposals[token] = Proposal(
                        token, (name, length, rank, others), prior * LATER_BRANCH ** len(proposals)
                    )
        return list(proposals.values())


class NgramDrafter:
    """Proposes what followed the last tokens earlier in the prompt or the output, with several branches."""

    name = NAME

    def start(self, prompt: Sequence[int], output: Written) -> Source:
        """See ``Drafter.start``."""
        source = _NgramSource()
        source.extend(prompt)
        return source


class _NgramSource(Source):
    name = NAME

    def __init__(self) -> None:
        self._index = NgramIndex()

    def extend(self, tokens: Sequence[int]) -> None:
        self._index.extend(tokens)

    def propose(self, node: Node) -> list[Proposal]:
        return self._index.propose(NAME, node.tail)


class MemoryDrafter:
    """Proposes what followed the last tokens in earlier outputs of this generator; the last ``outputs`` are kept."""

    name = "memory"

    def __init__(self, outputs: int = 256) -> None:
        check_count("outputs", outputs)
        self._most, self._texts, self._index = outputs, list[tuple[int, ...]](), NgramIndex()

    def start(self, prompt: Sequence[int], output: Output) -> Source:
        """See ``Drafter.start``."""
        return _MemorySource(self)

    def remember(self, tokens: Sequence[int]) -> None:
        """Add a text; when there are too many, the older half is forgotten."""
        self._texts.append(tuple(tokens))
        if len(self._texts) > self._most:
            self._texts = self._texts[self._most // 2 :]
            self._index = NgramIndex()
            for text in self._texts:
                self._add(text)
        else:
            self._add(self._texts[-1])

    def propose(self, tail: tuple[int, ...]) -> list[Proposal]:
        """What followed the longest known end of ``tail``."""
        return self._index.propose(self.name, tail)

    def _add(self, text: tuple[int, ...]) -> None:
        self._index.separate()
        self._index.extend(text)


class _MemorySource(Source):
    name = MemoryDrafter.name

    def __init__(self, drafter: MemoryDrafter) -> None:
        self._drafter, self._written = drafter, list[int]()

    def extend(self, tokens: Sequence[int]) -> None:
        self._written += tokens

    def propose(self, node: Node) -> list[Proposal]:
        return self._drafter.propose(node.tail)

    def finish(self) -> None:
        self._drafter.remember(self._written)
