"""``structgen batch``: a file of prompts in, a file of outputs out, taken up again where a run was broken off."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from structgen.cli.common import INCOMPLETE, BadInput, print_json, read_bytes, read_text
from structgen.cli.consoles import err
from structgen.cli.sources import ConstraintSource
from structgen.core.constraints.base import Constraint
from structgen.core.constraints.json import JsonSchemaConstraint, read_schema
from structgen.core.json_schema.keywords_data import with_sources
from structgen.core.text_sets.opening import PROMPT
from structgen.errors import InputFileError
from structgen.generation.batch_files.job import BatchJob, OutputLine
from structgen.generation.batch_files.lines import PromptFile, PromptLine
from structgen.generation.batch_files.output import OutputFile, encoded
from structgen.options import JsonOptions

MAX_INPUT = 1 << 30  # bytes of rows on standard input, which are kept: they are read more than once
SHOW_SECONDS = 1.0  # between lines of progress where there is no terminal
Write: TypeAlias = "Callable[[BatchJob, Iterable[PromptLine]], Generator[OutputLine, None, None]]"


def constraint_of(source: ConstraintSource, options: JsonOptions) -> tuple[Constraint | None, str]:
    """The constraint of rows that name none, looked at once without a model, and what it is as text.

    Raises:
        BadInput, ConstraintError: it cannot be used.
    """
    kind, value = source.given()
    if not kind:
        return None, ""
    if value == "-":
        raise BadInput("Standard input may hold the prompts; give the constraint as a file.")
    constraint = source.required(checked=True, prompt="a prompt")  # each row has its own: `schema_of_prompts`
    if isinstance(constraint, JsonSchemaConstraint):
        value = constraint.schema
    elif source.grammar:
        value = read_text(source.grammar)
    return constraint, json.dumps([kind, value, repr(options)], default=str)


def schema_of_prompts(source: ConstraintSource) -> Any:
    """The schema of rows that name none, if it speaks of the prompt or names sources, which each row may give anew: so
    each has a constraint of its own.

    Raises:
        ConstraintError: it cannot be read.
    """
    if source.schema is None:
        return None
    schema = read_schema(source.schema)
    return schema if with_sources(schema, {**source.sources(), PROMPT: ""}) is not schema else None


def input_file(path: str, options: JsonOptions, sources: Mapping[str, Any], schema: Any) -> PromptFile:
    """The rows; ``-`` is standard input, JSON lines. The other arguments as of ``PromptFile``."""
    if path == "-":
        rows = PromptFile.of("standard input", read_bytes("-", MAX_INPUT), options)
    else:
        rows = PromptFile.at(Path(path), options)
    return replace(rows, sources=sources, schema=schema)


def writer(rows: PromptFile, ray: bool, actors: int) -> Write:
    """What writes rows: this process, or actors of Ray."""
    if not ray:
        return write_here
    from structgen.generation.ray_cluster import connect
    from structgen.integrations.ray_data import write_with_ray

    connect()
    return partial(write_with_ray, actors=actors, options=rows.options, sources=rows.sources)


def write_here(job: BatchJob, rows: Iterable[PromptLine]) -> Generator[OutputLine, None, None]:
    """Write rows in this process."""
    return job.lines(job.load(), rows)


def run(rows: PromptFile, job: BatchJob, output: Path | None, write: Write, as_json: bool) -> int:
    """Write the rows that are not written yet; the exit code.

    Raises:
        InputFileError: what is wrong with a file; nothing was written.
    """
    if as_json and output is None:
        raise BadInput("--json is about a file of outputs; name one with --output.")
    total = rows.check()
    with ExitStack() as files:
        file = None if output is None else files.enter_context(OutputFile(output, map(job.head, rows)))
        tally = Tally(total)
        if file is not None:
            tally.skipped = sum(_is_written(row, job, file) for row in rows)
            tally.failed = file.failed
        left = (row for row in rows if file is None or row.id not in file.written)
        if tally.left:
            lines = files.enter_context(closing(write(job, left)))
            shown = files.enter_context(_Progress(tally))
            for line in lines:
                if file is None:
                    sys.stdout.buffer.write(encoded(line.text))
                    sys.stdout.buffer.flush()
                else:
                    file.add(line.text)
                tally.add(line)
                shown.update()
    _report(tally, output, as_json)
    return INCOMPLETE if tally.failed else 0


def _is_written(row: PromptLine, job: BatchJob, file: OutputFile) -> bool:
    key = file.written.get(row.id)
    if key is not None and key != job.key(row):
        raise InputFileError(
            f"The output has a line for {row.id!r} already, written from another prompt, constraint or model, or with "
            "other options; name another file with -o, or remove this one.",
            line=row.line,
        )
    return key is not None


@dataclass
class Tally:
    """Counts: rows of the file, of them written earlier and in this run, failed in either; tokens of this run."""

    total: int
    skipped: int = 0
    done: int = 0
    failed: int = 0
    tokens: int = 0
    started: float = 0.0

    @property
    def left(self) -> int:
        """Rows that are still to be written."""
        return self.total - self.skipped - self.done

    @property
    def seconds(self) -> float:
        """Since the first row was begun."""
        return time.monotonic() - self.started if self.started else 0.0

    def add(self, line: OutputLine) -> None:
        """Count a row."""
        self.done += 1
        self.failed += line.failed
        self.tokens += line.tokens

    def rates(self) -> str:
        """Throughput."""
        seconds = max(self.seconds, 1e-9)
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{self.done / seconds:.1f} rows/s, {self.tokens / seconds:.0f} tokens/s{failed}"


class _Progress:
    """Progress on standard error: a bar on a terminal, else a line now and then."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        tally.started = self._shown = time.monotonic()
        columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
        self._bar = Progress(*columns, console=err) if err.is_terminal else None
        done = tally.total - tally.left
        self._task = None if self._bar is None else self._bar.add_task("", total=tally.total, completed=done)

    def __enter__(self) -> _Progress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self) -> None:
        """Another row is done."""
        tally, now = self._tally, time.monotonic()
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=tally.total - tally.left, description=tally.rates())
        elif now - self._shown >= SHOW_SECONDS:
            self._shown = now
            err.print(f"{tally.total - tally.left} of {tally.total} rows, {tally.rates()}", markup=False)


def _report(tally: Tally, output: Path | None, as_json: bool) -> None:
    if as_json:
        counts: dict[str, Any] = {"rows": tally.total, "written": tally.done, "skipped": tally.skipped}
        counts |= {"failed": tally.failed, "tokens": tally.tokens, "seconds": round(tally.seconds, 3)}
        print_json(counts)
        return
    earlier = f", {tally.skipped} were there already" if tally.skipped else ""
    rates = f": {tally.tokens} tokens in {tally.seconds:.1f} s, {tally.rates()}" if tally.done else ""
    err.print(f"{tally.done} of {tally.total} rows written{earlier}{rates}", markup=False, soft_wrap=True)
    if tally.failed:
        err.print(f'rows with an "error" in {output or "the output"}: {tally.failed}', markup=False, soft_wrap=True)
