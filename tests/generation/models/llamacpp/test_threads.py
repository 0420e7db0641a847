"""Threads of llama.cpp: against a model of what calls take, the choice is soon the best one and stays there, also when
the machine becomes busy and quiet again."""

from __future__ import annotations

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
    IdleProcessors,
    ThreadChoice,
    TimedContext,
    processor_ticks,
)
from structgen.generation.models.model_runner import Part

QUIET_SMALL = {1: 12.8, 2: 10.5}  # ms: SmolLM2-135M, two cores
BUSY_SMALL = {1: 13.9, 2: 40.0}
UNKNOWN = IdleProcessors(lambda: None)  # which processors are idle: what tells is the time of calls alone
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
    choice = ThreadChoice(max(takes), UNKNOWN)
    written(choice, takes, 40, lambda: 1 + spread * abs(rng.normal()))
    spent = written(choice, takes, 400, lambda: 1 + spread * abs(rng.normal()))
    assert spent < 1.06 * 400 * min(takes.values())


def test_busy_and_quiet_again() -> None:
    rng = np.random.default_rng(1)
    choice = ThreadChoice(2, UNKNOWN)

    def noise() -> float:
        return 1 + 0.03 * abs(rng.normal()) + (0.5 if rng.random() < 0.01 else 0.0)

    written(choice, QUIET_SMALL, 300, noise)
    first = written(choice, BUSY_SMALL, 20, noise)
    assert first < 1.5 * 20 * BUSY_SMALL[1]  # seen after a call or two
    assert written(choice, BUSY_SMALL, 600, noise) < 1.08 * 600 * BUSY_SMALL[1]
    written(choice, QUIET_SMALL, MOST + 4, noise)
    assert written(choice, QUIET_SMALL, 300, noise) < 1.07 * 300 * QUIET_SMALL[2]


def test_more_threads_are_tried_only_where_a_processor_is_idle() -> None:
    """On a busy machine a trial of two threads takes as long as many calls; none is made till it is quiet again."""
    ticks = [0, 0]  # idle, all
    choice = ThreadChoice(2, IdleProcessors(lambda: (ticks[0], ticks[1]), 2))
    counts: list[int] = []

    def calls(takes: dict[int, float], number: int, idle: float) -> None:
        for _ in range(number):
            counts.append(choice.count)
            choice.observe(takes[choice.count])
            ticks[1] += 6  # 30 ms on two processors
            ticks[0] += round(3 * idle) if choice.count == 1 else 0

    calls(BUSY_SMALL, 40, 0)
    counts.clear()
    calls(BUSY_SMALL, 2000, 0)
    assert set(counts) == {1}
    calls(QUIET_SMALL, 2 * MOST, 1)
    assert choice.count == 2


def test_what_the_system_says_of_idle_processors() -> None:
    found = processor_ticks()
    if sys.platform != "linux":
        assert found is None
        return
    assert found is not None and 0 <= found[0] <= found[1]
    said = iter([(0, 0), (40, 80), (40, 82), None, (90, 100), (100, 400)])
    idle = IdleProcessors(lambda: next(said), 4)
    assert [idle.since_last() for _ in range(5)] == [2.0, None, None, None, pytest.approx(4 * 10 / 300)]


def test_calls_that_grow_slow_are_looked_at_again() -> None:
    choice = ThreadChoice(4, UNKNOWN)
    written(choice, {1: 9.0, 2: 5.0, 4: 3.0}, 600, lambda: 1.0)
    assert choice.count == 4
    spent = written(choice, {1: 9.5, 2: 12.0, 4: 20.0}, 60, lambda: 1.0)
    assert choice.count == 1 and spent < 60 * 12.0


def test_one_outlier_changes_little() -> None:
    choice = ThreadChoice(2, UNKNOWN)
    written(choice, QUIET_SMALL, 300, lambda: 1.0)
    written(choice, {1: 12.8, 2: 300.0}, 1, lambda: 1.0)
    assert written(choice, QUIET_SMALL, 100, lambda: 1.0) < 1.05 * 100 * QUIET_SMALL[2]


def test_each_size_of_call_has_its_own(tiny_file: Path, package: str) -> None:
    model, _ = load_gguf(tiny_file, package=package, threads=1)
    inner = model._rows._context
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

    model._rows._context = TimedContext(Timed(), 4, lambda: clock[0])
    reader = model.ragged_reader()
    row, _ = reader.open([3])
    for _ in range(60):
        reader.read([Part(row, [5])])
        reader.read([Part(row, [5, 6, 7, 8, 9])])
        reader.crop(row, 3)
    assert {count for tokens, count in asked[-20:] if tokens == 1} == {1}
    assert {count for tokens, count in asked[-20:] if tokens == 5} == {4}


def test_a_number_that_is_named_is_kept(tiny_file: Path, package: str) -> None:
    assert not isinstance(load_gguf(tiny_file, package=package, threads=2)[0]._rows._context, TimedContext)


def test_the_environment_is_as_it_was(tiny_file: Path, package: str) -> None:
    """What the package's threads are told is not told to other libraries and processes."""
    code = (
        "import os; before = dict(os.environ); from structgen.generation.models.llamacpp.model import load_gguf; "
        f"load_gguf({str(tiny_file)!r}, package={package!r}); assert dict(os.environ) == before"
    )
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_"))}
    for more in ({}, {"OMP_WAIT_POLICY": "active"}, {"GOMP_SPINCOUNT": "7"}):
        subprocess.run([sys.executable, "-c", code], env={**plain, **more}, check=True)
