"""Filters of the likeliest tokens alone, against their definitions over all."""

from __future__ import annotations

import math

import numpy as np
import pytest

from structgen.generation.filters.rows import LogitsRow
from structgen.generation.filters.table import FILTER_NAMED
from structgen.generation.filters.top_tokens import TOP_FILTERS, TopTokens
from structgen.generation.sampling.host import HostSampler
from structgen.generation.sampling.params import SamplingParams
from structgen.generation.sampling.sampler import DrawRequest
from tests.many import cases

VALUES: dict[str, list[float]] = {
    "top_k": [1, 3, 40, 900], "top_p": [0.1234, 0.9012, 0.999], "min_p": [0.001, 0.05, 0.9, 1.0],
    "epsilon_cutoff": [1e-6, 3e-3, 0.3], "eta_cutoff": [1e-6, 3e-3, 0.3], "top_n_sigma": [0.1, 1.0, 9.0],
    "top_h": [0.1, 0.4, 0.9], "bregman_cost": [1e-7, 0.01, 1.0, 800.0], "typical_p": [0.1234, 0.9012, 0.999],
}  # fmt: skip


def rows(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=600) * (0.0, 0.3, 2.0, 8.0)[seed % 4]
    return np.round(logits, 1) if seed % 3 == 0 else logits  # many are equal


@pytest.mark.parametrize("name", FILTER_NAMED)
@pytest.mark.parametrize("seed", cases(400, 12))
def test_they_keep_what_the_definition_keeps(name: str, seed: int) -> None:
    scores = rows(seed)
    order = np.lexsort((np.arange(len(scores)), -scores))
    weights = np.exp(scores - scores.max())
    sigma, total, scale = float(scores.std()), float(weights.sum()), 1.0
    for value in VALUES[name]:
        expected = FILTER_NAMED[name].keeps(LogitsRow(scores, scores - np.logaddexp.reduce(scores), sigma), value)
        depth, looks = 0.5, 0
        while True:
            near = order[scores[order] >= scores.max() - depth]
            with np.errstate(divide="ignore"):
                top = TopTokens(
                    weights[near], scores[near], total, depth, scale, sigma,
                    lambda: float((weights * np.log(weights)).sum()),
                )  # fmt: skip
            kept = TOP_FILTERS[name](top, value)
            if not isinstance(kept, float):
                break
            assert kept > depth
            depth, looks = (kept if kept < 30 else math.inf), looks + 1
        assert looks < 9
        assert sorted(near[kept].tolist()) == np.flatnonzero(expected).tolist()


@pytest.mark.parametrize("name", FILTER_NAMED)
def test_draws_are_of_what_is_kept_whatever_the_mask_hides(name: str) -> None:
    """Hidden logits may be anything; the distribution is that of the definition, by many draws."""
    rng, sampler, size = np.random.default_rng(3), HostSampler(), 1024
    logits = (rng.normal(size=size) * 3).astype(np.float32)
    allowed = rng.random(size) < 0.5
    hidden = logits.copy()
    hidden[~allowed] = rng.choice([np.nan, np.inf, -np.inf, 99.0], size=int((~allowed).sum()))
    mask = np.packbits(allowed, bitorder="little").view(np.int32)[None]
    value = VALUES[name][1]
    params = SamplingParams(0.8, **{name: int(value) if name == "top_k" else value})  # type: ignore[arg-type]
    if name == "top_n_sigma":
        hidden[~allowed] = -np.inf  # its deviation is that of the whole row
    log_probs = logits[allowed].astype(np.float64)
    scores = log_probs / 0.8
    sigma = float(logits[allowed].std(dtype=np.float64))
    kept = FILTER_NAMED[name].keeps(LogitsRow(scores, log_probs - np.logaddexp.reduce(log_probs), sigma), value)
    expected = set(np.flatnonzero(allowed)[kept].tolist())
    drawn = {
        int(sampler.draw(hidden[None], mask, [DrawRequest(params, 5, place, 0, 0)]).token_ids[0])
        for place in range(400)
    }
    assert drawn <= expected and len(drawn) >= min(3, len(expected))
