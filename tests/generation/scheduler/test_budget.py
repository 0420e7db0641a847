"""What a step reads beside rows that are written: on a clock of known costs, it stays within what they bear."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from structgen.errors import CancelledError, QueueError
from structgen.generation.decoding.output import Output
from structgen.generation.models.padded_rows import PaddedReader
from structgen.generation.models.tiny import TinyModel, TinyReader
from structgen.generation.sampling import SamplingParams
from structgen.generation.scheduler.budget import SchedulerLimits, StepCost
from structgen.generation.scheduler.request import Handle, Request, State
from structgen.generation.scheduler.scheduler import Scheduler
from tests.fakes import vocabulary
from tests.many import nightly

VOCABULARY = vocabulary()


class Timed(TinyReader):
    """A reader whose calls take what is said, on its own clock."""

    def __init__(self, fixed: float, token: float, context: float, noise: float) -> None:
        super().__init__(TinyModel(VOCABULARY.size))
        self.now, self._costs, self._noise = 0.0, (fixed, token, context), noise
        self._rng = random.Random(0)

    def read(self, parts: Any) -> Any:
        fixed, token, context = self._costs
        seconds = fixed + sum(
            len(part.tokens) * (token + context * len(self.sequences[part.sequence])) for part in parts
        )
        self.now += seconds * self._rng.lognormvariate(0, self._noise)
        return super().read(parts)


@pytest.mark.first_case
@pytest.mark.parametrize("noise", [pytest.param(0.0, marks=nightly), 0.05])
@pytest.mark.parametrize(
    "costs",
    [(0.08, 0.003, 0.0), (0.08, 0.003, 4e-6), (0.01, 0.0001, 1e-7), (0.0, 0.003, 1e-6)],
    ids=["linear", "contexts that cost", "cheap tokens", "nothing fixed"],
)
def test_prompts_do_not_hold_up_what_is_written(costs: tuple[float, float, float], noise: float) -> None:
    """16 rows beside 2,000 tokens of a prompt: p99 of a step at most twice that without, and the prompt gets on."""
    reader = Timed(*costs, noise)
    scheduler = Scheduler(reader, SchedulerLimits(late_seconds=None, least_chunk=4), clock=lambda: reader.now)
    rows = []
    for seed in range(16):
        output = Output(
            VOCABULARY, None, SamplingParams(1.0, seed=seed, logit_bias={0: -99, 1: -99}), max_new_tokens=900
        )
        rows.append(scheduler.submit(Request([1 + seed] * 50, output)))

    def gap() -> float:
        start = reader.now
        scheduler.step()
        return reader.now - start

    while any(row.state is not State.WRITING for row in rows):
        gap()
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


LLAMA = (0.006, 0.006, 1e-6)  # seconds of a call, of a token, of a token and one before it: a small model's


def submit(scheduler: Scheduler, tokens: list[int], budget: int, **options: Any) -> Handle:
    params = SamplingParams(1.0, seed=len(tokens), logit_bias={0: -99, 1: -99})
    return scheduler.submit(Request(tokens, Output(VOCABULARY, None, params, max_new_tokens=budget), **options))


class TimedPadded(PaddedReader):
    """As ``Timed``, for rows that are not read apart: each call of the model takes its time."""

    def __init__(self, fixed: float, token: float, noise: float) -> None:
        super().__init__(TinyModel(VOCABULARY.size))
        self.now, self._costs, self._noise = 0.0, (fixed, token), noise
        self._rng = random.Random(0)

    def read(self, parts: Any) -> Any:
        fixed, token = self._costs
        groups = {id(self._groups.get(part.sequence)) for part in parts}
        seconds = fixed * len(groups) + token * sum(len(part.tokens) for part in parts)
        self.now += seconds * self._rng.lognormvariate(0, self._noise)
        return super().read(parts)


@pytest.mark.full
@pytest.mark.parametrize("noise", [pytest.param(0.0, marks=nightly), 0.05])
def test_rows_that_share_calls_are_not_held_up_either(noise: float) -> None:
    """Four padded rows beside 4,000 tokens of a prompt, which is read in pieces of its own."""
    reader = TimedPadded(0.02, 0.002, noise)
    scheduler = Scheduler(reader, SchedulerLimits(), clock=lambda: reader.now)
    rows = [submit(scheduler, [1 + number] * 5, 4000) for number in range(4)]
    steps = list[float]()

    def step() -> None:
        start = reader.now
        scheduler.step()
        steps.append(reader.now - start)

    while len(rows[0].output.token_ids) < 60:
        step()
    without = np.mean(steps[-50:])
    steps.clear()
    late = submit(scheduler, [9] * 4000, 1)
    while late.state is not State.DONE:
        step()
    assert np.mean(steps) <= 2 * without and np.quantile(steps, 0.99) <= 3 * without
    assert np.mean(steps) >= 1.3 * without, "the prompt has what is left of the time"
    scheduler.close()


class Unified(Timed):
    """A reader whose every token looks at what all sequences hold, as llama.cpp does."""

    def read(self, parts: Any) -> Any:
        self.now += 1e-6 * sum(len(part.tokens) for part in parts) * sum(map(len, self.sequences.values()))
        return super().read(parts)


@pytest.mark.full
@pytest.mark.parametrize("costs", [LLAMA, (0.0, 0.012, 1e-6)], ids=["llama.cpp", "a call for each token"])
@pytest.mark.parametrize("noise", [pytest.param(0.0, marks=nightly), 0.05])
@pytest.mark.parametrize("kind", [Timed, Unified])
def test_one_row_is_not_held_up_where_every_token_costs(
    costs: tuple[float, float, float], noise: float, kind: type[Timed]
) -> None:
    """A single row beside 4,000 tokens of a prompt, half a call each and more: its tokens take twice as long at most,
    and no step reads more than a few of the prompt."""
    reader = kind(*costs, noise)
    scheduler = Scheduler(reader, SchedulerLimits(late_seconds=None), clock=lambda: reader.now)
    row = submit(scheduler, [1] * 20, 4000)
    steps = list[float]()

    def until(done: Callable[[], bool]) -> list[float]:
        first = len(steps)
        while not done():
            start = reader.now
            scheduler.step()
            steps.append(reader.now - start)
        return steps[first:]

    without = until(lambda: len(row.output.token_ids) >= 100)[5:]
    late = submit(scheduler, [2] * 4000, 1)
    beside = until(lambda: late.state is State.DONE or len(row.output.token_ids) >= 3900)
    for first in range(0, len(beside) - 100, 100):
        grown = 2e-6 * first  # by what the row itself has written
        assert np.mean(beside[first : first + 100]) <= 2 * (np.mean(without) + grown)
    assert np.quantile(beside, 0.99) <= 8 * (np.quantile(without, 0.99) + 2e-6 * len(beside))
    assert np.mean(beside) >= 1.3 * np.mean(without), "the prompt has what is left of the time"


class OwnTexts(Timed):
    """A reader whose tokens look at their own text, and a little at all others, as llama.cpp's do; what each step took
    is noted, and what it would have taken had there been no prompt."""

    def __init__(self, others: float, noise: float) -> None:
        super().__init__(0.007, 0.0067, 3e-5, noise)
        self._others, self.steps = others, list[tuple[float, float]]()

    def read(self, parts: Any) -> Any:
        (fixed, token, context), start = self._costs, self.now
        written = [len(self.sequences[part.sequence]) for part in parts if len(part.tokens) == 1]
        held = sum(map(len, self.sequences.values()))
        self.now += self._others * sum(len(part.tokens) for part in parts) * held
        reading = super().read(parts)
        alone = fixed + sum(token + (context + self._others) * length for length in written)
        self.steps.append((self.now - start, alone))
        return reading


@pytest.mark.parametrize("others", [0.0, pytest.param(4e-6, marks=pytest.mark.full), 2e-5])
@pytest.mark.parametrize("noise", [pytest.param(0.0, marks=nightly), 0.2])
def test_a_long_prompt_gets_on_while_an_output_grows(others: float, noise: float) -> None:
    """The output's tokens take ever longer by its own text, which is not the prompt's doing: they take twice as long as
    without at most, and the prompt has two fifths of their time besides, to its end."""
    reader = OwnTexts(others, noise)
    scheduler = Scheduler(reader, SchedulerLimits(late_seconds=None), clock=lambda: reader.now)
    row = submit(scheduler, [1] * 20, 4000, key="one")
    for _ in range(100):
        scheduler.step()
    reader.steps.clear()
    late = submit(scheduler, [2] * 800, 1, key="another")
    while late.state is not State.DONE and len(row.output.token_ids) < 3900:
        scheduler.step()
    assert late.state is State.DONE
    for first in range(0, len(reader.steps) - 200, 200):
        taken, alone = map(sum, zip(*reader.steps[first : first + 200], strict=True))
        assert 1.4 * alone <= taken <= 2 * alone


def test_short_prompts_that_come_now_and_then_are_read_at_once() -> None:
    """Where tokens cost as much as steps: what steps before saved is theirs, and the mean stays within bounds."""
    reader = Timed(*LLAMA, noise=0.0)
    scheduler = Scheduler(reader, SchedulerLimits(late_seconds=None), clock=lambda: reader.now)
    row = submit(scheduler, [1] * 20, 4000)
    start, first = reader.now, 0.0
    for number in range(20):
        for _ in range(60):
            scheduler.step()
        if not number:
            start, first = reader.now, len(row.output.token_ids)
        arrived = reader.now
        short = submit(scheduler, [2 + number] * 24, 1)
        while short.state is not State.DONE:
            scheduler.step()
        assert number < 2 or reader.now - arrived <= 0.3
    assert (reader.now - start) / (len(row.output.token_ids) - first) <= 2 * 0.0135


@pytest.mark.parametrize("kind", [Timed, Unified])
@pytest.mark.parametrize("count", [4, 8, 16])
def test_short_prompts_of_one_caller_take_no_longer_in_pieces(kind: type[Timed], count: int) -> None:
    """So many prompts of 50 tokens at once: written to their ends in a twentieth more than they take whole."""

    def seconds(**limits: float) -> float:
        reader = kind(*LLAMA, 0.03)
        chosen: Any = {"late_seconds": None, **limits}
        scheduler = Scheduler(reader, SchedulerLimits(**chosen), clock=lambda: reader.now)
        submit(scheduler, [3] * 30, 3)
        while not scheduler.is_idle:
            scheduler.step()
        start = reader.now
        for number in range(count):
            submit(scheduler, [10 + number] * 50, 40)
        while not scheduler.is_idle:
            scheduler.step()
        return reader.now - start

    assert seconds() <= 1.05 * seconds(step_factor=math.inf, piece_seconds=math.inf)


@pytest.mark.parametrize("length", [30, 60, 500])
def test_prompts_of_one_caller_do_not_hold_up_what_another_writes(length: int) -> None:
    """However many come, short or long: a token of another caller takes twice the time without them at most."""
    reader = Timed(*LLAMA, 0.0)
    scheduler = Scheduler(reader, SchedulerLimits(late_seconds=None, sequences=32), clock=lambda: reader.now)
    row = submit(scheduler, [1] * 20, 4000, key="good")
    for _ in range(100):
        scheduler.step()
    start, first, asked = reader.now, len(row.output.token_ids), 0
    while len(row.output.token_ids) < first + 300:
        while scheduler.running + scheduler.waiting < 8:  # one of them is written at a time, so that steps are alike
            asked += 1
            submit(scheduler, [asked % 100] * length, 1, key="greedy")
        scheduler.step()
    assert (reader.now - start) / 300 <= 2.1 * 0.0125


@pytest.mark.parametrize("costs", [LLAMA, (0.02, 0.00001, 0.0)], ids=["llama.cpp", "an accelerator"])
def test_rows_of_one_caller_do_not_hold_up_those_of_another(costs: tuple[float, float, float]) -> None:
    """Beside 30 rows of another caller, two rows take twice as long at most; all 30 get on, and where they cost nothing
    they get on in every step."""
    reader = Timed(*costs, 0.0)
    scheduler = Scheduler(reader, SchedulerLimits(late_seconds=None, sequences=32), clock=lambda: reader.now)
    good = [submit(scheduler, [1 + number] * 5, 3000, key="good") for number in range(2)]

    def step_seconds(steps: int) -> float:
        first, start = len(good[0].output.token_ids), reader.now
        while len(good[0].output.token_ids) < first + steps:
            scheduler.step()
        return (reader.now - start) / steps

    step_seconds(20)
    alone = step_seconds(100)
    greedy = [submit(scheduler, [10 + number] * 5, 3000, key="greedy") for number in range(30)]
    while any(handle.state is not State.WRITING for handle in greedy):
        scheduler.step()
    step_seconds(50)
    before = [len(handle.output.token_ids) for handle in greedy]
    beside = step_seconds(300)
    gained = [len(handle.output.token_ids) - known for handle, known in zip(greedy, before, strict=True)]
    assert beside <= 2.1 * alone
    assert max(gained) - min(gained) <= 2 and min(gained) >= (300 if costs[1] < 1e-4 else 20)


def test_a_short_request_is_not_read_beside_all_rows_of_another_caller() -> None:
    """A prompt of 14 tokens and 4 tokens written, beside 32 rows of another caller: a step of all these, which may have
    begun, and twice the time alone at most."""
    reader = Timed(*LLAMA, 0.0)
    scheduler = Scheduler(reader, SchedulerLimits(late_seconds=None, sequences=33), clock=lambda: reader.now)

    def seconds(number: int) -> float:
        handle, start = submit(scheduler, [1 + number] * 14, 4, key="good"), reader.now
        while handle.state is not State.DONE:
            scheduler.step()
        return reader.now - start

    seconds(0)
    alone = max(seconds(1 + number) for number in range(10))
    for number in range(32):
        submit(scheduler, [50 + number] * 5, 3000, key="greedy")
    for _ in range(60):
        scheduler.step()
    beside = list[float]()
    for number in range(10):
        beside.append(seconds(11 + number))
        scheduler.step()
    assert max(beside) <= 2 * alone and scheduler.running == 32


@pytest.mark.parametrize("costs", [LLAMA, (0.02, 0.00001, 0.0)], ids=["llama.cpp", "an accelerator"])
def test_rows_and_prompts_of_one_caller_share_its_part(costs: tuple[float, float, float]) -> None:
    """Beside 20 rows and prompts without end of another caller, a row takes twice as long at most; that one's rows and
    its prompts both get on, and where they cost nothing the rows get on in every step."""
    reader = Timed(*costs, 0.0)
    scheduler = Scheduler(reader, SchedulerLimits(late_seconds=None, sequences=32), clock=lambda: reader.now)
    good, prompts = submit(scheduler, [1] * 5, 4000, key="good"), list[Handle]()
    steps = 80 if costs[1] < 1e-4 else 300

    def ask_more() -> None:
        while scheduler.running + scheduler.waiting < 30:
            number = len(prompts)
            prompts.append(submit(scheduler, [number % 90, number % 7] * (100 if number % 3 else 20), 1, key="greedy"))

    def step_seconds(steps: int, act: Callable[[], None] = lambda: None) -> float:
        first, start = len(good.output.token_ids), reader.now
        while len(good.output.token_ids) < first + steps:
            act()
            scheduler.step()
        return (reader.now - start) / steps

    step_seconds(20)
    alone = step_seconds(100)
    greedy = [submit(scheduler, [10 + number] * 5, 3000, key="greedy") for number in range(20)]
    while any(handle.state is not State.WRITING for handle in greedy):
        scheduler.step()
    step_seconds(50, ask_more)
    before = [len(handle.output.token_ids) for handle in greedy]
    beside = step_seconds(steps, ask_more)
    gained = [len(handle.output.token_ids) - known for handle, known in zip(greedy, before, strict=True)]
    finished = sum(prompt.state is State.DONE for prompt in prompts)
    assert beside <= 2.1 * alone
    assert min(gained) >= (0.95 * steps if costs[1] < 1e-4 else 5) and finished >= 2


@pytest.mark.parametrize("noise", [pytest.param(0.0, marks=nightly), 0.05])
@pytest.mark.parametrize("asks", [False, True], ids=["rows", "rows and prompts"])
def test_a_small_request_waits_for_a_short_step(asks: bool, noise: float) -> None:
    """Four tokens for a caller whose prompt is known, beside 20 rows of another and prompts that come again and again:
    9 of 10 take 3.2 times the time alone at most (4 beside prompts), with all of the step that runs when they come."""
    reader = Timed(*LLAMA, noise)
    scheduler = Scheduler(reader, SchedulerLimits(late_seconds=None, sequences=33), clock=lambda: reader.now)
    asked = itertools.count()

    def step() -> None:
        while is_beside and asks and scheduler.running + scheduler.waiting < 24:
            number = next(asked)
            submit(scheduler, [number % 90, number % 7] * 20, 20, key="greedy")
        scheduler.step()

    def seconds() -> float:
        handle, start = submit(scheduler, [1] * 40, 4, key="good"), reader.now
        while handle.state is not State.DONE:
            step()
        return reader.now - start

    is_beside = False
    seconds()
    alone = np.mean([seconds() for _ in range(20)])
    for number in range(20):
        submit(scheduler, [50 + number] * 5, 3000, key="greedy")
    is_beside = True
    for _ in range(150):  # in which it is learned what steps of so many rows take
        step()
    seconds()  # its prompt was forgotten
    beside = list[float]()
    for number in range(30):
        arrived = reader.now
        step()  # it comes as this begins
        beside.append(reader.now - arrived + seconds())
        for _ in range(number % 3):
            step()
    assert np.quantile(beside, 0.9) <= (4 if asks else 3.2) * alone


@pytest.mark.full
def test_one_slow_step_is_not_believed_for_good() -> None:
    """The first steps of several rows met other work of the machine; all rows are written together soon after."""
    reader = Timed(0.012, 0.0005, 0.0, 0.0)
    scheduler = Scheduler(reader, SchedulerLimits(late_seconds=None, sequences=32), clock=lambda: reader.now)
    alone = submit(scheduler, [1] * 5, 40, key="good")
    while alone.state is not State.DONE:
        scheduler.step()
    for tokens in (2, 4, 8, 16, 32):
        scheduler.cost.observe(tokens, 0, 3.0)
    many = [submit(scheduler, [10 + number] * 5, 3000, key="greedy") for number in range(32)]
    for _ in range(1500):
        scheduler.step()
    before = sum(len(handle.output.token_ids) for handle in many)
    for _ in range(100):
        scheduler.step()
    assert sum(len(handle.output.token_ids) for handle in many) - before >= 0.95 * 100 * 32


@pytest.mark.parametrize("length", [100, 400])
def test_callers_take_turns_at_prompts(length: int) -> None:
    """One caller asks for shorter prompts without end; another's is read in twice the time that it takes alone, and a
    step or two."""
    reader = Timed(*LLAMA, 0.0)
    scheduler = Scheduler(reader, SchedulerLimits(late_seconds=None, sequences=16), clock=lambda: reader.now)
    submit(scheduler, [1] * 20, 3, key="good")
    while not scheduler.is_idle:
        scheduler.step()
    asked = 0

    def greedy() -> None:
        nonlocal asked
        while scheduler.running + scheduler.waiting < 12:
            asked += 1
            submit(scheduler, [asked % 100] * 40, 1, key="greedy")

    for _ in range(20):
        greedy()
        scheduler.step()
    late, start = submit(scheduler, [111] * length, 1, key="good"), reader.now
    while late.state is not State.DONE:
        greedy()
        scheduler.step()
    assert reader.now - start <= 2 * (4 / 3) * (length * 0.0065) + 1.0


def test_prompts_get_on_where_steps_vary_much() -> None:
    reader = Timed(*LLAMA, noise=1.0)
    scheduler = Scheduler(reader, SchedulerLimits(late_seconds=None), clock=lambda: reader.now)
    submit(scheduler, [1] * 20, 4000)
    for _ in range(100):
        scheduler.step()
    late, start = submit(scheduler, [2] * 400, 1), reader.now
    while late.state is not State.DONE:
        scheduler.step()
    assert reader.now - start <= 10 * 400 * 0.006


@pytest.mark.parametrize("token", [0.0001, 0.006, 0.036, 0.2])
def test_what_comes_while_a_long_prompt_is_read_alone_waits_for_a_piece(token: float) -> None:
    """It has its first token within two pieces, whatever tokens cost; of the very first, nothing is known yet."""
    reader = Timed(0.01, token, 0.0, 0.0)
    limits = SchedulerLimits(late_seconds=None)
    scheduler = Scheduler(reader, limits, clock=lambda: reader.now)
    submit(scheduler, [3] * 10, 2)
    while not scheduler.is_idle:
        scheduler.step()
    submit(scheduler, [1] * 4000, 5)
    own = 0.01 + 8 * token
    for _ in range(4):
        for _ in range(3):
            scheduler.step()
        arrived = reader.now
        scheduler.step()  # it comes as this begins
        small = submit(scheduler, [2] * 8, 1)
        while small.state is not State.DONE:
            scheduler.step()
        assert reader.now - arrived <= 2 * (limits.piece_seconds + own) + 2 * own


def test_a_long_prompt_gets_on_beside_any_number_of_short_ones() -> None:
    reader = Timed(*LLAMA, 0.0)
    scheduler = Scheduler(reader, SchedulerLimits(late_seconds=None, sequences=8), clock=lambda: reader.now)
    long = submit(scheduler, [1] * 500, 1)
    for _ in range(3000):
        if long.state is State.DONE:
            return
        while scheduler.running + scheduler.waiting < 8:
            submit(scheduler, [2] * 30, 20)
        scheduler.step()
    raise AssertionError(f"{long.held} of 500 tokens were read")


def test_deadlines_and_withdrawals_hold_between_pieces() -> None:
    reader = Timed(0.01, 0.036, 0.0, 0.0)
    scheduler = Scheduler(reader, SchedulerLimits(late_seconds=None), clock=lambda: reader.now)
    submit(scheduler, [3] * 10, 2)
    while not scheduler.is_idle:
        scheduler.step()
    start = reader.now
    late = submit(scheduler, [1] * 4000, 5, seconds=2.0)
    while late.state is not State.DONE:
        scheduler.step()
    assert isinstance(late.error, QueueError) and "4000 tokens" in str(late.error)
    assert reader.now - start <= 2.0 + 2 * SchedulerLimits.piece_seconds
    again = submit(scheduler, [1] * 4000, 5)
    scheduler.step()
    assert again.cached_tokens >= 40, "who asks again goes on from there"
    scheduler.cancel(again)
    left = submit(scheduler, [2] * 4000, 5)
    scheduler.step()
    scheduler.step()
    scheduler.cancel(left)
    before = reader.now
    scheduler.step()
    assert isinstance(left.error, CancelledError) and reader.now == before and scheduler.is_idle


def test_a_factor_without_end_reads_all_beside() -> None:
    limits = SchedulerLimits(late_seconds=None, step_factor=math.inf, piece_seconds=math.inf)
    scheduler = Scheduler(Timed(*LLAMA, 0.0), limits)
    submit(scheduler, [1], 90)
    scheduler.step()
    late = submit(scheduler, [2] * 900, 1)
    scheduler.step()
    assert late.state is State.DONE


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
