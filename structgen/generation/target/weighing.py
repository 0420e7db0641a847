"""Targets that a critic weighs: P(text | language) · exp(critic(text)), up to a constant.

Walks and chains are weighed at their ends. Particles are weighed after each token where the critic judges beginnings
(a potential, as of sequential Monte Carlo): a beginning that it likes is followed by more of them. What it says of
beginnings changes the variance and never the mean, since in the end the whole text's score alone is left.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from structgen.core.kernels.aligned.layout import FINISHED, REJECTED
from structgen.errors import GenerationError, OptionsError
from structgen.generation.decoding.critics import Candidate, CriticLike, critic
from structgen.generation.target.methods import Specification
from structgen.generation.target.store import PrefixStore
from structgen.generation.target.walks import Outcome

MOST_IN_VAIN = 10_000
"""Texts and beginnings that a critic may refuse one after the other, until it is taken to refuse all."""


class Weighing:
    """A critic over the texts of a store.

    Attributes:
        judges_beginnings: whether it may be asked about them.
        most: an upper bound of its scores; None: none is known.

    Args:
        seed: of the coins of exact samples.

    Raises:
        OptionsError: samples of the method cannot be weighed, or not without an upper bound.
    """

    def __init__(self, store: PrefixStore, given: CriticLike, specification: Specification, seed: int) -> None:
        self._store, self._critic, self._seed = store, critic(given), seed
        self._exact, self.most = specification.exact, self._critic.most
        self._in_vain = 0
        if specification.scheme == "walks" and specification.samples == "approximate":
            raise OptionsError(
                "the samples of 'asap' carry no weights, which a critic would change; use 'weighted' or 'smc'",
                option="critic",
            )
        if self._exact and self.most is None:
            raise OptionsError(
                "exact samples need an upper bound of what the critic says: critic(f, most=...); without one, use "
                "'weighted' or 'smc'",
                option="critic",
            )

    @property
    def judges_beginnings(self) -> bool:
        """Whether it may be asked about them."""
        return self._critic.prefixes

    def scores(self, nodes: Sequence[int], whole: Sequence[bool]) -> list[float]:
        """What it says of the texts that end at these nodes, or begin as they do, in one call.

        Raises:
            GenerationError: the critic fails, or refuses all.
        """
        store = self._store
        constraint: Any = store.target.constraint
        reads = constraint if hasattr(constraint, "parse") else None
        candidates = [
            Candidate(store.target.text(store.prefix_of(node)), is_whole, float(store.nodes["logp"][node]), reads)
            for node, is_whole in zip(nodes, whole, strict=True)
        ]
        scores = self._critic(candidates)
        for score, is_whole in zip(scores, whole, strict=True):
            if score == -math.inf:
                self._in_vain += 1
            elif is_whole:
                self._in_vain = 0
        if self._in_vain >= MOST_IN_VAIN:
            raise GenerationError(
                f"The critic refuses all that is drawn, {self._in_vain:,} texts in succession; let it give scores "
                "above -inf, or constrain the output to what it takes."
            )
        return scores

    def weighed(self, outcome: Outcome, number: int) -> Outcome:
        """The outcome of a walk, with its weight; what is refused, or an exact sample whose coin falls so, is rejected.

        Args:
            number: of the attempt.
        """
        if outcome.status != FINISHED:
            return outcome
        (score,) = self.scores([outcome.node], [True])
        if self._exact:
            assert self.most is not None
            coin = np.random.default_rng([self._seed, number, 1]).random()
            score = self.most if math.log(1.0 - coin) < score - self.most else -math.inf
        if score == -math.inf:
            return outcome._replace(status=REJECTED, node=-1, log_weight=-math.inf)
        return outcome._replace(log_weight=outcome.log_weight + score)
