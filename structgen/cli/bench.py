"""``structgen bench``: benchmarks of this library and its peers. Needs the extra ``structgen-lm[bench]`` for these."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from structgen.cli.common import BadInput, print_json
from structgen.cli.consoles import err
from structgen.cli.consoles import out as plain
from structgen.cli.options import AsJson, Commands

if TYPE_CHECKING:
    from structgen.benchmarking.model_server import ModelSetting
    from structgen.benchmarking.schemas import Case

bench = Commands(help="Benchmarks of constraint engines.", no_args_is_help=True, rich_markup_mode=None)

Data = Annotated[str, typer.Option(help="'hub', the GitHub folder of JSONSchemaBench, or a folder of MaskBench files.")]
Engines = Annotated[str, typer.Option(help="Comma-separated: structgen, structgen_decoder, llguidance, xgrammar, ...")]
GIB = 2**30


Out = Annotated[Path, typer.Option(help="Records, JSON lines; an existing file is gone on with.")]
Model = Annotated[str | None, typer.Option(help="Hugging Face id or folder; built-in if not given; module:function.")]
Dtype = Annotated[str, typer.Option(help="float32, bfloat16, float16 or auto.")]
Threads = Annotated[int | None, typer.Option(min=1, help="Threads of torch in each worker.")]
Sampling = Annotated[str, typer.Option(help="Comma-separated: greedy, sampled.")]
Pace = Annotated[str, typer.Option(help="turns: comparable times; together: faster, only masks are timed.")]
Seed = Annotated[int, typer.Option(min=0, help="Of the sample of schemas, and of sampling.")]
Temperature = Annotated[float, typer.Option(min=0.01, help="Of 'sampled'.")]
Workers = Annotated[int, typer.Option(min=1, help="Processes, each with its own model.")]
TimeLimit = Annotated[float, typer.Option(min=1, help="Seconds for one step of one engine; then it is killed.")]
MemoryLimit = Annotated[float, typer.Option(min=0.5, help="GiB of a process; beyond, it is killed.")]
Report = Annotated[Path | None, typer.Option(help="Folder for report.md and report.html.")]


@bench.command()
def jsonschemabench(
    data: Data,
    engines: Engines = "structgen,structgen_decoder,llguidance,xgrammar,none",
    out: Out = Path("jsonschemabench.jsonl"),
    report: Report = None,
    model: Model = None,
    dtype: Dtype = "float32",
    threads: Threads = None,
    split: Annotated[str | None, typer.Option(help="Of the hub: train, val or test (default).")] = None,
    datasets: Annotated[str, typer.Option(help="Comma-separated; all if not given.")] = "",
    limit: Annotated[int | None, typer.Option(min=1, help="So many schemas of each dataset, drawn at random.")] = None,
    seed: Seed = 0,
    sampling: Sampling = "greedy,sampled",
    pace: Pace = "turns",
    temperature: Temperature = 0.8,
    max_new_tokens: Annotated[int, typer.Option(min=1)] = 256,
    max_prompt_tokens: Annotated[int, typer.Option(min=1, help="Longer prompts have their schema cut.")] = 2048,
    shots: Annotated[int, typer.Option(min=0, max=2, help="Worked examples in the prompt.")] = 2,
    workers: Workers = 1,
    time_limit: TimeLimit = 60.0,
    memory_limit: MemoryLimit = 8.0,
    as_json: AsJson = False,
) -> None:
    """A model writes an instance of each schema. Each engine constrains it, and python-jsonschema judges."""
    from structgen.benchmarking.schemas import choose_cases, read_cases

    setting = _setting(
        engines,
        pace,
        sampling,
        model=model,
        dtype=dtype,
        threads=threads,
        temperature=temperature,
        seed=seed,
        max_new_tokens=max_new_tokens,
        max_prompt_tokens=max_prompt_tokens,
        shots=shots,
    )
    with _as_bad_input():
        check_report(report)
        chosen = [name for name in datasets.split(",") if name]
        cases = choose_cases(read_cases(data, split), chosen, limit, seed)
        _run(cases, setting, out, workers, time_limit, memory_limit)
        write([out], report, as_json=as_json)


@bench.command()
def coverage(
    data: Annotated[Path, typer.Argument(help="Folder of MaskBench files: schemas with labelled instances.")],
    engines: Engines = "structgen,llguidance,xgrammar",
    out: Out = Path("coverage.jsonl"),
    limit: Annotated[int | None, typer.Option(min=1, help="So many files, drawn at random.")] = None,
    seed: Seed = 0,
    time_limit: TimeLimit = 20.0,
    memory_limit: MemoryLimit = 8.0,
    wrong: Annotated[bool, typer.Option("--wrong", help="List the schemas that are not fully right.")] = False,
    as_json: AsJson = False,
) -> None:
    """Coverage without a model. Which schemas does each engine compile, accept the valid instances of, refuse the
    invalid of?"""
    from structgen.benchmarking.coverage import Setting, check_files, choose_files, run_coverage, wrong_lines
    from structgen.benchmarking.table import counts, tables

    with _as_bad_input():
        paths = choose_files(data, "*.json", limit, seed, None)
        if not paths:
            raise BadInput(f"No .json files in {data}; expected MaskBench files.")
        chosen = check_engines(_names(engines, "engines"))
        check_files(paths)
        setting = Setting("bytes", data, None, time_limit, int(memory_limit * GIB))
        records = run_coverage(paths, chosen, setting, out)
        if as_json:
            print_json({"engines": counts(records), "wrong": list(wrong_lines(records)) if wrong else None})
            return
        plain.print(tables(records), soft_wrap=True, markup=False)
        if wrong:
            plain.print("\n".join(wrong_lines(records)), soft_wrap=True, markup=False)


@bench.command()
def reasoning(
    tasks: Annotated[
        str, typer.Option(help="Comma-separated: last_letters, shuffled_objects, gsm8k (from the hub).")
    ] = ("last_letters,shuffled_objects"),
    engines: Engines = "structgen_decoder,none",
    out: Out = Path("reasoning.jsonl"),
    limit: Annotated[int, typer.Option(min=1, help="Questions of each task.")] = 50,
    aligned: Annotated[int, typer.Option(min=0, help="Also draw so many local and aligned samples a question.")] = 0,
    model: Model = None,
    dtype: Dtype = "float32",
    threads: Threads = None,
    seed: Seed = 0,
    sampling: Sampling = "greedy",
    pace: Pace = "together",
    temperature: Temperature = 0.8,
    max_new_tokens: Annotated[int, typer.Option(min=1)] = 128,
    workers: Workers = 1,
    time_limit: TimeLimit = 60.0,
    memory_limit: MemoryLimit = 8.0,
    as_json: AsJson = False,
) -> None:
    """Accuracy with and without the constraint. Also the log-probability of local and of aligned samples."""
    from structgen.benchmarking.model_server import load_generator
    from structgen.benchmarking.reasoning import TASKS, accuracy_rows, local_against_aligned
    from structgen.benchmarking.table import markdown_table

    with _as_bad_input():
        setting = _setting(
            engines,
            pace,
            sampling,
            model=model,
            dtype=dtype,
            threads=threads,
            temperature=temperature,
            seed=seed,
            max_new_tokens=max_new_tokens,
        )
        chosen = [_one_of(name, list(TASKS), "--tasks") for name in _names(tasks, "tasks")]
        cases = [case for name in chosen for case in TASKS[name](limit, seed)]
        records = _run(cases, setting, out, workers, time_limit, memory_limit)
        head = ["task", "sampling", "engine", "questions", "accuracy", "valid"]
        compared = []
        if aligned:
            generator = load_generator(setting)
            compared = local_against_aligned(generator, cases, aligned, max_new_tokens=max_new_tokens, seed=seed)
        if as_json:
            accuracies = [dict(zip(head, row, strict=True)) for row in accuracy_rows(records)]
            print_json({"accuracy": accuracies, "mean_log_probability": compared})
            return
        plain.print(markdown_table(head, accuracy_rows(records)), soft_wrap=True, markup=False)
        if compared:
            rows = [[str(row["case"]), f"{row['local']:.2f}", f"{row['aligned']:.2f}"] for row in compared]
            plain.print("\n" + markdown_table(["mean log-probability, nats", "local", "aligned"], rows), soft_wrap=True)


@bench.command()
def report(
    records: Annotated[
        list[Path], typer.Argument(help="Record files of jsonschemabench; one by turns gives the times.")
    ],
    folder: Annotated[Path, typer.Option("--out", help="Folder for report.md and report.html; its older ones go.")],
    command: Annotated[str, typer.Option(help="How the records were made, for the report.")] = "",
    as_json: AsJson = False,
) -> None:
    """Write the report of finished (or unfinished) runs."""
    with _as_bad_input():
        check_report(folder)
        write(records, folder, command, as_json=as_json)


def write(records: list[Path], folder: Path | None, command: str = "", *, as_json: bool = False) -> None:
    """Write the report, or print its tables where no folder is given."""
    from structgen.benchmarking.report import as_markdown, make_sections, read_run, write_report

    runs = [read_run(path) for path in records]
    if folder is None:
        sections = make_sections(runs, command)
        if as_json:
            print_json([asdict(section) for section in sections])
        else:
            plain.print(as_markdown(sections), soft_wrap=True, markup=False)
        return
    paths = write_report(runs, folder, command)
    if as_json:
        print_json({"files": list(map(str, paths))})
        return
    for path in paths:
        err.print(f"[dim]{path}[/]")


def check_report(folder: Path | None) -> None:
    """Whether a report can be written there, before a run that may take hours.

    Raises:
        BadInput: matplotlib is missing. ValueError: a file that is no report would be overwritten.
    """
    from structgen.benchmarking.report import check_folder

    if folder is not None:
        if find_spec("matplotlib") is None:
            raise BadInput("The report's plots need matplotlib: pip install 'structgen-lm[bench]'")
        check_folder(folder)


def _setting(engines: str, pace: str, sampling: str, **more: Any) -> ModelSetting:
    """What a run with a model has in common, from the options as they were given."""
    from structgen.benchmarking.model_server import PACES, SAMPLINGS, ModelSetting

    return ModelSetting(
        engines=tuple(check_engines(_names(engines, "engines"))),
        pace=_one_of(pace, list(PACES), "--pace"),
        samplings=tuple(_one_of(name, SAMPLINGS, "--sampling") for name in _names(sampling, "sampling")),
        **more,
    )


def _run(
    cases: list[Case], setting: ModelSetting, out: Path, workers: int, time_limit: float, memory_limit: float
) -> list[dict[str, Any]]:
    from structgen.benchmarking.model_run import run_benchmark
    from structgen.core.workers import Limits

    err.print(f"[dim]{len(cases)} schemas, records in {out}[/]")
    return run_benchmark(cases, setting, Limits(time_limit, int(memory_limit * GIB)), out, workers=workers)


@contextmanager
def _as_bad_input() -> Iterator[None]:
    """What is wrong with data, models and packages, as the command line reports it."""
    from structgen.benchmarking.schemas import DataError
    from structgen.core.workers import WorkerError

    try:
        yield
    except (DataError, WorkerError) as error:
        raise BadInput(str(error)) from error


def _names(text: str, what: str) -> list[str]:
    names = list(dict.fromkeys(name for name in text.split(",") if name))
    if not names:
        raise BadInput(f"No {what} given.")
    return names


def _one_of(value: str, allowed: tuple[str, ...] | list[str], option: str) -> str:
    if value not in allowed:
        raise BadInput(f"{option} is {value!r}; expected one of {', '.join(allowed)}.")
    return value


def check_engines(names: list[str]) -> list[str]:
    """The names, if they are known ("module:class" is taken as it is) and what they need is installed."""
    from structgen.benchmarking.engines import ENGINES, PACKAGES
    from structgen.benchmarking.model_server import DECODER

    for name in names:
        if ":" not in name and name != DECODER:
            _one_of(name, list(ENGINES), "--engines")
    missing = [name for name in names if name in PACKAGES and find_spec(PACKAGES[name]) is None]
    if missing:
        others = ",".join(name for name in names if name not in missing)
        without = f"; or leave them out: --engines {others}" if others else ""
        raise BadInput(f"Not installed: {', '.join(missing)}. Install: pip install 'structgen-lm[bench]'{without}")
    return names
