"""Of the real schemas of MaskBench, how many does each engine enforce exactly, and what do its token masks cost?

    python benchmarks/maskbench.py DATA --engines structgen llguidance xgrammar --out results.jsonl

DATA is a folder of MaskBench files (github.com/guidance-ai/jsonschemabench): a schema, and instances labelled valid or
invalid by python-jsonschema with formats asserted. An instance's text is ``json.dumps(data, ensure_ascii=False)``, its
tokens are the tokenizer's own. For each token the engine fills the mask of what may come next, the token's bit is
read, and the engine advances; an invalid instance must meet a 0 bit or an end that does not allow end-of-sequence,
a valid one must meet neither.

Timed: each fill + advance through the engine's Python calls (perf_counter_ns around them, in a process of its own with
garbage collection off), and the compile from schema text to the first mask. The engines take turns, so that a change
of the machine's load meets all alike. Results are JSON lines, one a schema and engine; a run that is repeated with the
same --out goes on where it stopped. A schema that outlasts --time-limit counts as "timeout".
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from harness.judge import Record
from harness.table import is_right, tables
from harness.vocabularies import NAMES
from harness.workers import Setting, Worker, WorkerError

# Schemas an engine runs in a row before the next takes its turn: long enough that its tables are warm in the
# processor's caches for most of them, short enough (a second or two) to share the machine's ups and downs.
TURN = 64


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print the tables; the exit code is 0 unless the input cannot be used."""
    options = _parser().parse_args(arguments)
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # measure this checkout; processes inherit the path
    paths = _choose(options.data, options.match, options.sample, options.seed, options.limit)
    if not paths:
        print(f"no schema files {options.match} in {options.data}", file=sys.stderr)
        return 2
    setting = Setting(
        vocabulary=options.vocabulary,
        tokenizers=options.tokenizers or options.data.resolve().parent / "tokenizers",
        timed=not options.only_coverage,
        time_limit_s=options.time_limit,
    )
    try:
        records = list(_resume(options.out, setting)) if options.out else []
        records += list(_run(paths, options.engines, setting, options.out, records))
    except (ValueError, WorkerError) as error:
        print(error, file=sys.stderr)
        return 2
    chosen = {path.stem for path in paths}
    order = {name: position for position, name in enumerate(options.engines)}
    shown = [record for record in records if record["schema"] in chosen and record["engine"] in order]
    print(f"\n{_machine()}, vocabulary {setting.vocabulary}\n")
    print(tables(sorted(shown, key=lambda record: order[record["engine"]])))
    if options.wrong:
        _print_wrong(shown)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("data", type=Path, help="folder of MaskBench files")
    parser.add_argument("--engines", nargs="+", default=["structgen", "llguidance"], help="and xgrammar")
    parser.add_argument("--vocabulary", choices=NAMES, default="o200k")
    parser.add_argument("--tokenizers", type=Path, help="folder of tiktoken rank files (default: DATA/../tokenizers)")
    parser.add_argument("--out", type=Path, help="JSON lines; an existing file is gone on with")
    parser.add_argument("--only-coverage", action="store_true", help="record no times (any vocabulary will do: bytes)")
    parser.add_argument("--time-limit", type=float, default=20.0, help="seconds a schema, all its instances included")
    parser.add_argument("--match", default="*.json", help="file name pattern")
    parser.add_argument("--sample", type=int, help="so many files, drawn at random")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--limit", type=int, help="the first so many files")
    parser.add_argument("--wrong", action="store_true", help="also list the schemas that are not fully right")
    return parser


def _choose(data: Path, match: str, sample: int | None, seed: int, limit: int | None) -> list[Path]:
    """The schema files to run, in a random but repeatable order where a sample is asked for."""
    paths = sorted(data.glob(match))
    if sample is not None:
        paths = random.Random(seed).sample(paths, min(sample, len(paths)))
    return paths[:limit]


def _resume(out: Path, setting: Setting) -> Iterator[Record]:
    """Records of an earlier run; a last line cut short by an interruption is dropped from the file.

    Raises:
        ValueError: the file was made with another vocabulary, or with times where none are wanted.
    """
    if not out.exists():
        return
    *lines, tail = out.read_text(encoding="utf-8").split("\n")
    if tail:
        out.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    for line in lines:
        entry = json.loads(line)
        if "run" not in entry:
            yield entry
        elif entry["run"] != _describe(setting):
            raise ValueError(f"{out} holds a run with {entry['run']}, not {_describe(setting)}: choose another --out")


def _describe(setting: Setting) -> dict[str, Any]:
    """What must agree between two runs for their records to stand in one file."""
    return {"vocabulary": setting.vocabulary, "timed": setting.timed, "time_limit_s": setting.time_limit_s}


def _run(
    paths: Sequence[Path], engines: Sequence[str], setting: Setting, out: Path | None, known: Iterable[Record]
) -> Iterator[Record]:
    """Yield, and append to ``out``, the records that are not known yet."""
    done = {(record["engine"], record["schema"]) for record in known}
    todo = {engine: [path for path in paths if (engine, path.stem) not in done] for engine in engines}
    workers = {engine: Worker(engine, setting) for engine in engines if todo[engine]}
    total, finished, began = sum(map(len, todo.values())), 0, time.monotonic()
    with open(out or os.devnull, "a", encoding="utf-8") as file:
        versions = {engine: worker.version for engine, worker in workers.items()}
        if workers:
            file.write(json.dumps({"run": _describe(setting), "versions": versions, "machine": _machine()}) + "\n")
        for first in range(0, len(paths), TURN):
            for engine, worker in workers.items():
                for path in todo[engine][first : first + TURN]:
                    record = worker.judge(path)
                    file.write(json.dumps(record, separators=(",", ":")) + "\n")
                    finished += 1
                    yield record
                file.flush()
                elapsed = time.monotonic() - began
                print(f"\r{finished:,} of {total:,}, {elapsed:.0f} s ", end="", file=sys.stderr, flush=True)
    for worker in workers.values():
        worker.close()


def _machine() -> str:
    """Processor and Python in words."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        processor = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        processor = platform.processor() or platform.machine()
    return f"{os.cpu_count()} × {processor}, Python {platform.python_version()}"


def _print_wrong(records: Iterable[Record]) -> None:
    """One line for each schema that is not fully right."""
    for record in records:
        if not is_right(record):
            wrong = [f"{i}:{verdict}" for i, verdict in enumerate(record.get("verdicts", ())) if verdict != "right"]
            reason = " ".join(wrong) or record.get("error", "").splitlines()[0]
            print(f"{record['engine']}\t{record['schema']}\t{record['outcome']}\t{reason}")


if __name__ == "__main__":
    sys.exit(main())
