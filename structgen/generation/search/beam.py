"""Beam search, as transformers has it: the best few hypotheses of each length, the best finished of all."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from structgen.errors import IncompleteOutputError, OptionsError
from structgen.generation.search.method import Scored, check_number
from structgen.generation.search.results import SearchOutcome
from structgen.generation.search.scores import Values
from structgen.generation.search.space import SearchNode, Space
from structgen.options import check_count

# What may follow a hypothesis is tried best first; after so many that could not be closed in time, only what its known
# completion goes on with is. Only hypotheses at the very end of their budget get there.
MOST_REFUSED = 512


@dataclass(frozen=True, slots=True)
class BeamEntry:
    """A hypothesis in a beam. ``offset``: what its score has of the beam's own, beyond the node's."""

    node: SearchNode
    offset: float = 0.0

    @property
    def score(self) -> float:
        """What it is compared by."""
        return self.node.score + self.offset


@dataclass(frozen=True, kw_only=True)
class Beam(Scored):
    """See ``Scored`` for the other options.

    Attributes:
        num_beams: hypotheses of each length; None: 4, or twice as many as outputs are asked for.
        early_stopping: True: stop when enough have finished; False: when the best that runs is no better, were it to
            end now, than the worst of those; "never": when it could not become better.
        patience: with early_stopping=True, wait for so many times ``num_beams``, and choose from those.
    """

    num_beams: int | None = None
    early_stopping: bool | Literal["never"] = False
    patience: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("num_beams", self.num_beams, optional=True)
        if self.early_stopping not in (True, False, "never"):
            raise OptionsError(
                f"early_stopping must be True, False or 'never', not {self.early_stopping!r:.100}",
                option="early_stopping",
            )
        check_number("patience", self.patience, 0)
        if self.patience != 1 and self.early_stopping is not True:
            raise OptionsError(
                "patience says how many outputs to wait for, which only early stopping (True) does", option="patience"
            )

    def beams(self, n: int) -> int:
        """How many, for so many outputs.

        Raises:
            OptionsError: fewer than outputs.
        """
        if self.num_beams is None:
            return 4 if n == 1 else max(4, 2 * n)
        if self.num_beams < n:
            raise OptionsError(
                f"{n} outputs need as many beams, not num_beams={self.num_beams}", option="num_beams", value=n
            )
        return self.num_beams

    def run(self, space: Space, n: int, rng: np.random.Generator) -> SearchOutcome:
        """See ``Method.run``."""
        group = self.searched(space, self.beams(n))
        check_some(group.done)
        return SearchOutcome(group.done)

    def searched(self, space: Space, size: int) -> Group:
        """The beam, when it is over."""
        group = Group(space, self, size)
        for _ in group.steps():
            pass
        return group


@dataclass
class Group:
    """One beam.

    Attributes:
        run: hypotheses that go on, best first.
        done: finished ones, with what they scored, best first.
    """

    space: Space
    options: Beam
    size: int
    run: list[BeamEntry] = field(default_factory=list)
    done: list[tuple[float, SearchNode]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.run = [BeamEntry(self.space.root)]
        self.space.most_kept = max(self.space.most_kept, 2 * self.size)
        self._most_done = math.ceil(self.options.patience * self.size)

    def steps(self) -> Iterator[None]:
        """A token more, one call of the model, at a time, until it is over."""
        while self.run:
            self.space.expand([entry.node for entry in self.run])
            self.step()
            self.space.retain([entry.node for entry in self.run])
            yield

    def step(self, penalties: Counter[int] | None = None, weight: float = 0.0) -> list[int]:
        """A token more for all that run, which are expanded; ends where nothing better can come.

        Args:
            penalties: how often others have chosen each token; ``weight`` times that is taken off.

        Returns:
            the tokens that were chosen.
        """
        chosen = self._pool(penalties or Counter(), weight)
        self.run = []
        for rank, (_, entry) in enumerate(chosen):
            if not entry.node.is_finished:
                self.run.append(entry)
            elif rank < self.size:
                self._finish(entry)
        self.run = self.run[: self.size]
        tokens = [token for token, entry in chosen if entry in self.run]
        if self.run and self._is_over():
            self.run = []
        return tokens

    def _finish(self, entry: BeamEntry) -> None:
        self.done.append((self.options.final(entry.node, entry.offset), entry.node))
        self.done.sort(key=lambda pair: -pair[0])
        if self.options.early_stopping is not True:
            del self.done[self.size :]

    def _is_over(self) -> bool:
        """Whether those that run cannot, or are taken not to, become better than those that are done."""
        options = self.options
        if options.early_stopping is True:
            return len(self.done) >= self._most_done
        if len(self.done) < self.size:
            return False
        length = self.run[0].node.length
        if options.early_stopping == "never" and options.length_penalty > 0:
            length = self.space.most_tokens
        return self.run[0].score / length**options.length_penalty <= self.done[-1][0]

    def _pool(self, penalties: Counter[int], weight: float) -> list[tuple[int, BeamEntry]]:
        """The best hypotheses of a token more that can be closed, twice as many as run."""
        merge = _Merge(self.space, self.run, penalties, weight)
        chosen = [pair for _, pair in zip(range(2 * self.size), merge, strict=False)]
        if not chosen:
            planned = [(entry, self.space.planned(entry.node)) for entry in self.run]
            chosen = [
                (child.hypothesis.tokens[-1], BeamEntry(child, entry.offset)) for entry, child in planned if child
            ]
        return chosen


def check_some(finished: Sequence[object]) -> None:
    """Raise where nothing has finished.

    Raises:
        IncompleteOutputError: so it is, which only stop strings bring about.
    """
    if not finished:
        raise IncompleteOutputError(
            "No output can be completed: a stop string comes before each of them is whole. Change stop.",
            partial="",
            option="stop",
        )


class _Merge:
    """What may follow some hypotheses, best first: of equals, that of the better hypothesis."""

    def __init__(self, space: Space, run: Sequence[BeamEntry], penalties: Counter[int], weight: float) -> None:
        self._space, self._run = space, run
        self._ranked = [self._ranking(entry, penalties, weight) for entry in run]
        self._refused = [0] * len(run)
        self._heap: list[tuple[float, int, int]] = []
        for rank in range(len(run)):
            self._push(rank, 0)

    def __iter__(self) -> _Merge:
        return self

    def __next__(self) -> tuple[int, BeamEntry]:
        while self._heap:
            _, rank, index = heapq.heappop(self._heap)
            entry, (tokens, scores) = self._run[rank], self._ranked[rank]
            child = self._space.child(entry.node, int(tokens[index]))
            self._refused[rank] += child is None
            if self._refused[rank] < MOST_REFUSED:
                self._push(rank, index + 1)
            if child is not None:
                return int(tokens[index]), BeamEntry(child, float(scores[index]) - child.score)
        raise StopIteration

    def _push(self, rank: int, index: int) -> None:
        tokens, scores = self._ranked[rank]
        if index < len(tokens):
            heapq.heappush(self._heap, (-float(scores[index]), rank, index))

    def _ranking(self, entry: BeamEntry, penalties: Counter[int], weight: float) -> tuple[list[int], Values]:
        node, shift = entry.node, None
        assert node.expansion is not None
        if (entry.offset or penalties) and not node.is_forced:
            counts = [penalties[token] for token in node.expansion.tokens.tolist()]
            shift = entry.offset - weight * np.array(counts, np.float64)
        elif entry.offset:
            shift = np.full(len(node.expansion.tokens), entry.offset)
        tokens, scores = self._space.ranked(node, shift)
        return tokens.tolist(), scores
