"""Processes that are lost: to a crash, a hang, too much memory; who is blamed, and that work goes on."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from structgen.core.workers import Limits, LostWorker, Worker, WorkerError, resident_bytes
from tests.echo_server import Echo


@pytest.mark.full
def test_losses_are_told_apart_and_a_fresh_process_takes_over() -> None:
    worker = Worker(Echo, "world", Limits(1.0), ("a", "b"))
    try:
        assert worker.greeting == "hello world"
        assert worker.run(("echo", 42)) == 42
        with pytest.raises(LostWorker, match="over 1 s") as lost:
            worker.run(("mark", "a"))
        assert (lost.value.outcome, lost.value.culprit) == ("timeout", "a")
        with pytest.raises(LostWorker, match="exit code 7") as lost:
            worker.run(("exit", 7))
        assert (lost.value.outcome, lost.value.culprit) == ("crash", "b")
        assert worker.run(("echo", "still there")) == "still there"
        assert worker.restarts == 2
    finally:
        worker.close()


def test_a_run_that_is_given_up_loses_nothing() -> None:
    worker = Worker(Echo, "world", Limits(100.0), ("a",))
    with ThreadPoolExecutor(1) as threads:
        job = threads.submit(worker.run, ("mark", "a"))
        time.sleep(0.3)
        worker.close()
        with pytest.raises(WorkerError, match="given up"):
            job.result()
    assert worker.restarts == 0


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the guard reads /proc")
def test_memory_guard() -> None:
    worker = Worker(Echo, "world", Limits(100.0, 600 << 20))
    try:
        with pytest.raises(LostWorker, match="GiB resident") as lost:
            worker.run(("allocate", 700 << 20))
        assert (lost.value.outcome, lost.value.culprit) == ("memory", None)
    finally:
        worker.close()


@pytest.mark.full
@pytest.mark.parametrize("has_proc", [True, False])
def test_processor_time_is_told_from_waiting(has_proc: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system tells it, and where the process does itself (Windows)."""
    if not has_proc:
        monkeypatch.setattr("structgen.core.workers.processor_seconds", lambda _: None)
    elif not Path("/proc/self/stat").exists():
        pytest.skip("this system has no /proc")
    worker = Worker(Echo, "world", Limits(100.0, processor_seconds=0.7), ("a",))
    try:
        assert worker.run(("sleep", 1.5)) == "slept"
        with pytest.raises(LostWorker, match="processor time") as lost:
            worker.run(("spin", 60))
        assert lost.value.outcome == "processor"
    finally:
        worker.close()


@pytest.mark.full
def test_what_nobody_wants_is_ended() -> None:
    worker = Worker(Echo, "world", Limits(100.0), ("a",))
    try:
        assert worker.run(("sleep", 0.5), lambda: False) == "slept"  # what ends soon is waited for
        with pytest.raises(LostWorker) as lost:
            worker.run(("sleep", 60), lambda: False)
        assert lost.value.outcome == "unwanted"
        assert worker.run(("echo", 1)) == 1
    finally:
        worker.close()


def test_a_server_that_does_not_start() -> None:
    with pytest.raises(WorkerError, match="could not be loaded"):
        Worker(Echo, "broken", Limits(1.0))


def test_resident_memory() -> None:
    assert resident_bytes(os.getpid()) > 1 << 20 or not Path("/proc/self/statm").exists()
    assert resident_bytes(None) == 0
