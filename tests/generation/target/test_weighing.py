"""Samples of targets that a critic weighs, against the closed forms tilted by it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from structgen.errors import GenerationError, OptionsError
from structgen.generation.decoding.critics import Candidate, critic
from structgen.generation.target.results import Budget, Method
from structgen.generation.target.samplers import Sampler
from tests.generation.target import closed_forms as cf
from tests.generation.target.closed_forms import Case
from tests.generation.target.test_samplers import count, fits

CASES = [cf.skewed(), cf.even(0.3), cf.dyck(), cf.dead_end()]


def taste(text: str) -> float:
    """Nats, at most 1; some texts are refused, and long ones are all the same to it (not all of these are listed)."""
    if text.endswith("101"):
        return -math.inf
    return math.sin(3 * len(text) + text.count("1") + text.count("a")) if len(text) <= 6 else 0.0


def tastes(candidates: Sequence[Candidate]) -> list[float]:
    return [taste(each.text) for each in candidates]


def lies(candidates: Sequence[Candidate]) -> list[float]:
    """Of beginnings something else than of whole texts."""
    return [taste(each.text) if each.is_whole else math.cos(7 * len(each.text)) for each in candidates]


def tilted(case: Case) -> tuple[dict[str, float], float]:
    """The target with the critic, and its total."""
    shares = {name: p * math.exp(taste(name)) for name, p in case.truth.items()}
    total = sum(shares.values()) + 1 - sum(case.truth.values())
    return {name: share / total for name, share in shares.items() if share}, case.z * total


@pytest.mark.first_case
@pytest.mark.parametrize("case", [cf.skewed(), cf.even(), cf.dyck()], ids=lambda case: case.name)
@pytest.mark.parametrize("method", ["exact", "rejection"])
def test_exact_samples_are_the_weighed_target(case: Case, method: Method) -> None:
    store = case.store()
    run = Sampler(store, method, seed=1, critic=critic(tastes, most=1.0)).draw(800)
    truth, z = tilted(case)
    assert run.complete and all(sample.exact and not sample.log_weight for sample in run.samples)
    assert fits(count(store, case, run), truth)
    assert math.exp(run.log_z) == pytest.approx(z, rel=0.2) and run.log_z_bounds[1] >= run.log_z - 0.2
    assert case.name == "dyck" or not fits(count(store, case, run), case.truth)


@pytest.mark.first_case
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("judge", [critic(tastes), critic(lies, prefixes=True)], ids=["whole", "lying beginnings"])
@pytest.mark.parametrize("method", ["smc", "weighted", "local"])
def test_weights_average_to_the_weighed_total(case: Case, judge: Any, method: Method) -> None:
    """Whatever is said of beginnings: the mean weight of a fixed number of attempts, in standard errors."""
    means = []
    for seed in range(100):
        sampler = Sampler(case.store(), method, seed=seed, particles=8, width=4, critic=judge)
        run = sampler.draw(10**6, Budget(attempts=8))
        assert run.attempts == 8
        means.append(float(np.exp(run.log_weights).mean()))
    error = np.std(means) / math.sqrt(len(means))
    assert abs(np.mean(means) - tilted(case)[1]) < 4 * error + 1e-12


def test_a_potential_leads_particles_to_what_it_likes() -> None:
    """Of five bits, all ones are wanted: 24 of 32 particles die at the end, unless beginnings are judged."""
    case = cf.skewed()

    def ones(candidates: Sequence[Candidate]) -> list[float]:
        return [3.0 * each.text.count("1") if "0" not in each.text else -math.inf for each in candidates]

    left = {}
    for prefixes in (False, True):
        judge, budget = critic(ones, prefixes=prefixes), Budget(attempts=32)
        runs = [Sampler(case.store(), "smc", seed=seed, critic=judge).draw(10**6, budget) for seed in range(20)]
        left[prefixes] = sum(len(run.samples) for run in runs)
        assert all(set(sample.text) == {"1"} for run in runs for sample in run.samples)
    assert left[True] > 5 * left[False]


def test_chains_converge_to_the_weighed_target() -> None:
    case = cf.skewed()
    store = case.store()
    run = Sampler(store, "mh", seed=2, mh_steps=12, critic=tastes).draw(400)
    assert cf.g_statistic(count(store, case, run), tilted(case)[0]) <= 1.5 * cf.null_quantile(tilted(case)[0], 400)


def test_what_a_critic_cannot_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("structgen.generation.target.weighing.MOST_IN_VAIN", 500)
    case = cf.skewed()
    with pytest.raises(OptionsError, match="most="):
        Sampler(case.store(), "exact", critic=tastes)
    with pytest.raises(OptionsError, match="asap"):
        Sampler(case.store(), "asap", critic=tastes)
    for method in ("smc", "weighted", "exact"):
        refusing = critic(lambda some: [-math.inf] * len(some), most=0.0)
        with pytest.raises(GenerationError, match="refuses all"):
            Sampler(case.store(), method, seed=0, critic=refusing).draw(1)
    with pytest.raises(GenerationError, match="raised"):
        Sampler(case.store(), "smc", critic=lambda some: [1 / 0 for _ in some]).draw(1)
