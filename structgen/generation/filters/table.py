"""The filters of tokens, a table: all that anyone has to know of a filter stands in its entry here.

An entry has the filter's name, its bounds, its definition in float64 (what every other way to draw is tested by), the
same for many rows at once as torch operations, and where users can name it. Its field for type checkers stands in
``FilterParams`` (what travels) and ``FilterOptions`` (keyword arguments); everything else reads the table: the order,
the checks, samplers on the processor and on devices, drafts, samples of the target, command line and server.

A filter says which tokens stay of those that the steps before it have left. It is written with methods of arrays and of
``LogitsRow`` (``TensorRows``) alone: the command line reads the table, and does not wait for numpy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from structgen.errors import OptionsError

if TYPE_CHECKING:
    from torch import Tensor

    from structgen.generation.filters.rows import Kept, LogitsRow, LogProbs
    from structgen.generation.filters.tensor_rows import TensorRows


@dataclass(frozen=True, slots=True)
class FilterParams:
    """The fields of temperature, seed and filters, in the order of positional arguments; see ``SamplingParams``."""

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float = 1.0
    seed: int | None = None
    min_p: float = 0.0
    typical_p: float = 1.0
    epsilon_cutoff: float = 0.0
    eta_cutoff: float = 0.0
    top_n_sigma: float | None = None
    top_h: float | None = None
    bregman_cost: float = 0.0


class FilterOptions(TypedDict, total=False):
    """Temperature and filters as keyword arguments.

    Attributes:
        temperature: logits are divided by it; 0 (default) is greedy.
        top_k: keep the k likeliest allowed tokens (of equals, the lowest ids); None keeps all.
        top_p: keep the likeliest up to this share of the probability, at least one (Holtzman et al. 2020).
        min_p: keep p >= min_p · max p (Nguyen et al. 2024).
        typical_p: keep tokens whose surprisal is nearest the entropy, up to this share (Meister et al. 2023).
        epsilon_cutoff: keep p >= epsilon. eta_cutoff: keep p >= min(eta, √eta · exp(-entropy)) (Hewitt et al. 2022).
        top_n_sigma: keep logits >= max - n · σ, σ over the whole row of logits (Tang et al. 2024).
        top_h: keep the longest prefix of the likeliest whose entropy is at most this share of all (Potraghloo 2025).
        bregman_cost: keep the k likeliest for which the divergence (KL, nats) of the distribution, cut to them, plus k
            times this is least: Bregman top-k (Noarov et al. 2025) with the divergence that renormalises.
    """

    temperature: float
    top_k: int | None
    top_p: float
    min_p: float
    typical_p: float
    epsilon_cutoff: float
    eta_cutoff: float
    top_n_sigma: float | None
    top_h: float | None
    bregman_cost: float


@dataclass(frozen=True, kw_only=True)
class Filter:
    """One filter.

    Attributes:
        name: of the field and the option.
        neutral: the value that keeps every token.
        high: the greatest value; the least is 0, and 0 itself is refused where ``above``. ``is_count``: the value is a
            whole number from 1 on.
        keeps: which tokens stay, given the value: the definition.
        keeps_rows: the same for many rows, whose values are a column [n, 1], by methods of tensors.
        needs_deviation: whether it reads ``LogitsRow.sigma``.
        keeps_a_prefix: whether the kernels of processor and GPU know it: it keeps the likeliest up to a place.
        help: what the command line says of it; None: it is no option there.
        served: whether requests to the server name it.
        warper: transformers' class for it, and the attribute with the value; None: it has none.
    """

    name: str
    neutral: float | None
    keeps: Callable[[LogitsRow, float], Kept]
    keeps_rows: Callable[[TensorRows, Tensor], Tensor]
    high: float = 1.0
    above: bool = False
    is_count: bool = False
    needs_deviation: bool = False
    keeps_a_prefix: bool = False
    help: str | None = None
    served: bool = False
    warper: tuple[str, str] | None = None


def _top_n_sigma(row: LogitsRow, n: float) -> Kept:
    """Differences of logits are those of log-probabilities, whatever temperature came before."""
    if row.sigma is None:
        raise OptionsError("top_n_sigma needs the deviation of the logits, and none were given")
    left = row.scores > -math.inf
    return left & (row.log_probs >= row.log_probs[left].max() - n * row.sigma)


def _top_n_sigma_rows(rows: TensorRows, n: Tensor) -> Tensor:
    left = rows.scores > -math.inf
    assert rows.sigma is not None
    highest = rows.log_probs.masked_fill(~left, -math.inf).amax(1, keepdim=True)
    return left & (rows.log_probs >= highest - n * rows.sigma)


def _top_h(row: LogitsRow, share: float) -> Kept:
    """The entropy of the first k, renormalised, is log Γ - Σ p log p / Γ with Γ = Σ p; it rises with k."""
    probs = row.probs
    most = share * row.entropy(probs) + 1e-12

    def count(ranked: LogProbs) -> int:
        ranked = ranked[ranked > 0]
        mass = ranked.cumsum()
        return int((row.log(mass) - (ranked * row.log(ranked)).cumsum() / mass <= most).sum())

    return row.only(row.leading(probs, count))


def _top_h_rows(rows: TensorRows, share: Tensor) -> Tensor:
    ranked, order = rows.descending(rows.probs)
    mass = rows.running_sums(ranked)
    entropies = mass.log() + rows.running_sums(rows.surprise(ranked)) / mass
    few = ((entropies <= share * entropies[:, -1:] + 1e-12) & (ranked > 0)).sum(1, keepdim=True)
    return rows.only(order, rows.places < few)


GREATEST_COST = 700.0  # beyond, one token stays: exp of more is no float


def _bregman_cost(row: LogitsRow, cost: float) -> Kept:
    """The cost -log Γ + cost · k, Γ the sum of the first k, is convex in k: as long as the next lowers it, it stays."""
    probs, part = row.probs, math.expm1(min(cost, GREATEST_COST))
    few = row.leading(probs, lambda ranked: int((ranked >= part * (ranked.cumsum() - ranked)).sum()))
    return row.only(few) & (probs > 0)


def _bregman_cost_rows(rows: TensorRows, cost: Tensor) -> Tensor:
    probs = rows.probs
    ranked, order = rows.descending(probs)
    few = (ranked >= cost.clamp(max=80.0).expm1() * (rows.running_sums(ranked) - ranked)).sum(1, keepdim=True)
    return rows.only(order, rows.places < few) & (probs > 0)


def _top_k(row: LogitsRow, k: float) -> Kept:
    probs = row.probs
    return row.only(row.leading(probs, lambda ranked: min(int(k), ranked.size))) & (probs > 0)


def _top_k_rows(rows: TensorRows, k: Tensor) -> Tensor:
    probs = rows.probs
    _, order = rows.descending(probs)
    return rows.only(order, rows.places < k) & (probs > 0)


def _up_to(ranked: LogProbs, share: float) -> int:
    """How many of them reach a share of the probability."""
    return int((ranked.cumsum() - ranked < share).sum())


def _top_p(row: LogitsRow, share: float) -> Kept:
    probs = row.probs
    return row.only(row.leading(probs, lambda ranked: _up_to(ranked, share)))


def _top_p_rows(rows: TensorRows, share: Tensor) -> Tensor:
    ranked, order = rows.descending(rows.probs)
    return rows.only(order, rows.running_sums(ranked) - ranked < share)


def _min_p(row: LogitsRow, least: float) -> Kept:
    probs = row.probs
    return probs >= least * probs.max()


def _min_p_rows(rows: TensorRows, least: Tensor) -> Tensor:
    probs = rows.probs
    return probs >= least * probs.amax(1, keepdim=True)


TYPICAL = (0.5, 1.0, 2.0, 4.0, 6.0, 9.0, math.inf)  # nats: beyond each is looked only where all within it stays


def _typical_p(row: LogitsRow, share: float) -> Kept:
    probs = row.probs
    distances = abs(-row.log(probs) - row.entropy(probs))
    return row.only(row.first(distances, TYPICAL, lambda order: _up_to(probs[order], share)))


def _typical_p_rows(rows: TensorRows, share: Tensor) -> Tensor:
    probs = rows.probs
    order = (-probs.log() - rows.entropy(probs)).abs().sort(dim=1, stable=True).indices
    ranked = probs.gather(1, order)
    return rows.only(order, rows.running_sums(ranked) - ranked < share)


def _epsilon_cutoff(row: LogitsRow, least: float) -> Kept:
    probs = row.probs
    return (probs >= least) | (probs == probs.max())


def _epsilon_cutoff_rows(rows: TensorRows, least: Tensor) -> Tensor:
    probs = rows.probs
    return (probs >= least) | (probs == probs.amax(1, keepdim=True))


def _eta_cutoff(row: LogitsRow, eta: float) -> Kept:
    return _epsilon_cutoff(row, min(eta, math.sqrt(eta) * math.exp(-row.entropy(row.probs))))


def _eta_cutoff_rows(rows: TensorRows, eta: Tensor) -> Tensor:
    return _epsilon_cutoff_rows(rows, eta.minimum(eta.sqrt() * (-rows.entropy(rows.probs)).exp()))


FILTERS = (
    Filter(
        name="top_n_sigma", neutral=None, high=math.inf, above=True, needs_deviation=True,
        keeps=_top_n_sigma, keeps_rows=_top_n_sigma_rows,
    ),
    Filter(
        name="top_h", neutral=None, above=True, warper=("TopHLogitsWarper", "top_h"),
        keeps=_top_h, keeps_rows=_top_h_rows,
    ),
    Filter(
        name="top_k", neutral=None, is_count=True, keeps_a_prefix=True, warper=("TopKLogitsWarper", "top_k"),
        keeps=_top_k, keeps_rows=_top_k_rows, help="Only so many of the likeliest tokens.", served=True,
    ),
    Filter(
        name="top_p", neutral=1.0, above=True, keeps_a_prefix=True, warper=("TopPLogitsWarper", "top_p"),
        keeps=_top_p, keeps_rows=_top_p_rows, help="Only the likeliest up to this share.", served=True,
    ),
    Filter(
        name="min_p", neutral=0.0, keeps_a_prefix=True, warper=("MinPLogitsWarper", "min_p"),
        keeps=_min_p, keeps_rows=_min_p_rows, help="Least share of the likeliest token.", served=True,
    ),
    Filter(
        name="typical_p", neutral=1.0, above=True, warper=("TypicalLogitsWarper", "mass"),
        keeps=_typical_p, keeps_rows=_typical_p_rows,
    ),
    Filter(
        name="epsilon_cutoff", neutral=0.0, warper=("EpsilonLogitsWarper", "epsilon"),
        keeps=_epsilon_cutoff, keeps_rows=_epsilon_cutoff_rows,
    ),
    Filter(
        name="eta_cutoff", neutral=0.0, warper=("EtaLogitsWarper", "epsilon"),
        keeps=_eta_cutoff, keeps_rows=_eta_cutoff_rows,
    ),
    Filter(name="bregman_cost", neutral=0.0, high=math.inf, keeps=_bregman_cost, keeps_rows=_bregman_cost_rows),
)  # fmt: skip
"""All of them, in the order of transformers."""
FILTER_NAMED = {one.name: one for one in FILTERS}
