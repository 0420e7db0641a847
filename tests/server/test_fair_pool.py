"""Threads that callers share: who asks for much waits for it alone, and what nobody wants is not done."""

from __future__ import annotations

import gc
import itertools
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from structgen.server.errors import RequestError
from structgen.server.fair_pool import FairPool, PooledWork


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What holds up the first job; open at the end."""
    found = threading.Event()
    yield found
    found.set()


def holding(gate: threading.Event) -> Callable[[PooledWork[None]], None]:
    def hold(_: PooledWork[None]) -> None:
        gate.wait(10)

    return hold


def begun(job: PooledWork[Any]) -> None:
    until = time.monotonic() + 5
    while not job.result.running() and time.monotonic() < until:
        time.sleep(0.001)
    assert job.result.running()


def noting(order: list[str], name: str, seconds: float = 0.0) -> Callable[[PooledWork[None]], None]:
    def note(_: PooledWork[None]) -> None:
        order.append(name)
        time.sleep(seconds)

    return note


def test_one_who_has_used_much_goes_last(gate: threading.Event) -> None:
    pool, order = FairPool(1, "test", waiting=100), list[str]()
    begun(pool.submit("greedy", holding(gate)))
    jobs = [pool.submit("greedy", noting(order, "greedy", 0.01)) for _ in range(4)]
    jobs += [pool.submit("other", noting(order, "other", 0.01)) for _ in range(2)]
    time.sleep(0.1)
    gate.set()
    for job in jobs:
        job.result.result(10)
    assert order == ["other", "other", "greedy", "greedy", "greedy", "greedy"]
    pool.close()


def test_a_new_caller_is_not_owed_the_time_before() -> None:
    pool, order = FairPool(1, "test", waiting=100), list[str]()
    pool.submit("old", noting(order, "old", 0.2)).result.result(10)
    gate = threading.Event()
    begun(pool.submit("old", holding(gate)))
    jobs = [pool.submit(who, noting(order, who, 0.05)) for who in ("new", "new", "new", "new", "old")]
    gate.set()
    for job in jobs:
        job.result.result(10)
    assert "old" in order[1:4], order
    pool.close()


@pytest.mark.parametrize("several", [False, True])
def test_who_has_used_much_pauses_where_others_ask_too(several: bool) -> None:
    """As long as each job took; others do not wait for the end of that."""
    pool, spans = FairPool(1, "test", waiting=100), list[tuple[float, float]]()

    def note(_: PooledWork[None]) -> None:
        started = time.monotonic()
        time.sleep(0.05)
        spans.append((started, time.monotonic()))

    if several:
        pool.submit("other", lambda _: None).result.result(10)
    jobs = [pool.submit("greedy", note) for _ in range(5)]
    jobs[1].result.result(10)
    if several:
        asked = time.monotonic()
        pool.submit("other", lambda _: None).result.result(10)
        assert any(end <= asked for _, end in spans) and len(spans) == 2, "it was done in the pause"
    for job in jobs:
        job.result.result(10)
    pauses = [start - end for (_, end), (start, _) in itertools.pairwise(spans)]
    assert min(pauses) >= 0.045 if several else min(pauses) < 0.02
    pool.close()


def test_one_caller_has_not_all_threads(gate: threading.Event) -> None:
    pool = FairPool(2, "test", each=1, waiting=100)
    first = pool.submit("greedy", holding(gate))
    begun(first)
    second = pool.submit("greedy", holding(gate))
    pool.submit("other", lambda _: None).result.result(10)
    assert not second.result.running()
    gate.set()
    second.result.result(10)
    pool.close()


def test_the_greediest_gives_way_when_it_is_full(gate: threading.Event) -> None:
    pool = FairPool(1, "test", waiting=3)
    begun(pool.submit("greedy", holding(gate)))
    waiting = [pool.submit("greedy", lambda _: None) for _ in range(3)]
    with pytest.raises(RequestError) as refused:
        pool.submit("greedy", lambda _: None)
    assert (refused.value.status, refused.value.code) == (429, "queue_full")
    other = pool.submit("other", lambda _: None)
    with pytest.raises(RequestError):
        waiting[-1].result.result(1)
    gate.set()
    for job in (*waiting[:-1], other):
        job.result.result(10)
    pool.close()


def test_what_is_given_up_is_not_done(gate: threading.Event) -> None:
    pool, order = FairPool(1, "test", waiting=3), list[str]()
    running = pool.submit("a", holding(gate))
    begun(running)
    job = pool.submit("a", noting(order, "given up"))
    assert pool.waiting == 1 and pool.give_up(job) and pool.waiting == 0
    assert not pool.give_up(running) and not running.is_wanted
    gate.set()
    pool.submit("a", noting(order, "done")).result.result(10)
    assert order == ["done"]
    pool.close()


def test_who_joins_does_not_wait_in_the_queue_of_another(gate: threading.Event) -> None:
    pool, order = FairPool(1, "test", waiting=10), list[str]()
    begun(pool.submit("greedy", holding(gate)))
    jobs = [pool.submit("greedy", noting(order, str(number))) for number in range(4)]
    pool.join("other", jobs[3])
    gate.set()
    for job in jobs:
        job.result.result(10)
    assert order == ["3", "0", "1", "2"]
    pool.close()


def test_closed(gate: threading.Event) -> None:
    pool = FairPool(1, "test", waiting=10)
    begun(pool.submit("a", holding(gate)))
    waits = pool.submit("a", lambda _: None)
    pool.close()
    assert waits.result.cancelled()
    with pytest.raises(RequestError, match="stops"):
        pool.submit("a", lambda _: None)


def test_callers_who_ask_for_nothing_are_forgotten() -> None:
    pool = FairPool(1, "test", waiting=10)
    for number in range(3_000):
        pool.submit(str(number), lambda _: None).result.result(10)
    assert len(pool._callers) <= 1_001
    pool.close()


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no niceness of their own")
def test_threads_that_give_way() -> None:
    """Those of the pool, and nobody else."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    pool = FairPool(1, "test", waiting=1, niceness=3)
    job = pool.submit("somebody", lambda _: os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
    assert job.result.result(10) == min(19, before + 3)
    assert os.getpriority(os.PRIO_PROCESS, 0) == before
    pool.close()


def test_a_thread_that_waits_holds_no_job() -> None:
    pool = FairPool(1, "structgen-test", waiting=4)

    class Request:
        pass

    def ask() -> weakref.ref[Request]:
        request = Request()

        def fail(_: PooledWork[int]) -> int:
            assert request
            raise ValueError

        with pytest.raises(ValueError):
            pool.submit("a", fail).result.result(10)
        return weakref.ref(request)

    asked, until = ask(), time.monotonic() + 10
    while asked() is not None and time.monotonic() < until:
        gc.collect()
        time.sleep(0.01)
    assert asked() is None
    pool.close()
