"""Rows of a batch written by actors of Ray Data, each with a model: ``structgen batch --ray``.

The lines are those that one process writes, in the order of the rows.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import math
from collections.abc import Generator, Iterable, Mapping
from typing import Any

from structgen.core.constraints.specs import ConstraintSpec
from structgen.generation.batch_files.job import BatchJob, OutputLine
from structgen.generation.batch_files.lines import PromptLine
from structgen.generation.ray_cluster import connect, raised_by
from structgen.options import JsonOptions, check_count

COLUMNS = ("line", "id", "prompt", "kind", "source", "sources")
RESULTS = tuple(field.name for field in dataclasses.fields(OutputLine))


def row_columns(row: PromptLine, sources: Mapping[str, Any]) -> dict[str, Any]:
    """A row as plain columns: what is of several types as JSON, its constraint as kind, source, and what names of
    sources in it stand for besides those that all rows have."""
    specification = row.specification
    kind, source, given = (
        ("", "", {}) if specification is None else (specification.kind, specification.source, specification.sources)
    )
    source = json.dumps(source) if isinstance(source, dict | bool) else source
    brought = {name: value for name, value in given.items() if sources.get(name) is not value}
    cells = (row.line, json.dumps(row.id), json.dumps(row.prompt), kind, source, json.dumps(brought))
    return dict(zip(COLUMNS, cells, strict=True))


class BatchWriter:
    """What ``Dataset.map_batches`` runs in each actor: loads the model once, then writes blocks of rows.

    Args:
        job: how they are written.
        options: of schemas that rows bring.
        sources: what all rows have, see ``PromptFile``.
    """

    def __init__(self, job: BatchJob, options: JsonOptions, sources: Mapping[str, Any]) -> None:
        self._job, self._options, self._sources = job, options, sources
        self._generator = job.load()

    def __call__(self, block: dict[str, Any]) -> dict[str, list[Any]]:
        """Columns as ``OutputLine`` has fields, from columns as ``row_columns`` makes them."""
        cells = zip(*(block[name].tolist() for name in COLUMNS), strict=True)
        lines = list(self._job.lines(self._generator, [self._row(*row) for row in cells]))
        return {name: [getattr(line, name) for line in lines] for name in RESULTS}

    def _row(self, line: int, id: str, prompt: str, kind: Any, source: str, sources: str) -> PromptLine:
        given = {**self._sources, **json.loads(sources)}
        specification = ConstraintSpec(kind, source, self._options, sources=given) if kind else None
        return PromptLine(line, json.loads(id), json.loads(prompt), specification)


def write_with_ray(
    job: BatchJob,
    rows: Iterable[PromptLine],
    *,
    actors: int,
    options: JsonOptions,
    sources: Mapping[str, Any],
) -> Generator[OutputLine, None, None]:
    """The lines of rows, in their order, as they are done.

    Rows are put into Ray's object store, all of them. An actor that is lost is started anew, and its blocks are written
    again.

    Args:
        actors: how many load the model; one processor each, and with ``device="cuda"`` one GPU each.

    Raises:
        OptionsError: there is no ray. StructgenError: what an actor raised.
    """
    ray = connect()
    check_count("actors", actors)
    items = [row_columns(row, sources) for row in rows]
    size = max(1, min(4 * job.batch_size, math.ceil(len(items) / (2 * actors))))
    dataset = ray.data.from_items(items, override_num_blocks=math.ceil(len(items) / size))
    dataset.context.execution_options.preserve_order = True
    dataset.context.enable_progress_bars = False
    written = dataset.map_batches(
        BatchWriter,
        fn_constructor_args=(job, options, sources),
        compute=ray.data.ActorPoolStrategy(size=actors),
        batch_size=size,
        num_cpus=1,
        num_gpus=1 if str(job.device or "").startswith("cuda") else 0,
    )
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)  # it logs errors with their traces, and raises them
    try:
        for line in written.iter_rows():
            yield OutputLine(*(line[name] for name in RESULTS))
    except Exception as error:  # Ray's, and those of Ray Data, which are no RayError
        raise raised_by(error) from error
