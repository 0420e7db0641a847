"""``structgen check``: the coverage report of a schema."""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from typing import Any

from rich.table import Table
from rich.text import Text

from structgen.cli.common import INVALID, byte_vocabulary, err, out, print_json
from structgen.constraints.json import JsonSchemaConstraint
from structgen.errors import UnsupportedSchemaError


def run(constraint: JsonSchemaConstraint, as_json: bool) -> int:
    """Compile and report; the exit code."""
    start = time.perf_counter()
    try:
        grammar, problem = constraint.compile(byte_vocabulary()), None
    except UnsupportedSchemaError as error:
        lenient = dataclasses.replace(constraint.options, unsupported="ignore")
        grammar, problem = dataclasses.replace(constraint, options=lenient).compile(byte_vocabulary()), error
    milliseconds = 1e3 * (time.perf_counter() - start)
    entries = grammar.report.to_dict()
    if as_json:
        error_dict = problem and {"message": str(problem), "pointer": problem.pointer, "keyword": problem.keyword}
        print_json({"covered": problem is None, "error": error_dict, "keywords": entries, "milliseconds": milliseconds})
    else:
        _print(entries, milliseconds, problem)
    return 0 if problem is None else INVALID


def _print(entries: dict[str, dict[str, Any]], milliseconds: float, problem: UnsupportedSchemaError | None) -> None:
    counts = Counter(entry["status"] for entry in entries.values())
    table = Table("pointer", "status", "reason", title="Keywords that are not enforced", title_justify="left")
    for pointer, entry in entries.items():
        if entry["status"] != "enforced" and entry.get("reason") != "structure of the document":
            table.add_row(Text(pointer), entry["status"], Text(entry.get("reason", "")))
    if table.row_count:
        out.print(table)
    total = ", ".join(f"{count} {status}" for status, count in sorted(counts.items())) or "no keywords"
    out.print(f"{total}; compiled in {milliseconds:.1f} ms")
    if problem is None:
        out.print("[green]covered[/]: every output satisfies the schema")
    else:
        err.print("[red]not covered[/]:", end=" ")
        err.print(str(problem), markup=False, soft_wrap=True)
