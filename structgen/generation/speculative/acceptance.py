"""How likely a proposal is right, estimated from all that were judged so far."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from structgen.generation.speculative.drafter import Proposal
from structgen.generation.speculative.tree import Evidence

PRIOR_TRIALS = 4.0  # what an estimate's starting point weighs against observations
CALIBRATED_OCTAVES = 6  # down to estimates of 1/64
MEMORY = 400.0  # trials; beyond, all are halved, so that estimates follow changing text
LEAST = 0.001  # that a piece of evidence is taken to say, one way or the other
LARGEST = 12.0  # logit of a token
MANY = 3  # pieces of evidence, from which on more are weighed alike
# What mixing begins with, for tokens that one, two or more speak for (measured with SmolLM2-135M on JSON).
WEIGHTS, BIAS = (1.0, 0.5, 0.4), (0.0, 1.2, 2.4)
RATE = 0.03  # of learning weights


@dataclass(slots=True)
class _Count:
    prior: float
    right: float = 0.0
    trials: float = 0.0

    def add(self, right: bool) -> None:
        self.right += right
        self.trials += 1
        if self.trials >= MEMORY:
            self.right /= 2
            self.trials /= 2

    def mean(self, prior: float | None = None) -> float:
        prior = self.prior if prior is None else prior
        return (self.right + PRIOR_TRIALS * prior) / (self.trials + PRIOR_TRIALS)


class Calibration:
    """What estimated chances of whole paths are worth. Right guesses come in runs, so a path is right more often than
    the product of its chances says. Bins of half powers of two, interpolated."""

    def __init__(self) -> None:
        self._bins = [_Count(0.0) for _ in range(2 * CALIBRATED_OCTAVES + 1)]

    def __call__(self, chance: float) -> float:
        """The share of paths with such an estimate that was accepted; the estimate where little is known."""
        position = min(-2 * math.log2(chance), 2.0 * CALIBRATED_OCTAVES) if chance > 0 else 2.0 * CALIBRATED_OCTAVES
        low = int(position)
        high = min(low + 1, 2 * CALIBRATED_OCTAVES)
        first, second = self._bins[low].mean(chance), self._bins[high].mean(chance)
        return first + (position - low) * (second - first)

    def learn(self, chance: float, right: bool) -> None:
        """A path with this estimate was judged."""
        position = round(-2 * math.log2(max(chance, 1e-9)))
        self._bins[min(position, 2 * CALIBRATED_OCTAVES)].add(right)


class Acceptance:
    """How likely each of the tokens is that are proposed for one place, by what speaks for it.

    Every piece of evidence has a rate of its own (the posterior mean of a Beta distribution around the drafter's
    prior). The odds of a token are a weighted product of the odds of what speaks for it, and the chances of all tokens
    and of "none of them" are these odds, normalised: one is the less likely the more speaks for another. The weights
    are learned with the rates, by gradient descent, for tokens that one, two or more speak for (as contexts are mixed
    in PAQ, Mahoney 2005): drafters mostly look at the same text, so what they say counts less than if each were
    independent of the others. Only right and wrong of visited places enter: an estimate sees no more than the output.
    """

    def __init__(self) -> None:
        self._counts: dict[Evidence, _Count] = {}
        self._weights: dict[tuple[int, Hashable], float] = {}  # by how many speak for a token, and who
        self._bias = list(BIAS)
        self.calibrated = Calibration()

    def chances(self, proposed: Sequence[Sequence[Proposal]]) -> list[float]:
        """The chance of each token that is proposed for a place, by all proposals of it."""
        for proposals in proposed:
            for proposal in proposals:
                if proposal.evidence not in self._counts:
                    self._counts[proposal.evidence] = _Count(proposal.prior)
        return self._estimates([[proposal.evidence for proposal in proposals] for proposals in proposed])[0]

    def learn(self, proposed: Sequence[Sequence[Evidence]], right: int | None) -> None:
        """A place was judged, of which ``chances`` were asked: the number of the token that was right, if any was."""
        chances, logits = self._estimates(proposed)
        for number, evidence in enumerate(proposed):
            error = (number == right) - chances[number]
            few = min(len(evidence), MANY)
            for one, logit in zip(evidence, logits[number], strict=True):
                key = few, one[0]
                self._weights[key] = self._weights.get(key, WEIGHTS[few - 1]) + RATE * error * logit
                self._counts[one].add(number == right)
            self._bias[few - 1] += RATE * error

    def rates(self) -> Iterable[tuple[Evidence, float, float]]:
        """Evidence, acceptance rate and number of trials, for inspection."""
        return ((key, count.right / count.trials, count.trials) for key, count in self._counts.items() if count.trials)

    def _estimates(self, proposed: Sequence[Sequence[Evidence]]) -> tuple[list[float], list[list[float]]]:
        """The chance of each token, and the logits of what speaks for it."""
        logits, odds = [], []
        for evidence in proposed:
            few = min(len(evidence), MANY)
            logits_alone = [_logit(self._counts[one].mean()) for one in evidence]
            weights = (self._weights.get((few, one[0]), WEIGHTS[few - 1]) for one in evidence)
            total = self._bias[few - 1] + sum(
                weight * logit for weight, logit in zip(weights, logits_alone, strict=True)
            )
            logits.append(logits_alone)
            odds.append(math.exp(min(total, LARGEST)))
        whole = 1 + sum(odds)
        return [each / whole for each in odds], logits


def _logit(chance: float) -> float:
    chance = min(max(chance, LEAST), 1 - LEAST)
    return math.log(chance / (1 - chance))
