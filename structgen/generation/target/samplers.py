"""The samplers: one interface, several methods over one store."""

from __future__ import annotations

import math
import secrets
from typing import Generic

import numpy as np
import numpy.typing as npt

from structgen.core.constraints.base import T
from structgen.core.kernels.aligned.layout import FINISHED, REJECTED, STUCK
from structgen.errors import OptionsError, UnsatisfiableTargetError
from structgen.generation.decoding.critics import CriticLike
from structgen.generation.target.methods import METHODS, SPECIFICATIONS
from structgen.generation.target.results import (
    Budget,
    Limit,
    Method,
    Sample,
    SampleRun,
    effective_sample_size,
    log_mean_exp,
)
from structgen.generation.target.store import EOS, PrefixStore
from structgen.generation.target.walks import Meter, Outcome, Walks
from structgen.generation.target.weighing import Weighing
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
        critic: weighs texts: the target is then P(text) · exp(critic(text)), see ``weighing``. Not of "asap"; exact
            samples need its upper bound (``critic(f, most=...)``).

    Raises:
        OptionsError: an unknown method, a number out of range, or a critic that the method cannot have.
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
        critic: CriticLike | None = None,
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
        self._weighing = None if critic is None else Weighing(store, critic, self.specification, self._seed)
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
        weighing = self._weighing
        outcomes, limit = run_particles(self.store, meter, n, self._particles, self._seed, self._next, weighing)
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
                if self._weighing is not None:
                    outcome = self._weighing.weighed(outcome, self._next + len(outcomes))
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
        states = []
        for start in range(0, len(proposals) - self._mh_steps + 1, self._mh_steps):
            state = proposals[start]
            for proposal in proposals[start + 1 : start + self._mh_steps]:
                if math.log(1.0 - rng.random()) < proposal.log_weight - state.log_weight:
                    state = proposal
            states.append(state)
        return states

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
            log_z_bounds=self._log_z_bounds,
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

    @property
    def _log_z_bounds(self) -> tuple[float, float]:
        low, high = self.store.log_z_bounds
        if self._weighing is None:
            return low, high
        return -math.inf, math.inf if self._weighing.most is None else high + self._weighing.most

    def _log_z(self, log_weights: list[float]) -> float:
        """The estimate of log Z: the mean of the weights, projected onto the bounds.

        Weights are unbiased for Z, but those of early attempts were given with the loose bounds of their time, and few
        of them vary much: their mean can be where the bounds of now say that Z is not. Z lies between these for
        certain, so the nearest of their points is at most as far from Z as the mean is.
        """
        if not log_weights:
            return math.nan
        if self._weighing is not None:
            return log_mean_exp(log_weights)
        low, high = self.store.log_z_bounds
        return min(max(log_mean_exp(log_weights), low), high)

    def _sample(self, outcome: Outcome, weighted: bool, exact: bool) -> Sample[T]:
        text_and_tokens = self._texts.get(outcome.node)
        if text_and_tokens is None:
            tokens = tuple(self.store.prefix_of(outcome.node))
            text = self.store.target.text(tokens)
            text_and_tokens = self._texts[outcome.node] = text, tokens
        constraint = self.store.target.constraint
        reads = constraint if hasattr(constraint, "parse") else None
        return Sample(*text_and_tokens, outcome.log_prob, outcome.log_weight if weighted else 0.0, exact, reads)


class _Particles:
    """One population. ``node`` is -1 once the weight is 0; ``done`` where the text has ended; ``score``: what a critic
    says of the text so far, which is in the weight."""

    def __init__(self, store: PrefixStore, count: int, rng: np.random.Generator, weighing: Weighing | None) -> None:
        self.store, self.rng, self.weighing = store, rng, weighing
        self.score = np.zeros(count)
        self.node = np.zeros(count, dtype=np.int64)
        self.weight = np.zeros(count)
        self.logp = np.zeros(count)
        self.done = np.zeros(count, dtype=np.bool_)

    @property
    def live(self) -> npt.NDArray[np.bool_]:
        """Those that go on."""
        return ~self.done & (self.weight > -math.inf)

    def step(self) -> None:
        """One token for all, then the nodes they reach, in one call of the model."""
        store, going_on = self.store, np.flatnonzero(self.live)
        chosen: dict[int, int] = {}
        for i in going_on.tolist():
            node = int(self.node[i])
            mass = float(store.nodes["mass"][node])
            self.weight[i] += mass
            if mass == -math.inf:
                continue
            edges = store.edges_of(node)
            shares = np.cumsum(np.exp(edges["logp"] - mass))
            edge = min(int(np.searchsorted(shares, self.rng.random() * shares[-1], side="right")), len(edges) - 1)
            self.logp[i] += edges["logp"][edge]
            if edges["token"][edge] == EOS:
                self.done[i] = True
            else:
                chosen[i] = edge
        here = {int(self.node[i]) for i in chosen}
        store.expand([(int(self.node[i]), edge) for i, edge in chosen.items()], protect=here)
        for i, edge in chosen.items():
            self.node[i] = store.edges_of(int(self.node[i]))["child"][edge]
        evicted = {int(self.node[i]) for i in chosen if store.nodes["start"][self.node[i]] < 0}
        if evicted:
            store.expand([(node, -1) for node in evicted], protect={int(self.node[i]) for i in chosen})
        if self.weighing is not None:
            self._weigh(going_on, self.weighing)

    def _weigh(self, moved: npt.NDArray[np.int64], weighing: Weighing) -> None:
        """Put what the critic says into the weights of those that have moved, in place of what it said before."""
        asked = [i for i in moved[self.weight[moved] > -math.inf] if self.done[i] or weighing.judges_beginnings]
        scores = weighing.scores(self.node[asked].tolist(), self.done[asked].tolist()) if asked else []
        self.weight[asked] += np.array(scores) - self.score[asked]
        self.score[asked] = scores

    def resample(self) -> None:
        """Systematic resampling where fewer than half of the particles count."""
        count = len(self.weight)
        if not self.live.any() or effective_sample_size(self.weight.tolist()) >= count / 2:
            return
        mean = log_mean_exp(self.weight.tolist())
        shares = np.cumsum(np.exp(self.weight - self.weight.max()))
        places = (self.rng.random() + np.arange(count)) / count * shares[-1]
        pick = np.minimum(np.searchsorted(shares, places, side="right"), count - 1)
        self.node, self.logp, self.done = self.node[pick], self.logp[pick], self.done[pick]
        self.score = self.score[pick]
        self.weight = np.full(count, mean)


def run_particles(
    store: PrefixStore, meter: Meter, n: int, count: int, seed: int, first: int, weighing: Weighing | None = None
) -> tuple[list[Outcome], Limit | None]:
    """Populations of ``count`` until ``n`` particles have a text; the outcomes of whole populations.

    A population that the budget stops is given up: its particles are not at their ends. The mean of the weights is
    unbiased for Z, whatever the number of particles.
    """
    outcomes: list[Outcome] = []
    if n and not store.node_count:
        store.expand([(-1, -1)])
    while sum(outcome.status == FINISHED for outcome in outcomes) < n:
        if store.nodes["high"][0] == -math.inf:
            raise UnsatisfiableTargetError("No text of the constraint can be written within max_tokens.")
        if meter.room(count) < count:
            return outcomes, "attempts"
        meter.attempts += count
        particles = _Particles(store, count, np.random.default_rng([seed, first + len(outcomes)]), weighing)
        steps = 0
        while particles.live.any():
            limit = meter.exceeded()
            if limit:
                return outcomes, limit
            particles.step()
            particles.resample()
            steps += 1
        for node, weight, logp, done in zip(
            particles.node.tolist(), particles.weight.tolist(), particles.logp.tolist(), particles.done, strict=True
        ):
            ended = bool(done) and weight > -math.inf
            outcomes.append(Outcome(FINISHED if ended else STUCK, node if ended else -1, weight, logp, steps))
    return outcomes, None
