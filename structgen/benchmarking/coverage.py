"""Coverage without a model: MaskBench files through each engine's token masks, in processes that may be lost.

``judge`` says what is judged and timed; this module chooses the files, runs the engines by turns, and keeps records.
"""

from __future__ import annotations

import json
import os
import platform
import random
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from structgen.benchmarking.engines import load_engine
from structgen.benchmarking.judge import Outcome, Record, Timing, judge
from structgen.benchmarking.records import RecordFile
from structgen.benchmarking.schemas import DataError
from structgen.benchmarking.table import is_right
from structgen.benchmarking.vocabularies import load_vocabulary
from structgen.core.workers import Limits, LostWorker, Watch, Worker

# Schemas an engine runs in a row before the next takes its turn: long enough that its tables are warm in the
# processor's caches for most of them, short enough (a second or two) to share the machine's ups and downs.
TURN = 64


@dataclass(frozen=True)
class Setting:
    """What every engine of a run has in common; ``timing`` None: no times."""

    vocabulary: str
    tokenizers: Path
    timing: Timing | None
    time_limit_s: float
    memory_limit_bytes: int | None = None

    def describe(self) -> dict[str, Any]:
        """What must agree between two runs for their records to stand in one file."""
        timing = None if self.timing is None else asdict(self.timing)
        return {"vocabulary": self.vocabulary, "timing": timing, "time_limit_s": self.time_limit_s}


class CoverageServer:
    """One engine in a worker's process, warmed up."""

    def __init__(self, setting: tuple[str, Setting], watch: Watch) -> None:
        sys.setrecursionlimit(20_000)  # json reads and writes instances a call a level; the child has one thread
        name, common = setting
        self._timing = common.timing
        self._vocabulary = load_vocabulary(common.vocabulary, common.tokenizers)
        self._engine = load_engine(name, self._vocabulary)
        session = self._engine.compile('{"type": "object"}')()
        session.fill()
        session.accept(self._vocabulary.encode("{")[0])
        session.fill()
        self.greeting = self._engine.version

    def __call__(self, job: Path) -> Record:
        return judge(self._engine, self._vocabulary, job, self._timing)


def choose_files(data: Path, match: str, sample: int | None, seed: int, limit: int | None) -> list[Path]:
    """The schema files to run, in a random but repeatable order where a sample is asked for."""
    paths = sorted(data.glob(match))
    if sample is not None:
        paths = random.Random(seed).sample(paths, min(sample, len(paths)))
    return paths[:limit]


def check_files(paths: Iterable[Path]) -> None:
    """Refuse files that are not MaskBench's, before any engine is started.

    Raises:
        DataError: the first such file, and what was expected.
    """
    for path in paths:
        try:
            record = json.loads(path.read_bytes())
        except (OSError, ValueError, RecursionError) as error:
            raise DataError(f"Cannot read {path}: {error}") from error
        if not (isinstance(record, dict) and "schema" in record and isinstance(record.get("tests"), list)):
            raise DataError(
                f'{path} is no MaskBench file: expected {{"schema": ..., "tests": [{{"valid": true, "data": ...}}]}}; '
                "what of a plain schema is enforced says structgen check."
            )


def run_coverage(paths: Sequence[Path], engines: Sequence[str], setting: Setting, out: Path | None) -> list[Record]:
    """All records, those of an earlier run that stand in ``out`` included; new ones are appended to it.

    Raises:
        ValueError: ``out`` holds a run of another kind.
        WorkerError: an engine's process does not come up.
    """
    file = RecordFile(out or Path(os.devnull), setting.describe())
    records_before = cast("list[Record]", file.records)
    with file:
        records_before += _run_missing(paths, engines, setting, file, records_before)
    chosen, order = {path.stem for path in paths}, {name: position for position, name in enumerate(engines)}
    shown = [record for record in records_before if record["schema"] in chosen and record["engine"] in order]
    return sorted(shown, key=lambda record: order[record["engine"]])


def _run_missing(
    paths: Sequence[Path], engines: Sequence[str], setting: Setting, file: RecordFile, records_before: Iterable[Record]
) -> Iterator[Record]:
    """Yield, and append to ``file``, the records that are not known yet."""
    done = {(record["engine"], record["schema"]) for record in records_before}
    todo = {engine: [path for path in paths if (engine, path.stem) not in done] for engine in engines}
    limits = Limits(setting.time_limit_s, setting.memory_limit_bytes)
    workers = {engine: Worker(CoverageServer, (engine, setting), limits) for engine in engines if todo[engine]}
    total, finished, began = sum(map(len, todo.values())), 0, time.monotonic()
    if workers:
        file.begin({engine: worker.greeting for engine, worker in workers.items()}, machine())
    for first in range(0, len(paths), TURN):
        for engine, worker in workers.items():
            for path in todo[engine][first : first + TURN]:
                record = _judge(worker, engine, path)
                file.append(record)
                finished += 1
                yield record
            elapsed = time.monotonic() - began
            print(f"\r{finished:,} of {total:,}, {elapsed:.0f} s ", end="", file=sys.stderr, flush=True)
    for worker in workers.values():
        worker.close()


def _judge(worker: Worker, engine: str, path: Path) -> Record:
    """The engine's record for one schema; a timeout or a crash is a record too."""
    try:
        record: Record = worker.run(path)
    except LostWorker as loss:
        ended = cast("Outcome", loss.outcome)  # its limits are of the clock and of memory
        return {"engine": engine, "schema": path.stem, "outcome": ended, "error": str(loss)}
    return {"engine": engine, **record}


def machine() -> str:
    """Processor and Python in words."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        processor = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        processor = platform.processor() or platform.machine()
    return f"{os.cpu_count()} × {processor}, Python {platform.python_version()}"


def wrong_lines(records: Iterable[Record]) -> Iterator[str]:
    """One line for each schema that is not fully right."""
    for record in records:
        if not is_right(record):
            wrong = [f"{i}:{verdict}" for i, verdict in enumerate(record.get("verdicts", ())) if verdict != "right"]
            reason = " ".join(wrong) or record.get("error", "").splitlines()[0]
            yield f"{record['engine']}\t{record['schema']}\t{record['outcome']}\t{reason}"
