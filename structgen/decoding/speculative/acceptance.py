"""How likely a proposal is right, estimated from all that were judged so far."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from structgen.decoding.speculative.drafter import Proposal
from structgen.decoding.speculative.tree import Evidence

PRIOR_TRIALS = 4.0  # what an estimate's starting point weighs against observations
CALIBRATED_OCTAVES = 6  # down to estimates of 1/64
MEMORY = 400.0  # trials; beyond, all are halved, so that estimates follow changing text


@dataclass(slots=True)
class _Count:
    right: float = 0.0
    trials: float = 0.0

    def add(self, right: bool) -> None:
        self.right += right
        self.trials += 1
        if self.trials >= MEMORY:
            self.right /= 2
            self.trials /= 2

    def mean(self, prior: float) -> float:
        return (self.right + PRIOR_TRIALS * prior) / (self.trials + PRIOR_TRIALS)


class Calibration:
    """What estimated chances of whole paths are worth. Right guesses come in runs, so a path is right more often than
    the product of its chances says. Bins of half powers of two, interpolated."""

    def __init__(self) -> None:
        self._bins = [_Count() for _ in range(2 * CALIBRATED_OCTAVES + 1)]

    def __call__(self, chance: float) -> float:
        """The share of paths with such an estimate that was accepted; the estimate where little is known."""
        place = min(-2 * math.log2(chance), 2.0 * CALIBRATED_OCTAVES) if chance > 0 else 2.0 * CALIBRATED_OCTAVES
        low = int(place)
        high = min(low + 1, 2 * CALIBRATED_OCTAVES)
        first, second = self._bins[low].mean(chance), self._bins[high].mean(chance)
        return first + (place - low) * (second - first)

    def learn(self, chance: float, right: bool) -> None:
        """A path with this estimate was judged."""
        place = round(-2 * math.log2(max(chance, 1e-9)))
        self._bins[min(place, 2 * CALIBRATED_OCTAVES)].add(right)


class Acceptance:
    """Acceptance rates by what speaks for a token.

    Several drafters that propose the same token are one piece of evidence with its own rate; while that is little
    known, it starts from the noisy-or of the single rates, and each of those from the drafter's prior (posterior means
    of Beta distributions). Only right and wrong of visited places enter, so an estimate sees no more than the output.
    """

    def __init__(self) -> None:
        self._counts: dict[tuple[Evidence, ...], _Count] = {}
        self.calibrated = Calibration()

    def chance(self, proposals: Sequence[Proposal]) -> float:
        """The chance that the token, which all these propose, is accepted."""
        single = [self._of((proposal.evidence,)).mean(proposal.prior) for proposal in proposals]
        if len(single) == 1:
            return single[0]
        wrong = 1.0
        for chance in single:
            wrong *= 1 - chance
        return self._of(tuple(proposal.evidence for proposal in proposals)).mean(1 - wrong)

    def learn(self, evidence: tuple[Evidence, ...], right: bool) -> None:
        """A token with this evidence was judged."""
        self._of(evidence).add(right)
        if len(evidence) > 1:
            for one in evidence:
                self._of((one,)).add(right)

    def rates(self) -> Iterable[tuple[tuple[Evidence, ...], float, float]]:
        """Evidence, acceptance rate and number of trials, for inspection."""
        return ((key, count.right / count.trials, count.trials) for key, count in self._counts.items() if count.trials)

    def _of(self, key: tuple[Evidence, ...]) -> _Count:
        count = self._counts.get(key)
        if count is None:
            count = self._counts[key] = _Count()
        return count
