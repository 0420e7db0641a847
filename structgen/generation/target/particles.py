"""Sequential Monte Carlo over tokens: particles that follow the mask, weighed by its mass, resampled when uneven."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from structgen.core.kernels.aligned.layout import FINISHED, STUCK
from structgen.errors import UnsatisfiableTargetError
from structgen.generation.target.results import Limit, effective_sample_size, log_mean_exp
from structgen.generation.target.store import EOS, PrefixStore
from structgen.generation.target.walks import Meter, Outcome


class _Particles:
    """One population. ``node`` is -1 once the weight is 0; ``done`` where the text has ended."""

    def __init__(self, store: PrefixStore, count: int, rng: np.random.Generator) -> None:
        self.store, self.rng = store, rng
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
        store = self.store
        chosen: dict[int, int] = {}
        for i in np.flatnonzero(self.live).tolist():
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
        self.weight = np.full(count, mean)


def run_particles(
    store: PrefixStore, meter: Meter, n: int, count: int, seed: int, first: int
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
        particles = _Particles(store, count, np.random.default_rng([seed, first + len(outcomes)]))
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
