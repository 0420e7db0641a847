"""Trials in processes that may be killed: each is forked from a *host* that holds what all of them need.

A fork costs some milliseconds where a process of its own would cost seconds, so a trial can be given little time at
first, and be begun anew with more once others have had their turn. The host is the parent of all trials: it ends those
that take too much or that nobody wants, and says why one was lost.
"""

from __future__ import annotations

import gc
import itertools
import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import reduction
from multiprocessing.connection import Connection, wait
from queue import SimpleQueue
from typing import Any

from structgen.core.workers import (
    LOOK_S,
    START_LIMIT_S,
    Limits,
    Loss,
    LostWorker,
    Watch,
    Worker,
    WorkerError,
    resident_bytes,
)

CAN_FORK = hasattr(os, "fork")
"""Whether the system has such processes (not Windows)."""
_ENDED_BY: dict[int, Loss] = {signal.SIGPROF: "processor", signal.SIGALRM: "timeout"} if CAN_FORK else {}


@dataclass(frozen=True)
class TrialJob:
    """A trial.

    Attributes:
        data: what is tried.
        limits: when it is given up; its processor time is counted by the system, to the millisecond.
        niceness: how far it gives way to other processes, see ``os.nice``.
    """

    data: Any
    limits: Limits
    niceness: int = 0


@dataclass(frozen=True)
class _Lost:
    """What the host answers for a trial that ended without an answer."""

    outcome: Loss
    message: str


class _NeverBegun(LostWorker):
    """The host was lost before it read of the job."""


class TrialHost:
    """The process that trials are forked from. Thread-safe; one that was lost is replaced when it is needed.

    Args:
        make: a function of a module (it is sent by name) that gives what tries a job; called once, in the host.
        setting: its argument; must pickle.

    Raises:
        WorkerError: the process did not come up.
    """

    def __init__(self, make: Callable[[Any], Callable[[Any], Any]], setting: Any) -> None:
        self._make, self._setting = make, setting
        self._lock = threading.Lock()  # of the four below, and of what is sent
        self._numbers = itertools.count()
        self._closed = False
        self._process: Any = None
        self._control: Connection | None = None
        with self._lock:
            self._start()

    def run(self, job: TrialJob, is_wanted: Callable[[], bool] = lambda: True) -> Any:
        """What comes of a job, tried in a process of its own.

        Args:
            is_wanted: whether somebody still waits for it; what nobody wants is ended.

        Raises:
            LostWorker: the process was lost.
            WorkerError: none could be started.
        """
        try:
            return self._tried(job, is_wanted)
        except _NeverBegun:
            return self._tried(job, is_wanted)  # in the next host

    def _tried(self, job: TrialJob, is_wanted: Callable[[], bool]) -> Any:
        """What comes of a job. Errors as ``run``."""
        number, answers = self._begin(job)
        ending, received = False, list[Any]()  # that the host has read of the job, then what came of it
        with answers:
            try:
                while len(received) < 2:
                    while not answers.poll(LOOK_S):
                        if not ending and not is_wanted():
                            ending = True
                            self._say(number)
                    received.append(answers.recv())
            except (EOFError, OSError):
                lost = LostWorker if ending or received else _NeverBegun
                raise lost("unwanted" if ending else "crash", "the process was lost", None) from None
        answer = received[1]
        if isinstance(answer, _Lost):
            raise LostWorker("unwanted" if ending else answer.outcome, answer.message, None)
        return answer

    def close(self) -> None:
        """End the host and its trials, which are lost."""
        with self._lock:
            self._closed = True
            self._end()

    def _begin(self, job: TrialJob) -> tuple[int, Connection]:
        """Have the host begin a job; its number, and where the answer comes."""
        with self._lock:
            number = next(self._numbers)
            for is_last in (False, True):
                answers, theirs = multiprocessing.get_context("spawn").Pipe(duplex=False)
                try:
                    with theirs:
                        self._send(number, job, theirs)
                    return number, answers
                except OSError:  # it was lost since it was asked last
                    answers.close()
                    self._end()
                    if is_last:
                        break
                    self._start()
        raise WorkerError("the process that trials are forked from was lost")

    def _send(self, number: int, job: TrialJob, answer: Connection) -> None:
        if self._control is None:
            raise OSError("there is no host")
        self._control.send((number, job))
        reduction.send_handle(self._control, answer.fileno(), self._process.pid)

    def _say(self, number: int) -> None:
        """Have a trial ended. A host that is lost has shown it by the end of the pipe."""
        with self._lock, suppress(OSError):
            if self._control is not None:
                self._control.send((number, None))

    def _start(self) -> None:
        if self._closed:
            raise WorkerError("trials were given up")
        context = multiprocessing.get_context("spawn")
        control, theirs = context.Pipe()
        self._process = context.Process(target=_host, args=(theirs, self._make, self._setting), daemon=True)
        self._process.start()
        self._control = control
        theirs.close()  # so that its end is seen as the end of the pipe
        if not control.poll(START_LIMIT_S):
            self._end()
            raise WorkerError(f"the process for trials was not ready within {START_LIMIT_S:.0f} s")
        try:
            control.recv()
        except EOFError:
            self._end()
            raise WorkerError("the process for trials could not be loaded; it says why above") from None

    def _end(self) -> None:
        """The end of the pipe has the host end its trials and itself."""
        if self._control is None:
            return
        self._control.close()
        self._control = None
        self._process.join(LAST_SECONDS)
        if self._process.exitcode is None:
            self._process.kill()
            self._process.join()


LAST_SECONDS = 2.0  # in which a host that has to end its trials does so


class TrialWorkers:
    """The same where processes cannot be forked: each trial has one of a few that live on. See ``TrialHost``."""

    def __init__(self, make: Callable[[Any], Callable[[Any], Any]], setting: Any, count: int) -> None:
        self._idle: SimpleQueue[Worker] = SimpleQueue()
        self._workers = [Worker(_Attempts, (make, setting), Limits(float("inf"))) for _ in range(count)]
        for worker in self._workers:
            self._idle.put(worker)

    def run(self, job: TrialJob, is_wanted: Callable[[], bool] = lambda: True) -> Any:
        """See ``TrialHost.run``."""
        worker = self._idle.get()
        try:
            if not is_wanted():
                raise LostWorker("unwanted", "nobody waits for the answer", None)
            return worker.run(job.data, is_wanted, job.limits)
        finally:
            self._idle.put(worker)

    def close(self) -> None:
        """See ``TrialHost.close``."""
        for worker in self._workers:
            worker.close()


class _Attempts:
    """What such a process does."""

    greeting = "ready"

    def __init__(self, setting: tuple[Callable[[Any], Callable[[Any], Any]], Any], _: Watch) -> None:
        make, initial = setting
        self._attempt = make(initial)

    def __call__(self, job: Any) -> Any:
        return self._attempt(job)


# --- the host ---
@dataclass
class _Trial:
    """A process that was forked.

    Attributes:
        ended: readable once it has.
        answer: where its answer goes.
        outcome: why it was ended, if the host did.
    """

    pid: int
    limits: Limits
    ended: Connection
    answer: Connection
    outcome: Loss | None = None

    def end(self, outcome: Loss) -> None:
        """Kill it. It was not waited for, so its number is not another's."""
        if self.outcome is None:
            self.outcome = outcome
            os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """Wait for it, and say why there is no answer if there is none."""
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        if status:
            outcome = self.outcome or _ENDED_BY.get(-status, "crash")
            with suppress(OSError):  # nobody reads
                self.answer.send(_Lost(outcome, f"exit code {status}"))
        self.ended.close()
        self.answer.close()


def _host(control: Connection, make: Callable[[Any], Callable[[Any], Any]], setting: Any) -> None:
    """The host's process: forks a trial for each job, until the pipe closes. It has one thread."""
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who is interrupted is the server, which then ends this
    attempt = make(setting)
    # Only waiting ends by a signal: what raised here while a trial is forked would leave it to itself.
    stopped, stop = multiprocessing.get_context("spawn").Pipe(duplex=False)
    signal.signal(signal.SIGTERM, lambda *_: stop.send_bytes(b"stop"))
    warnings.filterwarnings("ignore", category=DeprecationWarning)  # of forks with threads of numpy's, which sleep
    gc.collect()
    gc.freeze()  # so that pages stay shared
    control.send("ready")
    trials: dict[int, _Trial] = {}
    try:
        while True:
            ready = wait([control, stopped, *(trial.ended for trial in trials.values())], LOOK_S if trials else None)
            if stopped in ready:
                return
            for number in [number for number, trial in trials.items() if trial.ended in ready]:
                trials.pop(number).close()
            if control in ready:
                number, job = control.recv()
                if job is not None:
                    answer = Connection(reduction.recv_handle(control), readable=False)
                    with suppress(OSError):  # nobody reads
                        answer.send(None)  # it was read
                    trials[number] = _forked(attempt, job, answer, [control, stopped, stop, *trials.values()])
                elif number in trials:
                    trials[number].end("unwanted")
            for trial in trials.values():
                most = trial.limits.memory_bytes
                if most is not None and resident_bytes(trial.pid) > most:
                    trial.end("memory")
    except EOFError:
        return
    finally:
        for trial in trials.values():
            trial.end("unwanted")
            trial.close()


def _forked(attempt: Callable[[Any], Any], job: TrialJob, answer: Connection, others: list[Any]) -> _Trial:
    """A process that tries a job; it closes what is ``others``'."""
    ended, end = multiprocessing.get_context("spawn").Pipe(duplex=False)
    pid = os.fork()
    if pid == 0:
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            for other in others:
                for connection in (other.ended, other.answer) if isinstance(other, _Trial) else (other,):
                    connection.close()
            _attempt(attempt, job, answer)
        finally:
            os._exit(1)
    end.close()
    return _Trial(pid, job.limits, ended, answer)


def _attempt(attempt: Callable[[Any], Any], job: TrialJob, answer: Connection) -> None:
    """In a trial's process. The timers end it whatever holds it up, also where host and server were lost."""
    code = 1
    try:
        if job.limits.processor_seconds is not None:
            signal.setitimer(signal.ITIMER_PROF, job.limits.processor_seconds)
        signal.setitimer(signal.ITIMER_REAL, job.limits.seconds)
        if job.niceness:
            os.nice(job.niceness)
        outcome = attempt(job.data)
        signal.setitimer(signal.ITIMER_PROF, 0)  # an answer that is begun is sent whole
        answer.send(outcome)
        code = 0
    except BaseException:  # whose text may be of a request, and would come to the log
        pass
    finally:
        os._exit(code)
