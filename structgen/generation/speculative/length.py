"""How much to draft: policies that admit nodes to a tree one after the other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Protocol

from structgen.generation.speculative.cost import TYPICAL, Cost

MAX_NODES = 48
LONGEST_STEP = 6.0  # forwards of one token that a tree may cost: beyond, wrong guesses lose more than right ones gain
RATE_WEIGHT = 0.1  # of the latest step in the running means
FIRST_PAUSE, LONGEST_PAUSE = 4, 32  # steps
# Forwards of one token that drafts may lose: of the first output, of another one, after a pause, and after gains.
FIRST_LOSS, NEXT_LOSS, TRIAL_LOSS, MOST_LOSS = 1.5, 0.6, 0.3, 4.0
UNREAD = 5.0  # what the time of drafting weighs where nothing is read: not even a chance is bought with it
PAYS = 1.0  # forwards gained from which on drafts are known to pay


class LengthPolicy(Protocol):
    """Decides on the size of a tree. Used for one output after the other; what it learns stays."""

    def begin(self) -> None:
        """A new tree begins."""
        ...

    def admit(self, nodes: int, gain: float, chance: float) -> bool:
        """Whether a node with this ``chance`` of acceptance is added to ``nodes`` that promise ``gain`` tokens.

        May depend on what is in the tree and on this node, not on anything that would come after.
        """
        ...

    def trim(self, chances: Sequence[float]) -> int:
        """How many nodes to keep of a finished tree without random draws, ``chances`` descending."""
        ...

    def observe(self, nodes: int, tokens: int) -> None:
        """A forward with so many draft nodes gave so many tokens."""
        ...


class _Keep:
    """The parts of a policy that most do without."""

    def begin(self) -> None:
        """See ``LengthPolicy``."""

    def trim(self, chances: Sequence[float]) -> int:
        """See ``LengthPolicy``: all."""
        return len(chances)

    def observe(self, nodes: int, tokens: int) -> None:
        """See ``LengthPolicy``."""


@dataclass
class Fixed(_Keep):
    """Always the same number of nodes, as far as there are proposals."""

    nodes: int = 16

    def admit(self, nodes: int, gain: float, chance: float) -> bool:
        """See ``LengthPolicy``."""
        return nodes < self.nodes


@dataclass
class Threshold(_Keep):
    """Stops where the chance that something before is rejected exceeds a threshold (Huang et al. 2024, SpecDec++:
    the optimal stop of a chain has this form). In a tree each path stops by itself."""

    rejection: float = 0.7
    most: int = MAX_NODES

    def admit(self, nodes: int, gain: float, chance: float) -> bool:
        """See ``LengthPolicy``. Proposals come likeliest first, so the first too unlikely ends the tree."""
        return nodes < self.most and 1 - chance <= self.rejection


@dataclass
class CostAware(_Keep):
    """The number of nodes that gives the most tokens for the time.

    The long-run rate (tokens per time of a single-token forward) is greatest if each step maximises
    expected tokens - rate · time, the rate being the best that can be had (renewal reward; Dinkelbach's method). The
    rate is a running mean of what was reached. A tree without random draws is grown as far as it might pay, and
    then cut where the maximum lies; one with draws stops growing where a further token no longer pays on average.
    """

    curve: Cost = TYPICAL
    most: int = MAX_NODES
    rate: float = 1.5
    _tokens: float = field(default=1.5, repr=False)
    _time: float = field(default=1.0, repr=False)

    def admit(self, nodes: int, gain: float, chance: float) -> bool:
        """See ``LengthPolicy``."""
        if nodes >= self.most or self.curve(nodes + 2) > LONGEST_STEP:
            return False
        return chance > self.rate * self.curve.marginal(nodes + 1)

    def trim(self, chances: Sequence[float]) -> int:
        """See ``LengthPolicy``."""
        best, best_value, gain = 0, -self.rate * self.curve(1), 0.0
        for nodes, chance in enumerate(chances, 1):
            gain += chance
            value = gain - self.rate * self.curve(nodes + 1)
            if value > best_value:
                best, best_value = nodes, value
        return best

    def observe(self, nodes: int, tokens: int) -> None:
        """See ``LengthPolicy``."""
        self._tokens += RATE_WEIGHT * (tokens - self._tokens)
        self._time += RATE_WEIGHT * (self.curve(nodes + 1) - self._time)
        self.rate = max(1.0, self._tokens / self._time)


@dataclass
class Pause:
    """Suspends drafting in an output while it costs more than it gives, as in much prose.

    Drafts may lose so much time (``FIRST_LOSS``, in forwards of one token) and what they have gained before, as far as
    that is remembered. Then there is a pause, and a trial that may lose little. A pause is twice as long as the one
    before, until drafts have gained again. The next output goes on where one of its kind stopped.
    """

    curve: Cost
    _credit: float = field(default=FIRST_LOSS, repr=False)  # forwards that may be lost
    _steps: int = field(default=0, repr=False)
    _next: int = field(default=FIRST_PAUSE, repr=False)

    def resumed(self) -> Pause:
        """For the next output: it may be another kind of text, so it pauses for a few steps at most."""
        return replace(self, _steps=min(self._steps, FIRST_PAUSE), _credit=max(self._credit, NEXT_LOSS))

    def step(self) -> bool:
        """Whether the next step goes without drafts."""
        self._steps -= 1
        return self._steps >= 0

    def observe(self, nodes: int, tokens: int, seconds: float, other_tokens: int = 1, sequences: int = 1) -> None:
        """A step with so many draft nodes gave so many tokens; drafting took ``seconds``.

        Among others, what the drafts took is weighed by what the step gives without them: ``sequences`` tokens in the
            time
        of the ``other_tokens`` tokens that it reads anyway.
        """
        extra = self.curve(other_tokens + nodes) - self.curve(other_tokens)
        if self.curve.seconds:
            extra += (1.0 if nodes else UNREAD) * seconds / self.curve.seconds
        self._credit += tokens - 1 - extra * sequences / self.curve(other_tokens)
        if self._credit < 0:
            self._steps, self._next = self._next, min(2 * self._next, LONGEST_PAUSE)
            self._credit = TRIAL_LOSS
        elif self._credit > PAYS:
            self._credit, self._next = min(self._credit, MOST_LOSS), FIRST_PAUSE


@dataclass
class Bandit(_Keep):
    """Chooses among numbers of nodes by upper confidence bounds (UCB1, Auer et al. 2002) of tokens per time."""

    curve: Cost = TYPICAL
    arms: Sequence[int] = (0, 2, 4, 8, 12, 16, 24, 32)
    exploration: float = 1.0
    _pulls: list[int] = field(init=False, repr=False)
    _rewards: list[float] = field(init=False, repr=False)
    _arm: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        self._pulls, self._rewards = [0] * len(self.arms), [0.0] * len(self.arms)

    def begin(self) -> None:
        """See ``LengthPolicy``. Untried arms come first."""
        total = sum(self._pulls)
        bounds = [
            self._rewards[arm] / pulls + self.exploration * math.sqrt(2 * math.log(total) / pulls)
            if (pulls := self._pulls[arm])
            else math.inf
            for arm in range(len(self.arms))
        ]
        self._arm = bounds.index(max(bounds))

    def admit(self, nodes: int, gain: float, chance: float) -> bool:
        """See ``LengthPolicy``."""
        return nodes < self.arms[self._arm]

    def observe(self, nodes: int, tokens: int) -> None:
        """See ``LengthPolicy``."""
        self._pulls[self._arm] += 1
        self._rewards[self._arm] += tokens / self.curve(nodes + 1)


def allocate(
    sequences: Sequence[Sequence[float]], rate: float, curve: Cost, *, other_tokens: int, room: int | None = None
) -> list[int]:
    """How many nodes each sequence of a step gets: of all sequences' drafts the likeliest, as many as pay (TETRIS, Wu
    et al. 2025; SmartSpec, Liu et al. 2024).

    A step reads ``other_tokens`` anyway, and costs by the tokens that it reads. The set of drafts with the greatest
    expected tokens - rate · time is looked for among all numbers of drafts: the curve has steps, after which further
    places cost little. No drafts at all compete. Chances fall along every path, so the likeliest are closed under
    ancestors. O(n log n).

    Args:
        sequences: each sequence's chances, descending.
        rate: tokens of the step for the time of a forward of one token.
        curve: the cost by tokens in all.
        room: drafts that fit at most; None: all.
    """
    order = sorted(
        (-chance, index, sequence)
        for sequence, chances in enumerate(sequences)
        for index, chance in enumerate(_falling(chances))
    )
    best, best_value, gain = 0, -rate * curve(other_tokens), 0.0
    for count, (negative, _, _) in enumerate(order[:room], 1):
        gain -= negative
        value = gain - rate * curve(other_tokens + count)
        if value > best_value:
            best, best_value = count, value
    counts = [0] * len(sequences)
    for _, _, sequence in order[:best]:
        counts[sequence] += 1
    return counts


def _falling(chances: Sequence[float]) -> Iterator[float]:
    """The chances, each at most the one before: calibration may raise one above its parent's."""
    return accumulate(chances, min)
