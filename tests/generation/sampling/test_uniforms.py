"""Random numbers by seed and place."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from structgen.core.kernels.aligned.calls import next_uniform
from structgen.generation.sampling.uniforms import generator, seed_or_entropy, uniform, uniforms


def test_a_number_depends_on_seed_place_and_attempt_only() -> None:
    seeds, places = np.array([1, 2, 1, 2**64 - 1], np.uint64), np.array([0, 0, 1, 3])
    together = uniforms(seeds, places)
    assert together.tolist() == [float(uniforms([s], [p])[0]) for s, p in zip(seeds, places, strict=True)]
    assert len(set(together.tolist())) == 4
    assert not np.array_equal(together, uniforms(seeds, places, 1))


def test_it_is_the_generator_of_that_name() -> None:
    """SplitMix64 from the state that the seed leads to: the walks' kernel has its own code for it."""
    first = uniforms([5], np.arange(10).repeat(1)[:1])[0]
    numbers = uniforms([5] * 10, np.arange(10))
    assert numbers[0] == first
    golden = 0x9E3779B97F4A7C15

    def mixed(z: int) -> int:
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        return z ^ (z >> 31)

    states = np.array([mixed(5)], np.uint64)
    assert [next_uniform(states, 0) for _ in range(10)] == numbers.tolist()
    assert golden == 0x9E3779B97F4A7C15


def test_numbers_are_uniform_over_places_and_over_seeds() -> None:
    """Chi² over 20 cells, 99.9 % quantile with 19 degrees: 43.8. Pairs of neighbours too."""
    many = np.arange(40_000)
    for numbers in (uniforms(np.full(40_000, 3), many), uniforms(many, np.zeros(40_000, np.int64))):
        assert numbers.min() >= 0 and numbers.max() < 1
        for cells in ((numbers * 20).astype(int), (numbers[::2] * 4).astype(int) * 5 + (numbers[1::2] * 5).astype(int)):
            counts = np.bincount(cells, minlength=20)
            assert ((counts - len(cells) / 20) ** 2 / (len(cells) / 20)).sum() < 43.8


def test_seeds_of_any_length() -> None:
    assert seed_or_entropy(7) == 7
    assert 0 <= seed_or_entropy(2**200 + 5) < 2**64 and seed_or_entropy(2**200 + 5) != seed_or_entropy(2**200 + 6)
    assert seed_or_entropy(None) != seed_or_entropy(None)
    assert generator(2**64 - 1, 3).random() == generator(2**64 - 1, 3).random() != generator(2**64 - 1, 4).random()


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**40), st.integers(0, 200))
def test_one_is_one_of_many(seed: int, position: int, attempt: int) -> None:
    assert uniform(seed, position, attempt) == uniforms([seed], [position], attempt)[0]
