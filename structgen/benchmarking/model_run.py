"""A run of JSONSchemaBench: schemas over worker processes, a record for each output, and for each that was lost."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import TextIO

from structgen.benchmarking.coverage import machine
from structgen.benchmarking.model_server import DECODER, Job, ModelServer, ModelSetting, Record, without
from structgen.benchmarking.records import RecordFile
from structgen.benchmarking.schemas import Case
from structgen.core.workers import Limits, LostWorker, Worker


def run_benchmark(
    cases: Sequence[Case], setting: ModelSetting, limits: Limits, out: Path, *, workers: int = 1, quiet: bool = False
) -> list[Record]:
    """Write an output for each schema, engine and sampling that ``out`` does not hold yet.

    Args:
        limits: of one step of one engine (a compilation, a token), and of a process's memory.
        out: JSON lines; gone on with where it exists.
        workers: processes, each with its own model.
        quiet: no progress line on standard error.

    Returns:
        all records for these schemas and engines, those of earlier runs included.

    Raises:
        ValueError: ``out`` holds a run of another kind.
        WorkerError: a process does not come up.
    """
    file = RecordFile(out, setting.describe())
    jobs = list(_missing(cases, setting, file.records))
    with file:
        if jobs:
            _run_jobs(jobs, setting, limits, file, min(workers, len(jobs)), _Progress(len(jobs), quiet))
        names = {case.name for case in cases}
        return [r for r in file.records if r["schema"] in names and r["engine"] in setting.engines]


def pairs(setting: ModelSetting) -> list[tuple[str, str]]:
    """Every engine and sampling of a run. structgen's own decoder is run once, greedily or as all are sampled."""
    first = setting.samplings[:1]
    return [(e, s) for e in setting.engines for s in (first if e == DECODER else setting.samplings)]


def _missing(cases: Sequence[Case], setting: ModelSetting, records_before: Sequence[Record]) -> Iterator[Job]:
    done = {(record["schema"], record["engine"], record["sampling"]) for record in records_before}
    for case in cases:
        wanted = tuple(pair for pair in pairs(setting) if (case.name, *pair) not in done)
        if wanted:
            yield Job(case, wanted)


def _run_jobs(
    jobs: Sequence[Job], setting: ModelSetting, limits: Limits, file: RecordFile, count: int, progress: _Progress
) -> None:
    pool = [Worker(ModelServer, setting, limits, setting.engines) for _ in range(count)]
    file.begin(pool[0].greeting, machine())
    idle, lock = list(pool), threading.Lock()

    def run(job: Job) -> int:
        with lock:
            worker = idle.pop()
        lost = 0
        for records in _answers(worker, job):
            file.append(*records)
            with lock:
                file.records += records
            lost += sum(record["outcome"] in ("crash", "timeout", "memory") for record in records)
        with lock:
            idle.append(worker)
        return lost

    with ThreadPoolExecutor(count) as threads:
        futures = [threads.submit(run, job) for job in jobs]
        try:
            for future in as_completed(futures):
                progress.step(future.result())
        except BaseException:  # an interruption, or a process that does not come back: what is on record stays
            for future in futures:
                future.cancel()
            raise
        finally:
            for worker in pool:
                worker.close()
            progress.end()


def _answers(worker: Worker, job: Job) -> Iterator[list[Record]]:
    """The records of a job; an engine that the process is lost over gets its record, and the others a fresh process."""
    while job.wanted:
        try:
            answer: list[Record] = worker.run(job)
            yield answer
            return
        except LostWorker as loss:
            # Nobody marked: the model itself was at work. Then nothing more can be had from this schema.
            blamed = [pair for pair in job.wanted if loss.culprit in (None, pair[0])]
            common = {"dataset": job.case.dataset, "schema": job.case.name, "outcome": loss.outcome, "error": str(loss)}
            yield [{**common, "engine": engine, "sampling": sampling} for engine, sampling in blamed]
            job = without(job, {engine for engine, _ in blamed})


class _Progress:
    """One line on standard error: done, lost, and how long it will take at the present pace."""

    def __init__(self, total: int, quiet: bool) -> None:
        self._total, self._done, self._lost, self._began = total, 0, 0, time.monotonic()
        self._stream: TextIO | None = None if quiet else sys.stderr

    def step(self, lost: int) -> None:
        """One more schema is done."""
        self._done, self._lost = self._done + 1, self._lost + lost
        elapsed = time.monotonic() - self._began
        left = elapsed / self._done * (self._total - self._done)
        if self._stream:
            text = f"{self._done:,} of {self._total:,} schemas, {elapsed / 60:.0f} min, about {left / 60:.0f} to go"
            print(f"\r{text}{f', {self._lost} lost' if self._lost else ''} ", end="", file=self._stream, flush=True)

    def end(self) -> None:
        """Close the line."""
        if self._stream:
            print(file=self._stream)
