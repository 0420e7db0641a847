"""Drafts what the target itself found likely after the same token before (token recycling, Luo et al. 2024)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from structgen.decoding.output import Output
from structgen.decoding.speculative.drafter import Proposal, Source, Step
from structgen.decoding.speculative.tree import Node

NAME = "recycling"
CANDIDATES = 6
# Chance of acceptance by the probability that the target gave then: below 0.1, 0.3, 0.6, 0.9, and above.
EDGES = np.array([0.1, 0.3, 0.6, 0.9])
PRIORS = (0.01, 0.05, 0.1, 0.2, 0.3)


class RecyclingDrafter:
    """Remembers, for each token, the likeliest next tokens of the last time that the target read it.

    Memory: 8 · CANDIDATES bytes a token of the vocabulary, shared by all outputs.
    """

    name = NAME

    def __init__(self, vocab_size: int) -> None:
        self._tokens = np.full((vocab_size, CANDIDATES), -1, dtype=np.int32)
        self._classes = np.zeros((vocab_size, CANDIDATES), dtype=np.int8)

    def start(self, prompt: Sequence[int], output: Output) -> Source:
        """See ``Drafter.start``."""
        return _RecyclingSource(self)

    def learn(self, tokens: Sequence[int], logits: Any) -> None:
        """Note the likeliest tokens of each row of ``logits`` [n, V], the one after ``tokens[i]``."""
        best, probs = likeliest(logits, CANDIDATES)
        self._tokens[list(tokens), : best.shape[1]] = best
        self._classes[list(tokens), : best.shape[1]] = np.searchsorted(EDGES, probs)

    def propose(self, token: int) -> list[Proposal]:
        """The candidates after ``token``, likeliest first."""
        return [
            Proposal(candidate, (NAME, rank, kind), PRIORS[kind] if rank == 0 else PRIORS[kind] / 2)
            for rank, (candidate, kind) in enumerate(
                zip(self._tokens[token].tolist(), self._classes[token].tolist(), strict=True)
            )
            if candidate >= 0
        ]


class _RecyclingSource(Source):
    name = NAME

    def __init__(self, drafter: RecyclingDrafter) -> None:
        self._drafter = drafter

    def propose(self, node: Node) -> list[Proposal]:
        return self._drafter.propose(node.token)

    def observe(self, step: Step) -> None:
        self._drafter.learn(step.tokens, step.logits[: len(step.tokens)])


def likeliest(logits: Any, count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """The likeliest tokens of each row, descending, and their probabilities: [n, count] each."""
    if isinstance(logits, np.ndarray):
        count = min(count, logits.shape[1])
        order = np.argpartition(-logits, count - 1, axis=1)[:, :count]
        order = np.take_along_axis(order, np.argsort(-np.take_along_axis(logits, order, 1), axis=1), 1)
        top = np.take_along_axis(logits, order, 1).astype(np.float64)
        total = np.logaddexp.reduce(logits.astype(np.float64), axis=1, keepdims=True)
        return order, np.exp(top - total)
    best, order = logits.float().topk(min(count, logits.shape[1]), dim=1)
    probs = (best - logits.float().logsumexp(dim=1, keepdim=True)).exp()
    return order.cpu().numpy(), probs.double().cpu().numpy()
