"""Foresight (φ-decoding, Xu et al. 2025): steps are chosen by how the outputs that they lead to look.

Each of a few beams draws a few steps, a line each. What is much less likely than the others is dropped, what remains is
drawn to its end. A step is worth more the more fluent its end is than that of the step before (its advantage), and the
more other ends are like it (its share). Beams are drawn by both.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from structgen.errors import OptionsError
from structgen.generation.decoding.critics import Candidate, CheckedCritic, CriticLike, critic
from structgen.generation.search.arithmetic import Arithmetic, CodedDraw, draw_on
from structgen.generation.search.clusters import clusters_of
from structgen.generation.search.results import SearchOutcome
from structgen.generation.search.scores import Values
from structgen.generation.search.space import SearchNode, Space
from structgen.options import check_count

SHARPNESS = 10.0
"""Of advantages: chances are proportional to exp(10 · advantage)."""
REFUSED = -1e9
"""The worth of what a critic refuses: it is drawn where all else is refused, too."""


def ends_a_line(text: str) -> bool:
    """Whether a text ends a line."""
    return text.endswith("\n")


@dataclass(frozen=True, kw_only=True)
class Foresight(Arithmetic):
    """See ``Arithmetic`` for temperature (0.6 here) and filters.

    Attributes:
        beams: that go on from step to step; at least as many as outputs.
        steps: drawn of each beam.
        boundary: whether a step is over with a text: with a line; of JSON, say, with an item.
        most_steps: after so many, what was seen last is chosen from.
        settled_after, settled_share: after so many steps, also where so large a share of the ends is alike.
        clusters: kinds of ends where no two have one value.
        critic: of whole texts, in place of the mean log-probability of an end.
    """

    temperature: float = 0.6
    beams: int = 4
    steps: int = 4
    boundary: Callable[[str], bool] = ends_a_line
    most_steps: int = 8
    settled_after: int = 4
    settled_share: float = 0.7
    clusters: int = 3
    critic: CriticLike | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("beams", "steps", "most_steps", "settled_after", "clusters"):
            check_count(name, getattr(self, name))
        if not callable(self.boundary):
            raise OptionsError(f"boundary is a function of texts, not {self.boundary!r:.60}", option="boundary")
        if not isinstance(self.settled_share, (int, float)) or not 0 < self.settled_share <= 1:
            raise OptionsError(
                f"settled_share must be above 0 and at most 1, not {self.settled_share!r:.60}", option="settled_share"
            )
        if self.critic is not None:
            critic(self.critic)

    def run(self, space: Space, n: int, rng: np.random.Generator) -> SearchOutcome:
        """See ``Method.run``; the first is drawn from the largest cluster, the others follow by their worth."""
        return _Search(self, space, max(self.beams, n), rng).outcome()


@dataclass(frozen=True, slots=True)
class _Step:
    """A beginning that a step ends, and the output that was drawn from it.

    Attributes:
        step: mean log-probability of the step's choices.
        worth: of the end, mean log-probability of its choices, or what a critic says of the whole.
        gain: of that over the worth of the step before.
    """

    node: SearchNode
    step: float = 0.0
    end: SearchNode | None = None
    worth: float = 0.0
    gain: float = 0.0


@dataclass
class _Search:
    """What goes on from step to step: ``beams``, and the kinds of their ends."""

    options: Foresight
    space: Space
    size: int
    rng: np.random.Generator
    kinds: list[Hashable] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.beams = [_Step(self.space.root)] * self.size
        given = self.options.critic
        self._critic: CheckedCritic | None = None if given is None else critic(given)

    def outcome(self) -> SearchOutcome:
        """Steps until all have ended, ends are alike, or there are enough; then the choice."""
        for number in range(1, self.options.most_steps + 1):
            seen = self._ended(self._pruned(self._drawn()))
            kinds = clusters_of(self._candidates(seen), self.options.clusters)
            shares = Counter(kinds)
            chosen = self._chosen(seen, [shares[kind] / len(kinds) for kind in kinds])
            self.beams, self.kinds = [seen[index] for index in chosen], [kinds[index] for index in chosen]
            is_settled = max(shares.values()) >= self.options.settled_share * len(kinds)
            if (number >= self.options.settled_after and is_settled) or all(one.node.is_finished for one in self.beams):
                break
            self.space.retain([one.node for one in self.beams if not one.node.is_finished])
        return self._choice()

    def _drawn(self) -> list[_Step]:
        """The steps that beams draw, and beams that have ended."""
        steps, draws = [one for one in self.beams if one.node.is_finished], list[CodedDraw]()
        starts = dict[int, _Step]()
        for beam in self.beams:
            if not beam.node.is_finished:
                for _ in range(self.options.steps):
                    draws.append(CodedDraw(beam.node))
                    starts[id(draws[-1])] = beam

        def is_over(draw: CodedDraw) -> bool:
            hypothesis = draw.node.hypothesis
            has_moved = len(hypothesis.tokens) > len(starts[id(draw)].node.hypothesis.tokens)
            return has_moved and self.options.boundary(hypothesis.text)

        draw_on(self.space, draws, self.options.params, self.rng, is_over)
        for draw in draws:
            start = starts[id(draw)]
            mean = (draw.node.log_local - start.node.log_local) / max(1, draw.choices)
            steps.append(replace(start, node=draw.node, step=mean, end=None))
        return steps

    def _pruned(self, steps: list[_Step]) -> list[_Step]:
        """Without those that are less likely than the others by more than their spread; at least as many as beams."""
        means = np.array([one.step for one in steps])
        most = max(self.size, int((means > means.mean() - means.std()).sum()))
        kept = set(np.argsort(-means, kind="stable")[:most].tolist())
        return [one for index, one in enumerate(steps) if index in kept]

    def _ended(self, steps: list[_Step]) -> list[_Step]:
        """With an output drawn from each, and what it is worth."""
        draws = [CodedDraw(one.node) for one in steps]
        draw_on(self.space, draws, self.options.params, self.rng, lambda draw: False)
        ends = [draw.node if one.end is None else one.end for one, draw in zip(steps, draws, strict=True)]
        if self._critic is None:
            worths = [
                (draw.node.log_local - one.node.log_local) / draw.choices if draw.choices else one.step
                for one, draw in zip(steps, draws, strict=True)
            ]
        else:
            worths = [max(score, REFUSED) for score in self._critic(self.space.candidates(ends))]
        return [
            replace(one, end=end, worth=worth, gain=worth - one.worth)
            for one, end, worth in zip(steps, ends, worths, strict=True)
        ]

    def _candidates(self, steps: Sequence[_Step]) -> list[Candidate]:
        return self.space.candidates([one.end for one in steps if one.end is not None])

    def _chosen(self, steps: Sequence[_Step], shares: Sequence[float]) -> list[int]:
        """Which go on, drawn without replacement."""
        chances = (_softmax(SHARPNESS * np.array([one.gain for one in steps])) + _softmax(np.array(shares))) / 2
        drawn = self.rng.choice(len(steps), min(self.size, len(steps)), replace=False, p=chances)
        return [int(index) for index in drawn]

    def _choice(self) -> SearchOutcome:
        largest = Counter(self.kinds).most_common(1)[0][0]
        gains = np.array(
            [one.gain if kind == largest else -math.inf for one, kind in zip(self.beams, self.kinds, strict=True)]
        )
        first = int(self.rng.choice(len(gains), p=_softmax(SHARPNESS * gains)))
        others = sorted(
            (index for index in range(len(gains)) if index != first), key=lambda index: -self.beams[index].worth
        )
        branches = [self.beams[index] for index in (first, *others)]
        return SearchOutcome([(one.worth, one.end) for one in branches if one.end is not None])


def _softmax(values: Values) -> Values:
    weights = np.exp(values - values.max())
    return np.asarray(weights / weights.sum())
