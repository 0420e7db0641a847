"""Drafts what the target itself found likely after the same token before (token recycling, Luo et al. 2024)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from structgen.generation.decoding.output import Output
from structgen.generation.sampling import to_numpy
from structgen.generation.speculative.drafter import Proposal, Source, Step
from structgen.generation.speculative.tree import Node

NAME = "recycling"
CANDIDATES = 6
# Chance of acceptance by the probability that the target gave then: below 0.1, 0.3, 0.6, 0.9, and above.
EDGES = np.array([0.1, 0.3, 0.6, 0.9])
GROUP = 64  # tokens
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
        kept = list(step.kept)  # what was not accepted stood in no text
        self._drafter.learn([step.tokens[index] for index in kept], step.logits[kept])


def likeliest(logits: Any, count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """The likeliest tokens of each row, descending, and their probabilities: [n, count] each."""
    if getattr(getattr(logits, "device", None), "type", "cpu") == "cpu":
        rows = to_numpy(logits)
        count = min(count, rows.shape[1])
        likeliest_pairs = [_likeliest(row, count) for row in rows]
        return np.stack([ids for ids, _ in likeliest_pairs]), np.stack([probs for _, probs in likeliest_pairs])
    best, order = logits.float().topk(min(count, logits.shape[1]), dim=1)
    probs = (best - logits.float().logsumexp(dim=1, keepdim=True)).exp()
    return order.cpu().numpy(), probs.double().cpu().numpy()


def _likeliest(row: npt.NDArray[np.float32], count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """The same of one row on the processor. The best are in the groups with the best, so that few are sorted. Members
    of a group are ``width`` apart: the maxima of all groups are then a few passes over neighbours."""
    width = len(row) // GROUP
    groups = row[: width * GROUP].reshape(GROUP, width)
    chosen = np.arange(width)
    if width > count:
        chosen = np.sort(np.argpartition(groups.max(axis=0), width - count)[width - count :])
    ids = np.concatenate([(chosen + width * np.arange(GROUP)[:, None]).ravel(), np.arange(width * GROUP, len(row))])
    logits = row[ids]
    order = np.argsort(-logits, kind="stable")[:count]
    total = np.exp(row - logits[order[0]]).sum()
    return ids[order], np.exp((logits[order] - logits[order[0]]).astype(np.float64)) / total
