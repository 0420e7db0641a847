"""What a constraint costs in a step, and whom a slow one holds up: in this process, where steps can be told apart."""

from __future__ import annotations

import asyncio
import itertools
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager
from typing import Any

import structgen
from serving_load.lab import Lab
from serving_load.measurements import Found, measurement, quantile, ratio_of_rounds, say, spread
from serving_load.workload import SCHEMAS, words
from structgen.generation.decoding.output import Output
from structgen.generation.generator import Generator
from structgen.generation.models.runner_factory import ragged_reader
from structgen.generation.sampling import SamplingParams
from structgen.generation.scheduler.budget import SchedulerLimits
from structgen.generation.scheduler.request import Request
from structgen.generation.scheduler.scheduler import Scheduler
from structgen.server.async_compiler import PlainCompiling
from structgen.server.engine import AsyncEngine

ROWS = 16


class _Recorded(Output):
    """An output that notes before which of its tokens it was asked to choose."""

    def __init__(self, *given: Any, **options: Any) -> None:
        self.asked: list[int] = []
        super().__init__(*given, **options)

    def take(self, token: int, log_prob: float, logits: Any, row: int, log_mass: float | None = None) -> None:
        """See ``Output``."""
        self.asked.append(len(self.token_ids))
        super().take(token, log_prob, logits, row, log_mass)

    def group(self, number: int) -> list[int]:
        """The tokens before the first choice, or from one choice to the next."""
        bounds = [0, *self.asked, len(self.token_ids)]
        return self.token_ids[bounds[number] : bounds[number + 1]]


class _Replayed(Output):
    """Free text that takes the tokens of another output in the same steps, whatever is drawn."""

    def __init__(self, other: _Recorded, *given: Any, **options: Any) -> None:
        self._other, self._group = other, 0
        self._ahead: list[int] = []
        super().__init__(*given, **options)

    def take(self, token: int, log_prob: float, logits: Any, row: int, log_mass: float | None = None) -> None:
        """See ``Output``."""
        self._group += 1
        self._ahead = self._other.group(self._group)
        self._append_next()

    def advance_forced(self) -> None:
        """See ``Output``."""
        if not self._group:
            self._ahead = self._other.group(0)
        while self._ahead:
            self._append_next()
        if self._group == len(self._other.asked):
            self.finish_reason = self._other.finish_reason

    def _append_next(self) -> None:
        if self._ahead:
            token = self._ahead.pop(0)
            self.token_ids.append(token)
            self.pending.append(token)
            self.token_log_probs.append(0.0)


@measurement(
    "constraint", "16 rows of W under schemas, over a step with the same tokens without (median)", at_most=1.03
)
async def constraint(lab: Lab) -> Found:
    """Two schedulers on one model take the same steps, by turns; seconds are of the processor."""
    generator, ratios, masks = lab.generator(), list[float](), list[float]()
    for number in range(lab.count(2, 1)):
        found, share = _both(generator, 5000 + 100 * number)
        ratios += found
        masks.append(share)
        say(f"a step takes {statistics.median(found):.3f} x, {share:.2%} of it on masks ({len(found)} steps)")
    return Found(
        statistics.median(ratios), {"ratios": spread(ratios), "mask_share": [round(share, 5) for share in masks]}
    )


def _both(generator: Generator, seed: int) -> tuple[list[float], float]:
    """Each step's time under constraints over that without, and the share of masks in it."""
    schedulers = [Scheduler(ragged_reader(generator.model, 0), SchedulerLimits(sequences=ROWS)) for _ in range(2)]
    recorded = []
    for row in range(ROWS):
        prompt = list(generator.tokenizer.encode(words(seed + row, 40)))
        matcher = structgen.json_schema(SCHEMAS[row % len(SCHEMAS)]).compile(generator.vocabulary).matcher()
        params, budget = SamplingParams(0.8, seed=seed + row), 100
        recorded.append(_Recorded(generator.vocabulary, matcher, params, max_new_tokens=budget))
        replayed = _Replayed(recorded[-1], generator.vocabulary, None, params, max_new_tokens=budget)
        for scheduler, output in zip(schedulers, (recorded[-1], replayed), strict=True):
            scheduler.submit(Request(prompt, output))
    ratios, total, is_reading = list[float](), 0.0, True
    while not schedulers[0].is_idle:
        seconds = [_step_seconds(scheduler) for scheduler in schedulers]
        if not is_reading:
            ratios.append(seconds[0] / seconds[1])
            total += seconds[0]
        is_reading = any(len(output.token_ids) == 0 for output in recorded)
    assert schedulers[1].is_idle, "the rows without constraints have taken other steps"
    return ratios, sum(output.stats.mask_seconds for output in recorded) / total


def _step_seconds(scheduler: Scheduler) -> float:
    start = time.process_time()
    scheduler.step()
    return time.process_time() - start


class _SlowMatcher:
    """A matcher each of whose masks takes long."""

    def __init__(self, matcher: Any, work: Callable[[], None]) -> None:
        self._matcher, self._work = matcher, work

    def __getattr__(self, name: str) -> Any:
        return getattr(self._matcher, name)

    def fill_next_token_bitmask(self, *given: Any) -> Any:
        self._work()
        return self._matcher.fill_next_token_bitmask(*given)

    def fork(self) -> _SlowMatcher:
        return _SlowMatcher(self._matcher.fork(), self._work)


class _SlowGrammar:
    """A grammar whose matchers are slow."""

    def __init__(self, grammar: Any, work: Callable[[], None]) -> None:
        self._grammar, self._work = grammar, work

    def __getattr__(self, name: str) -> Any:
        return getattr(self._grammar, name)

    def matcher(self) -> Any:
        return _SlowMatcher(self._grammar.matcher(), self._work)


def in_a_kernel() -> None:
    """A second in code that lets other threads run."""
    time.sleep(1.0)


def in_python() -> None:
    """A second in code of Python."""
    until = time.perf_counter() + 1.0
    while time.perf_counter() < until:
        pass


FAST, SLOW = structgen.regex("[d-f]{3,9}"), structgen.regex("[a-c]{3,9}")


@measurement(
    "slow-mask", "others' token gap beside an output with masks of 1 s, over that beside a fast one (p99)", at_most=1.2
)
async def slow_mask(lab: Lab) -> Found:
    return await _beside_slow(lab, in_a_kernel)


@measurement(
    "slow-python-mask", "the same where the second is spent in Python, which only one thread can run", at_most=2.0
)
async def slow_python_mask(lab: Lab) -> Found:
    return await _beside_slow(lab, in_python)


async def _beside_slow(lab: Lab, work: Callable[[], None]) -> Found:
    generator = lab.generator()

    class Compiling(PlainCompiling):
        def known(self, constraint: Any) -> Any:
            return None

        def compile(self, constraint: Any, is_wanted: Any, seconds: float | None) -> Any:
            grammar = super().compile(constraint, is_wanted, seconds)
            return _SlowGrammar(grammar, work) if constraint == SLOW else grammar

    without, beside, ends = list[list[float]](), list[list[float]](), list[str]()
    with _engine(generator, Compiling(generator.vocabulary)) as engine:
        arrived: list[list[float]] = [[] for _ in range(8)]
        writing = [asyncio.create_task(_write_on(engine, row, times)) for row, times in enumerate(arrived)]
        while any(len(times) < 3 for times in arrived):
            await asyncio.sleep(0.05)
        for number in range(2 * lab.count(4)):
            is_slow = bool(number % 2)
            start = time.perf_counter()
            joining = asyncio.create_task(engine.agenerate("Hello", SLOW if is_slow else FAST, max_new_tokens=10))
            await asyncio.sleep(5)
            (beside if is_slow else without).append(_gaps(arrived, start, time.perf_counter()))
            if is_slow:
                ends.append(_end_of(joining))
                found = quantile(without[-1], 0.99), quantile(beside[-1], 0.99)
                say(f"p99 of a gap: {found[0]:.3f} s, {found[1]:.3f} s if it is slow")
            joining.cancel()
            await asyncio.gather(joining, return_exceptions=True)
        for task in writing:
            task.cancel()
        await asyncio.gather(*writing, return_exceptions=True)
    ratios = ratio_of_rounds(beside, without, 0.99), ratio_of_rounds(beside, without, 0.5)
    return Found(
        max(ratios),
        {
            "p99_ratio": round(ratios[0], 3),
            "p50_ratio": round(ratios[1], 3),
            "without_s": spread([gap for gaps in without for gap in gaps]),
            "beside_s": spread([gap for gaps in beside for gap in gaps]),
            "the_slow_one": ends,
        },
    )


def _end_of(task: asyncio.Task[Any]) -> str:
    if not task.done():
        return "still being written"
    return type(task.exception()).__name__ if task.exception() else "written"


@contextmanager
def _engine(generator: Generator, compiling: PlainCompiling) -> Iterator[AsyncEngine]:
    engine = AsyncEngine(generator, compiling=compiling)
    try:
        yield engine
    finally:
        engine.close()


async def _write_on(engine: AsyncEngine, seed: int, times: list[float]) -> None:
    """A stream without end: when each text of it came."""
    options: dict[str, Any] = {"temperature": 1.0, "seed": seed, "max_new_tokens": 1500, "logit_bias": {2: -100.0}}
    while True:
        async with aclosing(engine.astream(words(6000 + seed, 20), **options)) as events:
            async for _ in events:
                times.append(time.perf_counter())


def _gaps(arrived: list[list[float]], start: float, end: float) -> list[float]:
    pairs = [pair for times in arrived for pair in itertools.pairwise(times)]
    return [late - early for early, late in pairs if start <= late < end]
