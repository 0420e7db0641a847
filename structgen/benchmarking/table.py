"""The results of a run as tables: what each engine got right, and how fast."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from structgen.benchmarking.judge import WRONG, Outcome, Record, Verdict

Floats = npt.NDArray[np.float64]
Column = dict[str, Record]  # schema → record, of one engine


def columns(records: Iterable[Record]) -> dict[str, Column]:
    """Records by engine and schema."""
    table: dict[str, Column] = defaultdict(dict)
    for record in records:
        table[record["engine"]][record["schema"]] = record
    return dict(table)


def tables(records: Iterable[Record]) -> str:
    """Markdown: coverage, then times over the schemas that every engine compiles, then over all that each compiles."""
    by_engine = columns(records)
    common = common_schemas(by_engine)
    parts = ["## Coverage", _coverage(by_engine)]
    if any("times_ns" in record for column in by_engine.values() for record in column.values()):
        parts += [f"## Speed over the {len(common):,} schemas that every engine compiles", _speed(by_engine, common)]
        parts += ["## Speed over all schemas that the engine compiles", _speed(by_engine, None)]
    refusals = [_refusals(engine, column) for engine, column in by_engine.items()]
    return "\n\n".join([*parts, *filter(None, refusals)])


def counts(records: Iterable[Record]) -> dict[str, dict[str, int]]:
    """By engine: how many schemas there are, how many are fully right, and how many have each outcome and fault."""
    by_engine: dict[str, dict[str, int]] = {}
    for engine, column in columns(records).items():
        outcomes = Counter(record["outcome"] for record in column.values())
        faults = Counter(fault for record in column.values() for fault in set(record.get("verdicts", ())) & set(WRONG))
        by_engine[engine] = {"schemas": len(column), "right": sum(map(is_right, column.values()))}
        by_engine[engine].update({str(name): number for name, number in (*outcomes.items(), *faults.items())})
    return by_engine


def is_right(record: Record) -> bool:
    """Compiled, and every instance judged as its label says (a schema without instances: compiled)."""
    return record["outcome"] == "compiled" and all(verdict == "right" for verdict in record["verdicts"])


def _compiled(column: Column) -> set[str]:
    return {schema for schema, record in column.items() if record["outcome"] == "compiled"}


def _coverage(by_engine: dict[str, Column]) -> str:
    """Counts of schemas; a schema with several faults stands in several of the lower rows."""

    def row(label: str, holds: Callable[[Record], bool]) -> list[str]:
        return [label, *(f"{sum(map(holds, column.values())):,}" for column in by_engine.values())]

    def ended(outcome: Outcome) -> list[str]:
        return row(outcome, lambda record: record["outcome"] == outcome)

    def wrong(verdict: Verdict) -> list[str]:
        return row(WRONG[verdict], lambda record: verdict in record.get("verdicts", ()))

    rows = [row("all", lambda record: True), row("fully right", is_right)]
    rows += [ended("refused"), ended("timeout"), ended("crash"), ended("memory"), ended("error")]
    rows += map(wrong, WRONG)
    return markdown_table(["schemas", *by_engine], rows)


def common_schemas(by_engine: dict[str, Column]) -> set[str]:
    """The schemas that every engine compiles."""
    compiled = [_compiled(column) for column in by_engine.values()]
    return set.intersection(*compiled) if compiled else set()


def step_times(records: Iterable[Record], field: Literal["times_ns", "again_ns"] = "times_ns") -> Floats:
    """Mask + advance of all their tokens, µs."""
    return np.array([time for record in records for time in record.get(field, ())], dtype=float) / 1e3


def compile_times(records: Iterable[Record]) -> Floats:
    """Schema text to the first mask, ms."""
    return np.array([record["compile_ns"] for record in records], dtype=float) / 1e6


def _speed(by_engine: dict[str, Column], schemas: Collection[str] | None) -> str:
    """Times over the given schemas, or over all that each engine compiles; the ratio is first to second engine."""
    chosen = [
        [column[schema] for schema in sorted(_compiled(column) if schemas is None else schemas)]
        for column in by_engine.values()
    ]
    mask, again = [step_times(each) for each in chosen], [step_times(each, "again_ns") for each in chosen]
    compile_ = [compile_times(each) for each in chosen]
    rows = [
        ["masks", *(f"{len(times):,}" for times in mask), *([""] if len(mask) > 1 else [])],
        *_steps("mask + advance", mask),
        *(_steps("the same again", again) if any(map(len, again)) else []),
        _figures("compile to first mask, mean ms", [_mean(times) for times in compile_]),
        *(_figures(f"compile to first mask, p{q} ms", [_percentile(t, q) for t in compile_]) for q in (50, 99)),
    ]
    engines = list(by_engine)
    ratio = [f"{engines[0]} / {engines[1]}"] if len(engines) > 1 else []
    return markdown_table(["time", *engines, *ratio], rows)


def _steps(label: str, times: Sequence[np.ndarray]) -> list[list[str]]:
    """Mean, percentiles and worst of the steps of each engine, µs."""
    return [
        _figures(f"{label}, mean µs", [_mean(each) for each in times]),
        *(_figures(f"{label}, p{q:g} µs", [_percentile(each, q) for each in times]) for q in (50, 90, 99, 99.9)),
        _figures(f"{label}, worst µs", [_percentile(each, 100) for each in times]),
    ]


def _figures(label: str, values: Sequence[float]) -> list[str]:
    """A row of figures to three significant digits and, with at least two engines, the ratio of the first two."""
    texts = (f"{value:,.0f}" if value >= 1000 else f"{value:.3g}" for value in values)
    row = [label, *(text if text != "nan" else "" for text in texts)]
    if len(values) > 1:
        row.append(f"{values[0] / values[1]:.3f}" if values[0] >= 0 and values[1] > 0 else "")
    return row


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _percentile(values: np.ndarray, q: float) -> float:
    return float(np.percentile(values, q)) if len(values) else float("nan")


def _refusals(engine: str, column: Column) -> str:
    """The commonest reasons for which an engine refused, by the first words of its message."""
    reasons = Counter(
        record["error"].split("(at ")[0].splitlines()[0][:90].strip()
        for record in column.values()
        if record["outcome"] in ("refused", "error") and record.get("error")
    )
    lines = [f"- {count:,}: {reason}" for reason, count in reasons.most_common(8)]
    return "\n".join([f"Commonest refusals of {engine}:", "", *lines]) if lines else ""


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose first column is text and whose others are figures."""
    rule = ["---", *("---:" for _ in head[1:])]
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, rule, *rows])
