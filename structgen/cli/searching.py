"""``structgen search``: the outputs that a method of search chooses."""

from __future__ import annotations

import json
from typing import Any

from structgen.cli.common import INCOMPLETE, BadInput, print_json
from structgen.cli.consoles import err, out
from structgen.core.constraints.base import Constraint
from structgen.generation.generator import Generator
from structgen.generation.search import SearchResult, SearchRun
from structgen.generation.target import Budget


def run_search(
    generator: Generator,
    prompt: str,
    constraint: Constraint,
    n: int,
    method: str,
    given: list[str],
    budget: Budget | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Print outputs, one a line, after their log-probabilities; the exit code is 3 where the budget ran out first."""
    chosen = dict(map(_option, given)) | ({} if budget is None else {"budget": budget})
    run = generator.search(prompt, constraint, method=method, n=n, **options, **chosen)
    if as_json:
        print_json(_run_dict(run))
    else:
        for result in run.results:
            text = json.dumps(result.text, ensure_ascii=False) if "\n" in result.text else result.text
            out.print(f"{result.log_prob_global:9.3f}  {text}", markup=False, soft_wrap=True)
        err.print(f"[dim]{_summary(run)}[/]", soft_wrap=True)
    return 0 if run.stopped_by is None else INCOMPLETE


def _option(given: str) -> tuple[str, Any]:
    """``name=value``; the value is JSON, or a text."""
    name, mark, value = given.partition("=")
    if not mark or not name.strip():
        raise BadInput(f"--option is {given!r}; expected a name and a value, with = between them.")
    try:
        return name.strip().replace("-", "_"), json.loads(value)
    except ValueError:
        return name.strip().replace("-", "_"), value


def _run_dict(run: SearchRun[Any]) -> dict[str, Any]:
    return {
        "method": run.method,
        "results": list(map(_result_dict, run.results)),
        "gap": None if run.gap is None or run.gap == float("inf") else run.gap,
        "proven": run.gap == 0,
        "stopped_by": run.stopped_by,
        "model_calls": run.stats.model_calls,
        "model_tokens": run.stats.tokens_read,
        "seconds": round(run.stats.seconds, 3),
    }


def _result_dict(result: SearchResult[Any]) -> dict[str, Any]:
    return {
        "text": result.text,
        "finish_reason": result.finish_reason,
        "score": result.score,
        "log_prob_global": result.log_prob_global,
        "logprob": result.logprob,
        "text_logprob": result.text_logprob,
    }


def _summary(run: SearchRun[Any]) -> str:
    """One line on what the search knows and cost."""
    stats = run.stats
    better = "" if run.gap is None else f"another may score up to {run.gap:.3f} more, "
    if run.gap == 0:
        better = "no output is better, "
    stopped = f"stopped by {run.stopped_by}, " if run.stopped_by else ""
    return f"{better}{stopped}{stats.tokens_read} model tokens in {stats.model_calls} calls, {stats.seconds:.1f} s"
