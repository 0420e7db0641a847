"""Sampling: mask before filters, exact distributions, and no row of all −inf."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from structgen.errors import GenerationError
from structgen.generation.sampling import (
    SamplingParams,
    allowed_token_ids,
    draw,
    filtered_probs,
    masked_log_probs,
    to_numpy,
)


def numbers(seed: int) -> Callable[[int], float]:
    """A number for each attempt, whatever its count."""
    rng = np.random.default_rng(seed)
    return lambda attempt: rng.random()


@pytest.mark.parametrize("size", [1, 31, 32, 33, 100])
def test_allowed_ids_are_the_set_bits(size: int) -> None:
    rng = np.random.default_rng(size)
    chosen = np.flatnonzero(rng.random(size) < 0.4)
    row = np.zeros((size + 31) // 32, dtype=np.uint32)
    for token in chosen:
        row[token // 32] |= np.uint32(1 << (token % 32))
    assert allowed_token_ids(row.view(np.int32), size).tolist() == chosen.tolist()


def test_bits_beyond_the_vocabulary_are_ignored() -> None:
    assert allowed_token_ids(np.array([-1], dtype=np.int32), 5).tolist() == [0, 1, 2, 3, 4]


def test_log_probs_are_the_masked_softmax() -> None:
    logits = np.array([3.0, 1.0, -2.0, 0.5], dtype=np.float32)
    allowed = np.array([1, 3])
    expected = np.exp(logits[allowed].astype(float))
    assert np.allclose(np.exp(masked_log_probs(logits, allowed)), expected / expected.sum())
    assert np.isclose(np.exp(masked_log_probs(logits, None)).sum(), 1)


@pytest.mark.parametrize("bad", [np.nan, -np.inf, np.inf])
def test_logits_that_are_no_numbers_raise(bad: float) -> None:
    with pytest.raises(GenerationError, match="over the 2 allowed tokens"):
        masked_log_probs(np.array([0.0, bad, bad]), np.array([1, 2]))


def test_a_token_at_minus_infinity_is_never_drawn() -> None:
    log_probs = masked_log_probs(np.array([-np.inf, 0.0, 1.0]), None)
    for temperature in (0.0, 1.0):
        drawn = list(draw(log_probs, SamplingParams(temperature), numbers(0)))
        assert sorted(drawn) == [1, 2]


def _reference_filter(probs: np.ndarray, temperature: float, top_k: int | None, top_p: float) -> np.ndarray:
    """Straight from the definition, by sorting."""
    weights = probs ** (1 / temperature)
    order = sorted(range(len(probs)), key=lambda i: -weights[i])[: top_k or len(probs)]
    total, kept, mass = sum(weights[i] for i in order), [], 0.0
    for i in order:
        kept.append(i)
        mass += weights[i] / total
        if mass >= top_p:
            break
    result = np.zeros(len(probs))
    result[kept] = weights[kept] / sum(weights[i] for i in kept)
    return result


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("top_k", [None, 1, 3, 99])
@pytest.mark.parametrize("top_p", [1.0, 0.7, 0.01])
def test_filters_agree_with_their_definition(temperature: float, top_k: int | None, top_p: float) -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        probs = rng.dirichlet(np.ones(8))
        got = filtered_probs(np.log(probs), SamplingParams(temperature, top_k, top_p))
        assert np.allclose(got, _reference_filter(probs, temperature, top_k, top_p))


def test_filters_keep_a_token_of_a_mask_far_down_the_ranking() -> None:
    """The mask comes first: top-k and top-p choose among allowed tokens, however unlikely those are."""
    logits = np.linspace(50, -50, 100)
    log_probs = masked_log_probs(logits, np.array([97, 98]))
    assert next(draw(log_probs, SamplingParams(1.0, top_k=1, top_p=0.1), numbers(0))) == 0


def test_draws_follow_the_distribution() -> None:
    """G-test against the exact probabilities: 20,000 draws, seed fixed, 99.9 % quantile of chi² with 3 degrees."""
    probs = np.array([0.5, 0.3, 0.15, 0.05])
    rng, params, count = numbers(7), SamplingParams(1.0), 20_000
    counts = np.bincount([next(draw(np.log(probs), params, rng)) for _ in range(count)], minlength=4)
    statistic = 2 * float((counts * np.log(counts / (probs * count))).sum())
    assert statistic < 16.27


def test_a_second_draw_is_conditioned_on_not_being_the_first() -> None:
    """P(second = j) = sum over i ≠ j of p_i p_j / (1 − p_i)."""
    probs = np.array([0.5, 0.3, 0.2])
    rng, count = numbers(3), 20_000
    seconds = []
    for _ in range(count):
        order = draw(np.log(probs), SamplingParams(1.0), rng)
        next(order)
        seconds.append(next(order))
    exact = [sum(probs[i] * probs[j] / (1 - probs[i]) for i in range(3) if i != j) for j in range(3)]
    assert np.allclose(np.bincount(seconds) / count, exact, atol=0.015)


def test_greedy_goes_down_the_ranking_and_breaks_ties_by_id() -> None:
    assert list(draw(np.log([0.2, 0.3, 0.3, 0.2]), SamplingParams(), numbers(0))) == [1, 2, 0, 3]


def test_torch_logits_are_read() -> None:
    torch = pytest.importorskip("torch")
    row = torch.tensor([1.0, 2.0], dtype=torch.bfloat16)
    assert to_numpy(row).dtype == np.float32 and to_numpy(row).tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    "bad",
    [{"temperature": -1}, {"temperature": float("nan")}, {"top_k": 0}, {"top_p": 0}, {"top_p": 1.1}, {"seed": -1}],
)
def test_parameters_out_of_range_raise(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(bad))):
        SamplingParams(**bad)  # type: ignore[arg-type]
