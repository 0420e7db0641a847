"""How do compiling, masks and memory grow with what a schema and its text hold?

    python benchmarks/growth.py TOKENIZERS --out FOLDER [--only length,depth] [--engines structgen,llguidance]
    python benchmarks/growth.py TOKENIZERS --small      a rehearsal: does it run?

- **length**: records in an array, texts to about 100,000 tokens.
- **depth**: lists in lists, 1,000 deep.
- **properties**: an object of up to 10,000 properties, all written.
- **enum**: one of up to 100,000 strings.
- **maxLength**: a string of at most a million code points, 300 of them written.
- **schemas**: up to 10,000 different schemas, one after the other, in one process: its resident memory.
- **batch**: a step (masks and advance) of 1 to 64 outputs of different schemas, by each engine's calls for batches.

TOKENIZERS is a folder of tiktoken rank files. The first five go through the same harness as benchmarks/maskbench.py:
the engines by turns in processes of their own, exact options, Python's calls included. A size that takes an engine more
than --time-limit seconds is a gap. Writes table.md, growth.svg and records.jsonl into FOLDER.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # measure this checkout; processes inherit the path

from structgen.benchmarking.coverage import Setting, machine, run_coverage
from structgen.benchmarking.engines import load_engine, own_vocabulary
from structgen.benchmarking.judge import Record, Timing
from structgen.benchmarking.peers import LLGuidanceBatch
from structgen.benchmarking.plots import COLOURS, OTHER, svg_text
from structgen.benchmarking.table import markdown_table
from structgen.benchmarking.vocabularies import BenchVocabulary, load_vocabulary
from structgen.core.workers import Limits, Watch, Worker

JSON = Any
Case = tuple[JSON, JSON]  # a schema and a value
WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "omicron"]


def length(size: int) -> Case:
    """``size`` tokens, roughly, of o200k."""
    item = {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "name": {"type": "string"}, "tags": {"type": "array"}},
        "required": ["id", "name"],
        "additionalProperties": False,
    }
    record = {"id": 12345, "name": "Ada Lovelace, countess", "tags": ["mathematics", True]}
    return {"type": "array", "items": item}, [record] * max(1, size // 26)


def depth(size: int) -> Case:
    """``size`` lists, each in the next."""
    value: JSON = 1
    for _ in range(size):
        value = [value]
    return {"$defs": {"list": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#/$defs/list"}}]}},
            "$ref": "#/$defs/list"}, value  # fmt: skip


def properties(size: int) -> Case:
    """``size`` declared members, all required, two kinds of values."""
    names = [f"{WORDS[number % len(WORDS)]}_{number}" for number in range(size)]
    kinds = cycle([{"type": "integer"}, {"type": "string"}])
    schema = {"type": "object", "properties": dict(zip(names, kinds, strict=False)), "required": names}
    return schema, dict(zip(names, cycle([7, "seven"]), strict=False))


def enum(size: int) -> Case:
    """The last of ``size`` strings."""
    names = [f"{WORDS[number % len(WORDS)]}-{number}" for number in range(size)]
    return {"enum": names}, names[-1]


def max_length(size: int) -> Case:
    """A string of at most ``size`` code points, of which 300 are there (fewer where fewer may be)."""
    return {"type": "string", "maxLength": size}, "".join(islice(cycle("plain words, "), min(size, 300)))


QUESTIONS: dict[str, tuple[Callable[[int], Case], list[int], list[int]]] = {
    "length": (length, [100, 1_000, 10_000, 100_000], [100, 300]),
    "depth": (depth, [10, 100, 1_000], [3, 9]),
    "properties": (properties, [10, 100, 1_000, 10_000], [3, 9]),
    "enum": (enum, [10, 100, 1_000, 10_000, 100_000], [3, 9]),
    "maxLength": (max_length, [10, 100, 1_000, 10_000, 100_000, 1_000_000], [3, 9]),
}
PARTS = (*QUESTIONS, "schemas", "batch")


def different_schema(number: int) -> JSON:
    """A schema of an ordinary size which no other number has."""
    names = [f"{WORDS[(number + place) % len(WORDS)]}_{number}_{place}" for place in range(8)]
    kinds = [
        {"type": "integer", "minimum": number},
        {"type": "string", "maxLength": 10 + number % 90},
        {"enum": names[:3]},
        {"type": "string", "pattern": f"^[a-z]{{{1 + number % 9}}}-{number}$"},
    ]
    return {
        "type": "object",
        "properties": dict(zip(names, cycle(kinds), strict=False)),
        "required": names[:4],
        "additionalProperties": False,
    }


def different_value(number: int) -> JSON:
    """An instance of it."""
    first, second, third, fourth = list(different_schema(number)["properties"])[:4]
    return {first: number + 12, second: "a text", third: first, fourth: f"{'abc' * 3:.{1 + number % 9}}-{number}"}


def resident_mib() -> float:
    """Of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


class SchemasServer:
    """One engine in a process of its own, which is given one schema after the other and keeps none."""

    def __init__(self, setting: tuple[str, str, Path], watch: Watch) -> None:
        name, vocabulary, tokenizers = setting
        self._vocabulary = load_vocabulary(vocabulary, tokenizers)
        self._engine = load_engine(name, self._vocabulary)
        self.greeting: Any = self._engine.version

    def __call__(self, job: tuple[int, int]) -> dict[str, float]:
        """Compile the schemas from ``first`` to ``last`` and take three masks of each."""
        first, last = job
        began = perf_counter_ns()
        for number in range(first, last):
            session = self._engine.compile(json.dumps(different_schema(number)))()
            for token in self._vocabulary.encode('{"'):
                session.fill()
                session.accept(token)
            session.fill()
        gc.collect()
        return {"ms": (perf_counter_ns() - began) / 1e6 / (last - first), "MiB": resident_mib()}


class StructgenBatch:
    """structgen's calls for batches, over one schema a row."""

    def __init__(self, vocabulary: BenchVocabulary, schemas: list[str]) -> None:
        import structgen

        made = own_vocabulary(vocabulary)
        self._grammars = [structgen.compile_json_schema(json.loads(schema), made) for schema in schemas]
        self._matchers = [grammar.matcher() for grammar in self._grammars]
        bitmask = structgen.allocate_token_bitmask(len(schemas), len(vocabulary.tokens))
        self.fill = partial(structgen.fill_next_token_bitmasks, self._matchers, bitmask)
        self.accept = partial(structgen.batch_accept_token, self._matchers)

    def restart(self, row: int) -> None:
        """Begin a new output in a row."""
        self._matchers[row] = self._grammars[row].matcher()


class BatchServer:
    """One engine in a process of its own, asked for steps of batches. Each row writes its schema's value again and
    again; a step is the masks of all rows and the advance of all."""

    def __init__(self, setting: tuple[str, str, Path], watch: Watch) -> None:
        name, vocabulary, tokenizers = setting
        self._vocabulary = load_vocabulary(vocabulary, tokenizers)
        self._make: Any = {"structgen": StructgenBatch, "llguidance": LLGuidanceBatch}[name]
        self.greeting: Any = name

    def __call__(self, job: tuple[int, int]) -> dict[str, float]:
        """Median and 99th percentile of a step of ``rows`` outputs, µs, over ``steps`` steps."""
        rows, steps = job
        made = self._make(self._vocabulary, [json.dumps(different_schema(row)) for row in range(rows)])
        texts = [self._vocabulary.encode(json.dumps(different_value(row))) for row in range(rows)]
        places, times = [0] * rows, []
        for _ in range(steps):
            tokens = [text[place] for text, place in zip(texts, places, strict=True)]
            began = perf_counter_ns()
            made.fill()
            taken = made.accept(tokens)
            times.append((perf_counter_ns() - began) / 1e3)
            assert all(taken), "a value of the schema is refused"
            for row, text in enumerate(texts):
                places[row] = (places[row] + 1) % len(text)
                if places[row] == 0:
                    made.restart(row)
        return {"median": statistics.median(times), "p99": float(np.percentile(times, 99))}


def by_harness(names: Sequence[str], options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Compile time and steps of each size of the questions that are put as files."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for name in names:
            make, sizes, small = QUESTIONS[name]
            for size in small if options.small else sizes:
                schema, value = make(size)
                path = Path(folder) / f"{name}-{size}.json"
                path.write_text(json.dumps({"schema": schema, "tests": [{"valid": True, "data": value}]}))
                paths.append(path)
        setting = Setting(options.vocabulary, options.tokenizers, Timing(again=True), options.time_limit)
        for record in run_coverage(paths, options.engines, setting, None):
            yield _figures(record)


def _figures(record: Record) -> dict[str, Any]:
    name, size = record["schema"].rsplit("-", 1)
    found: dict[str, Any] = {"part": name, "size": int(size), "engine": record["engine"], "outcome": record["outcome"]}
    if record["outcome"] != "compiled" or record["verdicts"] != ["right"]:
        return {**found, "reason": record.get("error", "") or str(record.get("verdicts"))}
    times = np.array(record["times_ns"]) / 1e3
    return {
        **found, "compile ms": record["compile_ns"] / 1e6, "tokens": len(times), "mean µs": float(times.mean()),
        "again µs": float(np.mean(record["again_ns"])) / 1e3, "worst µs": float(times.max()),
    }  # fmt: skip


def schemas(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Resident memory after so many schemas."""
    marks = [3, 6] if options.small else [500, 1_000, 2_000, 4_000, 6_000, 8_000, 10_000]
    for engine in options.engines:
        worker = Worker(SchemasServer, (engine, options.vocabulary, options.tokenizers), Limits(600.0))
        for first, last in zip([0, *marks], marks, strict=False):
            yield {"part": "schemas", "size": last, "engine": engine, **worker.run((first, last))}
        worker.close()


def batch(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Time of a step of so many outputs."""
    counts, steps = ([1, 2], 3) if options.small else ([1, 4, 16, 64], 500)
    for engine in options.engines:
        worker = Worker(BatchServer, (engine, options.vocabulary, options.tokenizers), Limits(600.0))
        for rows in counts:
            yield {"part": "batch", "size": rows, "engine": engine, **worker.run((rows, steps))}
        worker.close()


def table(records: Sequence[dict[str, Any]]) -> str:
    """Markdown: a table a question, a row a size and engine."""
    parts = []
    for name in dict.fromkeys(record["part"] for record in records):
        some = [record for record in records if record["part"] == name]
        columns = [key for key in dict.fromkeys(key for r in some for key in r) if key not in ("part", "outcome")]
        rows = [[_shown(record.get(column, "")) for column in columns] for record in some]
        parts.append(f"## {name}\n\n{markdown_table(columns, rows)}")
    return "\n\n".join(parts) + "\n"


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value).splitlines()[0][:80] if value else ""


# What is drawn of each question.
DRAWN = {name: (("mean µs", "-"), ("worst µs", ":"), ("compile ms", "--")) for name in QUESTIONS}
DRAWN |= {"schemas": (("MiB", "-"),), "batch": (("median", "-"), ("p99", ":"))}  # type: ignore[dict-item]
UNITS = {"schemas": "resident MiB", "batch": "µs a step; dotted: 99 %"}


def plot(records: Sequence[dict[str, Any]]) -> str:
    """A panel a question, logarithmic axes."""
    names = list(dict.fromkeys(record["part"] for record in records))

    def draw(figure: Any) -> None:
        panels = figure.subplots(-(-len(names) // 2), 2, squeeze=False).flatten()
        for axes, name in zip(panels, names, strict=False):
            _panel(axes, name, [record for record in records if record["part"] == name])
        for axes in panels[len(names) :]:
            axes.set_visible(False)

    return svg_text(draw, 3.1 * -(-len(names) // 2))


def _panel(axes: Any, name: str, records: Sequence[dict[str, Any]]) -> None:
    for engine in dict.fromkeys(record["engine"] for record in records):
        mine = [record for record in records if record["engine"] == engine]
        for field, style in DRAWN[name]:
            points = [(record["size"], record[field]) for record in mine if field in record]
            if points:
                label = engine if field == DRAWN[name][0][0] else None
                axes.plot(
                    *zip(*points, strict=True), style, marker="o", ms=3, color=COLOURS.get(engine, OTHER), label=label
                )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_title(name)
    axes.set_ylabel(UNITS.get(name, "µs a step; dotted: worst\ndashed: compile, ms"))
    axes.legend(fontsize=8)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokenizers", type=Path, help="folder of tiktoken rank files")
    parser.add_argument("--engines", type=lambda text: text.split(","), default=["structgen", "llguidance"])
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(PARTS))
    parser.add_argument("--vocabulary", default="o200k")
    parser.add_argument("--time-limit", type=float, default=120.0, help="seconds a size and engine")
    parser.add_argument("--small", action="store_true", help="sizes that take seconds")
    parser.add_argument("--out", type=Path, help="folder of the results")
    options = parser.parse_args(arguments)
    if unknown := set(options.only) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    return options


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, write."""
    options = parse(arguments)
    sys.setrecursionlimit(20_000)  # to write instances of ``depth``
    asked = [name for name in options.only if name in QUESTIONS]
    records = list(by_harness(asked, options)) if asked else []
    for name, measure in (("schemas", schemas), ("batch", batch)):
        if name in options.only:
            records += measure(options)
    text = f"{machine()}, vocabulary {options.vocabulary}\n\n{table(records)}"
    print(text)
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "table.md").write_text(text)
        (options.out / "growth.svg").write_text(plot(records))
        (options.out / "records.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))


if __name__ == "__main__":
    main()
