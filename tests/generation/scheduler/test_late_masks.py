"""Masks that are late: their rows wait alone, and all outputs are those of the plain loop."""

from __future__ import annotations

import random
import sys
import threading
import time
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from structgen.errors import CancelledError, MaskTimeoutError
from structgen.generation.decoding.output import Output
from structgen.generation.models.padded_rows import PaddedReader
from structgen.generation.models.tiny import TinyReader
from structgen.generation.sampling import SamplingParams
from structgen.generation.scheduler.budget import SchedulerLimits
from structgen.generation.scheduler.request import Handle, Request, State
from structgen.generation.scheduler.scheduler import Scheduler
from structgen.generation.speculative.length import CostAware
from structgen.generation.speculative.speculator import Speculator
from tests.fakes import NestedMatcher
from tests.generation.scheduler.test_scheduler import MODEL, VOCABULARY, alone, fresh, outcome, prompt, run
from tests.generation.speculative.test_exactness import drafters


class Gated(NestedMatcher):
    """From its fourth token on, masks wait for a gate. Never for two threads at once."""

    gate: threading.Event
    used: threading.Lock

    def fill_next_token_bitmask(self, bitmask: npt.NDArray[np.int32], index: int = 0) -> None:
        assert self.used.acquire(blocking=False), "two threads"
        try:
            if len(self.history) > 3:
                assert self.gate.wait(20)
            super().fill_next_token_bitmask(bitmask, index)
        finally:
            self.used.release()


def gated(seed: int, matcher: Any = Gated, budget: int = 20) -> tuple[Output, threading.Event]:
    made = matcher(VOCABULARY)
    made.gate, made.used = threading.Event(), threading.Lock()
    return Output(VOCABULARY, made, SamplingParams(1.0, seed=seed), max_new_tokens=budget), made.gate


def expected(seed: int) -> Any:
    from tests.generation.decoding import plain_loop

    output = Output(VOCABULARY, NestedMatcher(VOCABULARY), SamplingParams(1.0, seed=seed), max_new_tokens=20)
    plain_loop.decode(MODEL, [[3, seed]], [output])
    return outcome(output)


def others(scheduler: Scheduler) -> dict[int, Handle]:
    speculator = Speculator(drafters(VOCABULARY, "ngram"), CostAware())
    return {seed: scheduler.submit(Request(prompt(seed), fresh(seed), speculator)) for seed in range(8)}


def finish(scheduler: Scheduler, handles: Any) -> None:
    """Step until these are done."""
    for _ in range(3000):
        if all(handle.state is State.DONE for handle in handles):
            return
        scheduler.step()
    raise AssertionError("not done")


@pytest.mark.full
@pytest.mark.parametrize("drafted", [False, True])
def test_others_go_on(drafted: bool) -> None:
    """While the masks of several rows never come, all others are written to their ends."""
    speculator = Speculator(drafters(VOCABULARY, "all"), CostAware()) if drafted else None
    interval = sys.getswitchinterval()
    scheduler = Scheduler(TinyReader(MODEL), SchedulerLimits(late_seconds=0.05))
    slow = [(*gated(seed), seed) for seed in (2, 5, 7)]
    late = [scheduler.submit(Request([3, seed], output, speculator)) for output, _, seed in slow]
    quick = others(scheduler)
    finish(scheduler, quick.values())
    assert all(outcome(handle.output) == alone(seed) for seed, handle in quick.items())
    assert all(handle.state is not State.DONE for handle in late if handle.task is not None)
    assert any(handle.task is not None for handle in late)
    for _, gate, _ in slow:
        gate.set()
    run(scheduler)
    for (_, _, seed), handle in zip(slow, late, strict=True):
        assert handle.error is None and outcome(handle.output) == expected(seed)
    assert sys.getswitchinterval() == interval


class Uneven(NestedMatcher):
    """Masks and steps that take up to some milliseconds, now and then."""

    rng = random.Random(0)

    def fill_next_token_bitmask(self, bitmask: npt.NDArray[np.int32], index: int = 0) -> None:
        time.sleep(self.rng.choice([0, 0, 0, 0.004]))
        super().fill_next_token_bitmask(bitmask, index)


@pytest.mark.full
@pytest.mark.parametrize("round_", range(4))
def test_rows_are_what_they_are_alone(round_: int) -> None:
    """Masks that are late at random, beside drafts, joins, cancellations, deadlines and preemptions."""
    from tests.generation.decoding import plain_loop

    rng = random.Random(round_)
    limits = SchedulerLimits(sequences=5, late_seconds=0.002, max_bytes=rng.choice([None, 400]))
    scheduler = Scheduler(TinyReader(MODEL), limits, overlapped=round_ % 2 == 1)
    speculators = [None, Speculator(drafters(VOCABULARY, "all"), CostAware())]

    def written(seed: int, matcher: Any) -> Output:
        params = SamplingParams(1.0, seed=seed)
        return Output(VOCABULARY, matcher(VOCABULARY), params, max_new_tokens=15, stop=("x",) if seed % 5 == 4 else ())

    handles: list[tuple[int, Handle]] = []
    seeds = list(range(16))
    while seeds or not scheduler.is_idle:
        if seeds and rng.random() < 0.5:
            seed = seeds.pop()
            request = Request(prompt(seed), written(seed, Uneven), rng.choice(speculators), streams=True)
            handles.append((seed, scheduler.submit(request)))
        if handles and rng.random() < 0.05:
            scheduler.cancel(rng.choice(handles)[1])
        scheduler.step()
    assert scheduler.running == scheduler.waiting == 0
    for seed, handle in handles:
        if isinstance(handle.error, CancelledError):
            continue
        single = written(seed, NestedMatcher)
        try:
            plain_loop.decode(MODEL, [prompt(seed)], [single])
        except Exception as error:
            assert type(handle.error) is type(error)
        else:
            assert handle.error is None and outcome(handle.output) == outcome(single)
            assert handle.streamed == len(handle.output.token_ids) and handle.shown == handle.output.text


@pytest.mark.parametrize("reader", [TinyReader, PaddedReader])
def test_a_mask_that_takes_too_long_fails_its_row(reader: Any) -> None:
    limits = SchedulerLimits(late_seconds=0.02, max_mask_seconds=0.5)
    scheduler = Scheduler(reader(MODEL), limits)
    output, gate = gated(2)
    late, quick = scheduler.submit(Request([3, 2], output)), others(scheduler)
    events = run(scheduler, 3000)
    assert isinstance(late.error, MaskTimeoutError) and "max_mask_seconds" in str(late.error)
    assert [event.error for event in events if event.handle is late and event.is_last] == [late.error]
    assert all(outcome(handle.output) == alone(seed) for seed, handle in quick.items())
    gate.set()


@pytest.mark.full
def test_a_late_row_can_be_cancelled() -> None:
    scheduler = Scheduler(TinyReader(MODEL), SchedulerLimits(late_seconds=0.02))
    output, gate = gated(2)
    late = scheduler.submit(Request([3, 2], output))
    for _ in range(100):
        scheduler.step()
    assert late.task is not None and scheduler.running == 1
    scheduler.cancel(late)
    (event,) = scheduler.step()
    assert isinstance(event.error, CancelledError) and scheduler.is_idle
    scheduler.reader.forget_prefixes()
    assert scheduler.reader.bytes == 0
    quick = others(scheduler)
    finish(scheduler, quick.values())
    gate.set()
    assert all(outcome(handle.output) == alone(seed) for seed, handle in quick.items())


def test_what_a_late_row_raises_is_its_own() -> None:
    class Broken(Gated):
        def fill_next_token_bitmask(self, bitmask: npt.NDArray[np.int32], index: int = 0) -> None:
            super().fill_next_token_bitmask(bitmask, index)
            if len(self.history) > 3:
                raise RuntimeError("broken")

    scheduler = Scheduler(TinyReader(MODEL), SchedulerLimits(late_seconds=0.02))
    output, gate = gated(2, Broken)
    late, quick = scheduler.submit(Request([3, 2], output)), others(scheduler)
    finish(scheduler, quick.values())
    gate.set()
    run(scheduler)
    assert isinstance(late.error, RuntimeError)


def test_a_late_row_closes_once_it_is_there() -> None:
    """Its time is over while its mask is made."""
    scheduler = Scheduler(TinyReader(MODEL), SchedulerLimits(late_seconds=0.02))
    output, gate = gated(2, budget=500)
    late = scheduler.submit(Request([3, 2], output, seconds=0.3))
    while late.task is None:
        scheduler.step()
    time.sleep(0.3)
    scheduler.step()
    assert late.state is not State.DONE and not late.is_hurried
    gate.set()
    run(scheduler)
    assert late.error is None and NestedMatcher(VOCABULARY).completion(late.output.text.encode()) == b""


def test_no_thread_outlives_its_work() -> None:
    before = set(threading.enumerate())
    scheduler = Scheduler(TinyReader(MODEL), SchedulerLimits(late_seconds=0.002))
    output, gate = gated(2)
    gate.set()
    scheduler.submit(Request([3, 2], output))
    others(scheduler)
    run(scheduler)
    for _ in range(100):
        left = set(threading.enumerate()) - before
        if not left:
            return
        time.sleep(0.02)
    raise AssertionError(left)
