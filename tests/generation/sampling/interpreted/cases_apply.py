"""Masks applied to logits by the Triton kernel: on a GPU, or in the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from structgen.core.engines.apply import apply_bitmask, free_blocked
from structgen.core.engines.apply.triton_here import triton_runs_on
from structgen.errors import BitmaskError
from tests.generation.sampling.oracle import bits

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def test_it_is_the_kernel_that_is_tested() -> None:
    assert triton_runs_on(DEVICE)


def case(rows: int, size: int, words: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Random logits and masks; some rows allow all, one or nothing, some have long runs of either."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 5, (rows, size)).astype(np.float32)
    allowed = rng.random((rows, 32 * words)) < rng.random((rows, 1))
    for row in range(rows):
        if row % 5 == 0:
            low, high = np.sort(rng.integers(0, 32 * words, 2))
            allowed[row, low:high] = bool(rng.integers(2))
        if row % 7 == 1:
            allowed[row] = True
        if row % 7 == 2:
            allowed[row] = False
        if row % 7 == 3:
            allowed[row] = np.arange(32 * words) == rng.integers(32 * words)
    return logits, allowed


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    ("size", "words", "pad"), [(1, 1, 0), (31, 1, 1), (100, 4, 28), (100, 2, 3), (4096, 128, 0), (9001, 282, 7)]
)
def test_forbidden_logits_are_minus_infinity(dtype: torch.dtype, size: int, words: int, pad: int) -> None:
    logits, allowed = case(12, size, words, size)
    logits[:, 0] = np.nan
    tensor = torch.zeros((12, size + pad), dtype=dtype, device=DEVICE)
    tensor[:, :size] = torch.from_numpy(logits).to(dtype)
    expected = tensor.clone()
    wide = np.pad(allowed, ((0, 0), (0, max(0, size - allowed.shape[1]))))[:, :size]
    expected[:, :size][torch.from_numpy(~wide).to(DEVICE)] = -torch.inf
    apply_bitmask(tensor[:, :size], bits(allowed))
    assert torch.equal(torch.nan_to_num(tensor, 7, neginf=9e3), torch.nan_to_num(expected, 7, neginf=9e3))


@pytest.mark.parametrize("kind", ["list", "tensor", "int32"])
@pytest.mark.parametrize("torch_mask", [False, True])
def test_rows_that_are_not_named_stay(kind: str, torch_mask: bool) -> None:
    logits, allowed = case(6, 200, 7, 3)
    tensor = torch.from_numpy(logits).to(DEVICE)
    mask = torch.from_numpy(bits(allowed)).to(DEVICE) if torch_mask else bits(allowed)
    rows: Any = {
        "list": [4, 0],
        "tensor": torch.tensor([4, 0], device=DEVICE),
        "int32": torch.tensor([4, 0], dtype=torch.int32),
    }[kind]
    apply_bitmask(tensor, mask, rows)
    expected = logits.copy()
    expected[[0, 4]] = np.where(allowed[[0, 4], :200], logits[[0, 4]], -np.inf)
    assert np.array_equal(tensor.cpu().numpy(), expected)


def test_one_row() -> None:
    logits = torch.zeros(40, device=DEVICE)
    apply_bitmask(logits, np.array([1, 128], np.int32))
    assert torch.isfinite(logits).nonzero().flatten().tolist() == [0, 39]


def test_what_does_not_fit_is_named() -> None:
    logits = torch.zeros((2, 40), device=DEVICE)
    good = np.zeros((2, 2), np.int32)
    for wrong in (good.astype(np.int64), good[None]):
        with pytest.raises(BitmaskError, match="wanted int32"):
            apply_bitmask(logits, wrong)
    with pytest.raises(BitmaskError, match="have no row"):
        apply_bitmask(logits, good[:1])
    with pytest.raises(BitmaskError, match="do not fit"):
        apply_bitmask(logits, good, [2])
    with pytest.raises(BitmaskError, match="do not fit"):
        apply_bitmask(logits, good, [-1])
    with pytest.raises(BitmaskError, match="adjacent columns"):
        apply_bitmask(logits.T, good)
    with pytest.raises(BitmaskError, match="floating"):
        apply_bitmask(logits.int(), good)
    apply_bitmask(logits, good, [])
    assert torch.isfinite(logits).all()


@pytest.mark.parametrize("size", [31, 100, 4096, 9001])
def test_rows_that_have_nothing_left_are_freed(size: int) -> None:
    """Rows that are all -inf, rows whose only score is in the last block, masks narrower than the logits."""
    logits, allowed = case(12, size, -(-size // 64) + 1, size)
    logits[:4] = -np.inf
    logits[4] = -np.inf
    logits[4, min(size, allowed.shape[1]) - 1] = 1.0
    tensor = torch.from_numpy(logits).to(DEVICE)
    apply_bitmask(tensor, bits(allowed))
    before = tensor.clone()
    live = free_blocked(tensor, bits(allowed)).bool()
    wide = torch.from_numpy(np.pad(allowed, ((0, 0), (0, max(0, size - allowed.shape[1]))))[:, :size]).to(DEVICE)
    assert torch.equal(live, ~torch.isneginf(before).all(dim=1))
    blocked = ~live[:, None] & wide
    assert torch.equal(tensor, torch.where(blocked, 0.0, before))
