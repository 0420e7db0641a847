"""Choosing along drafts: many sequences of which the model has read a token, or a tree of what may follow it.

Every token is drawn by ``choosing.drawn`` from the target's logits after exactly the tokens before it: masks,
filters, steering by the budget and random numbers are those of a loop without drafts. So greedy outputs are the same,
and samples too where no draft was drawn at random (a seed gives the same text); with random drafts the verification
rules keep the distribution. Both up to the last bits of the logits: float32 sums come out in another order when several
tokens are read at once, which can decide a tie.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np

from structgen.generation.decoding.choosing import OnError, drawn, guarded
from structgen.generation.decoding.output import Output
from structgen.generation.sampling import FirstDraw
from structgen.generation.sampling.choose import sampler_for
from structgen.generation.sampling.host import HostSampler
from structgen.generation.speculative.speculator import DraftedSequence


class Walk(Protocol):
    """A sequence that tokens are chosen for: ``speculator.DraftedSequence``, or one without drafts."""

    output: Output

    @property
    def last_read(self) -> int:
        """After which of the sequence's logits the next token is chosen."""
        ...

    @property
    def rule(self) -> FirstDraw | None:
        """What draws it in place of the sampler."""
        ...

    @property
    def looks_ahead(self) -> bool:
        """Whether the next mask is made once a token was taken."""
        ...

    def begin(self) -> None:
        """The target has read."""
        ...

    def follow(self) -> bool:
        """A token was taken. Whether the target has read what comes after it."""
        ...


Run = Callable[[Sequence[tuple[Walk, Callable[[], None]]]], Sequence[bool]]
"""Does something for each sequence; whether it was done, and without an error. Rows of which it was not are left alone
from then on, and may still be worked on."""


def verify(
    sequences: Sequence[Walk], logits: Any, starts: Sequence[int], run: Run, failed: OnError | None = None
) -> None:
    """Choose along the drafts of all sequences, a token of every sequence that is still on its tree with each draw. On
    a device, what comes after every node is drawn at once, and the paths are found there.

    Args:
        logits: [N, V], of all sequences.
        starts: the first sequence of ``logits`` of each.
        run: takes the tokens and makes the masks after them.
        failed: as of ``choose``, for what ``run`` does not do.
    """
    for sequence in sequences:
        sequence.begin()
    cached = draw_paths(sequences, logits, starts)
    walking = list(zip(sequences, starts, strict=True))
    while walking:
        nodes_at = [(sequence, start + sequence.last_read) for sequence, start in walking]
        asked = [(sequence, node) for sequence, node in nodes_at if node not in cached]
        outputs, rules = [sequence.output for sequence, _ in asked], [sequence.rule for sequence, _ in asked]
        places = [node for _, node in asked]
        takes = dict(zip(places, drawn(outputs, logits, places, rules), strict=True))
        for sequence, node in nodes_at:
            if node in cached:
                takes[node] = partial(sequence.output.take, *cached[node], logits, node)
        done = run([(sequence, partial(_advance, sequence, takes[node])) for sequence, node in nodes_at])
        walking = [pair for pair, is_done in zip(walking, done, strict=True) if is_done and _goes_on(pair[0], failed)]


def _goes_on(sequence: Walk, failed: OnError | None) -> bool:
    with guarded(sequence.output, failed):
        return sequence.follow()
    return False


def _advance(sequence: Walk, take: Callable[[], None]) -> None:
    """Take a token, and see what may come after it."""
    sequence.output.looks_ahead = sequence.looks_ahead
    take()
    if sequence.looks_ahead:
        sequence.output.advance_forced()


def draw_paths(sequences: Sequence[Walk], logits: Any, starts: Sequence[int]) -> dict[int, tuple[int, float]]:
    """On a device: the tokens along each sequence's accepted path, and their log-probabilities, by their sequence of
    ``logits``.

    The masks of all nodes are made while the model reads. Rows with penalties, whose adjustments depend on the path, or
    with drafts that were drawn at random are left out; so are all on the processor, where looking at what is visited
    only is cheaper.
    """
    sampler = sampler_for(logits)
    if isinstance(sampler, HostSampler):
        return {}
    from structgen.generation.sampling.device_trees import verify_trees
    from structgen.generation.sampling.torch_sampler import TorchSampler

    assert isinstance(sampler, TorchSampler), "what draws on devices"

    pairs = zip(sequences, starts, strict=True)
    judged = [
        (sequence, start)
        for sequence, start in pairs
        if isinstance(sequence, DraftedSequence) and sequence.is_drawn_alone
    ]
    if not judged:
        return {}
    masks = sampler.send(np.concatenate([sequence.masks() for sequence, _ in judged]))
    trees, first = [], 0
    for sequence, start in judged:
        trees.append(sequence.drafted(start, first))
        first += len(trees[-1].tokens)
    result: dict[int, tuple[int, float]] = {}
    for tree, path in zip(trees, verify_trees(sampler, logits, masks, trees), strict=True):
        drawn = zip(path.nodes.tolist(), path.token_ids.tolist(), path.log_probs.tolist(), strict=True)
        result.update((int(tree.logits_rows[node]), (token, log_prob)) for node, token, log_prob in drawn)
    return result
