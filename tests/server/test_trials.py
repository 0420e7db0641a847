"""Trials in forked processes: what ends each of them, and that no other, nor the host, notices."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from structgen.core.workers import Limits, LostWorker, WorkerError
from structgen.server.trials import CAN_FORK, TrialHost, TrialJob, TrialWorkers
from tests.trial_jobs import attempts

needs_forks = pytest.mark.skipif(not CAN_FORK, reason="the system has no forks")
needs_proc = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the guard reads /proc")
ENOUGH = Limits(60.0, None, 30.0)


def job(what: str, value: Any = None, limits: Limits = ENOUGH, niceness: int = 0) -> TrialJob:
    return TrialJob((what, value), limits, niceness)


@pytest.fixture(scope="module")
def host() -> Iterator[TrialHost]:
    if not CAN_FORK:
        pytest.skip("the system has no forks")
    found = TrialHost(attempts, "a setting")
    yield found
    found.close()


def test_each_trial_has_a_process_of_one_host(host: TrialHost) -> None:
    found = [host.run(job("echo", number)) for number in range(5)]
    assert [(setting, value) for setting, value, _, _ in found] == [("a setting", number) for number in range(5)]
    assert len({pid for _, _, pid, _ in found}) == 5 and len({parent for _, _, _, parent in found}) == 1


@pytest.mark.first_case
@pytest.mark.parametrize(
    ("asked", "outcome"),
    [
        (job("spin", 60, Limits(60.0, None, 0.2)), "processor"),
        (job("spin without Python", None, Limits(60.0, None, 0.2)), "processor"),
        (job("sleep", 60, Limits(0.5, None, 30.0)), "timeout"),
        (job("exit", 7), "crash"),
        (job("fail", "of a request"), "crash"),
        pytest.param(job("allocate", 700 << 20, Limits(60.0, 400 << 20, 30.0)), "memory", marks=needs_proc),
    ],
    ids=lambda value: value.data[0] if isinstance(value, TrialJob) else value,
)
def test_losses_are_told_apart(
    host: TrialHost, asked: TrialJob, outcome: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Beside one that goes on, and before one that is as any other. Nothing of a job is printed."""
    parent, started = host.run(job("echo"))[3], time.monotonic()
    with ThreadPoolExecutor(1) as threads:
        beside = threads.submit(host.run, job("sleep", 1.0))
        with pytest.raises(LostWorker) as lost:
            host.run(asked)
        assert lost.value.outcome == outcome and time.monotonic() - started < 20
        assert beside.result()[3] == host.run(job("echo"))[3] == parent
    assert "secret" not in "".join(capfd.readouterr())


@pytest.mark.full
def test_processor_time_is_told_from_waiting(host: TrialHost) -> None:
    assert host.run(job("sleep", 1.0, Limits(60.0, None, 0.3)))


def test_what_nobody_wants_is_ended(host: TrialHost) -> None:
    started = time.monotonic()
    with pytest.raises(LostWorker) as lost:
        host.run(job("sleep", 60), lambda: time.monotonic() < started + 0.3)
    assert lost.value.outcome == "unwanted" and time.monotonic() - started < 10


def test_many_at_once_have_their_own_answers(host: TrialHost) -> None:
    """Large ones too, while others are lost or left."""

    def run(number: int) -> bool:
        if number % 3 == 1:
            with pytest.raises(LostWorker):
                host.run(job("exit", 3))
        elif number % 3 == 2:
            with pytest.raises(LostWorker):
                host.run(job("sleep", 60), lambda: False)
        else:
            return bool(host.run(job("large", number)) == bytes([number]) * (5 << 20))
        return True

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(run, range(40)))


@needs_proc
def test_nothing_is_left_of_trials(host: TrialHost) -> None:
    """No file is left open, in the server or in the host, and no process that has ended."""
    parent = childless(host)

    def held() -> tuple[int, ...]:
        return *(len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in ("self", parent)), len(children_of(parent))

    before = held()
    for number in range(30):
        assert host.run(job("echo", number))
        with pytest.raises(LostWorker):
            host.run(job("exit", 1))
    until(lambda: held() == before)


@pytest.mark.full
@needs_forks
def test_a_lost_host_is_replaced() -> None:
    host = TrialHost(attempts, "a setting")
    try:
        first = host.run(job("echo"))[3]
        with ThreadPoolExecutor(1) as threads:
            beside = threads.submit(host.run, job("sleep", 2.0))
            time.sleep(0.3)
            host.run(job("kill"))  # which a trial does to the host, and is answered
            second = host.run(job("echo"))[3]
            assert second != first and beside.result()[:2] == ("a setting", 2.0)
    finally:
        host.close()


@needs_forks
@needs_proc
def test_what_is_closed_leaves_no_process() -> None:
    host = TrialHost(attempts, "a setting")
    parent = childless(host)
    with ThreadPoolExecutor(2) as threads:
        lost = [threads.submit(host.run, job("sleep", 60)) for _ in range(2)]
        until(lambda: len(children_of(parent)) == 2)
        processes = [parent, *children_of(parent)]
        host.close()
        for future in lost:
            with pytest.raises((LostWorker, WorkerError)):
                future.result()
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in processes))
    with pytest.raises(WorkerError, match="given up"):
        host.run(job("echo"))


@needs_forks
@needs_proc
def test_trials_end_with_a_host_that_is_stopped() -> None:
    host = TrialHost(attempts, "a setting")
    try:
        parent = childless(host)
        with ThreadPoolExecutor(1) as threads:
            lost = threads.submit(host.run, job("sleep", 60))
            until(lambda: len(children_of(parent)) == 1)
            child = children_of(parent)[0]
            os.kill(parent, signal.SIGTERM)
            with pytest.raises(LostWorker):
                lost.result()
        until(lambda: not Path(f"/proc/{child}").exists())
    finally:
        host.close()


@needs_forks
def test_a_trial_ends_with_a_host_that_is_stopped_while_it_forks() -> None:
    host, started = TrialHost(attempts, "stopped while it forks"), time.monotonic()
    try:
        with pytest.raises(LostWorker):
            host.run(job("sleep", 60))
        assert time.monotonic() - started < 50
    finally:
        host.close()


@needs_forks
def test_a_host_that_does_not_start() -> None:
    with pytest.raises(WorkerError, match="could not be loaded"):
        TrialHost(attempts, "broken")


def test_without_forks() -> None:
    """The same by processes that live on."""
    workers = TrialWorkers(attempts, "a setting", 1)
    try:
        assert workers.run(job("echo", 3))[:2] == ("a setting", 3)
        with pytest.raises(LostWorker) as lost:
            workers.run(job("sleep", 60, Limits(0.5)))
        assert lost.value.outcome == "timeout"
        with pytest.raises(LostWorker) as lost:
            workers.run(job("echo"), lambda: False)
        assert lost.value.outcome == "unwanted"
        assert workers.run(job("echo", 4))[:2] == ("a setting", 4)
    finally:
        workers.close()


def childless(host: TrialHost) -> int:
    """A host's process, once the trial that said which it is has ended: what is seen next is another's."""
    parent: int = host.run(job("echo"))[3]
    until(lambda: not children_of(parent))
    return parent


def children_of(parent: int) -> list[int]:
    return list(map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text().split()))


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)
