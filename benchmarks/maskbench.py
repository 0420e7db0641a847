"""Of the real schemas of MaskBench, how many does each engine enforce exactly, and what do its token masks cost?

    python benchmarks/maskbench.py DATA --engines structgen llguidance xgrammar --out results.jsonl

DATA is a folder of MaskBench files (github.com/guidance-ai/jsonschemabench): a schema, and instances labelled valid or
invalid by python-jsonschema with formats asserted. An instance's text is ``json.dumps(data, ensure_ascii=False)``, its
tokens are the tokenizer's own. For each token the engine fills the mask of what may come next, the token's bit is
read, and the engine advances; an invalid instance must meet a 0 bit or an end that does not allow end-of-sequence,
a valid one must meet neither.

Timed: each advance and the fill behind it, in one of the engine's Python calls where it has one for both, and the first
fill with the first token (perf_counter_ns around them, in a process of its own with
garbage collection off, or on with --garbage), and the compile from schema text to the first mask; with --again also a
second walk through all instances, whose states have all been met. The engines take turns, so that a change of the
machine's load meets all alike. Results are JSON lines, one a schema and engine; a run that is repeated with the
same --out goes on where it stopped. A schema that outlasts --time-limit counts as "timeout".
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # measure this checkout; processes inherit the path

from structgen.benchmarking.coverage import Setting, choose_files, machine, run_coverage, wrong_lines
from structgen.benchmarking.judge import Record, Timing
from structgen.benchmarking.plots import cumulative_shares, svg_text
from structgen.benchmarking.table import columns, common_schemas, compile_times, step_times, tables
from structgen.benchmarking.vocabularies import NAMES
from structgen.core.workers import WorkerError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print the tables; the exit code is 0 unless the input cannot be used."""
    options = _parser().parse_args(arguments)
    paths = choose_files(options.data, options.match, options.sample, options.seed, options.limit)
    if not paths:
        print(f"no schema files {options.match} in {options.data}", file=sys.stderr)
        return 2
    setting = Setting(
        vocabulary=options.vocabulary,
        tokenizers=options.tokenizers or options.data.resolve().parent / "tokenizers",
        timing=None if options.only_coverage else Timing(options.again, options.garbage),
        time_limit_s=options.time_limit,
    )
    try:
        records = run_coverage(paths, options.engines, setting, options.out)
    except (ValueError, WorkerError) as error:
        print(error, file=sys.stderr)
        return 2
    print(f"\n{machine()}, vocabulary {setting.vocabulary}\n")
    print(tables(records))
    if options.plot:
        options.plot.write_text(_plot(records), encoding="utf-8")
    if options.wrong:
        print(*wrong_lines(records), sep="\n")
    return 0


def _plot(records: Sequence[Record]) -> str:
    """How steps and compile times are distributed over the schemas that every engine compiles, as SVG."""
    by_engine = columns(records)
    common = common_schemas(by_engine)
    chosen = {engine: [column[schema] for schema in common] for engine, column in by_engine.items()}
    panels = {
        "mask and advance, µs a token": {engine: step_times(each) for engine, each in chosen.items()},
        "compile to the first mask, ms a schema": {engine: compile_times(each) for engine, each in chosen.items()},
    }
    return svg_text(lambda figure: cumulative_shares(figure, panels), 3.6)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("data", type=Path, help="folder of MaskBench files")
    parser.add_argument("--engines", nargs="+", default=["structgen", "llguidance"], help="and xgrammar")
    parser.add_argument("--vocabulary", choices=NAMES, default="o200k")
    parser.add_argument("--tokenizers", type=Path, help="folder of tiktoken rank files (default: DATA/../tokenizers)")
    parser.add_argument("--out", type=Path, help="JSON lines; an existing file is gone on with")
    parser.add_argument("--only-coverage", action="store_true", help="record no times (any vocabulary will do: bytes)")
    parser.add_argument("--again", action="store_true", help="walk each schema's instances twice, timed apart")
    parser.add_argument("--garbage", action="store_true", help="leave Python's garbage collector on")
    parser.add_argument("--time-limit", type=float, default=20.0, help="seconds a schema, all its instances included")
    parser.add_argument("--match", default="*.json", help="file name pattern")
    parser.add_argument("--sample", type=int, help="so many files, drawn at random")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--limit", type=int, help="the first so many files")
    parser.add_argument("--plot", type=Path, help="SVG file: distributions of the times")
    parser.add_argument("--wrong", action="store_true", help="also list the schemas that are not fully right")
    return parser


if __name__ == "__main__":
    sys.exit(main())
