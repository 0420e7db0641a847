"""What a step of several tokens costs, relative to one of a single token: as a curve, and learned from steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from structgen.generation.models.capabilities import capabilities_of

Floats = npt.NDArray[np.float64]

KNOTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)  # numbers of tokens that costs are learned for
_LOG_KNOTS, _PLACES = np.log(KNOTS), np.arange(len(KNOTS))
PRIOR_DEVIATION = 0.35  # of the logarithm of a cost from that of the curve which it begins with
PRIOR_SLOPE = 0.2  # the same for each doubling: from few tokens that cost less than expected, many may, too
REACH = 0.7  # of what one number of tokens says of others: a factor of two
NOISE = 0.1  # of a step's logarithm
DRIFT, CURVE_DRIFT = 0.03, 0.01  # a step, of how fast the machine is, and of the curve
OUTLIER = 3.0  # deviations that a step counts for at most
REFRESH = 8  # steps between two looks at what was learned
NOTICEABLE = 0.01  # of the logarithm of a time, from which on what was learned is another curve
FIRST_PLAIN, EVERY_PLAIN = 2, 64  # steps with drafts, after which one goes without: at first, and when all is known


class Cost(Protocol):
    """Time of a step by the tokens that it reads, in steps of one token."""

    @property
    def seconds(self) -> float:
        """Of a step of one token; 0: not known."""
        ...

    def __call__(self, tokens: int) -> float:
        """Time of a step of that many tokens."""
        ...

    def marginal(self, tokens: int) -> float:
        """The least average cost of a further token over all numbers to come: min over n of (t(tokens + n) - t) / n.

        A curve has steps; what counts for going on is what lies after them.
        """
        ...


@dataclass(frozen=True)
class CostCurve:
    """A ``Cost`` that is known.

    Attributes:
        counts: numbers of tokens, ascending, from 1.
        times: of each, relative to the first; not descending.
        seconds: time of one token (0 where not known).
    """

    counts: tuple[int, ...] = (1,)
    times: tuple[float, ...] = (1.0,)
    seconds: float = 0.0
    _table: list[float] = field(init=False, repr=False, compare=False)
    _marginals: list[float] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        last = self.counts[-1]
        slope = 0.0
        if len(self.counts) > 1:
            slope = (self.times[-1] - self.times[-2]) / (last - self.counts[-2])
        table_part = np.interp(np.arange(1, last + 1), self.counts, self.times)
        table = np.concatenate(([0.0], table_part, table_part[-1] + slope * np.arange(1, 4 * last)))
        object.__setattr__(self, "_table", table.tolist())
        object.__setattr__(self, "_marginals", _marginals(table[: last + 2]).tolist())

    def __call__(self, tokens: int) -> float:
        """See ``Cost``; linear between what is known and beyond."""
        last = len(self._table) - 1
        if tokens <= last:
            return self._table[tokens]
        return self._table[last] + (self._table[last] - self._table[last - 1]) * (tokens - last)

    def marginal(self, tokens: int) -> float:
        """See ``Cost``."""
        return self._marginals[min(tokens, len(self._marginals) - 1)]


def _marginals(table: Floats) -> Floats:
    """For each place the least slope of a line from it to a later one (to the next for the last but one), O(n): these
    lines are the edges of the lower convex hulls of what is to come, from the right."""
    slopes = np.zeros(len(table) - 1)
    hull = [len(table) - 1]
    for here in range(len(table) - 2, -1, -1):
        while len(hull) > 1 and _slope(table, here, hull[-2]) <= _slope(table, here, hull[-1]):
            hull.pop()
        slopes[here] = _slope(table, here, hull[-1])
        hull.append(here)
    return slopes


def _slope(table: Floats, start: int, end: int) -> float:
    return float(table[end] - table[start]) / (end - start)


# SmolLM2-135M in float32 on two cores, one row, with rearranged weights; what is not known yet is taken for this.
TYPICAL = CostCurve((1, 4, 8, 16, 32, 48), (1.0, 1.3, 1.5, 1.8, 2.5, 3.2))


def cost_of(model: Any) -> LearnedCost:
    """A cost to be learned from the steps of a model, anew where it says that it reads in another way now
    (``reads_by``)."""
    return LearnedCost(prior_of(model), capabilities_of(model).reads_by)


def prior_of(model: Any) -> CostCurve:
    """What is expected of a model before it has read: what it says itself (``step_costs``), else ``TYPICAL``."""
    costs = capabilities_of(model).step_costs
    if costs is None:
        return TYPICAL
    return CostCurve(tuple(tokens for tokens, _ in costs), tuple(time for _, time in costs))


class LearnedCost:
    """A ``Cost`` learned from the steps that are made anyway, and corrected as they change: under load, with longer
    texts, when weights have been rearranged.

    What is estimated is the logarithm of a step's time: how fast the machine is now, which changes quickly, and the
    curve at ``KNOTS``, which does hardly (a Kalman filter; the prior of the curve is a Gaussian process around
    ``prior`` over the logarithm of the number of tokens). Outliers are drawn in (Huber). Now and then a step has to go
    without drafts (``is_plain_due``), or the two could not be told apart; the more seldom, the less it surprises.

    Args:
        prior: what is expected.
        reads_by: how the model reads now. Where that changes, all is forgotten: a number of tokens that was dear would
            not be tried again for long.
    """

    def __init__(self, prior: CostCurve = TYPICAL, reads_by: Callable[[], Hashable] | None = None) -> None:
        self._prior, self._reads_by = prior, reads_by
        self._read_by = None if reads_by is None else reads_by()
        self._logs = np.log([prior(count) for count in KNOTS])
        self._begin(0.0)

    def _begin(self, seconds: float) -> None:
        """Know nothing but the prior, and how long a step of one token took."""
        places = np.log2(np.array(KNOTS, dtype=np.float64))
        apart = (places[:, None] - places) / REACH
        from_one = np.minimum(places[:, None], places)  # no deviation at one token, more and more beyond
        scale = PRIOR_DEVIATION**2 * np.minimum(from_one, 1.0)
        self._mean = np.zeros(1 + len(KNOTS))
        self._covariance = np.zeros((1 + len(KNOTS),) * 2)
        self._covariance[1:, 1:] = scale * np.exp(-0.5 * apart**2) + PRIOR_SLOPE**2 * np.outer(places, places)
        self._drift = np.array([DRIFT**2, 0.0, *[CURVE_DRIFT**2] * (len(KNOTS) - 1)])
        self._curve, self._steps = replace(self._prior, seconds=seconds), 0
        self._reported = np.full_like(self._mean, -np.inf)  # logarithms of the curve's seconds and times
        self._drafted, self._every = 0, FIRST_PLAIN  # steps since the last without drafts, and till the next

    @property
    def seconds(self) -> float:
        """See ``Cost``."""
        return self._curve.seconds

    def __call__(self, tokens: int) -> float:
        """See ``Cost``."""
        return self._curve(tokens)

    def marginal(self, tokens: int) -> float:
        """See ``Cost``."""
        return self._curve.marginal(tokens)

    @property
    def curve(self) -> CostCurve:
        """What has been learned."""
        return self._curve

    @property
    def is_plain_due(self) -> bool:
        """Whether the next step should go without drafts."""
        return self._drafted >= self._every

    def observe(self, tokens: int, seconds: float, *, drafts: int) -> None:
        """A step that read so many tokens, ``drafts`` of them drafted, took so long."""
        if seconds <= 0:
            return
        if self._reads_by is not None and self._read_by != (now := self._reads_by()):
            self._read_by = now
            self._begin(self._curve.seconds)
            return  # this step also took what the change did
        weights = _weights(min(tokens, KNOTS[-1]))
        observed = math.log(seconds) - float(weights[1:] @ self._logs)
        if not self._steps:  # how fast the machine is was not known at all
            self._mean[0] = observed
            self._covariance[0, 0] = NOISE**2
        self._steps += 1
        self._covariance.flat[:: len(self._mean) + 1] += self._drift  # the diagonal
        spread = self._covariance @ weights
        variance = float(weights @ spread) + NOISE**2
        surprise = observed - float(weights @ self._mean)
        bound = OUTLIER * math.sqrt(variance)
        if not drafts:
            self._every = FIRST_PLAIN if abs(surprise) > bound else min(2 * self._every, EVERY_PLAIN)
        self._drafted = self._drafted + 1 if drafts else 0
        gain = spread / variance
        self._mean += gain * min(max(surprise, -bound), bound)
        self._covariance -= np.outer(gain, spread)
        if self._steps % REFRESH == 0 or self._steps <= REFRESH:
            weights = 1 / np.maximum(np.diagonal(self._covariance)[1:], 1e-9)
            logs = _ascending(self._logs + self._mean[1:], weights)
            logarithms = np.concatenate(([self._mean[0]], logs - logs[0]))
            if np.abs(logarithms - self._reported).max() > NOTICEABLE:
                self._reported, times = logarithms, np.exp(logarithms)
                self._curve = CostCurve(KNOTS, tuple(times[1:].tolist()), float(times[0]))


def _ascending(values: Floats, weights: Floats) -> Floats:
    """The nearest values that do not descend (pool adjacent violators): what is known least yields most."""
    pools: list[tuple[float, float, int]] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        count = 1
        while pools and pools[-1][0] > value:
            before, heavy, more = pools.pop()
            value, weight = (before * heavy + value * weight) / (heavy + weight), heavy + weight
            count += more
        pools.append((value, weight, count))
    return np.repeat([value for value, _, _ in pools], [count for _, _, count in pools])


@cache
def _weights(tokens: int) -> Floats:
    """What the logarithm of a step's time is made of: the machine, and the knots around the number of tokens, at most
    that of the last one."""
    weights = np.zeros(1 + len(KNOTS))
    weights[0] = 1.0
    position = float(np.interp(math.log(tokens), _LOG_KNOTS, _PLACES))
    low = min(int(position), len(KNOTS) - 2)
    weights[1 + low], weights[2 + low] = 1 - (position - low), position - low
    return weights
