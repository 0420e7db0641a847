"""Tokens drawn by the Triton kernels, on a GPU or in the interpreter, against the definition and the torch path."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from structgen.generation.sampling import SamplingParams, filter_kernel
from structgen.generation.sampling.penalties import Adjustments
from structgen.generation.sampling.sampler import Choices, DrawRequest
from structgen.generation.sampling.torch_sampler import TorchSampler
from structgen.generation.sampling.triton_sampler import TritonSampler
from tests.generation.sampling.oracle import Row, bits, requests

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
PREFIXES = [
    SamplingParams(),
    SamplingParams(temperature=1.0),
    SamplingParams(temperature=0.7),
    SamplingParams(temperature=0.7, top_k=5),
    SamplingParams(temperature=1.3, top_p=0.8),
    SamplingParams(temperature=1.0, min_p=0.1),
    SamplingParams(temperature=1.0, top_k=20, top_p=0.9, min_p=0.05),
    SamplingParams(temperature=3.0, top_k=1),
    SamplingParams(temperature=2.0, top_k=10**6, top_p=0.9999),
]
CLOSE = 2e-6  # of a token's boundary: what float32 sums of a block may decide


def case(rows: int, size: int, seed: int, *, share: float = 0.5, ties: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Random logits float32 [rows, size], and a bitmask."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 3, (rows, size)).astype(np.float32)
    if ties:
        logits = np.round(logits, 1)
    allowed = rng.random((rows, size)) < share
    allowed[:, rng.integers(size)] = True
    return logits, bits(allowed)


def run(
    logits: np.ndarray, bitmask: np.ndarray, asked: list[DrawRequest], dtype: torch.dtype = torch.float32, pad: int = 0
) -> Choices:
    wide = torch.full((len(logits), logits.shape[1] + pad), 6e4, dtype=dtype, device=DEVICE)
    tensor = wide[:, : logits.shape[1]]
    tensor.copy_(torch.from_numpy(logits))
    before = wide.clone()
    sampler = TritonSampler(DEVICE)
    drawn = sampler.draw(tensor, sampler.send(bitmask), asked, kept=True)
    assert torch.equal(torch.nan_to_num(wide, 0.5), torch.nan_to_num(before, 0.5))
    return drawn


def check(
    logits: np.ndarray, bitmask: np.ndarray, asked: list[DrawRequest], drawn: Choices, within: float = CLOSE
) -> None:
    assert drawn.log_kept is not None
    for place, request in enumerate(asked):
        row = Row(logits, bitmask, request)
        token = int(drawn.token_ids[place])
        assert row.accepts(token, within), (place, request.params, token, row.token())
        if row.usable:
            at = int(np.searchsorted(row.allowed, token))
            assert np.isclose(drawn.log_probs[place], row.log_probs[at], rtol=1e-5, atol=1e-5)
            assert np.isclose(drawn.log_kept[place], row.log_kept, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("size", "share"), [(1, 1.0), (31, 0.6), (33, 0.02), (100, 0.6), (2049, 1.0), (5001, 0.3)])
def test_tokens_are_those_of_the_definition(size: int, share: float) -> None:
    logits, bitmask = case(9, size, size, share=share)
    asked = requests(9, PREFIXES)
    check(logits, bitmask, asked, run(logits, bitmask, asked, pad=size % 5))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(dtype: torch.dtype) -> None:
    logits, bitmask = case(9, 2100, 3)
    info = torch.finfo(dtype)
    logits[0, 7], logits[1, 9], logits[2, :50] = info.max, info.min, info.tiny
    logits[3], logits[4, ::2] = info.min, -np.inf
    there = torch.from_numpy(logits).to(dtype).float().numpy()
    asked = requests(9, PREFIXES)
    check(there, bitmask, asked, run(there, bitmask, asked, dtype))


def test_odd_rows() -> None:
    size, nan, inf = 70, np.nan, np.inf
    logits = np.tile(np.linspace(-2, 2, size, dtype=np.float32), (10, 1))
    allowed = np.ones((10, size), bool)
    allowed[1] = np.arange(size) == 69
    allowed[2] = False
    logits[3, 5] = logits[4, 5] = nan
    logits[5, 5] = logits[6, 5] = inf
    allowed[4, 5] = allowed[6, 5] = False
    logits[7] = -inf
    logits[8, 3:] = -inf
    logits[9] = np.finfo(np.float32).min
    for params in (*PREFIXES[:2], PREFIXES[6]):
        asked = requests(10, [params])
        drawn = run(logits, bits(allowed), asked)
        assert drawn.token_ids.tolist() == [Row(logits, bits(allowed), request).token() for request in asked]
        assert [row for row in range(10) if drawn.token_ids[row] < 0] == [2, 3, 5, 7]
        assert drawn.log_kept is not None and drawn.log_kept[[2, 6]].tolist() == [-inf, -inf]
        assert np.isnan(drawn.log_kept[[3, 4]]).all()


def test_candidates_and_passes_over_the_row_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments for few candidates force the passes."""
    logits, bitmask = case(7, 2500, 11)
    asked = requests(7, [params for params in PREFIXES if keeps(params)])
    by_candidates = run(logits, bitmask, asked)
    monkeypatch.setattr(filter_kernel, "SEGMENT", 1)
    by_passes = run(logits, bitmask, asked)
    check(logits, bitmask, asked, by_passes)
    assert by_candidates.token_ids.tolist() == by_passes.token_ids.tolist()
    assert by_candidates.log_probs.tolist() == by_passes.log_probs.tolist()


def keeps(params: SamplingParams) -> bool:
    return "top_k" in params.steps or "top_p" in params.steps


@pytest.mark.parametrize("seed", range(4))
def test_filters_cut_where_the_definition_does(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kinds = [
        SamplingParams(
            temperature=float(rng.choice([0.3, 1.0, 2.5, 1e3])),
            top_k=None if rng.random() < 0.3 else int(rng.integers(1, 300)),
            top_p=1.0 if rng.random() < 0.3 else float(rng.uniform(0.01, 1)),
            min_p=0.0 if rng.random() < 0.6 else float(rng.uniform(0, 0.5)),
        )
        for _ in range(12)
    ]
    logits, bitmask = case(12, 2500, seed, share=0.3, ties=bool(seed % 2))
    asked = requests(12, kinds)
    check(logits, bitmask, asked, run(logits, bitmask, asked), 1e-5)


def test_logits_of_all_sizes() -> None:
    """Thresholds among values that differ by a bit, and by forty orders of magnitude."""
    rng = np.random.default_rng(0)
    logits = (rng.choice([-1, 1], (9, 300)) * 10.0 ** rng.uniform(-42, 38, (9, 300))).astype(np.float32)
    logits[3] = 1 + rng.integers(0, 5, 300) * np.float32(2**-23)
    logits[4] = rng.choice([0.0, -0.0, 1e-3, -1e-3], 300)
    bitmask = bits(np.ones((9, 300), bool))
    for temperature in (1e-3, 1.0, 1e4):
        params = SamplingParams(temperature=temperature, top_k=40, top_p=0.7)
        asked = requests(9, [params])
        check(logits, bitmask, asked, run(logits, bitmask, asked), 1e-4)


def test_extreme_temperatures() -> None:
    logits, bitmask = case(6, 200, 2)
    logits[:, 3] = -np.inf
    for temperature in (1e-300, 1e-40, 1e-5, 1e5, 1e40, 1e300):
        kinds = [SamplingParams(temperature=temperature)]
        if temperature < 1e6:  # beyond, the definition's float64 takes what differs for equal
            kinds.append(SamplingParams(temperature=temperature, top_k=7))
        asked = requests(6, kinds)
        check(logits, bitmask, asked, run(logits, bitmask, asked), 1e-5)


def test_bias_and_penalties() -> None:
    logits, bitmask = case(9, 2500, 4)
    rng = np.random.default_rng(4)
    changes: list[Adjustments | None] = [None]
    for count in (7, 900):
        ids = rng.permutation(2500)[:count].astype(np.int64)
        bias, factor, minus = (rng.uniform(low, 2, count).astype(np.float32) for low in (-2, 0.5, 0))
        changes.append(Adjustments(ids, bias, factor, minus))
    asked = requests(9, PREFIXES, changes)
    check(logits, bitmask, asked, run(logits, bitmask, asked))


def test_adjustments_of_rows_that_share_their_logits() -> None:
    logits, bitmask = case(1, 64, 5, share=1)
    change = Adjustments(np.array([3, 99]), *(np.full(2, value, np.float32) for value in (50, 1, 0)))
    asked = [DrawRequest(SamplingParams(), 0, 0, 0, 0, each) for each in (None, change, None)]
    sampler = TritonSampler(DEVICE)
    drawn = sampler.draw(torch.from_numpy(logits).to(DEVICE), sampler.send(bitmask), asked).token_ids
    assert drawn.tolist() == [logits[0].argmax(), 3, logits[0].argmax()]


def test_masks_narrower_and_wider_than_logits() -> None:
    logits, bitmask = case(9, 200, 6)
    asked = requests(9, PREFIXES)
    for mask in (bitmask[:, :1] | 1, bitmask[:, :3] | 1, np.pad(bitmask, ((0, 0), (0, 80)), constant_values=-1)):
        check(logits, np.ascontiguousarray(mask), asked, run(logits, np.ascontiguousarray(mask), asked))


def test_a_batch_is_its_rows_bit_for_bit() -> None:
    logits, bitmask = case(9, 2500, 7)
    asked = requests(9, PREFIXES)
    together = run(logits, bitmask, asked)
    assert together.log_kept is not None
    for place, request in enumerate(asked):
        alone = run(logits, bitmask, [request])
        assert alone.log_kept is not None
        found = (alone.token_ids[0], alone.log_probs[0], alone.log_kept[0])
        assert found == (together.token_ids[place], together.log_probs[place], together.log_kept[place])


def test_the_torch_path_draws_the_same() -> None:
    """Where no random number is within rounding of a boundary: which the definition tells."""
    logits, bitmask = case(20, 2500, 8, ties=False)
    asked = requests(20, [*PREFIXES[:3], SamplingParams(temperature=1.0, typical_p=0.5)])
    sampler = TorchSampler(DEVICE)
    by_torch = sampler.draw(torch.from_numpy(logits).to(DEVICE), sampler.send(bitmask), asked, kept=True)
    by_kernels = run(logits, bitmask, asked)
    for place, request in enumerate(asked):
        row = Row(logits, bitmask, request)
        gap = np.abs(np.cumsum(row.probs) - row.uniform).min()
        assert by_torch.token_ids[place] == by_kernels.token_ids[place] or gap < CLOSE
    assert np.allclose(by_torch.log_probs, by_kernels.log_probs, atol=1e-5)


def test_without_log_kept() -> None:
    """Blocks that the mask closes are then not read: what is there does not matter."""
    logits, _ = case(3, 9000, 9)
    allowed = np.zeros((3, 9000), bool)
    allowed[:, 5000:5010] = True
    logits[:, :2048] = np.nan
    asked = requests(3, PREFIXES[:3])
    sampler = TritonSampler(DEVICE)
    drawn = sampler.draw(torch.from_numpy(logits).to(DEVICE), sampler.send(bits(allowed)), asked)
    assert drawn.log_kept is None
    assert drawn.token_ids.tolist() == [Row(logits, bits(allowed), request).token() for request in asked]


def test_samples_are_distributed_as_they_should() -> None:
    logits, bitmask = case(1, 40, 10, share=0.2)
    params, count = SamplingParams(temperature=3.0), 200 if DEVICE == "cpu" else 20_000
    asked = [DrawRequest(params, 99, place, 0, 0) for place in range(count)]
    sampler = TritonSampler(DEVICE)
    drawn = sampler.draw(torch.from_numpy(logits).to(DEVICE), sampler.send(bitmask), asked).token_ids
    Row(logits, bitmask, asked[0]).check_distribution(drawn)
