"""How far masks and filters bend the distribution: what is drawn token by token against the model, given a constraint.

At each token the mask and the filters keep a share Z of the model's probability, and what they keep is renormalised.
An output's weight W is the product of its shares: it is drawn W times too seldom. Were W the same for all outputs,
nothing would be bent; only its spread is distortion.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from structgen.errors import OptionsError
from structgen.generation.sampling import SamplingParams, filtered_probs, sample
from structgen.generation.search.scores import Values
from structgen.generation.search.space import Distribution, SearchNode, Space
from structgen.generation.target.results import effective_sample_size, log_mean_exp

MOST_SHOWN = 10


@dataclass(frozen=True)
class Distortion:
    """What some draws say of it.

    Attributes:
        log_weights: log W of each draw, nats.
        costly: where the constraint took most from the model: the text so far, and nats that an average output loses
            there. What stands first is what to change: in the prompt, or in the schema.
    """

    log_weights: Sequence[float] = field(repr=False)
    costly: Sequence[tuple[str, float]] = ()

    @property
    def log_z(self) -> float:
        """Logarithm of the share of the model's outputs that are kept: the mean of the weights."""
        return log_mean_exp(list(self.log_weights))

    @property
    def kl(self) -> float:
        """Divergence of what is drawn from the model given the constraint, in nats: 0 is none."""
        return self.log_z - float(np.mean(self.log_weights))

    @property
    def tv(self) -> float:
        """Total variation distance of the two, 0 to 1: the share of draws that should have been others."""
        return float(0.5 * np.abs(np.exp(np.array(self.log_weights) - self.log_z) - 1).mean())

    @property
    def ess(self) -> float:
        """So many draws of the model given the constraint are worth as much as these, weighted."""
        return effective_sample_size(list(self.log_weights))

    @property
    def variance(self) -> float:
        """Of log W."""
        return float(np.var(self.log_weights))

    def __str__(self) -> str:
        """A few lines to act on."""
        lines = [
            f"{len(self.log_weights)} draws: KL {self.kl:.3f} nats, TV {self.tv:.3f}, "
            f"effective sample size {self.ess:.1f}, share kept e^{self.log_z:.2f}"
        ]
        lines += [f"  {lost:6.3f} nats after {text[-60:]!r}" for text, lost in self.costly]
        return "\n".join(lines)

    def plot(self, path: str | Path) -> None:
        """Write a histogram of log W; what is bent is as wide as it.

        Raises:
            OptionsError: matplotlib is not installed.
        """
        try:
            from matplotlib.figure import Figure
        except ImportError as error:
            raise OptionsError("Plots need matplotlib: pip install 'structgen-lm[plots]'") from error
        figure = Figure(figsize=(6, 3.5), layout="constrained")
        axes = figure.subplots()
        axes.hist(list(self.log_weights), bins="auto")
        axes.axvline(self.log_z, color="black", linestyle="--", label="log of the mean")
        axes.set(xlabel="log W (nats)", ylabel="draws", title=f"KL {self.kl:.3f} nats, TV {self.tv:.3f}")
        axes.legend()
        figure.savefig(str(path))


def distortion(space: Space, params: SamplingParams, n: int, rng: np.random.Generator) -> Distortion:
    """``n`` independent draws, masked, then temperature and filters, and their weights."""
    draws = [_Draw(space.root) for _ in range(n)]
    lost = defaultdict[str, float](float)
    while running := [draw for draw in draws if not draw.node.is_finished]:
        nodes = list({id(draw.node): draw.node for draw in running}.values())
        for node, whole in zip(nodes, space.distributions(nodes), strict=True):
            node.expansion = whole
            probs = filtered_probs(whole.log_probs - whole.log_mass, params)
            share = log_share(whole, probs, params)
            for draw in running:
                if draw.node is node:
                    lost[node.hypothesis.text] -= share / n
                    draw.step(space, whole, probs, share, rng)
            node.expansion = None
        space.retain([draw.node for draw in running if not draw.node.is_finished])
    costly = sorted(lost.items(), key=lambda pair: -pair[1])[:MOST_SHOWN]
    return Distortion([draw.log_weight for draw in draws], [pair for pair in costly if pair[1] > 1e-9])


def log_share(whole: Distribution, kept: Values, params: SamplingParams) -> float:
    """log Z: how much of the model's probability, at its temperature, mask and filters keep."""
    scores = whole.log_probs[kept > 0] / params.temperature
    top = float(scores.max())
    return top + math.log(float(np.exp(scores - top).sum()))


@dataclass
class _Draw:
    """One output on its way."""

    node: SearchNode
    log_weight: float = 0.0

    def step(self, space: Space, whole: Distribution, probs: Values, share: float, rng: np.random.Generator) -> None:
        """A token more; one that could not be closed in time counts as if the mask had forbidden it."""
        weights = probs.copy()
        while weights.any():
            position = sample(weights, rng)
            child = space.child(self.node, int(whole.tokens[position]))
            if child is not None:
                self.log_weight += share + math.log(float(weights.sum()) / float(probs.sum()))
                self.node = child
                return
            weights[position] = 0.0
        planned = space.planned(self.node)
        assert planned is not None, "a completion is known"
        self.node = planned
