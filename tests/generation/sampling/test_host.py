"""The sampler of the processor against the definition; batches against single rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from structgen.errors import BitmaskError
from structgen.generation.sampling import DrawRequest, SamplingParams
from structgen.generation.sampling.host import HostSampler
from tests.generation.sampling.oracle import NEAR, PARAMS, Row, params, random_bitmask, some_adjustments

SAMPLER = HostSampler()
WIDTHS = [1, 2, 31, 32, 33, 500, 1024, 1025, 3000]


def requests_for(name: str, rows: int, rng: np.random.Generator | None = None, size: int = 0) -> list[DrawRequest]:
    """One a row, of other seeds and positions; with ``rng`` some have adjustments."""
    return [
        DrawRequest(
            params(name, 1), 7 * row, row % 5, row, row,
            some_adjustments(rng, size, 7) if rng is not None and row % 2 else None,
        )
        for row in range(rows)
    ]  # fmt: skip


def check(logits: Any, values: Any, bitmask: Any, requests: list[DrawRequest], tolerance: float = 2e-6) -> None:
    """``values``: the logits as numpy."""
    before = values.copy()
    choices = SAMPLER.draw(logits, SAMPLER.send(bitmask), requests, kept=True)
    assert choices.log_kept is not None
    for number, request in enumerate(requests):
        row, token = Row(values, bitmask, request), int(choices.token_ids[number])
        assert row.accepts(token, NEAR)
        assert choices.log_probs[number] == pytest.approx(row.log_prob(token), abs=tolerance)
        assert choices.log_kept[number] == pytest.approx(row.log_kept, abs=5e-6)
    assert np.array_equal(values, before)


@pytest.mark.first_case
@pytest.mark.parametrize("name", PARAMS)
@pytest.mark.parametrize("width", WIDTHS)
def test_draws_as_the_definition_says(name: str, width: int) -> None:
    rng = np.random.default_rng(width)
    for density in (0.0, 0.1, 1.0):
        logits = (rng.normal(size=(6, width)) * 3).astype(np.float32)
        bitmask = random_bitmask(rng, 6, width, density)
        check(logits, logits, bitmask, requests_for(name, 6))


@pytest.mark.parametrize("filters", [{}, {"epsilon_cutoff": 0.9}, {"eta_cutoff": 0.9}, {"top_p": 0.5}], ids=str)
def test_temperatures_that_float32_has_no_inverse_of(filters: dict[str, Any]) -> None:
    """All that is allowed is then as likely; 1e300 had its last token drawn always, or none."""
    logits, bitmask = np.array([[3.0, -2.0, 9.0, 0.0]], np.float32), np.array([[0b1011]], np.int32)
    requests = [DrawRequest(SamplingParams(1e300, **filters), seed, 0, 0, 0) for seed in range(40)]
    drawn = set(SAMPLER.draw(logits, bitmask, requests).token_ids.tolist())
    assert drawn <= {0, 1, 3} and len(drawn) == (2 if "top_p" in filters else 3)


@pytest.mark.parametrize("name", ["greedy", "plain", "all three", "much"])
def test_bias_and_penalties(name: str) -> None:
    rng = np.random.default_rng(3)
    logits = (rng.normal(size=(6, 777)) * 2).astype(np.float32)
    check(logits, logits, random_bitmask(rng, 6, 777, 0.4), requests_for(name, 6, rng, 777))


@pytest.mark.parametrize("width", [3, 60, 1500])
def test_filters_together(width: int) -> None:
    """Random strengths of top_k, top_p and min_p, over flat and steep rows, with few and many allowed."""
    rng = np.random.default_rng(width)
    for round_ in range(150):
        given: dict[str, Any] = {"temperature": float(rng.choice([0.1, 0.7, 1.0, 4.0]))}
        if rng.random() < 0.7:
            given["top_k"] = int(rng.integers(1, 2 * width))
        if rng.random() < 0.7:
            given["top_p"] = float(rng.choice([0.05, 0.5, 0.9, 0.999, 1 - 1e-9]))
        if rng.random() < 0.7:
            given["min_p"] = float(rng.choice([1e-12, 1e-4, 0.05, 0.5, 1.0]))
        logits = (rng.normal(size=(4, width)) * rng.choice([0.01, 1, 5, 40])).astype(np.float32)
        bitmask = random_bitmask(rng, 4, width, float(rng.choice([0.02, 0.5, 1.0])))
        one = SamplingParams(**given)
        check(logits, logits, bitmask, [DrawRequest(one, round_, row, row, row) for row in range(4)], 2e-5)


@pytest.mark.parametrize("dtype", ["float16", "float64", "bfloat16", "float32"])
@pytest.mark.parametrize("name", ["greedy", "plain", "top_p"])
def test_kinds_of_logits(dtype: str, name: str) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(5)
    for width in (33, 2000):
        values = torch.from_numpy(rng.normal(size=(4, width)) * 3).to(getattr(torch, dtype))
        host = values.float().numpy()
        bitmask = random_bitmask(rng, 4, width, 0.5)
        check(values, host, bitmask, requests_for(name, 4), 1e-5)
        if dtype != "bfloat16":
            check(values.numpy(), host, bitmask, requests_for(name, 4), 1e-5)


def test_half_precision_extremes() -> None:
    """Subnormals, the largest numbers, zeros of both signs, -inf."""
    torch = pytest.importorskip("torch")
    every = torch.arange(2**16, dtype=torch.int32).to(torch.int16)
    for dtype in (torch.float16, torch.bfloat16):
        values = every.view(dtype)
        values = values[~values.isnan() & (values != float("inf"))]
        for token in (0, 1, 17, 1023, 5000, len(values) - 1):
            bitmask = np.zeros((1, -(-len(values) // 32)), np.int32)
            bitmask[0, token // 32] = np.int32(np.uint32(1 << token % 32).view(np.int32))
            choices = SAMPLER.draw(values[None], bitmask, requests_for("greedy", 1), kept=False)
            is_something = bool(values[token].isfinite())
            assert choices.token_ids[0] == (token if is_something else -1)
        top = SAMPLER.draw(values[None], np.full((1, -(-len(values) // 32)), -1, np.int32), requests_for("greedy", 1))
        assert values[int(top.token_ids[0])] == torch.finfo(dtype).max


@pytest.mark.parametrize("bad", [np.nan, -np.nan, np.inf])
@pytest.mark.parametrize("name", ["greedy", "plain", "top_p", "typical"])
def test_what_is_no_number_is_no_token(bad: float, name: str) -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(3, 100)).astype(np.float32)
    logits[1, 50] = bad
    bitmask = np.full((3, 4), -1, np.int32)
    bitmask[:, 3] = 15
    tokens = SAMPLER.draw(logits, bitmask, requests_for(name, 3)).token_ids
    assert tokens[1] == -1 and tokens[0] >= 0 and tokens[2] >= 0
    bitmask[1, 1] = 0  # the bad one is not allowed
    assert SAMPLER.draw(logits, bitmask, requests_for(name, 3)).token_ids[1] >= 0


def test_rows_that_allow_nothing_or_only_minus_infinity() -> None:
    logits = np.full((2, 64), -np.inf, np.float32)
    bitmask = np.array([[0, 0], [-1, -1]], np.int32)
    assert SAMPLER.draw(logits, bitmask, requests_for("plain", 2)).token_ids.tolist() == [-1, -1]


@pytest.mark.first_case
@pytest.mark.parametrize("name", PARAMS)
def test_a_batch_is_its_rows(name: str) -> None:
    """Enough rows for several threads; logits and masks anywhere, in strided memory."""
    rng = np.random.default_rng(11)
    rows, width = 40, 20_001
    whole = (rng.normal(size=(rows, width + 13)) * 3).astype(np.float32)
    logits = whole[:, 5 : width + 5]
    bitmask = random_bitmask(rng, rows, width, 0.5)
    requests = [
        DrawRequest(params(name, 0), row, row, (7 * row + 3) % rows, (11 * row + 5) % rows) for row in range(rows)
    ]
    batch = SAMPLER.draw(logits, bitmask, requests, kept=True)
    for number, request in enumerate(requests):
        own = DrawRequest(request.params, request.seed, request.position, 0, 0)
        single = SAMPLER.draw(
            logits[request.logits_row : request.logits_row + 1],
            bitmask[request.mask_row : request.mask_row + 1],
            [own],
            kept=True,
        )
        assert single.log_kept is not None and batch.log_kept is not None
        assert (single.token_ids[0], single.log_probs[0], single.log_kept[0]) == (
            batch.token_ids[number], batch.log_probs[number], batch.log_kept[number],
        )  # fmt: skip


@pytest.mark.first_case
@pytest.mark.parametrize("name", ["plain", "cold", "top_k", "all three", "typical"])
def test_draws_follow_the_distribution(name: str) -> None:
    """G-test, 30,000 draws, 99.9 % quantile of chi² with at most 9 degrees (27.9)."""
    rng = np.random.default_rng(2)
    logits = rng.normal(size=(1, 10)).astype(np.float32)
    bitmask = np.array([[0b1111111111]], np.int32)
    one = params(name, 0)
    count = 30_000
    requests = [DrawRequest(one, 99, position, 0, 0) for position in range(count)]
    drawn = np.bincount(SAMPLER.draw(logits, bitmask, requests).token_ids, minlength=10)
    from structgen.generation.sampling import filtered_probs, masked_log_probs

    probs = filtered_probs(masked_log_probs(logits[0], None), one)
    assert not drawn[probs == 0].any()
    seen = drawn > 0
    assert 2 * float((drawn[seen] * np.log(drawn[seen] / (probs[seen] * count))).sum()) < 27.9


def test_logits_that_are_none_raise() -> None:
    request = [DrawRequest(SamplingParams(), 0, 0, 0, 0)]
    for bad in (np.zeros((1, 4), np.int64), np.zeros(4, np.float32), [[1.0]], None):
        with pytest.raises(BitmaskError, match="floating"):
            SAMPLER.draw(bad, np.ones((1, 1), np.int32), request)
