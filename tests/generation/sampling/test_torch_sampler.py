"""``TorchSampler`` gives the tokens of the definition, row by row, whatever is in the batch."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

from structgen.errors import BitmaskError
from structgen.generation.sampling import SamplingParams
from structgen.generation.sampling.penalties import Adjustments
from structgen.generation.sampling.sampler import Choices, DrawRequest
from tests.generation.sampling.oracle import Row, bits, requests

torch = pytest.importorskip("torch")
from structgen.generation.sampling.torch_sampler import TorchSampler  # noqa: E402

VARIED = [
    SamplingParams(),
    SamplingParams(temperature=1.0),
    SamplingParams(temperature=0.7, top_k=5),
    SamplingParams(temperature=1.3, top_p=0.8),
    SamplingParams(temperature=1.0, top_k=20, top_p=0.9, min_p=0.05),
    SamplingParams(temperature=0.9, typical_p=0.6),
    SamplingParams(temperature=1.1, epsilon_cutoff=0.01),
    SamplingParams(temperature=1.1, eta_cutoff=0.02),
    SamplingParams(temperature=0.8, top_n_sigma=1.0),
    SamplingParams(temperature=1.2, top_h=0.5),
]


def case(rows: int, size: int, seed: int, *, share: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """Random logits float32 [rows, size] with ties, and a bitmask."""
    rng = np.random.default_rng(seed)
    logits = np.round(rng.normal(0, 3, (rows, size)), 1).astype(np.float32)
    allowed = rng.random((rows, size)) < share
    allowed[:, rng.integers(size)] = True
    return logits, bits(allowed)


def run(logits: np.ndarray, bitmask: np.ndarray, asked: list[DrawRequest], dtype=None, pad: int = 0) -> Choices:
    tensor = torch.full((len(logits), logits.shape[1] + pad), 6e4, dtype=dtype or torch.float32)
    tensor = tensor[:, : logits.shape[1]]
    tensor.copy_(torch.from_numpy(logits))
    before = tensor.clone()
    sampler = TorchSampler("cpu")
    drawn = sampler.draw(tensor, sampler.send(bitmask), asked, kept=True)
    assert torch.equal(torch.nan_to_num(tensor, 0.5), torch.nan_to_num(before, 0.5))
    return drawn


def check(logits: np.ndarray, bitmask: np.ndarray, asked: list[DrawRequest], drawn: Choices, within: float) -> None:
    assert drawn.log_kept is not None
    for place, request in enumerate(asked):
        row = Row(logits, bitmask, request)
        token = int(drawn.token_ids[place])
        assert row.accepts(token, within), (place, token, row.token())
        if not row.usable:
            continue
        at = int(np.searchsorted(row.allowed, token))
        assert np.isclose(drawn.log_probs[place], row.log_probs[at], rtol=1e-5, atol=1e-5)
        assert np.isclose(drawn.log_kept[place], row.log_kept, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("size", [1, 31, 33, 100, 1024, 2500])
def test_tokens_are_those_of_the_definition(size: int) -> None:
    logits, bitmask = case(40, size, size)
    asked = requests(40, VARIED)
    check(logits, bitmask, asked, run(logits, bitmask, asked, pad=size % 5), 1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_filters_in_all_orders(seed: int) -> None:
    rng = np.random.default_rng(seed)
    every = ["temperature", "top_k", "top_p", "min_p", "typical_p", "epsilon_cutoff", "eta_cutoff", "top_n_sigma"]
    orders = [tuple(rng.permutation([*every, "top_h"])) for _ in range(20)]
    few = [("temperature", *order) for order in permutations(("top_k", "top_p", "min_p"))]
    kinds = [
        SamplingParams(
            temperature=float(rng.uniform(0.5, 2)), top_k=30, top_p=0.95, min_p=0.01, typical_p=0.9,
            epsilon_cutoff=0.002, eta_cutoff=0.003, top_n_sigma=2.0, top_h=0.9, order=order,
        )
        for order in orders
    ] + [SamplingParams(temperature=1.0, top_k=9, top_p=0.7, min_p=0.1, order=order) for order in few]  # fmt: skip
    logits, bitmask = case(len(kinds), 200, seed)
    asked = requests(len(kinds), kinds)
    check(logits, bitmask, asked, run(logits, bitmask, asked), 1e-12)


def test_odd_rows() -> None:
    size, nan, inf = 70, np.nan, np.inf
    logits = np.tile(np.linspace(-2, 2, size, dtype=np.float32), (9, 1))
    allowed = np.ones((9, size), bool)
    allowed[1] = np.arange(size) == 69
    allowed[2] = False
    logits[3, 5] = nan
    logits[4, 5] = nan
    allowed[4, 5] = False
    logits[5, 5] = inf
    logits[6, 5] = inf
    allowed[6, 5] = False
    logits[7] = -inf
    logits[8, 3:] = -inf
    for params in (SamplingParams(), SamplingParams(temperature=0.5), SamplingParams(temperature=1.0, top_p=0.5)):
        asked = requests(9, [params])
        drawn = run(logits, bits(allowed), asked).token_ids
        assert drawn.tolist() == [Row(logits, bits(allowed), request).token() for request in asked]
        assert [row for row in range(9) if drawn[row] < 0] == [2, 3, 5, 7]


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float64"])
def test_other_precisions(name: str) -> None:
    logits, bitmask = case(30, 150, 3)
    dtype = getattr(torch, name)
    logits[0, :5], logits[1, 3] = 6e4, -6e4
    there = torch.from_numpy(logits).to(dtype).to(torch.float64 if name == "float64" else torch.float32).numpy()
    asked = requests(30, VARIED)
    check(there, bitmask, asked, run(there, bitmask, asked, dtype), 1e-12)


def test_bias_and_penalties() -> None:
    logits, bitmask = case(20, 150, 4)
    rng = np.random.default_rng(4)
    changes: list[Adjustments | None] = [None]
    for count in (1, 7, 150):
        ids = rng.permutation(150)[:count].astype(np.int64)
        bias, factor, minus = (rng.uniform(low, 2, count).astype(np.float32) for low in (-2, 0.5, 0))
        changes.append(Adjustments(ids, bias, factor, minus))
    asked = requests(20, VARIED[:3], changes)
    check(logits, bitmask, asked, run(logits, bitmask, asked), 1e-12)


def test_adjustments_of_rows_that_share_their_logits() -> None:
    logits, bitmask = case(1, 64, 5, share=1)
    change = Adjustments(np.array([3]), *(np.full(1, value, np.float32) for value in (50, 1, 0)))
    asked = [DrawRequest(SamplingParams(), 0, 0, 0, 0, each) for each in (None, change, None)]
    drawn = run(logits, bitmask, asked).token_ids
    assert drawn.tolist() == [logits[0].argmax(), 3, logits[0].argmax()]


def test_masks_narrower_and_wider_than_logits() -> None:
    logits, bitmask = case(12, 200, 6)
    for words in (1, 3):
        asked = requests(12, VARIED)
        narrow = np.ascontiguousarray(bitmask[:, :words] | 1)
        check(logits, narrow, asked, run(logits, narrow, asked), 1e-12)
    wide = np.pad(bitmask, ((0, 0), (0, 2)), constant_values=-1)
    asked = requests(12, VARIED)
    check(logits, wide, asked, run(logits, wide, asked), 1e-12)


def test_a_batch_is_its_rows() -> None:
    logits, bitmask = case(30, 300, 7)
    asked = requests(30, VARIED)
    together = run(logits, bitmask, asked)
    for place, request in enumerate(asked):
        alone = run(logits, bitmask, [request])
        assert alone.token_ids[0] == together.token_ids[place]
        assert np.isclose(alone.log_probs[0], together.log_probs[place], rtol=0, atol=1e-12)


def test_large_batches_are_drawn_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    logits, bitmask = case(30, 300, 8)
    asked = requests(30, VARIED)
    whole = run(logits, bitmask, asked)
    monkeypatch.setattr("structgen.generation.sampling.torch_sampler._MOST_ELEMENTS", 700)
    parts = run(logits, bitmask, asked)
    assert np.array_equal(whole.token_ids, parts.token_ids) and np.array_equal(whole.log_probs, parts.log_probs)


def test_devices_without_float64() -> None:
    logits, bitmask = case(40, 2500, 12)
    asked = requests(40, VARIED)
    sampler = TorchSampler("cpu")
    sampler._float = torch.float32  # as on MPS
    drawn = sampler.draw(torch.from_numpy(logits), sampler.send(bitmask), asked, kept=True)
    check(logits, bitmask, asked, drawn, 1e-4)


@pytest.mark.parametrize(("logits_row", "mask_row", "name"), [(3, 0, "logits"), (0, 3, "masks"), (-1, 0, "logits")])
def test_rows_out_of_range_are_named(logits_row: int, mask_row: int, name: str) -> None:
    logits, bitmask = case(3, 40, 9)
    with pytest.raises(BitmaskError, match=f"of {name} were asked for; there are 3"):
        run(logits, bitmask, [DrawRequest(SamplingParams(), 0, 0, logits_row, mask_row)])


def test_no_requests() -> None:
    logits, bitmask = case(1, 40, 9)
    assert run(logits, bitmask, []).token_ids.shape == (0,)


def test_samples_are_distributed_as_they_should() -> None:
    logits, bitmask = case(1, 40, 10)
    params = SamplingParams(temperature=1.5, top_p=0.95)
    count = 20_000
    asked = [DrawRequest(params, 99, place, 0, 0) for place in range(count)]
    drawn = run(logits, bitmask, asked).token_ids
    Row(logits, bitmask, asked[0]).check_distribution(drawn)


def test_wrong_logits_are_named() -> None:
    sampler = TorchSampler("cpu")
    masks = sampler.send(np.full((1, 1), -1, np.int32))
    wrong: Any
    for wrong in (torch.zeros(32), torch.zeros((1, 32), dtype=torch.int32), np.zeros((1, 32))):
        with pytest.raises(BitmaskError, match="floating torch tensor"):
            sampler.draw(wrong, masks, requests(1, VARIED))
    with pytest.raises(BitmaskError, match="int32"):
        sampler.send(np.zeros((1, 1), np.int64))
