"""Policies and the cost curve: against exhaustive search and simulation."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import pytest

from structgen.generation.speculative.cost import KNOTS, CostCurve, LearnedCost
from structgen.generation.speculative.length import Bandit, CostAware, Fixed, Pause, Threshold, allocate

CURVE = CostCurve((1, 4, 8, 16), (1.0, 1.5, 1.6, 2.4))


def test_the_curve_is_interpolated_and_goes_on() -> None:
    assert [CURVE(count) for count in (1, 4, 6, 16)] == pytest.approx([1.0, 1.5, 1.55, 2.4])
    assert CURVE(20) == pytest.approx(2.8)
    assert CostCurve()(40) == 1.0


def test_marginal_cost_looks_behind_steps() -> None:
    best = min((CURVE(end) - CURVE(1)) / (end - 1) for end in range(2, 17))
    assert CURVE.marginal(1) == pytest.approx(best) and best < CURVE(2) - CURVE(1)


def test_marginal_cost_of_any_curve() -> None:
    rng = random.Random(5)
    for _ in range(50):
        counts = (1, *sorted(rng.sample(range(2, 40), 5)))
        curve = CostCurve(counts, tuple(sorted(rng.uniform(1, 5) for _ in counts)))
        for here in range(1, counts[-1]):
            ends = range(here + 1, counts[-1] + 2)
            least = min((curve(end) - curve(here)) / (end - here) for end in ends)
            assert curve.marginal(here) == pytest.approx(least)


STEEP = CostCurve((1, 4, 8, 16, 32, 64), (1.0, 1.9, 2.6, 3.8, 6.2, 11.0))
LOW = CostCurve((1, 16, 64, 256), (1.0, 1.1, 1.4, 2.5))


@pytest.mark.parametrize("truth", [CURVE, STEEP, LOW])
def test_costs_are_learned_from_noisy_steps(truth: CostCurve) -> None:
    """Steps of the sizes that loops make, on a machine that others use in bursts: within a sixth where steps were made,
    never descending, and its speed followed."""
    rng = random.Random(2)
    cost, load = LearnedCost(), 1.0
    for step in range(400):
        load = rng.uniform(1, 3) if step % 50 == 0 else load
        size = 1 if cost.is_plain_due else rng.randint(2, 24)
        slow = 8 if rng.random() < 0.03 else 1  # something else altogether
        cost.observe(size, 0.02 * load * slow * truth(size) * rng.lognormvariate(0, 0.08), drafts=size - 1)
    for size in (1, 3, 8, 16, 24):
        assert cost(size) == pytest.approx(truth(size), rel=1 / 6), size
    assert cost.seconds == pytest.approx(0.02 * load, rel=0.25)
    times = [cost(size) for size in range(1, 300)]
    assert times == sorted(times) and cost.curve.counts == KNOTS


def test_costs_that_change_are_learned_anew() -> None:
    cost = LearnedCost()
    for truth in (STEEP, LOW):
        for _ in range(600):
            size = 1 if cost.is_plain_due else 12
            cost.observe(size, truth(size), drafts=size - 1)
        assert cost(12) == pytest.approx(truth(12), rel=0.15)


def test_what_another_way_of_reading_cost_is_forgotten() -> None:
    """Numbers of tokens that were dear before weights were rearranged are not taken to be dear ever after."""
    way = 0
    cost = LearnedCost(LOW, lambda: way)
    for size in [1, 2, 4, 8, 12, 16, 24] * 20:
        cost.observe(size, 0.02 * STEEP(size), drafts=size - 1)
    assert cost(12) == pytest.approx(STEEP(12), rel=0.1)
    way = 1
    cost.observe(4, 5.0, drafts=3)  # a step in which they were
    assert all(cost(size) == LOW(size) for size in (1, 4, 12, 24)) and cost.seconds == pytest.approx(0.02, rel=0.1)
    for size in [1, 4, 32] * 20:
        cost.observe(size, 0.03 * LOW(size), drafts=size - 1)
    assert cost(12) == pytest.approx(LOW(12), rel=0.1) and cost.seconds == pytest.approx(0.03, rel=0.1)


def test_few_steps_go_without_drafts() -> None:
    cost, plain = LearnedCost(), []
    for step in range(1000):
        plain += [step] if cost.is_plain_due else []
        cost.observe(1 if cost.is_plain_due else 9, 0.01, drafts=0 if cost.is_plain_due else 8)
    assert plain[0] <= 3 and len(plain) < 50
    assert len([step for step in plain if step > 100]) <= 900 / 60


def test_fixed_and_threshold() -> None:
    assert [Fixed(2).admit(nodes, 0, 0.01) for nodes in (0, 1, 2)] == [True, True, False]
    assert Threshold(0.7).admit(0, 0, 0.31) and not Threshold(0.7).admit(0, 0, 0.29)


def test_trimming_is_the_best_prefix() -> None:
    rng = random.Random(0)
    for _ in range(100):
        chances = sorted((rng.random() for _ in range(15)), reverse=True)
        policy = CostAware(CURVE, rate=rng.uniform(1, 4))
        values = [sum(chances[:count]) - policy.rate * CURVE(count + 1) for count in range(16)]
        assert values[policy.trim(chances)] == pytest.approx(max(values))
        admitted = 0
        while admitted < 15 and policy.admit(admitted, sum(chances[:admitted]), chances[admitted]):
            admitted += 1
        assert admitted >= policy.trim(chances)  # never grown too small


def test_no_tree_stakes_many_steps() -> None:
    """Where each token costs half a step (quantised weights, one thread), a sure path is not read whole at once."""
    line = CostCurve((1, 101), (1.0, 51.0))
    sizes = []
    for curve in (line, CURVE):
        policy, nodes = CostAware(curve, rate=1.2), 0
        while nodes < 16 and policy.admit(nodes, 0.0, 0.99):
            nodes += 1
        sizes.append(nodes)
    assert sizes == [10, 16] and line(11) == 6.0


def test_the_rate_finds_the_best_long_run_speed() -> None:
    """Dinkelbach: with chances that are right, no fixed number of nodes does better."""
    rng = random.Random(1)
    chances = [0.8**depth for depth in range(1, 16)]
    ends = [next((depth for depth in range(15) if rng.random() > 0.8), 15) for _ in range(4000)]

    def speed(count: int) -> float:
        return sum(min(end, count) + 1 for end in ends) / (len(ends) * CURVE(count + 1))

    policy, tokens, time = CostAware(CURVE), 0, 0.0
    for end in ends:
        count = policy.trim(chances)
        policy.observe(count, min(end, count) + 1)
        tokens, time = tokens + min(end, count) + 1, time + CURVE(count + 1)
    assert tokens / time > 0.97 * max(speed(count) for count in range(16))


def test_useless_drafts_are_not_read() -> None:
    policy = CostAware(CURVE)
    assert policy.trim([0.05, 0.04, 0.01]) == 0


def test_the_bandit_finds_the_best_arm() -> None:
    rng = random.Random(2)
    bandit = Bandit(CURVE, arms=(0, 3, 7, 15), exploration=0.5)
    counts = dict.fromkeys((0, 3, 7, 15), 0)
    for _ in range(1500):
        bandit.begin()
        nodes = 0
        while nodes < 15 and bandit.admit(nodes, 0.0, 0.9):
            nodes += 1
        counts[nodes] += 1
        end = next((depth for depth in range(15) if rng.random() > 0.85), 15)
        bandit.observe(nodes, min(end, nodes) + 1)
    assert max(counts, key=counts.__getitem__) == 7


def test_drafts_of_a_step_are_the_best_set() -> None:
    """Against all sets of a random forest that are closed under ancestors (prefixes of each row's likeliest first)."""
    rng = random.Random(3)
    for _ in range(60):
        rows = [sorted((rng.random() for _ in range(rng.randrange(5))), reverse=True) for _ in range(3)]
        rate, beside, room = rng.uniform(1, 3), rng.randrange(3, 9), rng.choice([None, 0, 3])

        def value(
            chosen: tuple[int, ...] | list[int], rows: Any = rows, rate: float = rate, beside: int = beside
        ) -> float:
            gain = sum(sum(row[:count]) for row, count in zip(rows, chosen, strict=True))
            return gain - rate * CURVE(beside + sum(chosen))

        counts = allocate(rows, rate, CURVE, other_tokens=beside, room=room)
        every = product(*(range(len(row) + 1) for row in rows))
        best = max(value(chosen) for chosen in every if room is None or sum(chosen) <= room)
        assert value(counts) == pytest.approx(best) and (room is None or sum(counts) <= room)
        assert value(counts) >= value((0, 0, 0)), "no drafts at all compete"


def test_the_more_rows_the_fewer_drafts_each() -> None:
    """For a cost that grows evenly and equal chances."""
    line, chances = CostCurve((1, 101), (1.0, 6.0)), [0.9, 0.8, 0.7, 0.5, 0.3, 0.2, 0.1]
    counts = []
    for rows in (1, 2, 4, 8, 16, 32):
        rate = rows / line(rows)
        counts.append(sum(allocate([chances] * rows, rate, line, other_tokens=rows)) / rows)
    assert counts == sorted(counts, reverse=True) and counts[0] > counts[-1]


def test_rests_where_drafts_do_not_pay() -> None:
    """Never right: the loss over 160 steps is a few steps. Right one time in two: nearly always drafting."""
    pause, time = Pause(CURVE), 0.0
    for _ in range(160):
        resting = pause.step()
        time += 1.0 if resting else CURVE(9)
        if not resting:
            pause.observe(8, 1, 0.0)
    assert time < 1.05 * 160
    rng, pause, drafting = random.Random(0), Pause(CURVE), 0
    for _ in range(400):
        if not pause.step():
            drafting += 1
            pause.observe(8, rng.choice([1, 4]), 0.0)
    assert drafting > 240
    slow = Pause(CostCurve((1, 8), (1.0, 1.0), seconds=0.01))
    for _ in range(20):
        if not slow.step():
            slow.observe(7, 1, 0.005)  # time spent on drafting counts
    assert slow.step()
