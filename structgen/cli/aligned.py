"""``structgen sample`` and ``structgen compare-distributions``: samples of the model given the constraint."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from structgen.cli.common import INCOMPLETE, BadInput, print_json
from structgen.cli.consoles import err, out
from structgen.core.constraints.base import Constraint
from structgen.generation.generator import Generator
from structgen.generation.target import METHODS, Budget, SampleRun
from structgen.generation.target.compare import Comparison, compare, plot
from structgen.generation.target.methods import SPECIFICATIONS


def run_sample(
    generator: Generator,
    prompt: str,
    constraint: Constraint,
    n: int,
    method: str,
    budget: Budget,
    seed: int | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Print samples, one a line; the exit code is 3 where the budget ran out first."""
    if method not in METHODS:
        raise BadInput(f"Unknown method {method!r}; expected one of {', '.join(METHODS)}.")
    run = generator.sample(prompt, constraint, n, method, seed=seed, budget=budget, **options)
    if as_json:
        print_json(run_dict(run))
    else:
        for sample in run.samples:
            weight = f"\t{sample.log_weight:.3f}" if SPECIFICATIONS[run.method].weighted else ""
            text = json.dumps(sample.text, ensure_ascii=False) if "\n" in sample.text else sample.text
            out.print(f"{text}{weight}", markup=False, soft_wrap=True)
        err.print(f"[dim]{summary(run)}[/]", soft_wrap=True)
    return 0 if run.complete else INCOMPLETE


def run_compare(
    generator: Generator,
    prompt: str,
    constraint: Constraint,
    n: int,
    budget: Budget,
    seed: int,
    plot_file: Path | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Print (and plot) the shares of texts among local, ASAp and exact samples."""
    if plot_file is not None:
        _check_plot(plot_file)
    comparison = compare(generator.target(prompt, constraint, **options), n, seed=seed, budget=budget)
    if plot_file is not None:
        plot(comparison, str(plot_file))
    if as_json:
        texts = [dataclasses.asdict(text) for text in comparison.texts]
        print_json({"texts": texts, "runs": {method: run_dict(run) for method, run in comparison.runs.items()}})
    else:
        _print(comparison)
    return 0 if all(run.complete for run in comparison.runs.values()) else INCOMPLETE


def _check_plot(path: Path) -> None:
    """Whether the plot can be written, before samples are drawn for it; a file that is no plot is left alone."""
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError as error:
        raise BadInput("Plots need matplotlib: pip install 'structgen-lm[plots]'") from error
    formats = sorted(FigureCanvasBase.get_supported_filetypes())
    if path.suffix and path.suffix[1:].lower() not in formats:
        raise BadInput(f"--plot is {path}; expected a name that ends in one of .{', .'.join(formats)}.")
    if not path.parent.is_dir():
        raise BadInput(f"--plot is {path}, but there is no folder {path.parent}.")
    if path.exists() and not (path.is_file() and b"atplotlib" in path.read_bytes()):  # which signs what it writes
        raise BadInput(f"{path} is no known plot, and would be overwritten. Name another --plot, or remove it.")


def _print(comparison: Comparison, most: int = 20) -> None:
    table = Table("text", "target", "local", "ASAp", "exact", title="Shares of the samples", title_justify="left")
    for text in comparison.texts[:most]:
        low, high = text.target
        shares = [f"{text.shares[method]:.3f}" for method in ("local", "asap", "exact")]
        table.add_row(Text(text.text), f"{low:.3f} to {high:.3f}", *shares)
    out.print(table)
    if len(comparison.texts) > most:
        out.print(f"and {len(comparison.texts) - most} more texts")
    for method in ("local", "asap"):
        out.print(f"{method}: total variation distance to the exact samples {comparison.distance(method):.3f}")
    for method, run in comparison.runs.items():
        err.print(f"[dim]{method}: {summary(run)}[/]", soft_wrap=True)


def summary(run: SampleRun) -> str:
    """One line on how samples came about."""
    low, high = run.log_z_bounds
    parts = [
        f"{len(run.samples)} of {run.requested} samples"
        + (f" (stopped by {run.stopped_by}: texts that need few model calls are favoured)" if run.stopped_by else ""),
        f"{run.model_tokens} model tokens in {run.model_calls} calls, {run.seconds:.1f} s",
        f"ln P(L) between {low:.2f} and {high:.2f}",
    ]
    if run.rejected or run.stuck:
        parts.append(f"{run.rejected} attempts rejected, {run.stuck} stuck")
    if not math.isnan(run.ess) and run.ess < len(run.samples):
        parts.append(f"effective sample size {run.ess:.1f}")
    if run.method == "asap":
        parts.append(f"total variation distance of the next sample at most {run.tv_bound:.3f}")
    return ", ".join(parts)


def run_dict(run: SampleRun) -> dict[str, Any]:
    """A run as JSON values (numbers that are none become null)."""
    fields = {field.name: getattr(run, field.name) for field in dataclasses.fields(run) if field.name != "log_weights"}
    fields["samples"] = [
        {"text": s.text, "log_prob": s.log_prob, "log_weight": s.log_weight, "exact": s.exact} for s in run.samples
    ]
    fields["log_z_bounds"] = [_finite(bound) for bound in run.log_z_bounds]
    return {name: _finite(value) for name, value in fields.items()} | {"complete": run.complete}


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
