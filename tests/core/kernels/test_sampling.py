"""The sampling kernel against numpy: draws, sums, what is gathered, -inf over what is forbidden, narrow masks."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from structgen.core.engines.logits import host_logits
from structgen.core.kernels.sampling import calls
from structgen.core.kernels.sampling.layout import (
    B_SIZE,
    BAD,
    F_HIGHEST,
    F_KEPT,
    F_LOG_PROB,
    F_SUM,
    F_TOTAL,
    FEW,
    FOUND,
)

WIDTHS = [1, 5, 31, 32, 33, 1000, 1024, 1025, 2047, 5001]
DTYPES = ["float32", "float16", "bfloat16", "float64"]


class Case:
    """Random rows and masks, and what the kernel made of them."""

    def __init__(
        self, dtype: str, width: int, density: float, scale: float, *, rows: int = 3, mask_width: int = 0
    ) -> None:
        torch = pytest.importorskip("torch")
        rng = np.random.default_rng([width, int(100 * density)])
        self.logits = torch.from_numpy(rng.normal(size=(rows, width)) * 3).to(getattr(torch, dtype))
        self.values: npt.NDArray[np.float64] = self.logits.float().double().numpy()
        words = -(-(mask_width or width) // 32)
        bits = rng.random((rows, 32 * words)) < density
        bits[:, mask_width or width :] = False
        self.bitmask = np.packbits(bits, axis=1, bitorder="little").view(np.int32)
        self.bits = np.pad(bits, ((0, 0), (0, max(0, width - 32 * words))))[:, :width]
        self.uniforms, self.scale = rng.random(rows), scale
        self.found = host_logits(self.logits)
        self.rows = self.found.address + self.found.stride * np.arange(rows)
        self.masks = self.bitmask.ctypes.data + 4 * words * np.arange(rows)
        self.shape = {"columns": width, "words": words, "kind": self.found.kind}

    def draw(self) -> tuple[Any, Any, Any]:
        rows = len(self.rows)
        tokens, found = np.zeros(rows, np.int64), np.full((rows, FOUND), np.nan)
        blocks = np.full((rows, B_SIZE * calls.blocks_of(self.bitmask.shape[1])), np.nan)
        scales = np.full(rows, self.scale)
        calls.draw(self.rows, self.masks, scales, self.uniforms, tokens, found, blocks, kept=True, **self.shape)
        return tokens, found, blocks


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", WIDTHS)
def test_draws(dtype: str, width: int) -> None:
    for density in (0.02, 0.5, 1.0):
        for scale in (0.0, 1.0, 0.6):
            case = Case(dtype, width, density, scale)
            tokens, found, _ = case.draw()
            for r in range(3):
                x = np.where(case.bits[r], case.values[r], -np.inf)
                if not case.bits[r].any():
                    assert tokens[r] == BAD
                    continue
                weights = np.where(case.bits[r], np.exp((case.values[r] - x.max()) * scale), 0.0)
                edges = np.cumsum(weights)
                drawn = int(np.searchsorted(edges, case.uniforms[r] * edges[-1], side="right"))
                assert tokens[r] == (drawn if scale else x.argmax())
                total = np.logaddexp.reduce(x)
                assert found[r, F_HIGHEST] == pytest.approx(x.max())
                assert found[r, F_TOTAL] == pytest.approx(total, abs=2e-6)
                assert found[r, F_LOG_PROB] == pytest.approx(x[tokens[r]] - total, abs=2e-6)
                assert found[r, F_KEPT] == pytest.approx(total - np.logaddexp.reduce(case.values[r]), abs=4e-6)
                if scale:
                    assert found[r, F_SUM] == pytest.approx(edges[-1], rel=2e-6)


@pytest.mark.parametrize("width", WIDTHS)
def test_what_is_gathered_is_in_order(width: int) -> None:
    """Falling logits, of equals rising tokens; negative numbers and zeros of both signs."""
    case = Case("bfloat16", width, 0.7, 1.0, rows=1)
    case.logits[0, ::5] = 0.0
    case.logits[0, 3::5] = -0.0
    case.values[:] = case.logits.double().numpy()
    _, _, blocks = case.draw()
    for least in (-np.inf, -1.0, 0.0, 2.0):
        keys = np.sort(calls.gather(int(case.rows[0]), int(case.masks[0]), blocks, least, **case.shape))[::-1]
        logits, tokens = calls.logits_of(keys)
        allowed = np.flatnonzero(case.bits[0] & (case.values[0] >= least))
        expected = allowed[np.argsort(-case.values[0][allowed], kind="stable")]
        assert tokens.tolist() == expected.tolist()
        assert logits.tolist() == case.values[0][expected].tolist()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("mask_width", [7, 64, 2000])
def test_forbidden_tokens(dtype: str, width: int, mask_width: int) -> None:
    """Masks narrower and wider than the logits; what is allowed keeps its bits, in place and in a copy."""
    for density in (0.5, 0.97):
        case = Case(dtype, width, density, 1.0, mask_width=mask_width)
        _with_runs(case)
        case.logits[1, case.bits[1]] = -np.inf
        given = case.logits.clone()
        expected = np.where(case.bits, case.logits.double().numpy(), -np.inf)
        target = given.new_full(given.shape, 7.0)
        found = host_logits(target)
        empty = calls.apply(case.rows, case.masks, found.address + found.stride * np.arange(3), **case.shape)
        assert np.array_equal(target.double().numpy(), expected) and torch_equal(case.logits, given)
        assert empty == np.isneginf(expected).all(axis=1).tolist()
        for few in (4, 0):
            case.logits.copy_(given)
            assert calls.apply(case.rows, case.masks, case.rows, **case.shape, few=few) == empty
            assert np.array_equal(case.logits.double().numpy(), expected)


def torch_equal(one: Any, other: Any) -> bool:
    return bool((one == other).all())


def _with_runs(case: Case) -> None:
    """Words that allow all, and words that allow nothing, side by side in the masks."""
    words = case.bitmask.shape[1]
    for value, start in ((0, 1), (-1, 4), (0, 9), (-1, 11)):
        case.bitmask[:, start : min(start + 3, words)] = value
    bits = np.unpackbits(case.bitmask.view(np.uint8), axis=1, bitorder="little").astype(bool)
    width = case.logits.shape[1]
    case.bits = np.pad(bits, ((0, 0), (0, max(0, width - 32 * words))))[:, :width]


def test_narrow_masks() -> None:
    out = np.zeros(4, np.int64)
    for ids in ([], [0], [31], [32], [5, 40], [63, 64, 70, 95], [1, 2, 3, 4, 5]):
        bits = np.zeros(96, np.bool_)
        bits[ids] = True
        row = np.packbits(bits, bitorder="little").view(np.int32)
        count = calls.run(row.ctypes.data, FEW, 3, 4, out.ctypes.data)
        assert count == min(len(ids), 5) and (count > 4 or out[:count].tolist() == ids)
