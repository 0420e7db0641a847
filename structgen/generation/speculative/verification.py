"""Choosing along drafts: many rows of which the model has read a token, or a tree of what may follow it.

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
    """A row that tokens are chosen for: ``speculator.DraftedSequence``, or one without drafts."""

    output: Output

    @property
    def place(self) -> int:
        """After which of the row's logits the next token is chosen."""
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
"""Does something for each row; whether it was done, and without an error. Rows of which it was not are left alone from
then on, and may still be worked on."""


def verify(rows: Sequence[Walk], logits: Any, starts: Sequence[int], run: Run, failed: OnError | None = None) -> None:
    """Choose along the drafts of all rows, a token of every row that is still on its tree with each draw. On a device,
    what comes after every node is drawn at once, and the paths are found there.

    Args:
        logits: [N, V], of all rows.
        starts: the first row of ``logits`` of each.
        run: takes the tokens and makes the masks after them.
        failed: as of ``choose``, for what ``run`` does not do.
    """
    for row in rows:
        row.begin()
    known = draw_paths(rows, logits, starts)
    walking = list(zip(rows, starts, strict=True))
    while walking:
        at = [(row, start + row.place) for row, start in walking]
        asked = [(row, place) for row, place in at if place not in known]
        outputs, rules = [row.output for row, _ in asked], [row.rule for row, _ in asked]
        places = [place for _, place in asked]
        takes = dict(zip(places, drawn(outputs, logits, places, rules), strict=True))
        for row, place in at:
            if place in known:
                takes[place] = partial(row.output.take, *known[place], logits, place)
        done = run([(row, partial(_advance, row, takes[place])) for row, place in at])
        walking = [pair for pair, is_done in zip(walking, done, strict=True) if is_done and _goes_on(pair[0], failed)]


def _goes_on(row: Walk, failed: OnError | None) -> bool:
    with guarded(row.output, failed):
        return row.follow()
    return False


def _advance(row: Walk, take: Callable[[], None]) -> None:
    """Take a token, and see what may come after it."""
    row.output.looks_ahead = row.looks_ahead
    take()
    if row.looks_ahead:
        row.output.advance_forced()


def draw_paths(rows: Sequence[Walk], logits: Any, starts: Sequence[int]) -> dict[int, tuple[int, float]]:
    """On a device: the tokens along each row's accepted path, and their log-probabilities, by their row of ``logits``.

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

    pairs = zip(rows, starts, strict=True)
    judged = [(row, start) for row, start in pairs if isinstance(row, DraftedSequence) and row.is_drawn_alone]
    if not judged:
        return {}
    masks = sampler.send(np.concatenate([row.masks() for row, _ in judged]))
    trees, first = [], 0
    for row, start in judged:
        trees.append(row.drafted(start, first))
        first += len(trees[-1].tokens)
    found: dict[int, tuple[int, float]] = {}
    for tree, path in zip(trees, verify_trees(sampler, logits, masks, trees), strict=True):
        drawn = zip(path.nodes.tolist(), path.token_ids.tolist(), path.log_probs.tolist(), strict=True)
        found.update((int(tree.logits_rows[node]), (token, log_prob)) for node, token, log_prob in drawn)
    return found
