"""One process per engine, replaced after a crash or when a schema outlasts its time limit."""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path

from .engines import load_engine
from .judge import Record, judge
from .vocabularies import load_vocabulary

# Loading a vocabulary of 200,000 tokens takes seconds; the first import after installation also compiles kernels.
START_LIMIT_S = 300.0


@dataclass(frozen=True)
class Setting:
    """What every engine of a run has in common."""

    vocabulary: str
    tokenizers: Path
    timed: bool
    time_limit_s: float


class WorkerError(Exception):
    """An engine's process did not come up."""


def _serve(connection: Connection, engine_name: str, setting: Setting) -> None:
    """The child: load, warm up, then a record for each path received, until the pipe closes."""
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # an engine that prints must not disturb the parent's table
    vocabulary = load_vocabulary(setting.vocabulary, setting.tokenizers)
    engine = load_engine(engine_name, vocabulary)
    session = engine.compile('{"type": "object"}')()
    session.fill()
    session.accept(vocabulary.encode("{")[0])
    session.fill()
    gc.collect()
    gc.freeze()  # a full collection over the vocabulary would cost 30 ms in the middle of a mask
    connection.send(engine.version)
    while True:
        try:
            path: Path = connection.recv()
        except EOFError:
            return
        connection.send(judge(engine, vocabulary, path, setting.timed))


class Worker:
    """The parent's side of one engine's process.

    Attributes:
        version: the engine's version, as its process reported it.
        restarts: processes lost so far.
    """

    def __init__(self, engine_name: str, setting: Setting) -> None:
        self.engine_name = engine_name
        self.restarts = 0
        self._setting = setting
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process: SpawnProcess = context.Process(
            target=_serve, args=(theirs, self.engine_name, self._setting), daemon=True
        )
        self._process.start()
        theirs.close()  # so that the end of the child is seen as the end of the pipe
        if not self._connection.poll(START_LIMIT_S):
            self.close()
            raise WorkerError(f"{self.engine_name} was not ready within {START_LIMIT_S:.0f} s")
        try:
            self.version: str = self._connection.recv()
        except EOFError:
            self.close()
            raise WorkerError(f"{self.engine_name} could not be loaded; its process says why above") from None

    def judge(self, path: Path) -> Record:
        """The engine's record for one schema; a timeout or crash is a record too, and a fresh process takes over.

        Raises:
            WorkerError: the fresh process did not come up.
        """
        self._connection.send(path)
        lost: Record
        if self._connection.poll(self._setting.time_limit_s):
            try:
                record: Record = self._connection.recv()
                return {"engine": self.engine_name, **record}
            except EOFError:
                self._process.join()
                lost = {"outcome": "crash", "error": f"exit code {self._process.exitcode}"}
        else:
            lost = {"outcome": "timeout", "error": f"over {self._setting.time_limit_s:g} s"}
        self.close()
        self.restarts += 1
        self._start()
        return {"engine": self.engine_name, "schema": path.stem, **lost}

    def close(self) -> None:
        """End the process."""
        self._connection.close()
        self._process.kill()
        self._process.join()
