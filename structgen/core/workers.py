"""Processes that make records and can be lost: killed when they hang or take too much memory, replaced after a crash.

A worker's process builds a *server* once (an engine, or a model with several engines) and then answers jobs. It says
what it is about to do by ``Watch.mark``, so that the parent knows whom to blame for a hang or a crash.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, Literal, Protocol

# Loading a vocabulary of 200,000 tokens takes seconds; the first import after installation also compiles kernels.
START_LIMIT_S = 300.0
# How often the parent looks at the clock and at the process's memory; an answer is taken at once.
LOOK_S = 0.25

Loss = Literal["crash", "timeout", "processor", "memory", "unwanted"]
# A job that nobody wants any more is left to end by itself for so long: a fresh process takes about as much to start.
SPARED_S = 1.0


class WorkerError(Exception):
    """A worker's process did not come up."""


class LostWorker(Exception):
    """A worker's process was lost over a job; a fresh one stands ready.

    Attributes:
        outcome: "crash" (it ended by itself), or why it was killed: "timeout" (of the clock), "processor" (time),
            "memory", "unwanted" (nobody waits for the answer any more).
        culprit: what it had marked as being done, None where it had marked nothing.
    """

    def __init__(self, outcome: Loss, message: str, culprit: str | None) -> None:
        super().__init__(message)
        self.outcome: Loss = outcome
        self.culprit = culprit


class Watch:
    """What a process is doing, and since when: shared memory between it and its parent.

    Args:
        names: what may be marked.
    """

    def __init__(self, names: Sequence[str] = ()) -> None:
        self._names = tuple(names)
        self._shared = multiprocessing.get_context("spawn").Array("d", [-1.0, 0.0, 0.0], lock=False)

    def mark(self, name: str | None) -> None:
        """From now on ``name`` is at work (None: nobody in particular), with the full time limit. About 1 µs."""
        self._shared[0] = -1.0 if name is None else self._names.index(name)
        self._shared[1] = time.monotonic()

    @property
    def culprit(self) -> str | None:
        """The last name marked."""
        index = int(self._shared[0])
        return None if index < 0 else self._names[index]

    @property
    def elapsed_s(self) -> float:
        """Seconds since the last mark."""
        return time.monotonic() - float(self._shared[1])

    @property
    def processor_s(self) -> float:
        """Processor time of the process, as it reports it itself: too little while it holds Python's lock for long."""
        return float(self._shared[2])

    def report(self) -> None:
        """Report that time, over and over; in a thread of the process."""
        while True:
            self._shared[2] = time.process_time()
            time.sleep(LOOK_S)


class Server(Protocol):
    """What a worker's process holds."""

    greeting: Any

    def __call__(self, job: Any, /) -> Any:
        """The answer to a job; both must pickle."""
        ...


@dataclass(frozen=True)
class Limits:
    """When a process is given up.

    Attributes:
        seconds: between two marks (without marks: for a job), of the clock. Beside ``processor_seconds`` it is the last
            resort, for a process that stands still: many times as much, since a busy machine lets it wait.
        memory_bytes: resident memory of the process; None: no limit.
        processor_seconds: of the process, for a job; None: no limit. Other processes' time is none of it.
    """

    seconds: float
    memory_bytes: int | None = None
    processor_seconds: float | None = None


def _serve(connection: Connection, make: Callable[[Any, Watch], Server], setting: Any, watch: Watch) -> None:
    """The child: build the server, then an answer for each job received, until the pipe closes."""
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # an engine that prints must not disturb the parent's table
    server = make(setting, watch)
    gc.collect()
    gc.freeze()  # a full collection over the vocabulary would cost 30 ms in the middle of a mask
    threading.Thread(target=watch.report, name="structgen-processor-time", daemon=True).start()
    connection.send(server.greeting)
    while True:
        try:
            job = connection.recv()
        except (EOFError, KeyboardInterrupt):
            return
        connection.send(server(job))


class Worker:
    """The parent's side of one process.

    Args:
        make: a function of a module (it is sent by name) that builds the server from the setting and the watch.
        setting: its argument; must pickle.
        limits: when the process is given up.
        names: what the server may mark.

    Attributes:
        greeting: what the server said of itself when it was built.
        restarts: processes lost so far.

    Raises:
        WorkerError: the process did not come up.
    """

    def __init__(
        self, make: Callable[[Any, Watch], Server], setting: Any, limits: Limits, names: Sequence[str] = ()
    ) -> None:
        self.restarts = 0
        self._closed = self._is_up = False
        self._before = 0.0
        self._make, self._setting, self._limits, self._names = make, setting, limits, names
        self._start()

    def _start(self) -> None:
        if self._closed:
            raise WorkerError("the run was given up")
        context = multiprocessing.get_context("spawn")
        self._watch = Watch(self._names)
        self._connection, theirs = context.Pipe()
        self._process: SpawnProcess = context.Process(
            target=_serve, args=(theirs, self._make, self._setting, self._watch), daemon=True
        )
        self._process.start()
        theirs.close()  # so that the end of the child is seen as the end of the pipe
        if not self._connection.poll(START_LIMIT_S):
            self._end()
            raise WorkerError(f"the process for {self._setting} was not ready within {START_LIMIT_S:.0f} s")
        try:
            self.greeting: Any = self._connection.recv()
        except EOFError:
            self._end()
            raise WorkerError(f"the process for {self._setting} could not be loaded; it says why above") from None
        self._is_up = True

    def run(self, job: Any, is_wanted: Callable[[], bool] = lambda: True, limits: Limits | None = None) -> Any:
        """The server's answer.

        Args:
            is_wanted: whether somebody still waits for it; a job that nobody wants is ended soon.
            limits: of this job; None: those of the worker.

        Raises:
            LostWorker: the process was lost over this job; the next job finds a fresh one.
            WorkerError: the fresh process did not come up.
        """
        if not self._is_up:  # the last fresh one did not come up
            self._start()
        limits = limits or self._limits
        self._watch.mark(None)
        self._before = self._processor_s()
        try:
            self._connection.send(job)
            while not self._connection.poll(LOOK_S):
                self._check(limits)
                if not is_wanted() and self._watch.elapsed_s > SPARED_S:
                    raise self._lose("unwanted", "nobody waits for the answer")
            return self._connection.recv()
        except (EOFError, OSError):
            if self._closed:  # by another thread, which gives the run up
                raise WorkerError("the run was given up") from None
            self._process.join()
            raise self._lose("crash", f"exit code {self._process.exitcode}") from None

    def _check(self, limits: Limits) -> None:
        """Raise LostWorker if a limit is exceeded."""
        if self._watch.elapsed_s > limits.seconds:
            raise self._lose("timeout", f"over {limits.seconds:g} s")
        longest = limits.processor_seconds
        if longest is not None and self._processor_s() - self._before > longest:
            raise self._lose("processor", f"over {longest:g} s of processor time")
        used, most = resident_bytes(self._process.pid), limits.memory_bytes
        if most is not None and used > most:
            raise self._lose("memory", f"{used / 2**30:.1f} GiB resident, the limit is {most / 2**30:.1f}")

    def _processor_s(self) -> float:
        """Processor time of the process so far."""
        used = processor_seconds(self._process.pid)
        return self._watch.processor_s if used is None else used

    def _lose(self, outcome: Loss, message: str) -> LostWorker:
        culprit = self._watch.culprit
        self._end()
        self.restarts += 1
        self._start()
        return LostWorker(outcome, message, culprit)

    def close(self) -> None:
        """End the process; a job that another thread has under way raises WorkerError there."""
        self._closed = True
        self._end()

    def _end(self) -> None:
        self._is_up = False
        self._connection.close()
        self._process.kill()
        self._process.join()


def resident_bytes(pid: int | None) -> int:
    """Resident memory of a process; 0 where the system has no /proc (then there is no guard)."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def processor_seconds(pid: int | None) -> float | None:
    """Processor time of a process so far; None where the system has no /proc."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return None
