"""Filters against transformers' own, and against their definitions."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from structgen.errors import OptionsError
from structgen.generation.filters.rows import LogitsRow
from structgen.generation.filters.table import FILTER_NAMED, FILTERS, FilterOptions, FilterParams
from structgen.generation.sampling import SamplingParams, deviation, filtered_probs
from structgen.generation.sampling.params import ORDER


@pytest.mark.parametrize(
    ("name", "value", "warper"),
    [
        ("top_k", 7, "TopKLogitsWarper"),
        ("top_p", 0.8, "TopPLogitsWarper"),
        ("min_p", 0.05, "MinPLogitsWarper"),
        ("typical_p", 0.6, "TypicalLogitsWarper"),
        ("epsilon_cutoff", 0.01, "EpsilonLogitsWarper"),
        ("eta_cutoff", 0.02, "EtaLogitsWarper"),
    ],
)
def test_filters_are_those_of_transformers(name: str, value: Any, warper: str) -> None:
    torch = pytest.importorskip("torch")
    process = pytest.importorskip("transformers.generation.logits_process")
    argument = {"epsilon_cutoff": "epsilon", "eta_cutoff": "epsilon", "typical_p": "mass"}.get(name, name)
    kept = getattr(process, warper)(**{argument: value})
    rng = np.random.default_rng(4)
    for _ in range(20):
        logits = rng.normal(size=60) * 2
        expected = torch.softmax(kept(None, torch.from_numpy(logits)[None]), dim=-1)[0].numpy()
        log_probs = logits - np.logaddexp.reduce(logits)
        assert np.allclose(filtered_probs(log_probs, SamplingParams(1.0, **{name: value})), expected, atol=1e-9)


def test_the_table_and_the_fields_agree() -> None:
    """Names and neutral values of the entries are those of the fields that type checkers see."""
    neutral = {field.name: field.default for field in fields(FilterParams)}
    assert {one.name: one.neutral for one in FILTERS} == {name: neutral[name] for name in FILTER_NAMED}
    assert set(neutral) - set(FILTER_NAMED) == {"temperature", "seed"}
    assert set(FilterOptions.__annotations__) == {"temperature", *FILTER_NAMED}


def test_top_n_sigma() -> None:
    rng = np.random.default_rng(5)
    row = rng.normal(size=500) * 2
    row[3] = -np.inf
    ids = np.arange(0, 500, 3)
    log_probs = row[ids] - np.logaddexp.reduce(row[ids])
    sigma = row[np.isfinite(row)].std()
    assert deviation(row, SamplingParams(1.0, top_n_sigma=1.2)) == pytest.approx(sigma)
    assert deviation(row, SamplingParams(1.0)) is None
    for temperature in (0.5, 3.0):
        probs = filtered_probs(log_probs, SamplingParams(temperature, top_n_sigma=1.2), sigma)
        assert np.array_equal(probs > 0, row[ids] >= row[ids].max() - 1.2 * sigma)
    with pytest.raises(OptionsError, match="deviation"):
        filtered_probs(log_probs, SamplingParams(1.0, top_n_sigma=1.2))


def test_top_h() -> None:
    """The longest prefix of the likeliest whose own entropy is within the bound."""
    rng = np.random.default_rng(6)

    def entropy(probs: Any) -> float:
        return float(-(probs * np.log(probs)).sum())

    for _ in range(20):
        probs = np.sort(rng.dirichlet(np.ones(12)))[::-1]
        longest = max(
            (k for k in range(1, 13) if entropy(probs[:k] / probs[:k].sum()) <= 0.6 * entropy(probs)), default=1
        )
        kept = filtered_probs(np.log(probs), SamplingParams(1.0, top_h=0.6))
        assert np.allclose(kept, np.where(np.arange(12) < longest, probs, 0) / probs[:longest].sum())


@pytest.mark.parametrize("cost", [1e-3, 0.02, 0.3, 2.0, 1e4])
def test_bregman_cost(cost: float) -> None:
    """The support of the least cost, of all that there are: -log of its mass, and so much for each token."""
    rng = np.random.default_rng(7)
    for _ in range(20):
        probs = rng.dirichlet(np.ones(7))
        supports = [[i for i in range(7) if bits >> i & 1] for bits in range(1, 1 << 7)]
        best = min(supports, key=lambda some: -np.log(probs[some].sum()) + cost * len(some))
        kept = filtered_probs(np.log(probs), SamplingParams(1.0, bregman_cost=cost))
        assert np.flatnonzero(kept).tolist() == best
        assert np.allclose(kept[best], probs[best] / probs[best].sum())


@pytest.mark.parametrize("name", ["top_h", "bregman_cost", "top_k", "top_p", "typical_p"])
def test_what_is_looked_at_in_parts_is_what_a_whole_sort_keeps(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of all spreads, with equal tokens and with tokens that are gone."""
    rng = np.random.default_rng(8)
    values: dict[str, list[float]] = {
        "top_h": [0.2, 0.8, 1.0], "bregman_cost": [1e-6, 0.01, 1.0], "top_k": [1, 40, 600], "top_p": [0.2, 0.97, 1.0],
        "typical_p": [0.2, 0.97, 1.0],
    }  # fmt: skip
    rows = []
    for spread in (0.0, 0.1, 2.0, 6.0, 30.0):
        scores = np.round(rng.normal(size=500) * spread, rng.integers(0, 3))  # many are equal
        scores[rng.random(500) < 0.1] = -np.inf
        rows.append(LogitsRow(scores, scores, None))
    keeps = FILTER_NAMED[name].keeps
    found = [keeps(row, value) for row in rows for value in values[name]]
    first = LogitsRow.first
    monkeypatch.setattr(LogitsRow, "first", staticmethod(lambda keys, limits, count: first(keys, limits[-1:], count)))
    whole = [keeps(row, value) for row in rows for value in values[name]]
    assert all(np.array_equal(one, other) for one, other in zip(found, whole, strict=True))


def test_order_matters_and_is_kept() -> None:
    log_probs = np.log([0.5, 0.2, 0.15, 0.1, 0.05])
    last = SamplingParams(3.0, top_p=0.6, order=("top_p", "temperature"))
    first = SamplingParams(3.0, top_p=0.6)
    assert np.count_nonzero(filtered_probs(log_probs, last)) == 2
    assert np.count_nonzero(filtered_probs(log_probs, first)) == 3
    assert first.order == ORDER and first.steps == ("temperature", "top_p") and last.steps == ("top_p", "temperature")
    assert SamplingParams(0.0, top_p=0.6).steps == ()


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"min_p": -0.1}, "min_p must be a finite number >= 0 and <= 1"),
        ({"min_p": True}, "min_p"),
        ({"typical_p": 0}, "typical_p must be a finite number > 0 and <= 1"),
        ({"epsilon_cutoff": 2}, "epsilon_cutoff"),
        ({"eta_cutoff": "a"}, "eta_cutoff"),
        ({"top_n_sigma": 0}, "top_n_sigma must be a finite number > 0"),
        ({"top_h": 1.5}, "top_h"),
        ({"bregman_cost": -1}, "bregman_cost must be a finite number >= 0"),
        ({"repetition_penalty": 0}, "repetition_penalty"),
        ({"presence_penalty": float("inf")}, "presence_penalty must be a finite number"),
        ({"frequency_penalty": None}, "frequency_penalty"),
        ({"dry_multiplier": -1}, "dry_multiplier must be a finite number >= 0"),
        ({"dry_base": 0.5}, "dry_base must be a finite number >= 1"),
        ({"dry_allowed_length": 0}, "dry_allowed_length"),
        ({"dry_sequence_breakers": ("",)}, "dry_sequence_breakers must be strings, none empty"),
        ({"logit_bias": 3}, "logit_bias must be a mapping"),
        ({"logit_bias": {-1: 1.0}}, "token id of logit_bias"),
        ({"logit_bias": {1: float("nan")}}, "value of logit_bias"),
        ({"order": ("temperature", "top_q")}, "order must name different steps"),
        ({"order": "temperature"}, "order must name"),
        ({"order": ("temperature", "temperature")}, "order must name different"),
        ({"min_p": 0.1, "order": ("temperature",)}, "does not say where min_p comes"),
    ],
)
def test_parameters_out_of_range_raise(bad: dict[str, Any], said: str) -> None:
    with pytest.raises(OptionsError, match=said):
        SamplingParams(1.0, **bad)


def test_params_are_values() -> None:
    one, other = SamplingParams(1.0, logit_bias={5: 1, 2: 0.5}), SamplingParams(1.0, logit_bias=((2, 0.5), (5, 1.0)))
    assert one == other and hash(one) == hash(other) and one.bias_pairs == ((2, 0.5), (5, 1.0))
