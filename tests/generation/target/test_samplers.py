"""What the samplers draw, against closed forms: G statistics beside a parametric bootstrap, unbiased weights, order.

Seeds are fixed. A statistic must lie below the largest of 2,000 samples of the same size from the truth itself.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from typing import Any, get_args

import numpy as np
import pytest

from structgen.errors import OptionsError
from structgen.generation.sampling import SamplingParams
from structgen.generation.target.methods import METHODS, SPECIFICATIONS
from structgen.generation.target.results import Budget, Method, SampleRun
from structgen.generation.target.samplers import Sampler
from structgen.generation.target.store import PrefixStore
from structgen.generation.target.walks import Policy
from tests.generation.target import closed_forms as cf
from tests.generation.target.closed_forms import Case

IDS = [f"{case.name}-{index}" for index, case in enumerate(cf.CASES)]
N = 1500


def count(store: PrefixStore, case: Case, run: SampleRun) -> dict[str, float]:
    return dict(Counter(cf.spelling(store, sample.token_ids, case) for sample in run.samples))


def first_samples(case: Case, method: Method, n: int = 300, seed: int = 0, **options: Any) -> dict[str, float]:
    """The first sample of ``n`` fresh stores: nothing has been learned when they are drawn."""
    found: Counter[str] = Counter()
    for i in range(n):
        store = case.store()
        run = Sampler(store, method, seed=seed + i, **options).draw(1)
        found[cf.spelling(store, run.samples[0].token_ids, case)] += 1
    return dict(found)


def fits(counts: dict[str, float], truth: dict[str, float]) -> bool:
    return cf.g_statistic(counts, truth) <= cf.null_quantile(truth, int(sum(counts.values())))


@pytest.mark.parametrize("method", ["exact", "rejection"])
@pytest.mark.parametrize("case", cf.CASES, ids=IDS)
def test_exact_samples_are_the_target(case: Case, method: Method) -> None:
    store = case.store()
    run = Sampler(store, method, seed=1).draw(N)
    assert run.complete and len(run.samples) == N == run.ess
    assert all(sample.exact and sample.log_weight == 0 for sample in run.samples)
    assert fits(count(store, case, run), case.truth)


@pytest.mark.full
@pytest.mark.parametrize("case", [cf.skewed(), cf.even(), cf.ambiguous()], ids=lambda case: case.name)
@pytest.mark.parametrize("width", [1, 8])
def test_exact_from_the_first_sample(case: Case, width: int) -> None:
    """With fresh stores; the same walk without the coin (ASAp's first sample) is plain masking, and fails."""
    assert fits(first_samples(case, "exact", width=width), case.truth)
    assert not fits(first_samples(case, "asap"), case.truth)


@pytest.mark.full
def test_first_asap_sample_is_plain_masking() -> None:
    case = cf.skewed()
    store = case.store()
    local = {cf.spelling(store, ids, case): cf.induced(store, case, ids) for ids in cf.sequences(case)}
    for method in ("asap", "local", "weighted"):
        assert fits(first_samples(case, method), local)


def test_samples_are_independent_in_order() -> None:
    """Consecutive samples, in a contingency table; many walks in flight must not let the quick ones pass."""
    case = cf.skewed(0.4)
    pairs: Counter[str] = Counter()
    for seed in range(250):
        store = case.store()
        samples = Sampler(store, "exact", seed=seed, width=16).draw(2).samples
        pairs[" ".join(cf.spelling(store, sample.token_ids, case)[:2] for sample in samples)] += 1
    single: dict[str, float] = {}
    for text, p in case.truth.items():
        single[text[:2]] = single.get(text[:2], 0.0) + p
    truth = {f"{one} {two}": p * q for one, p in single.items() for two, q in single.items()}
    assert fits(dict(pairs), truth)


@pytest.mark.first_case
@pytest.mark.parametrize("method", ["weighted", "local", "smc"])
@pytest.mark.parametrize("case", [cf.skewed(), cf.even(0.3), cf.dyck(), cf.dead_end()], ids=lambda case: case.name)
def test_weights_average_to_z(case: Case, method: Method) -> None:
    """The mean weight of a fixed number of attempts from fresh stores, in standard errors from Z."""
    means = []
    for seed in range(100):
        sampler = Sampler(case.store(), method, seed=seed, particles=8, width=4)
        run = sampler.draw(10**6, Budget(attempts=8))
        assert run.stopped_by == "attempts" and run.attempts == 8
        means.append(float(np.exp(run.log_weights).mean()))
    error = np.std(means) / math.sqrt(len(means))
    assert abs(np.mean(means) - case.z) < 4 * error + 1e-12


@pytest.mark.first_case
@pytest.mark.parametrize("method", ["weighted", "local", "smc"])
@pytest.mark.parametrize("case", cf.CASES, ids=IDS)
def test_weighted_samples_are_the_target(case: Case, method: Method) -> None:
    store = case.store()
    run = Sampler(store, method, seed=2).draw(1000)
    mass: dict[str, float] = {}
    for sample in run.samples:
        name = cf.spelling(store, sample.token_ids, case)
        mass[name] = mass.get(name, 0.0) + math.exp(sample.log_weight)
    total = sum(mass.values())
    scaled = {text: value * run.ess / total for text, value in mass.items()}
    assert cf.g_statistic(scaled, case.truth) <= 1e-9 + 1.5 * cf.null_quantile(case.truth, max(1, int(run.ess)))
    assert math.exp(run.log_z) == pytest.approx(case.z, rel=0.25)


@pytest.mark.parametrize("method", ["asap", "mh"])
@pytest.mark.parametrize("case", [cf.skewed(), cf.even(), cf.ambiguous(), cf.dead_end()], ids=lambda case: case.name)
def test_the_others_come_close(case: Case, method: Method) -> None:
    store = case.store()
    sampler = Sampler(store, method, seed=3, mh_steps=12)
    sampler.draw(200)
    counts = count(store, case, sampler.draw(500))
    assert cf.g_statistic(counts, case.truth) <= 1.5 * cf.null_quantile(case.truth, 500)


def test_asap_converges_and_its_bound_only_falls() -> None:
    case = cf.dyck()
    store = case.store()
    sampler, bound, distances = Sampler(store, "asap", seed=4), 1.0, []
    ids = cf.sequences(case, 60)
    for _ in range(12):
        sampler.draw(10)
        assert store.tv_bound <= bound
        bound = store.tv_bound
        drawn = [cf.induced(store, case, tokens) for tokens in ids]
        truth = [case.truth.get(cf.spelling(store, tokens, case), 0.0) for tokens in ids]
        distances.append(sum(abs(p - q) for p, q in zip(drawn, truth, strict=True) if q) / 2)
        assert distances[-1] <= bound + 1e-9
    assert distances[-1] < distances[0] / 2 and bound < 0.25


# --- mutants: each mistake changes what is drawn, and the tests above would see it ---
@pytest.fixture
def case() -> Case:
    return cf.skewed(0.3)


def test_mutant_without_the_coin(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    without = dataclasses.replace(SPECIFICATIONS["exact"], policy=Policy(learned=True, coin=False))
    monkeypatch.setitem(SPECIFICATIONS, "exact", without)
    assert not fits(first_samples(case, "exact"), case.truth)


def test_mutant_stale_bounds(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds of ancestors are not updated: the shares of a node's edges no longer sum to its bound."""
    refresh = PrefixStore._refresh

    def only_here(self: PrefixStore, node: int) -> None:
        parents = self.nodes["parent"].copy()
        self.nodes["parent"] = -1
        refresh(self, node)
        self.nodes["parent"] = parents

    monkeypatch.setattr(PrefixStore, "_refresh", only_here)
    store = case.store()
    assert not fits(count(store, case, Sampler(store, "exact", seed=0).draw(N)), case.truth)


def test_mutant_without_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """End of sequence only where nothing else may follow (as in transformers-GAD)."""
    case = cf.dyck()
    add = PrefixStore._add

    def without(self: PrefixStore, read: Any, *rest: Any) -> int:
        import dataclasses

        ends = read.may_end and (not len(read.allowed) or len(read.prefix) > 5)
        return add(self, dataclasses.replace(read, may_end=ends), *rest)

    monkeypatch.setattr(PrefixStore, "_add", without)
    store = case.store()
    assert not fits(count(store, case, Sampler(store, "exact", seed=0).draw(200)), case.truth)


def test_mutant_masked_twice(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Probabilities renormalised over the mask before the bounds see them: the coin never falls on the other side."""
    add = PrefixStore._add

    def masked(self: PrefixStore, read: Any, parent: int, log_probs: Any) -> int:
        kept = np.zeros(len(log_probs), dtype=bool)
        kept[read.allowed] = True
        kept[0] = read.may_end
        return add(self, read, parent, log_probs - np.logaddexp.reduce(log_probs[kept]))

    monkeypatch.setattr(PrefixStore, "_add", masked)
    assert not fits(first_samples(case, "exact"), case.truth)


def _tempered(case: Case, temperature: float) -> dict[str, float]:
    """The target at another temperature, by enumeration."""
    mass = {}
    for ids in cf.sequences(case):
        p = 1.0
        for depth, token in enumerate([*ids, 0]):
            row = np.array(case.probs(tuple(ids[:depth]))) ** (1 / temperature)
            p *= row[token] / row.sum()
        mass["".join(case.tokens[token - 1].decode() for token in ids)] = p
    return {text: p / sum(mass.values()) for text, p in mass.items()}


def test_temperature_is_part_of_the_target_and_mutant_that_warps_after_the_mask(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    truth = _tempered(case, 0.5)

    def draw() -> dict[str, float]:
        store = PrefixStore(case.target(params=SamplingParams(0.5)))
        return count(store, case, Sampler(store, "exact", seed=0).draw(N))

    assert fits(draw(), truth) and not fits(draw(), case.truth)
    plain = case.target().log_probs
    add = PrefixStore._add

    def warped(self: PrefixStore, read: Any, parent: int, log_probs: Any) -> int:
        """The temperature shapes the shares within the mask, but the mask's mass is that of temperature 1."""
        row = plain(self.target.model.prefill([[0, *read.prefix]])[0][0])
        kept = [*read.allowed, *([0] if read.may_end else [])]
        values = row[kept] / 0.5
        row[kept] = values - np.logaddexp.reduce(values) + np.logaddexp.reduce(row[kept])
        return add(self, read, parent, row)

    monkeypatch.setattr(PrefixStore, "_add", warped)
    assert not fits(draw(), truth)


def test_filters_are_part_of_the_target() -> None:
    """Top-k over the whole vocabulary: the tail is impossible, and the rest is the target of the filtered model."""
    case = cf.ambiguous()
    # {a: 0.5, aa: 0.3} at every step: the end is filtered away.
    store = PrefixStore(case.target(params=SamplingParams(1.0, top_k=2)))
    store.expand_best_first(100)
    assert store.log_z_bounds[1] == -math.inf
    store = PrefixStore(cf.skewed(0.3).target(params=SamplingParams(1.0, top_p=0.6)))  # keeps "0" at every step
    run = Sampler(store, "exact", seed=0).draw(20)
    assert set(run.texts) == {"00000"} and run.rejected == 0 and run.z_bounds == (1, 1)


# --- budgets and reports ---
@pytest.mark.parametrize("method", METHODS)
def test_budgets_end_a_draw_and_say_so(method: Method) -> None:
    store = cf.fibonacci().store()
    run = Sampler(store, method, seed=0).draw(10_000, Budget(model_tokens=200))
    assert run.stopped_by == "model_tokens" and not run.complete and len(run.samples) < 10_000
    assert not any(sample.exact for sample in run.samples)
    run = Sampler(store, method, seed=0).draw(10**9, Budget(seconds=0.05))
    assert run.stopped_by == "seconds" and run.seconds < 5
    run = Sampler(store, method, seed=0, particles=10).draw(10**9, Budget(attempts=40))
    assert run.stopped_by == "attempts" and run.attempts == 40
    assert Sampler(store, method, seed=0).draw(0).complete


def test_draws_continue_and_reproduce() -> None:
    case = cf.dyck()
    one = Sampler(case.store(), "exact", seed=11, width=1)
    two = Sampler(case.store(), "exact", seed=11, width=1)
    assert one.draw(10).samples + one.draw(10).samples == two.draw(20).samples
    assert Sampler(case.store(), "exact", seed=12).draw(20).samples != two.draw(20).samples
    assert Sampler(case.store(), "exact").draw(3).complete


def test_warm_stores_ask_nothing() -> None:
    store = cf.skewed().store()
    store.expand_best_first(1000)
    run = Sampler(store, "exact", seed=0).draw(500)
    assert run.model_tokens == run.model_calls == run.rejected == 0 and run.hits == run.steps > 500
    assert run.tv_bound == 0 and run.z_bounds[0] == pytest.approx(run.z_bounds[1])


def test_log_probs_of_samples() -> None:
    case = cf.dyck()
    run = Sampler(case.store(), "weighted", seed=0).draw(50)
    for sample in run.samples:
        pairs = len(sample.text) // 2
        assert sample.log_prob == pytest.approx(pairs * math.log(0.35 * 0.45) + math.log(0.2))


def test_options_are_checked() -> None:
    store = cf.even().store()
    wrong: list[dict[str, Any]] = [{"width": 0}, {"particles": 0}, {"mh_steps": 0}]
    for options in wrong:
        with pytest.raises(OptionsError, match="at least 1"):
            Sampler(store, "exact", **options)
    with pytest.raises(OptionsError, match="expected one of exact"):
        Sampler(store, "greedy")  # type: ignore[arg-type]
    with pytest.raises(OptionsError, match="at least 0"):
        Sampler(store).draw(-1)


def test_the_table_names_every_method_once() -> None:
    assert METHODS == tuple(SPECIFICATIONS) == get_args(Method)
    for method, specification in SPECIFICATIONS.items():
        run = Sampler(cf.skewed().store(), method, seed=0).draw(20)
        assert all(sample.exact for sample in run.samples) == specification.exact
        assert any(sample.log_weight for sample in run.samples) == specification.weighted == bool(run.log_weights)
        assert math.isnan(run.ess) == (specification.samples == "approximate")


def test_the_width_of_a_published_method_is_its_own() -> None:
    one, other = (Sampler(cf.dyck().store(), "asap", seed=3, width=width).draw(20) for width in (None, 16))
    assert one.samples == other.samples
