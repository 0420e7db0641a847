"""Filters over the likeliest tokens of a row alone, where these say what the definition would.

Each gives which of the likeliest tokens stay; where that cannot be told without others, how deep to look. A filter of
the table that is not here looks at all tokens, by its definition.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from structgen.generation.filters.rows import Kept, LogProbs
from structgen.generation.filters.table import GREATEST_COST

BEYOND = 1e-6
"""Nats deeper than what is looked for."""


@dataclass(frozen=True)
class TopTokens:
    """The likeliest tokens of a row after the temperature, by falling weight, equals by rising id; at least one.

    Attributes:
        weights: exp of their scores, less the highest.
        logits: theirs, before the temperature.
        total: the sum of all allowed tokens' weights.
        depth: no other token has a weight above exp(-depth); inf: there are no others.
        scale: by which the temperature has multiplied logits.
        sigma: the deviation of the row, for filters that need it.
        spread: gives Σ w · log w over all allowed tokens, at most 0.
    """

    weights: LogProbs
    logits: LogProbs
    total: float
    depth: float
    scale: float
    sigma: float | None
    spread: Callable[[], float]

    @property
    def is_whole(self) -> bool:
        """Whether there are no others."""
        return self.depth == math.inf

    @cached_property
    def entropy(self) -> float:
        """Of all allowed tokens, in nats."""
        return math.log(self.total) - self.spread() / self.total

    def above(self, least: float) -> Kept | float:
        """Those of at least so much weight, and all that are as likely as the likeliest."""
        if not self.is_whole and math.exp(-self.depth) >= least:
            return BEYOND - math.log(least) if least > 0 else math.inf
        return np.asarray(self.weights >= min(least, float(self.weights[0])))

    def first(self, count: int) -> Kept | float:
        """The first ``count``, unless all of them are, and there are others."""
        if count >= len(self.weights) and not self.is_whole:
            return 2 * self.depth
        return np.arange(len(self.weights)) < max(1, count)


def top_k(top: TopTokens, k: float) -> Kept | float:
    """The k likeliest."""
    return np.arange(len(top.weights)) < k if len(top.weights) >= k or top.is_whole else 2 * top.depth


def top_p(top: TopTokens, share: float) -> Kept | float:
    """As many as reach a share."""
    before = np.cumsum(top.weights) - top.weights
    return top.first(int(np.count_nonzero(before < share * top.total)))


def min_p(top: TopTokens, least: float) -> Kept | float:
    """Those with a share of the likeliest's probability."""
    return top.above(least)


def epsilon_cutoff(top: TopTokens, least: float) -> Kept | float:
    """Those with a probability."""
    return top.above(least * top.total)


def eta_cutoff(top: TopTokens, eta: float) -> Kept | float:
    """Those with a probability that goes by the entropy."""
    return top.above(min(eta, math.sqrt(eta) * math.exp(-top.entropy)) * top.total)


def top_n_sigma(top: TopTokens, n: float) -> Kept | float:
    """Those within n deviations of the highest logit."""
    assert top.sigma is not None
    if not top.is_whole and top.depth <= n * top.sigma * top.scale:
        return n * top.sigma * top.scale + BEYOND
    return np.asarray(top.logits >= top.logits[0] - n * top.sigma)


def top_h(top: TopTokens, share: float) -> Kept | float:
    """As many as have a share of the entropy, renormalised: it rises with them."""
    weights = top.weights[top.weights > 0]
    mass = weights.cumsum()
    entropies = np.log(mass) - (weights * np.log(weights)).cumsum() / mass
    return top.first(int((entropies <= share * top.entropy + 1e-12).sum()))


def bregman_cost(top: TopTokens, cost: float) -> Kept | float:
    """As long as the next is worth its cost."""
    part = math.expm1(min(cost, GREATEST_COST))
    before = top.weights.cumsum() - top.weights
    kept = top.first(int((top.weights >= part * before).sum()))
    return kept if isinstance(kept, float) else kept & (top.weights > 0)


def typical_p(top: TopTokens, share: float) -> Kept | float:
    """Those nearest to the entropy, up to a share."""
    with np.errstate(divide="ignore"):
        distances = abs(math.log(top.total) - np.log(top.weights) - top.entropy)
    order = np.argsort(distances, kind="stable")
    weights = top.weights[order]
    count = max(1, int((weights.cumsum() - weights < share * top.total).sum()))
    farthest = float(distances[order[count - 1]])
    needed = farthest + top.entropy - math.log(top.total)
    if not top.is_whole and (count == len(order) or needed >= top.depth):
        return max(needed + BEYOND, 2 * top.depth if count == len(order) else 0.0)
    kept = np.zeros(len(weights), np.bool_)
    kept[order[:count]] = True
    return kept


TOP_FILTERS: dict[str, Callable[[TopTokens, float], Kept | float]] = {
    "top_k": top_k,
    "top_p": top_p,
    "min_p": min_p,
    "epsilon_cutoff": epsilon_cutoff,
    "eta_cutoff": eta_cutoff,
    "top_n_sigma": top_n_sigma,
    "top_h": top_h,
    "bregman_cost": bregman_cost,
    "typical_p": typical_p,
}
"""By the names of the table."""
