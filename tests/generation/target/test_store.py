"""The trie against closed forms, analytically: what a walk would draw, bounds, the certificate, eviction, files."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from structgen.errors import GenerationError, OptionsError, UnsatisfiableTargetError
from structgen.generation.sampling import SamplingParams
from structgen.generation.target.samplers import Sampler
from structgen.generation.target.store import PrefixStore
from structgen.generation.target.target import Target, text_log_prob
from tests.generation.target import closed_forms as cf
from tests.generation.target.closed_forms import Case

IDS = [f"{case.name}-{index}" for index, case in enumerate(cf.CASES)]
EPS = 1e-9


@pytest.mark.parametrize("case", cf.CASES, ids=IDS)
def test_bounds_hold_and_tighten(case: Case) -> None:
    """low <= Z <= high at every size of the trie; both move one way."""
    store = case.store()
    before = (0.0, 1.0)
    for _ in range(40):
        store.expand_best_first(1)
        low, high = map(math.exp, store.log_z_bounds)
        assert before[0] <= low <= case.z + EPS
        assert case.z - EPS <= high <= before[1]
        before = low, high
    if case.name in ("ambiguous", "dead end"):  # small enough to be known whole
        assert low == pytest.approx(case.z) == high and store.tv_bound < EPS


@pytest.mark.parametrize("case", cf.CASES, ids=IDS)
@pytest.mark.parametrize("size", [1, 4, 17])
def test_what_a_walk_draws_sums_to_one_and_is_within_the_certificate(case: Case, size: int) -> None:
    if case.name == "dead end":
        pytest.skip("a walk may get stuck")
    store = case.store()
    store.expand_best_first(size)
    ids = cf.sequences(case, 300)
    drawn = [cf.induced(store, case, tokens) for tokens in ids]
    truth = [case.truth.get(cf.spelling(store, tokens, case), 0.0) for tokens in ids]
    distance = 0.5 * sum(abs(p - q) for p, q in zip(drawn, truth, strict=True))
    assert distance <= store.tv_bound + EPS
    if len(ids) < 300 and len(case.truth) == len(ids):
        assert sum(drawn) == pytest.approx(1) == sum(truth)


def test_closed_form_values() -> None:
    """The figures of the cases, and plain masking's own distribution (a trie that knows nothing)."""
    store = cf.skewed().store()
    assert cf.skewed().truth["00000"] == pytest.approx(1 / 17)
    assert cf.induced(store, cf.skewed(), [1] * 5) == pytest.approx(1 / 2)
    store = cf.ambiguous().store()
    assert cf.ambiguous().truth["aa|aa"] == pytest.approx(0.2384, abs=1e-4)
    assert cf.induced(store, cf.ambiguous(), [2, 2]) == pytest.approx(0.1406, abs=1e-4)
    assert cf.ambiguous().z == pytest.approx(0.0755) and cf.dyck().z == pytest.approx(0.248713, abs=1e-6)
    assert len(cf.fibonacci().truth) == 144
    for case, expected in [(cf.fibonacci(), 0.204723), (cf.even(), 0.1744)]:
        store, kl = case.store(), 0.0
        for tokens in cf.sequences(case, 200):
            p = case.truth.get(cf.spelling(store, tokens, case), 0.0)
            kl += p * math.log(p / cf.induced(store, case, tokens)) if p else 0.0
        assert kl == pytest.approx(expected, abs=2e-4)


def test_bounds_of_inner_nodes() -> None:
    """Case 3: the mass behind a prefix of depth 1 is e C (b C); case 4: F(r + 2) / 2^r."""
    store = cf.dyck().store()
    store.expand_best_first(400)
    depth_one = cf._child(store, 0, 1)
    assert math.exp(store.nodes["high"][depth_one]) >= 0.139181 >= math.exp(store.nodes["low"][depth_one])
    store = cf.fibonacci().store()
    store.expand_best_first(10_000)
    numbers = [1, 1]
    while len(numbers) < 15:
        numbers.append(numbers[-1] + numbers[-2])
    for node in range(store.node_count):
        tokens = store.prefix_of(node)
        if not tokens or tokens[-1] == 1:
            rest = 10 - len(tokens)
            for bound in ("low", "high"):
                assert math.exp(store.nodes[bound][node]) == pytest.approx(numbers[rest + 1] / 2**rest)


def test_dead_ends_and_nothing_at_all() -> None:
    """Case 6: "a" is never written; without "b" there is nothing to write."""
    case = cf.dead_end()
    run = Sampler(case.store(), "exact", seed=0).draw(50)
    assert set(run.texts) == {"b"} and run.z_bounds == pytest.approx((case.z, case.z))
    empty = cf.dead_end([b"a"], ["az"])
    for method in ("exact", "weighted", "local", "smc"):
        store = empty.store()
        with pytest.raises(UnsatisfiableTargetError, match="max_tokens"):
            Sampler(store, method, seed=0).draw(1)
        assert store.log_z_bounds == (-math.inf, -math.inf) and store.tv_bound == 0


def test_max_tokens_is_a_condition() -> None:
    """Even lengths up to 4: three texts, and Z is their sum. No prefix that cannot end in time is asked about."""
    case = cf.even(0.5)
    target = case.target(max_tokens=5)
    store = PrefixStore(target)
    store.expand_best_first(100)
    z = 0.5 * (1 + 0.25 + 0.0625)
    assert [math.exp(bound) for bound in store.log_z_bounds] == pytest.approx([z, z])
    assert max(map(len, target.model.reads)) == 4


def test_eviction_never_raises_a_bound() -> None:
    case = cf.fibonacci()
    whole = case.store()
    small = case.store(memory=16 * 100)
    for _ in range(30):
        whole.expand_best_first(10)
    sampler = Sampler(small, "exact", seed=3, width=4)
    highest = 1.0
    for _ in range(60):
        sampler.draw(5)
        low, high = map(math.exp, small.log_z_bounds)
        assert low <= case.z + EPS and case.z - EPS <= high <= highest
        highest = high
    assert (small.nodes["start"][: small.node_count] < 0).any()
    assert small.edge_count * 16 <= 16 * 100 + 16 * 3
    assert highest < 0.3


def test_eviction_keeps_the_distribution() -> None:
    case = cf.skewed(0.3)
    store = case.store(memory=16 * 12)
    sampler = Sampler(store, "exact", seed=5, width=3)
    texts = [text for _ in range(60) for text in sampler.draw(20).texts]
    counts = {text: float(texts.count(text)) for text in set(texts)}
    assert cf.g_statistic(counts, case.truth) < cf.null_quantile(case.truth, len(texts))


def test_save_and_load(tmp_path: Path) -> None:
    case = cf.dyck()
    store = case.store()
    Sampler(store, "weighted", seed=0).draw(50)
    store.save(tmp_path / "store.npz")
    loaded = PrefixStore.load(tmp_path / "store.npz", case.target())
    assert loaded.log_z_bounds == store.log_z_bounds and loaded.node_count == store.node_count
    one = Sampler(store, "exact", seed=9, width=1).draw(200).samples
    assert Sampler(loaded, "exact", seed=9, width=1).draw(200).samples == one
    with pytest.raises(GenerationError, match="another target"):
        PrefixStore.load(tmp_path / "store.npz", case.target(params=SamplingParams(0.5)))
    (tmp_path / "no.npz").write_bytes(b"x")
    with pytest.raises(GenerationError, match="no prefix store"):
        PrefixStore.load(tmp_path / "no.npz", case.target())
    with pytest.raises(GenerationError, match="model_id"):
        PrefixStore(case.target(model_id=None)).save(tmp_path / "x.npz")


def test_a_stored_trie_that_leads_out_of_itself_is_refused(tmp_path: Path) -> None:
    case = cf.dyck()
    store, path = case.store(), tmp_path / "store.npz"
    Sampler(store, "weighted", seed=0).draw(50)
    store.save(path)
    with np.load(path) as data:
        good = dict(data)
    count, edges = len(good["nodes"]), len(good["edges"])
    assert count > 3
    wrong: list[tuple[str, str, list[float]]] = [
        ("nodes", "parent", [count, -2, 1 << 30]), ("nodes", "child", [count, -2]), ("nodes", "sibling", [count, -2]),
        ("nodes", "start", [edges, 1 << 60, -2]), ("nodes", "count", [-1, edges + 1, 1 << 30]),
        ("nodes", "token", [1 << 20, -2]), ("edges", "token", [1 << 20, -2]), ("edges", "child", [count, -99]),
        ("nodes", "high", [math.nan]), ("edges", "logp", [math.nan]),
    ]  # fmt: skip
    for array, name, values in wrong:
        for value in values:
            changed = good[array].copy()
            changed[name][1] = value
            np.savez(path, **{**good, array: changed})
            with pytest.raises(GenerationError, match="is damaged"):
                PrefixStore.load(path, case.target())
    round_for_ever = good["nodes"].copy()
    round_for_ever["parent"][1] = 1
    np.savez(path, **{**good, "nodes": round_for_ever})
    with pytest.raises(GenerationError, match="is damaged"):
        PrefixStore.load(path, case.target())
    np.savez(path, **good)
    assert PrefixStore.load(path, case.target()).node_count == count


def test_guesses_change_calls_not_bounds() -> None:
    """A store whose drafts are always right reads whole texts in one call; wrong drafts do no harm."""
    case = cf.fibonacci()
    guided = case.store(draft=lambda prefix: [1] * (10 - len(prefix)))
    guided.expand([(-1, -1)])
    assert guided.reader.calls == 1 and guided.node_count == 11
    wrong = case.store(draft=lambda prefix: [2, 2, 2])
    for store in (guided, wrong):
        store.expand_best_first(10_000)
        assert math.exp(store.log_z_bounds[1]) == pytest.approx(case.z)
        assert math.exp(store.log_z_bounds[0]) == pytest.approx(case.z)


def test_a_target_is_a_value() -> None:
    case = cf.even()
    assert case.target() == case.target() and hash(case.target()) == hash(case.target())
    changed = [SamplingParams(0.9), SamplingParams(1.0, top_k=1), SamplingParams(1.0, top_p=0.5)]
    different = [*(case.target(params=params) for params in changed), case.target(max_tokens=9)]
    assert len({case.target(), *different}) == 5
    assert case.target(params=SamplingParams(1, seed=7)) == case.target()  # a distribution has no seed
    for options in ({"params": SamplingParams(0.0)}, {"max_tokens": 0}):
        with pytest.raises(OptionsError):
            case.target(**options)
    with pytest.raises(ValueError, match="prompt"):
        Target(None, [], None, case.target().vocabulary)


def test_several_ids_of_end_of_sequence_count_as_one() -> None:
    row = np.log([0.1, 0.2, 0.3, 0.4])
    assert text_log_prob(row, (0, 2)) == pytest.approx(math.log(0.4))
