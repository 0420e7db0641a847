"""What drafts cost and gain, by a clock that only model and drafters move: losses are bounded, gains are taken."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.generation.decoding.output import Output
from structgen.generation.models.llamacpp.model import STEP_COSTS
from structgen.generation.models.model_runner import Part, Reading
from structgen.generation.models.tiny import TinyModel, TinyReader
from structgen.generation.sampling import SamplingParams
from structgen.generation.scheduler.budget import SchedulerLimits
from structgen.generation.scheduler.request import Request, State
from structgen.generation.scheduler.scheduler import Scheduler
from structgen.generation.speculative import speculator
from structgen.generation.speculative.cost import TYPICAL, CostCurve, LearnedCost, prior_of
from structgen.generation.speculative.drafter import Drafter, Written
from structgen.generation.speculative.length import CostAware
from structgen.generation.speculative.ngram import NgramDrafter
from structgen.generation.speculative.recycling import RecyclingDrafter
from structgen.generation.speculative.speculator import Speculator
from structgen.generation.speculative.tree import Node

VOCABULARY = Vocabulary([None, *(bytes([byte]) for byte in range(97, 123))], eos_token_ids=0)
TOKENS = 24
SECOND, GROWING = 0.03, 0.0004  # of a step of one token, and of asking for the drafts after a node
PROSE, CYCLE = 9, 10  # what prompts begin with
QUANTISED = prior_of(SimpleNamespace(step_costs=STEP_COSTS))


class Clock:
    """Seconds, and how many of them the model took."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Topical(TinyModel):
    """After ``PROSE`` nothing can be foreseen; after ``CYCLE`` each token follows from the one before."""

    def _logits(self, history: list[int]) -> Any:
        known = history if history[0] == PROSE else [history[0], history[-1]]
        return np.random.default_rng(known).normal(scale=8.0, size=self.vocab_size).astype(np.float32)


class TimedRows(TinyReader):
    """Reading takes what ``cost`` says."""

    def __init__(self, clock: Clock, cost: CostCurve) -> None:
        super().__init__(Topical(VOCABULARY.size))
        self._clock, self.cost = clock, cost

    def read(self, parts: Sequence[Part]) -> Reading:
        self._clock.now += SECOND * self.cost(sum(len(part.tokens) for part in parts))
        return super().read(parts)


class TimedNgrams(NgramDrafter):
    """Asking takes time."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def start(self, prompt: Sequence[int], output: Written) -> Any:
        source = super().start(prompt, output)
        propose = source.propose

        def asked(node: Node) -> Any:
            self._clock.now += GROWING
            return propose(node)

        source.propose = asked  # type: ignore[method-assign]
        return source


class World:
    """A generator's worth of state, with drafts or without."""

    def __init__(self, clock: Clock, cost: CostCurve, prior: CostCurve | None) -> None:
        self.clock, self.reader, self.number = clock, TimedRows(clock, cost), 0
        self.cost = LearnedCost(prior or TYPICAL)
        drafters: list[Drafter] = [TimedNgrams(clock), RecyclingDrafter(VOCABULARY.size)]
        self.speculator = Speculator(drafters, CostAware(self.cost)) if prior else None

    def write(self, topic: int, count: int, rows: int = 1) -> tuple[float, float]:
        """Outputs, ``rows`` at once: seconds, and tokens for a row's forward."""
        scheduler = Scheduler(self.reader, SchedulerLimits(sequences=rows, late_seconds=None), clock=self.clock)
        start, handles = self.clock.now, []
        for _ in range(count):
            params = SamplingParams(0.7, seed=self.number, logit_bias={0: -99})
            output = Output(VOCABULARY, None, params, max_new_tokens=TOKENS)
            handles.append(scheduler.submit(Request([topic, 5, 6, 1 + self.number % 20], output, self.speculator)))
            self.number += 1
        while any(handle.state is not State.DONE for handle in handles):
            scheduler.step()
        forwards = sum(handle.output.stats.target_forwards for handle in handles)
        return self.clock.now - start, count * TOKENS / forwards


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(speculator, "time", SimpleNamespace(perf_counter=made))
    return made


def test_a_model_says_what_its_steps_cost() -> None:
    assert prior_of(object()) is TYPICAL
    assert [QUANTISED(count) for count in (1, 2, 4, 32)] == [1.0, 1.5, 2.4, 16.0]


@pytest.mark.parametrize("rows", [1, 4])
def test_drafts_that_are_never_right_lose_little(clock: Clock, rows: int) -> None:
    """All that is lost, the first guesses included, is under 3 %: quantised weights and text that nothing foretells."""
    drafted, _ = World(clock, QUANTISED, QUANTISED).write(PROSE, 24, rows)
    plain, _ = World(clock, QUANTISED, None).write(PROSE, 24, rows)
    assert plain < drafted < 1.03 * plain


@pytest.mark.full
def test_rests_end_where_drafts_pay_again(clock: Clock) -> None:
    world, plain = World(clock, QUANTISED, QUANTISED), World(clock, QUANTISED, None)
    world.write(PROSE, 20)
    before, _ = plain.write(CYCLE, 12)
    first, _ = world.write(CYCLE, 12)
    later, tokens = world.write(CYCLE, 12)
    assert first < 0.85 * before and later < 0.75 * before and tokens > 2
    again, _ = world.write(PROSE, 12)
    assert again < 1.1 * plain.write(PROSE, 12)[0], "chances that were learned are wrong at first"


@pytest.mark.full
@pytest.mark.parametrize("truth", [TYPICAL, QUANTISED])
@pytest.mark.parametrize("prior", [TYPICAL, QUANTISED])
def test_what_steps_cost_is_learned(clock: Clock, truth: CostCurve, prior: CostCurve) -> None:
    """Whatever was expected, after some outputs drafts are those that pay by the true cost: as fast as who knew it."""
    learning, knowing = World(clock, truth, prior), World(clock, truth, truth)
    learning.write(CYCLE, 30)
    knowing.write(CYCLE, 30)
    for count in (1, 4, 8):  # whole trees; pairs are seldom read where much pays
        assert learning.cost(count) == pytest.approx(truth(count), rel=0.15), count
    assert learning.cost.seconds == pytest.approx(SECOND, rel=0.1)
    assert learning.write(CYCLE, 10)[0] < 1.05 * knowing.write(CYCLE, 10)[0]
