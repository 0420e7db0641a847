"""Runs the units of a base seed in worker processes, notices those that crash or hang, and shrinks what failed."""

from __future__ import annotations

import multiprocessing
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.fuzz import areas
from tests.fuzz.shrink import shrink
from tests.fuzz.worker import SEED, STARTED, work

SPAWN = multiprocessing.get_context("spawn")
FORK: Any = multiprocessing.get_context("fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn")
SPAN = 1_000_000_000  # seeds of one base seed
KEPT = 200  # failures kept whole; the rest are counted


@dataclass
class Run:
    """What a run has done so far."""

    base: int
    only: Sequence[str]
    tally: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    cases: list[dict[str, Any]] = field(default_factory=list)
    megabytes: float = 0.0
    workers_started: int = 0
    seconds: float = 0.0

    def fail(self, case: dict[str, Any]) -> None:
        """Count a failure, and keep it unless there are many of its kind."""
        kind = f"{case['area']}: {case['kind']}"
        self.kinds[kind] += 1
        if len(self.cases) < KEPT and self.kinds[kind] <= KEPT // 10:
            self.cases.append(case)


class _Worker:
    """A worker process, and what is known of it."""

    def __init__(self, run: Run, first: int, step: int) -> None:
        self.run, self.next, self.step = run, first, step
        self.stop = run.base * SPAN + SPAN
        self._start()

    def _start(self) -> None:
        self.receiver, sender = SPAWN.Pipe(duplex=False)
        self.flight = SPAWN.RawArray("d", 2)
        seeds = range(self.next, self.stop, self.step)
        self.process = SPAWN.Process(target=work, args=(sender, self.flight, seeds, self.run.only), daemon=True)
        self.process.start()
        sender.close()
        self.run.workers_started += 1

    def poll(self, patience: float) -> None:
        """Take what it reports; replace it if it is done, lost, or stuck for more than ``patience`` seconds."""
        self._receive()
        started = self.flight[STARTED]
        if started and time.monotonic() - started > patience:
            self._lost("hang", f"more than {patience:.0f} s")
        elif not self.process.is_alive():
            self._receive()
            code = self.process.exitcode
            if code == 0:
                self._start()
            else:
                self._lost("crash", f"exit code {code}")

    def _lost(self, kind: str, detail: str) -> None:
        seed = int(self.flight[SEED])
        self.end()
        self._receive()
        self.run.fail({"area": areas.area_of(seed, self.run.only), "seed": seed, "kind": kind, "detail": detail})
        self.next = seed + self.step
        self._start()

    def _receive(self) -> None:
        try:
            while self.receiver.poll():
                tally, cases, self.next, megabytes = self.receiver.recv()
                self.run.tally.update(tally)
                self.run.megabytes = max(self.run.megabytes, megabytes)
                for case in cases:
                    self.run.fail(case)
        except (EOFError, OSError):
            pass

    def end(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.join()


def fuzz(
    base: int,
    minutes: float,
    workers: int,
    *,
    only: Sequence[str] = (),
    texts: int | None = None,
    patience: float = 120.0,
    progress: Callable[[Run], None] = lambda run: None,
) -> Run:
    """Fuzz for some minutes, or until so many texts were judged."""
    run, start = Run(base, only), time.monotonic()
    team = [_Worker(run, base * SPAN + number, workers) for number in range(workers)]
    shown = start
    try:
        while run.seconds < 60 * minutes and (texts is None or run.tally["texts"] < texts):
            time.sleep(0.1)
            for worker in team:
                worker.poll(patience)
            run.seconds = time.monotonic() - start
            if time.monotonic() - shown > 20:
                shown = time.monotonic()
                progress(run)
    finally:
        for worker in team:
            worker.end()
            worker._receive()
    return run


def isolated(case: dict[str, Any], seconds: float = 60.0) -> str | None:
    """``replay`` in a process of its own, whose loss is an answer too."""
    areas.module(case["area"])  # the fork has it then
    receiver, sender = FORK.Pipe(duplex=False)
    process = FORK.Process(target=_answer, args=(sender, case), daemon=True)
    process.start()
    sender.close()
    process.join(seconds)
    if process.is_alive():
        process.kill()
        process.join()
        return "hang"
    if process.exitcode:
        return "crash"
    answer: str | None = receiver.recv()
    return answer


def _answer(sender: Any, case: dict[str, Any]) -> None:
    sender.send(areas.replay(case))


def shrunk(cases: list[dict[str, Any]], seconds: float = 20.0, each: int = 3) -> list[dict[str, Any]]:
    """The first few cases of each kind, made small in processes of their own (which a case may take down)."""
    count: Counter[str] = Counter()
    small = []
    for case in sorted(cases, key=lambda case: len(str(case))):
        kind = f"{case['area']}: {case['kind']}"
        count[kind] += 1
        if count[kind] > each:
            continue
        small.append(_lost_case(case, seconds) if case["kind"] in ("crash", "hang") else _shrunk(case, seconds))
    return small


def _lost_case(case: dict[str, Any], seconds: float) -> dict[str, Any]:
    """A case that takes its process down: each try in a process of its own."""
    case_of = getattr(areas.module(case["area"]), "case_of", None)
    whole = {**case, **case_of(case["seed"], case["area"])} if case_of else case

    def fails(smaller: dict[str, Any]) -> bool:
        return isolated(smaller, 15.0) == case["kind"]

    return shrink(whole, fails, 6 * seconds) if case_of and fails(whole) else case


def _shrunk(case: dict[str, Any], seconds: float) -> dict[str, Any]:
    receiver, sender = SPAWN.Pipe(duplex=False)
    process = SPAWN.Process(target=_shrink, args=(sender, case, seconds), daemon=True)
    process.start()
    sender.close()
    try:
        return dict(receiver.recv()) if receiver.poll(3 * seconds + 60) else case
    except EOFError:
        return {**case, "detail": f"{case.get('detail', '')} (lost when it was shrunk)"}
    finally:
        process.kill()
        process.join()


def _shrink(sender: Any, case: dict[str, Any], seconds: float) -> None:
    # what was found on the way from a whole text may show at another place of a smaller one
    first = areas.replay(case)
    sender.send(case if first is None else shrink(case, lambda smaller: areas.replay(smaller) == first, seconds))
