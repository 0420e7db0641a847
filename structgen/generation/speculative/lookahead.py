"""Drafts n-grams that fixed-point iteration of the target throws up (Jacobi decoding; Lookahead, Fu et al. 2024).

A row of guesses for the next tokens rides along in each forward; what the target says after each guess is the next
row. Pieces of these rows, right or not where they stand, often turn up later, so they go into a pool of n-grams.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from structgen.generation.decoding.output import Output
from structgen.generation.speculative.drafter import Proposal, Source, Step
from structgen.generation.speculative.ngram import NgramIndex
from structgen.generation.speculative.tree import Node
from structgen.options import check_count

NAME = "lookahead"


class LookaheadDrafter:
    """Proposes a row of ``width`` guesses and n-grams of earlier rows. Uses no other model."""

    name = NAME

    def __init__(self, width: int = 6) -> None:
        check_count("width", width)
        self.width = width

    def start(self, prompt: Sequence[int], output: Output) -> Source:
        """See ``Drafter.start``."""
        return _LookaheadSource(self.width, prompt)


class _LookaheadSource(Source):
    name = NAME

    def __init__(self, width: int, prompt: Sequence[int]) -> None:
        self._width = width
        self._pool = NgramIndex()
        self._guesses = list(prompt[-width:])
        self._rows: dict[Node, int] = {}  # nodes of this step's guesses, and the guess that follows each

    def extend(self, tokens: Sequence[int]) -> None:
        left = self._guesses[len(tokens) :]
        last = left[-1:] or list(tokens[-1:]) or self._guesses[-1:]
        self._guesses = (left + last * self._width)[: self._width]

    def prepare(self, root: Node, depth: int) -> None:
        self._rows = {root: 0}

    def propose(self, node: Node) -> list[Proposal]:
        proposals = self._pool.propose(NAME, node.tail)
        row = self._rows.get(node)
        if row is None and node.parent in self._rows:
            above = self._rows[node.parent]
            if above < len(self._guesses) and self._guesses[above] == node.token:
                row = self._rows[node] = above + 1
        if row is not None and row < len(self._guesses):
            guess = self._guesses[row]
            if all(proposal.token != guess for proposal in proposals):
                proposals.append(Proposal(guess, (NAME, "guess", row), 0.4 / (row + 1)))
        return proposals

    def observe(self, step: Step) -> None:
        for node, row in self._rows.items():
            if node.index < 0 and node is not step.tree.root:
                continue
            said = _likeliest(step.logits_after(node))
            self._pool.separate()
            self._pool.extend([*node.tail[-2:], said])
            if row < len(self._guesses):
                self._guesses[row] = said


def _likeliest(logits: Any) -> int:
    return int(np.argmax(logits)) if isinstance(logits, np.ndarray) else int(logits.argmax())
