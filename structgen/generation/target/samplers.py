"""The samplers: one interface, several methods over one store."""

from __future__ import annotations

import math
import secrets
from typing import Generic

import numpy as np

from structgen.core.constraints.base import T
from structgen.core.kernels.aligned.layout import FINISHED, REJECTED, STUCK
from structgen.errors import OptionsError
from structgen.generation.target.methods import METHODS, SPECIFICATIONS
from structgen.generation.target.particles import run_particles
from structgen.generation.target.results import (
    Budget,
    Limit,
    Method,
    Sample,
    SampleRun,
    effective_sample_size,
    log_mean_exp,
)
from structgen.generation.target.store import PrefixStore
from structgen.generation.target.walks import Meter, Outcome, Walks
from structgen.options import check_count

_Drawn = tuple[list[Outcome], list[Outcome], Limit | None]
"""Outcomes that are samples, all outcomes, and the budget that ran out."""


class Sampler(Generic[T]):
    """Draws from one store by one method. Continues where it stopped: each attempt is used once.

    What the methods are: ``methods.SPECIFICATIONS``. In "smc" a token's weight is the mass of its mask, which is what
    adaptive weighted rejection (Lipkin et al. 2025) estimates without knowing the mask.

    Args:
        seed: None takes fresh entropy.
        width: most attempts that wait for the model at once; None: as the method's specification says.
        particles: of "smc".
        mh_steps: proposals a sample of "mh".

    Raises:
        OptionsError: an unknown method, or a number out of range.
    """

    def __init__(
        self,
        store: PrefixStore[T],
        method: Method = "exact",
        *,
        seed: int | None = None,
        width: int | None = None,
        particles: int = 32,
        mh_steps: int = 10,
    ) -> None:
        if not isinstance(method, str) or method not in METHODS:
            raise OptionsError(
                f"unknown method {method!r:.100}; expected one of {', '.join(METHODS)}", option="method", value=method
            )
        for name, value in (("width", width), ("particles", particles), ("mh_steps", mh_steps)):
            check_count(name, value, optional=name == "width")
        check_count("seed", seed, 0, optional=True)
        self.specification = SPECIFICATIONS[method]
        if width is None or self.specification.as_published:
            width = self.specification.width
        self.store, self.method = store, method
        self._seed = secrets.randbits(63) if seed is None else seed
        self._width, self._particles, self._mh_steps = width, particles, mh_steps
        self._next = 0
        self._texts: dict[int, tuple[str, tuple[int, ...]]] = {}

    def draw(self, n: int, budget: Budget | None = None) -> SampleRun[T]:
        """Draw ``n`` samples, or as many as the budget allows (``SampleRun.stopped_by`` says so).

        Raises:
            UnsatisfiableTargetError: no text fits the target.
        """
        check_count("the number of samples", n, 0)
        if budget is not None and not isinstance(budget, Budget):
            raise OptionsError(
                f"budget is {budget!r:.100}; expected Budget(...) or None", option="budget", value=budget
            )
        meter = Meter(self.store, budget)
        nodes = self.store.node_count
        schemes = {"walks": self._walk, "chains": self._chains, "particles": self._population}
        kept, outcomes, limit = schemes[self.specification.scheme](n, meter)
        return self._finish(n, kept[:n], outcomes, limit, meter, nodes)

    def _population(self, n: int, meter: Meter) -> _Drawn:
        """Whole populations of particles; all that have a text are kept."""
        outcomes, limit = run_particles(self.store, meter, n, self._particles, self._seed, self._next)
        self._next += len(outcomes)
        return [outcome for outcome in outcomes if outcome.status == FINISHED], outcomes, limit

    def _chains(self, n: int, meter: Meter) -> _Drawn:
        """The ends of chains of ``mh_steps`` walks."""
        kept, outcomes, limit = self._walk(n * self._mh_steps, meter)
        return self._metropolis(kept), outcomes, limit

    def _walk(self, n: int, meter: Meter) -> _Drawn:
        """Attempts until ``n`` of them have a text: those, all of them, and the budget that ran out."""
        policy = self.specification.policy
        assert policy is not None, "the scheme has walks"
        walks = Walks(self.store, policy, meter, self._seed, self._next, self._width)
        outcomes: list[Outcome] = []
        kept: list[Outcome] = []

        def wanted(ready: int) -> int:  # so many attempts give what is missing, if they go on as they did
            return math.ceil((n - len(kept) - ready) * (len(outcomes) + 1) / (len(kept) + 1))

        if n:
            for outcome in walks.outcomes(wanted):
                outcomes.append(outcome)
                if outcome.status == FINISHED:
                    kept.append(outcome)
                    if len(kept) == n:
                        break
        self._next = walks.next_attempt  # attempts in flight are given up: taking them up later would favour them
        return kept, outcomes, walks.limit if len(kept) < n else None

    def _metropolis(self, proposals: list[Outcome]) -> list[Outcome]:
        """Chains of ``mh_steps`` proposals of "local", which is independent of the state, each from a restart.

        The chance to move from v to w is min(1, W(w) / W(v)), W = P / local: their importance weights.
        """
        rng = np.random.default_rng([self._seed, self._next])
        found = []
        for start in range(0, len(proposals) - self._mh_steps + 1, self._mh_steps):
            state = proposals[start]
            for proposal in proposals[start + 1 : start + self._mh_steps]:
                if math.log(1.0 - rng.random()) < proposal.log_weight - state.log_weight:
                    state = proposal
            found.append(state)
        return found

    def _finish(
        self,
        n: int,
        kept: list[Outcome],
        outcomes: list[Outcome],
        limit: Limit | None,
        meter: Meter,
        nodes_before: int,
    ) -> SampleRun[T]:
        weighted, exact = self.specification.weighted, self.specification.exact
        # Exact samples have no weights, but their acceptance says what Z is: what weighted walks carry, on average.
        every = [outcome.log_weight if outcome.status == FINISHED else -math.inf for outcome in outcomes]
        weights = [outcome.log_weight for outcome in kept] if weighted else []
        steps = sum(outcome.steps + 1 for outcome in outcomes)
        return SampleRun(
            samples=[self._sample(outcome, weighted, exact and limit is None) for outcome in kept],
            method=self.method,
            requested=n,
            stopped_by=limit if len(kept) < n else None,
            log_z_bounds=self.store.log_z_bounds,
            tv_bound=self.store.tv_bound,
            log_z=self._log_z(every) if weighted or exact else math.nan,
            ess=effective_sample_size(weights) if weighted else float(len(kept)) if exact else math.nan,
            attempts=len(outcomes),
            rejected=sum(outcome.status == REJECTED for outcome in outcomes),
            stuck=sum(outcome.status == STUCK for outcome in outcomes),
            model_tokens=meter.model_tokens,
            model_calls=meter.model_calls,
            steps=steps,
            hits=max(0, steps - (self.store.node_count - nodes_before)),
            seconds=meter.seconds,
            log_weights=every if weighted else [],
        )

    def _log_z(self, log_weights: list[float]) -> float:
        """The estimate of log Z: the mean of the weights, projected onto the bounds.

        Weights are unbiased for Z, but those of early attempts were given with the loose bounds of their time, and few
        of them vary much: their mean can be where the bounds of now say that Z is not. Z lies between these for
        certain, so the nearest of their points is at most as far from Z as the mean is.
        """
        if not log_weights:
            return math.nan
        low, high = self.store.log_z_bounds
        return min(max(log_mean_exp(log_weights), low), high)

    def _sample(self, outcome: Outcome, weighted: bool, exact: bool) -> Sample[T]:
        found = self._texts.get(outcome.node)
        if found is None:
            tokens = tuple(self.store.prefix_of(outcome.node))
            text = self.store.target.text(tokens)
            found = self._texts[outcome.node] = text, tokens
        constraint = self.store.target.constraint
        reads = constraint if hasattr(constraint, "parse") else None
        return Sample(*found, outcome.log_prob, outcome.log_weight if weighted else 0.0, exact, reads)
