"""``structgen bench``: benchmarks of this library and its peers. Needs the extra ``structgen[bench]`` for the peers."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from structgen.cli.common import BadInput, err, exit_codes

bench = typer.Typer(help="Benchmarks of constraint engines.", no_args_is_help=True)

Data = Annotated[str, typer.Option(help="'hub', the GitHub folder of JSONSchemaBench, or a folder of MaskBench files.")]
Engines = Annotated[str, typer.Option(help="Comma-separated: structgen, structgen_decoder, llguidance, xgrammar, ...")]
GIB = 2**30


@bench.command()
def jsonschemabench(
    data: Data,
    engines: Engines = "structgen,structgen_decoder,llguidance,xgrammar,none",
    out: Annotated[Path, typer.Option(help="Records, JSON lines; an existing file is gone on with.")] = Path(
        "jsonschemabench.jsonl"
    ),
    report: Annotated[Path | None, typer.Option(help="Folder for report.md and report.html.")] = None,
    model: Annotated[
        str | None, typer.Option(help="Hugging Face id or folder; the built-in model if not given.")
    ] = None,
    dtype: Annotated[str, typer.Option(help="float32, bfloat16, float16 or auto.")] = "float32",
    threads: Annotated[int | None, typer.Option(min=1, help="Threads of torch in each worker.")] = None,
    split: Annotated[str | None, typer.Option(help="Of the hub: train, val or test (default).")] = None,
    datasets: Annotated[str, typer.Option(help="Comma-separated; all if not given.")] = "",
    limit: Annotated[int | None, typer.Option(min=1, help="So many schemas of each dataset, drawn at random.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the sample and of sampling.")] = 0,
    sampling: Annotated[str, typer.Option(help="Comma-separated: greedy, sampled.")] = "greedy,sampled",
    pace: Annotated[str, typer.Option(help="turns: comparable times; together: faster, only masks timed.")] = "turns",
    temperature: Annotated[float, typer.Option(min=0.01, help="Of 'sampled'.")] = 0.8,
    max_new_tokens: Annotated[int, typer.Option(min=1)] = 256,
    max_prompt_tokens: Annotated[int, typer.Option(min=1, help="Longer prompts have their schema cut.")] = 2048,
    shots: Annotated[int, typer.Option(min=0, max=2, help="Worked examples in the prompt.")] = 2,
    workers: Annotated[int, typer.Option(min=1, help="Processes, each with its own model.")] = 1,
    time_limit: Annotated[float, typer.Option(min=1, help="Seconds for one step of one engine.")] = 60.0,
    memory_limit: Annotated[float, typer.Option(min=0.5, help="GiB of a process.")] = 8.0,
) -> None:
    """A model writes an instance of each schema under each engine; python-jsonschema judges it."""
    from structgen.benchmarking.model_run import run_benchmark
    from structgen.benchmarking.model_server import PACES, SAMPLINGS, ModelSetting
    from structgen.benchmarking.schemas import DataError, choose_cases, read_cases
    from structgen.benchmarking.workers import Limits, WorkerError

    with exit_codes():
        setting = ModelSetting(
            model=model,
            engines=tuple(check_engines(_names(engines, "engines"))),
            dtype=dtype,
            threads=threads,
            pace=_one_of(pace, list(PACES), "--pace"),
            samplings=tuple(_one_of(name, SAMPLINGS, "--sampling") for name in _names(sampling, "sampling")),
            temperature=temperature,
            seed=seed,
            max_new_tokens=max_new_tokens,
            max_prompt_tokens=max_prompt_tokens,
            shots=shots,
        )
        limits = Limits(time_limit, int(memory_limit * GIB))
        try:
            chosen = [name for name in datasets.split(",") if name]
            cases = choose_cases(read_cases(data, split), chosen, limit, seed)
            err.print(f"[dim]{len(cases)} schemas, records in {out}[/]")
            run_benchmark(cases, setting, limits, out, workers=workers)
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
        if name in PACKAGES and find_spec(PACKAGES[name]) is None:
            raise BadInput(f"The engine {name} is not installed: pip install 'structgen[bench]'")
    return names
