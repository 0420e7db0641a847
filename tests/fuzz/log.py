"""A run in words: a line while it goes on, and a report at the end."""

from __future__ import annotations

import json
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.fuzz.runner import SPAN, Run

COUNTED = ("texts", "schemas", "grammars", "expressions", "types", "generations", "walks")


def line(run: Run) -> str:
    """How far it is."""
    counts = ", ".join(f"{run.tally[name]:,} {name}" for name in COUNTED if run.tally[name])
    failures = ", ".join(f"{count} × {kind}" for kind, count in run.kinds.most_common(6)) or "no failures"
    return f"{run.seconds:5.0f} s: {counts}; {failures}; {run.megabytes:.0f} MB"


def report(run: Run, cases: list[dict[str, Any]], checked: bool) -> str:
    """Markdown: what was run, with which seeds, and what failed."""
    rows = [f"| {name} | {_number(value)} |" for name, value in sorted(run.tally.items())]
    failures = [f"| {kind} | {count} |" for kind, count in run.kinds.most_common()] or ["| none | 0 |"]
    software = ", ".join(f"{name} {version(name)}" for name in ("numba", "jsonschema", "lark", "pydantic"))
    return "\n".join(
        [
            f"`make fuzz` with seed {run.base} (units {run.base * SPAN} and up), {run.seconds / 60:.1f} minutes, "
            f"{run.workers_started} worker processes one after another, at most {run.megabytes:.0f} MB each, "
            f"bounds checks {'on' if checked else 'off'}; Python {platform.python_version()}, {software}.",
            "",
            "| counted | |",
            "|---|---|",
            *rows,
            "",
            "| failures | |",
            "|---|---|",
            *failures,
            "",
            *(f"- `{json.dumps(case, ensure_ascii=True)}`" for case in cases),
        ]
    )


def _number(value: float) -> str:
    return f"{value:,.0f}"


def write_cases(path: Path, cases: list[dict[str, Any]]) -> None:
    """Append cases that are not there yet, a line each."""
    known = set(path.read_text().splitlines()) if path.exists() else set()
    with path.open("a") as file:
        for case in cases:
            text = json.dumps(case)
            if text not in known:
                file.write(text + "\n")
