"""Bitmasks: batches against single masks, logits against plain Boolean indexing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from structgen import (
    Vocabulary,
    allocate_token_bitmask,
    apply_token_bitmask_inplace,
    compile_json_schema,
    fill_next_token_bitmasks,
)

SIZE = 100  # 4 words, the last not full


def random_mask(rows: int, seed: int = 0) -> tuple[Any, Any]:
    """A bitmask and the same as bool[rows, 128]."""
    bits = np.random.default_rng(seed).random((rows, 128)) < 0.3
    return np.packbits(bits, axis=1, bitorder="little").view(np.int32), bits


@pytest.mark.parametrize(("size", "words"), [(1, 1), (31, 1), (32, 1), (33, 2), (200_019, 6251)])
def test_allocate(size: int, words: int) -> None:
    bitmask = allocate_token_bitmask(2, size)
    assert bitmask.shape == (2, words) and bitmask.dtype == np.int32 and (bitmask == -1).all()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("width", [97, 100, 128, 160])
@pytest.mark.parametrize("indices", [None, [2, 0], []])
def test_numpy_logits(dtype: Any, width: int, indices: list[int] | None) -> None:
    """Narrower than the mask's words, as wide, and wider (padding that the mask does not know: disallowed)."""
    bitmask, bits = random_mask(3)
    logits = np.random.default_rng(1).normal(size=(3, width)).astype(dtype)
    expected = logits.copy()
    for row in range(3) if indices is None else indices:
        for token in range(width):
            if token >= 128 or not bits[row, token]:
                expected[row, token] = -np.inf
    apply_token_bitmask_inplace(logits, bitmask, indices)
    assert np.array_equal(logits, expected)


def test_a_single_row() -> None:
    bitmask, bits = random_mask(1)
    logits = np.zeros(SIZE, np.float32)
    apply_token_bitmask_inplace(logits, bitmask[0])
    assert np.array_equal(np.isfinite(logits), bits[0, :SIZE])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("indices", [None, [1]])
def test_torch_logits(dtype: str, indices: list[int] | None) -> None:
    torch = pytest.importorskip("torch")
    bitmask, bits = random_mask(3)
    for width in (97, 160):
        logits = torch.randn(3, width, generator=torch.Generator().manual_seed(0)).to(getattr(torch, dtype))
        expected = logits.clone()
        for row in range(3) if indices is None else indices:
            allowed = np.pad(bits[row], (0, 32))[:width]
            expected[row, torch.from_numpy(~allowed)] = float("-inf")
        apply_token_bitmask_inplace(logits, bitmask, indices)
        assert torch.equal(logits, expected)


def test_a_batch_is_its_rows() -> None:
    """Enough rows for several threads; rows of None stay as they are."""
    vocabulary = Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=256)
    grammars = [compile_json_schema(s, vocabulary) for s in (True, {"enum": ["ab", "cd", 7]}, {"type": "integer"})]
    texts = [b"", b'{"a', b"[1,"], [b"", b'"a', b"7"], [b"", b"-", b"12"]
    matchers: list[Any] = []
    for i in range(300):
        matcher = grammars[i % 3].matcher()
        assert matcher.accept_bytes(texts[i % 3][i // 3 % 3])
        matchers.append(matcher if i % 7 else None)
    bitmask = allocate_token_bitmask(len(matchers), vocabulary.size)
    bitmask[::7] = 5
    fill_next_token_bitmasks(matchers, bitmask)
    single = allocate_token_bitmask(1, vocabulary.size)
    for row, each in enumerate(matchers):
        if each is None:
            assert (bitmask[row] == 5).all()
        else:
            each.fill_next_token_bitmask(single)
            assert np.array_equal(bitmask[row], single[0])


def test_one_dimension() -> None:
    vocabulary = Vocabulary([b"1", b"2", None], eos_token_ids=2)
    matcher = compile_json_schema({"const": 12}, vocabulary).matcher()
    row = allocate_token_bitmask(1, 3)[0]
    matcher.fill_next_token_bitmask(row)
    assert row.tolist() == [0b001]
