"""Each rule gives tokens distributed as the target says, whatever the draft; broken rules are caught."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from structgen.generation.sampling import sample
from structgen.generation.speculative import rules
from tests.generation.speculative.worlds import ALPHA, chi_squared_tail, g_test

SAMPLES = 2500
TOKENS = 6


def pairs() -> list[tuple[Any, Any]]:
    """Targets and drafts: alike, different, with zeros in either, disjoint, equal."""
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.ones(TOKENS), size=2)
    near = 0.9 * p + 0.1 * q
    cut = np.where(np.arange(TOKENS) < 3, q, 0)
    other = np.where(np.arange(TOKENS) >= 3, p, 0)
    return [
        (p, q),
        (p, near),
        (p, cut / cut.sum()),
        (other / other.sum(), cut / cut.sum()),
        (cut / cut.sum(), q),
        (p, p),
    ]


def run(rule: rules.Rule, draw: Callable[..., Sequence[int]], p: Any, q: Any, count: int = SAMPLES) -> Counter[Any]:
    rng = np.random.default_rng(1)
    return Counter((rule(p, q, draw(q, rng), rng),) for _ in range(count))


def drawn(k: int, replace: bool) -> Callable[..., Sequence[int]]:
    draw = rules.draw_with_replacement if replace else rules.draw_without_replacement
    return lambda q, rng: draw(q, k, rng)


CASES = [(rules.chain, drawn(1, True))]
CASES += [(rules.k_sequential, drawn(k, True)) for k in (1, 3)]
CASES += [(rules.recursive, drawn(k, False)) for k in (1, 3)]


@pytest.mark.first_case
@pytest.mark.parametrize(("rule", "draw"), CASES)
@pytest.mark.parametrize("pair", range(6))
def test_exact(rule: rules.Rule, draw: Callable[..., Sequence[int]], pair: int) -> None:
    p, q = pairs()[pair]
    expected: dict[tuple[int, ...], float] = {(token,): float(p[token]) for token in range(TOKENS) if p[token] > 0}
    assert g_test(run(rule, draw, p, q), expected) > ALPHA


def without_residual(p: Any, q: Any, positions: Sequence[int], rng: np.random.Generator) -> int:
    """The chain's rule that samples from p after a rejection."""
    (position,) = positions
    return position if rng.random() * q[position] < p[position] else sample(p, rng)


def chain_for_several(p: Any, q: Any, positions: Sequence[int], rng: np.random.Generator) -> int:
    """The chain's rule for each of several independent draws, without the divisor."""
    for position in positions:
        if rng.random() * q[position] < p[position]:
            return position
    return sample(np.maximum(p - q, 0), rng)


def recursive_with_replacement(p: Any, q: Any, positions: Sequence[int], rng: np.random.Generator) -> int:
    """Recursive rejection that never updates the target."""
    for position in positions:
        if rng.random() * q[position] < p[position]:
            return position
        q = np.where(np.arange(TOKENS) == position, 0, q)
        q = q / q.sum()
    return sample(np.maximum(p - q, 0) + 1e-300, rng)


@pytest.mark.parametrize(
    ("mutant", "draw"),
    [
        (without_residual, drawn(1, True)),
        (chain_for_several, drawn(3, True)),
        (recursive_with_replacement, drawn(3, False)),
    ],
)
def test_mutants_are_caught(mutant: rules.Rule, draw: Callable[..., Sequence[int]]) -> None:
    p, q = pairs()[0]
    assert g_test(run(mutant, draw, p, q), {(token,): float(p[token]) for token in range(TOKENS)}) < ALPHA


@pytest.mark.parametrize(("k", "replace"), [(1, True), (2, True), (4, True), (2, False), (4, False)])
def test_acceptance(k: int, replace: bool) -> None:
    """One draw is accepted with 1 - TV(p, q); more draws are accepted more often, and never fewer than one would be."""
    p, q = pairs()[0]
    rule = rules.k_sequential if replace else rules.recursive
    rng = np.random.default_rng(2)
    right = 0
    for _ in range(2000):
        positions = drawn(k, replace)(q, rng)
        right += rule(p, q, positions, rng) in positions
    one = np.minimum(p, q).sum()
    if k == 1:
        assert abs(right / 2000 - one) < 0.04
    else:
        assert right / 2000 > one + 0.02


def test_draws_without_replacement() -> None:
    """In the order of successive draws: the first is distributed as q, the second as q without the first."""
    q = np.array([0.5, 0.3, 0.2, 0.0])
    rng = np.random.default_rng(3)
    found = Counter(rules.draw_without_replacement(q, 2, rng) for _ in range(SAMPLES))
    expected: dict[tuple[int, ...], float] = {
        (i, j): q[i] * q[j] / (1 - q[i]) for i in range(3) for j in range(3) if i != j
    }
    assert g_test(found, expected) > ALPHA
    assert len(rules.draw_without_replacement(q, 9, rng)) == 3


@pytest.mark.parametrize(
    ("value", "degrees", "tail"), [(3.841, 1, 0.05), (5.991, 2, 0.05), (11.07, 5, 0.05), (30, 10, 8.566e-4)]
)
def test_chi_squared_tail(value: float, degrees: int, tail: float) -> None:
    assert chi_squared_tail(value, degrees) == pytest.approx(tail, rel=2e-3)
