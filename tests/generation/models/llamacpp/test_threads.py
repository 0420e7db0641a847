"""Threads of llama.cpp: against a model of what calls take, the choice is soon the best one and stays there, also when
the machine becomes busy and quiet again."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from structgen.generation.models.llamacpp.model import load_gguf
from structgen.generation.models.llamacpp.threads import (
    MOST,
    FreeProcessors,
    ThreadChoice,
    TimedContext,
    processor_ticks,
)
from structgen.generation.models.model_runner import Part

QUIET_SMALL = {1: 12.8, 2: 10.5}  # ms: SmolLM2-135M, two cores
BUSY_SMALL = {1: 13.9, 2: 40.0}
LARGE = {1: 800.0, 2: 410.0, 4: 220.0, 8: 130.0}


def written(choice: ThreadChoice, takes: dict[int, float], calls: int, noise: Callable[[], float]) -> float:
    """What so many calls take in all."""
    spent = 0.0
    for _ in range(calls):
        seconds = takes[choice.count] * noise()
        spent += seconds
        choice.observe(seconds)
    return spent


@pytest.mark.parametrize("takes", [QUIET_SMALL, BUSY_SMALL, LARGE, {1: 5.0}, {1: 3.0, 2: 4.0, 4: 8.0, 8: 30.0}])
@pytest.mark.parametrize("spread", [0.0, 0.02])
def test_the_best_number_is_found(takes: dict[int, float], spread: float) -> None:
    rng = np.random.default_rng(0)
    choice = ThreadChoice(max(takes))
    written(choice, takes, 40, lambda: 1 + spread * abs(rng.normal()))
    spent = written(choice, takes, 400, lambda: 1 + spread * abs(rng.normal()))
    assert spent < 1.06 * 400 * min(takes.values())


def test_busy_and_quiet_again() -> None:
    rng = np.random.default_rng(1)
    choice = ThreadChoice(2)

    def noise() -> float:
        return 1 + 0.03 * abs(rng.normal()) + (0.5 if rng.random() < 0.01 else 0.0)

    written(choice, QUIET_SMALL, 300, noise)
    first = written(choice, BUSY_SMALL, 20, noise)
    assert first < 1.5 * 20 * BUSY_SMALL[1]  # seen after a call or two
    assert written(choice, BUSY_SMALL, 600, noise) < 1.08 * 600 * BUSY_SMALL[1]
    written(choice, QUIET_SMALL, MOST + 4, noise)
    assert written(choice, QUIET_SMALL, 300, noise) < 1.07 * 300 * QUIET_SMALL[2]


def test_calls_that_grow_slow_are_looked_at_again() -> None:
    choice = ThreadChoice(4)
    written(choice, {1: 9.0, 2: 5.0, 4: 3.0}, 600, lambda: 1.0)
    assert choice.count == 4
    spent = written(choice, {1: 9.5, 2: 12.0, 4: 20.0}, 60, lambda: 1.0)
    assert choice.count == 1 and spent < 60 * 12.0


def test_one_outlier_changes_little() -> None:
    choice = ThreadChoice(2)
    written(choice, QUIET_SMALL, 300, lambda: 1.0)
    written(choice, {1: 12.8, 2: 300.0}, 1, lambda: 1.0)
    assert written(choice, QUIET_SMALL, 100, lambda: 1.0) < 1.05 * 100 * QUIET_SMALL[2]


def test_each_size_of_call_has_its_own(tiny_file: Path, package: str) -> None:
    model, _ = load_gguf(tiny_file, package=package, threads=1)
    inner = model._sequences._context
    asked: list[tuple[int, int]] = []
    clock = [0.0]

    class Timed:
        """Single tokens are quicker with one thread, more with four."""

        threads = 4

        def use_threads(self, count: int) -> None:
            self.threads = count

        def decode(self, tokens, positions, sequences, wanted):
            asked.append((len(tokens), self.threads))
            clock[0] += self.threads if len(tokens) == 1 else len(tokens) / self.threads
            return inner.decode(tokens, positions, sequences, wanted)

        copy, remove = inner.copy, inner.remove

    model._sequences._context = TimedContext(Timed(), 4, lambda: clock[0], FreeProcessors(lambda: None))
    reader = model.ragged_reader()
    row, _ = reader.open([3])
    for _ in range(60):
        reader.read([Part(row, [5])])
        reader.read([Part(row, [5, 6, 7, 8, 9])])
        reader.crop(row, 3)
    assert {count for tokens, count in asked[-20:] if tokens == 1} == {1}
    assert {count for tokens, count in asked[-20:] if tokens == 5} == {4}


class Machine:
    """Two processors, on which other processes use so many of late; calls take what ``QUIET_SMALL`` and ``BUSY_SMALL``
    say, whatever their size."""

    def __init__(self) -> None:
        self.now = self.used = self.idle = self.others = 0.0
        self.threads = 2
        self.asked: list[int] = []

    def use_threads(self, count: int) -> None:
        self.threads = count

    def decode(self, tokens, positions, sequences, wanted):
        seconds = (BUSY_SMALL if self.others else QUIET_SMALL)[self.threads] / 1000
        used = min(self.threads, 2 - self.others * 2 / 3)
        self.now += seconds
        self.used += used * seconds
        self.idle += max(0.0, 2 - self.others - used) * seconds
        self.asked.append(self.threads)

    def copy(self, source: int, target: int, start: int = 0, end: int = -1) -> None: ...

    def remove(self, sequence: int, start: int) -> None: ...

    def ticks(self) -> tuple[int, int]:
        return round(100 * self.idle), round(200 * self.now)


def test_no_call_has_more_threads_than_processors_are_left() -> None:
    machine = Machine()
    free = FreeProcessors(machine.ticks, lambda: machine.used, lambda: machine.now, 2)
    context = TimedContext(machine, 2, lambda: machine.now, free)

    def counts(calls: int) -> list[int]:
        machine.asked.clear()
        for number in range(calls):
            size = 1 << number % 3
            context.decode([1] * size, range(size), [[0]] * size, [True] * size)
        return machine.asked

    counts(600)
    for _ in range(3):
        machine.others = 1.0
        counts(15)
        assert set(counts(2000)) == {1}  # none tries two, of whatever size
        machine.others = 0.0
        counts(150)  # each size has met slow calls
        assert counts(600).count(2) > 550  # the others are trials


def test_what_the_system_says_of_processors() -> None:
    found = processor_ticks()
    if sys.platform != "linux":
        assert found is None and FreeProcessors().number() == math.inf
        return
    assert found is not None and 0 <= found[0] <= found[1]
    said = iter([(0, 0), (40, 80), (40, 80), (40, 120), (41, 160), None, (90, 200)])
    used = iter([0.0, 0.1, 0.1, 0.1, 0.45, 0.5, 0.5])
    now = [0.0]
    free = FreeProcessors(lambda: next(said), lambda: next(used), lambda: now[0], 4)
    assert free.number() == math.inf  # it was asked just now
    for expected in (3, 3, 1, 3, 3, 3):  # 2 idle and 1; no tick since; none; 0.1 idle and 3.5 used; not told any more
        now[0] += 0.1001
        assert free.number() == expected


def test_a_number_that_is_named_is_kept(tiny_file: Path, package: str) -> None:
    assert not isinstance(load_gguf(tiny_file, package=package, threads=2)[0]._sequences._context, TimedContext)


def test_the_environment_is_as_it_was(tiny_file: Path, package: str) -> None:
    """What the package's threads are told is not told to other libraries and processes."""
    code = (
        "import os; before = dict(os.environ); from structgen.generation.models.llamacpp.model import load_gguf; "
        f"load_gguf({str(tiny_file)!r}, package={package!r}); assert dict(os.environ) == before"
    )
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_"))}
    for more in ({}, {"OMP_WAIT_POLICY": "active"}, {"GOMP_SPINCOUNT": "7"}):
        subprocess.run([sys.executable, "-c", code], env={**plain, **more}, check=True)
