"""The samplers: one interface, seven methods over one store."""

from __future__ import annotations

import math
import secrets

import numpy as np

from structgen.decoding.aligned.particles import run_particles
from structgen.decoding.aligned.reader import MAX_BATCH
from structgen.decoding.aligned.results import (
    Budget,
    Method,
    Sample,
    SampleRun,
    effective_sample_size,
    log_mean_exp,
)
from structgen.decoding.aligned.store import PrefixStore
from structgen.decoding.aligned.walks import Limit, Meter, Outcome, Policy, Walks
from structgen.errors import OptionsError
from structgen.kernels.aligned.layout import FINISHED, REJECTED, STUCK

POLICIES: dict[Method, Policy] = {
    "exact": Policy(learned=True, coin=True),
    "weighted": Policy(learned=True, coin=False),
    "asap": Policy(learned=True, coin=False),
    "local": Policy(learned=False, coin=False),
    "mh": Policy(learned=False, coin=False),
    "rejection": Policy(learned=False, coin=True),
}
METHODS: tuple[Method, ...] = ("exact", "weighted", "asap", "local", "smc", "mh", "rejection")


class Sampler:
    """Draws from one store by one method. Continues where it stopped: each attempt is used once.

    - "exact": adaptive rejection with the survival coin. Independent samples of the target from the first one.
    - "weighted": the same walk without the coin. No rejection; weights that are unbiased for Z.
    - "asap": as published (Park et al. 2024), one walk after the other and weights thrown away; the first sample is
      that of "local", later ones approach the target (``SampleRun.tv_bound``).
    - "local": plain masking, with its importance weights.
    - "smc": particles resampled when their weights degenerate. Each token's weight is the mass of its mask, which is
      what adaptive weighted rejection (Lipkin et al. 2025) estimates without knowing the mask.
    - "mh": Metropolis–Hastings (Anaya Gonzalez et al. 2025): ``mh_steps`` proposals of "local" from a restart a
      sample.
    - "rejection": the model's own samples, kept if they are in the language.

    Args:
        seed: None takes fresh entropy.
        width: most attempts that wait for the model at once; None: 64 with the coin, else 8, since walks that are never
            rejected go their ways alone at first. ("asap" takes 1, as published.)
        particles: of "smc".
        mh_steps: proposals a sample of "mh".

    Raises:
        OptionsError: an unknown method, or a number out of range.
    """

    def __init__(
        self,
        store: PrefixStore,
        method: Method = "exact",
        *,
        seed: int | None = None,
        width: int | None = None,
        particles: int = 32,
        mh_steps: int = 10,
    ) -> None:
        if method not in METHODS:
            raise OptionsError(f"unknown method {method!r}; expected one of {', '.join(METHODS)}")
        if width is None:
            width = MAX_BATCH if method in ("exact", "rejection") else 8
        if min(width, particles, mh_steps) < 1:
            raise OptionsError("width, particles and mh_steps must be at least 1")
        self.store, self.method = store, method
        self._seed = secrets.randbits(63) if seed is None else seed
        self._width = 1 if method == "asap" else width
        self._particles, self._mh_steps = particles, mh_steps
        self._next = 0
        self._texts: dict[int, tuple[str, tuple[int, ...]]] = {}

    def draw(self, n: int, budget: Budget | None = None) -> SampleRun:
        """Draw ``n`` samples, or as many as the budget allows (``SampleRun.stopped_by`` says so).

        Raises:
            UnsatisfiableTargetError: no text fits the target.
        """
        if n < 0:
            raise OptionsError(f"the number of samples is {n}; expected 0 or more")
        meter = Meter(self.store, budget)
        nodes = self.store.node_count
        if self.method == "smc":
            outcomes, limit = run_particles(self.store, meter, n, self._particles, self._seed, self._next)
            self._next += len(outcomes)
            return self._finish(n, [o for o in outcomes if o.status == FINISHED], outcomes, limit, meter, nodes)
        every = self._mh_steps if self.method == "mh" else 1
        kept, outcomes, limit = self._walk(n * every, meter)
        if self.method == "mh":
            kept = self._metropolis(kept)
        return self._finish(n, kept[:n], outcomes, limit, meter, nodes)

    def _walk(self, n: int, meter: Meter) -> tuple[list[Outcome], list[Outcome], Limit | None]:
        """Attempts until ``n`` of them have a text: those, all of them, and the budget that ran out."""
        walks = Walks(self.store, POLICIES[self.method], meter, self._seed, self._next, self._width)
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
    ) -> SampleRun:
        weighted = self.method in ("weighted", "local", "smc")
        # Exact samples have no weights, but their acceptance says what Z is: what weighted walks carry, on average.
        every = [outcome.log_weight if outcome.status == FINISHED else -math.inf for outcome in outcomes]
        weights = [outcome.log_weight for outcome in kept] if weighted else []
        exact = self.method in ("exact", "rejection")
        steps = sum(outcome.steps + 1 for outcome in outcomes)
        return SampleRun(
            samples=[self._sample(outcome, weighted, exact and limit is None) for outcome in kept],
            method=self.method,
            requested=n,
            stopped_by=limit if len(kept) < n else None,
            log_z_bounds=self.store.log_z_bounds,
            tv_bound=self.store.tv_bound,
            log_z=log_mean_exp(every) if weighted or exact else math.nan,
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

    def _sample(self, outcome: Outcome, weighted: bool, exact: bool) -> Sample:
        found = self._texts.get(outcome.node)
        if found is None:
            tokens = tuple(self.store.prefix_of(outcome.node))
            text = self.store.target.vocabulary.decode(tokens).decode("utf-8", errors="replace")
            found = self._texts[outcome.node] = text, tokens
        return Sample(*found, outcome.log_prob, outcome.log_weight if weighted else 0.0, exact)
