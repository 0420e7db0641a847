"""What a step reads beside rows that are written: on a clock of known costs, it stays within what they bear."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from structgen.decoding.batching.budget import SchedulerLimits, StepCost
from structgen.decoding.batching.request import Request, State
from structgen.decoding.batching.scheduler import Scheduler
from structgen.decoding.output import Output
from structgen.decoding.sampling import SamplingParams
from structgen.models.tiny import TinyModel, TinyRows
from tests.fakes import vocabulary

VOCABULARY = vocabulary()


class Timed(TinyRows):
    """A reader whose calls take what is said, on its own clock."""

    def __init__(self, fixed: float, token: float, context: float, noise: float) -> None:
        super().__init__(TinyModel(VOCABULARY.size))
        self.now, self._costs, self._noise = 0.0, (fixed, token, context), noise
        self._rng = random.Random(0)

    def read(self, parts: Any) -> Any:
        fixed, token, context = self._costs
        seconds = fixed + sum(len(part.tokens) * (token + context * len(self.rows[part.row])) for part in parts)
        self.now += seconds * self._rng.lognormvariate(0, self._noise)
        return super().read(parts)


@pytest.mark.parametrize("noise", [0.0, 0.05])
@pytest.mark.parametrize(
    "costs",
    [(0.08, 0.003, 0.0), (0.08, 0.003, 4e-6), (0.01, 0.0001, 1e-7), (0.0, 0.003, 1e-6)],
    ids=["linear", "contexts that cost", "cheap tokens", "nothing fixed"],
)
def test_prompts_do_not_hold_up_what_is_written(costs: tuple[float, float, float], noise: float) -> None:
    """16 rows beside 2,000 tokens of a prompt: p99 of a step at most twice that without, and the prompt gets on."""
    reader = Timed(*costs, noise)
    scheduler = Scheduler(reader, SchedulerLimits(late_seconds=None, least_chunk=4), clock=lambda: reader.now)
    for seed in range(16):
        output = Output(
            VOCABULARY, None, SamplingParams(1.0, seed=seed, logit_bias={0: -99, 1: -99}), max_new_tokens=900
        )
        scheduler.submit(Request([1 + seed] * 50, output))

    def gap() -> float:
        start = reader.now
        scheduler.step()
        return reader.now - start

    for _ in range(10):
        gap()
    without = [gap() for _ in range(50)]
    beside = []
    for number in range(3):
        prompt = [20 + number] * 2000
        late = scheduler.submit(Request(prompt, Output(VOCABULARY, None, SamplingParams(), max_new_tokens=1)))
        while late.state is not State.DONE:
            beside.append(gap())
    without += [gap() for _ in range(50)]  # the rows' own contexts have grown
    assert np.quantile(beside, 0.99) <= 2 * np.quantile(without, 0.99)
    assert np.mean(beside) >= 1.4 * np.mean(without), "room that is there is used"


def test_costs_are_means_that_never_fall() -> None:
    cost = StepCost()
    assert cost.seconds(5) == 0 and cost.room(5, 2.0) is None
    rng = random.Random(0)
    for _ in range(500):
        tokens = rng.randrange(1, 300)
        cost.observe(tokens, 0, (0.1 + 0.001 * tokens) * rng.uniform(0.9, 1.1))
    found = [cost.seconds(tokens) for tokens in range(1, 400)]
    assert found == sorted(found)
    assert all(abs(cost.seconds(n) / (0.1 + 0.001 * n) - 1) < 0.12 for n in range(10, 280))
    for _ in range(20):
        cost.observe(16 + 50, 50, cost.seconds(16) + 50 * 0.002)
    room = cost.room(16, 2.0)
    assert room is not None and 0.7 < room * 0.002 / cost.seconds(16) <= 1
