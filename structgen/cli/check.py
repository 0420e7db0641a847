"""``structgen check``: what of a constraint is enforced, its size, and what of it has no effect."""

from __future__ import annotations

import dataclasses
import time
import warnings
from collections import Counter

from rich.table import Table
from rich.text import Text

from structgen.cli.common import INVALID, byte_vocabulary, fail, print_json
from structgen.cli.consoles import err, out
from structgen.core.constraints.base import Constraint
from structgen.core.constraints.json import JsonSchemaConstraint
from structgen.core.json_schema.report import Report
from structgen.errors import EmptyLanguageError, GrammarWarning, UnsatisfiableSchemaError, UnsupportedSchemaError
from structgen.options import OPEN_DIGITS

MOST_PLACES = 5  # that are listed of open objects


def run(constraint: Constraint, as_json: bool) -> int:
    """Compile and report; the exit code. Errors are raised, but for what nothing satisfies."""
    try:
        if isinstance(constraint, JsonSchemaConstraint):
            return _check_schema(constraint, as_json)
        return _check_grammar(constraint, as_json)
    except (UnsatisfiableSchemaError, EmptyLanguageError) as error:
        fail(error, INVALID, as_json)


def _check_schema(constraint: JsonSchemaConstraint, as_json: bool) -> int:
    start = time.perf_counter()
    try:
        grammar, problem = constraint.compile(byte_vocabulary()), None
    except UnsupportedSchemaError as error:
        lenient = dataclasses.replace(constraint.options, unsupported="ignore")
        grammar, problem = dataclasses.replace(constraint, options=lenient).compile(byte_vocabulary()), error
    milliseconds = 1e3 * (time.perf_counter() - start)
    report = grammar.report
    if as_json:
        error_dict = problem and {"message": str(problem), "pointer": problem.pointer, "keyword": problem.keyword}
        print_json({
            "covered": problem is None, "error": error_dict, "keywords": report.to_dict(), "open": report.open,
            "misspelt": [entry.pointer for entry in report.misspelt],
            "bounds_numbers": report.bounds_numbers, "milliseconds": milliseconds,
        })  # fmt: skip
    else:
        _print(report, milliseconds, problem)
    return 0 if problem is None else INVALID


def _check_grammar(constraint: Constraint, as_json: bool) -> int:
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", GrammarWarning)
        grammar = constraint.compile(byte_vocabulary())
    remarks = [str(warning.message) for warning in caught if issubclass(warning.category, GrammarWarning)]
    milliseconds = 1e3 * (time.perf_counter() - start)
    source = getattr(grammar, "source", None)  # of a grammar; expressions and choices are automata
    counts = {} if source is None else {"rules": len(source.rules), "terminals": len(source.terminals)}
    if as_json:
        print_json({"covered": True, **counts, "warnings": remarks, "milliseconds": milliseconds})
        return 0
    for remark in remarks:
        err.print(f"warning: {remark}", markup=False, soft_wrap=True)
    out.print("".join(f"{count} {name}, " for name, count in counts.items()) + f"compiled in {milliseconds:.1f} ms")
    out.print("[green]covered[/]: every output is a text of the constraint")
    return 0


def _print(report: Report, milliseconds: float, problem: UnsupportedSchemaError | None) -> None:
    entries = report.to_dict()
    counts = Counter(entry["status"] for entry in entries.values())
    table = Table("pointer", "status", "reason", title="Keywords that are not enforced", title_justify="left")
    for pointer, entry in entries.items():
        if entry["status"] != "enforced" and entry.get("reason") != "structure of the document":
            table.add_row(Text(pointer), entry["status"], Text(entry.get("reason", "")))
    if table.row_count:
        out.print(table)
    total = ", ".join(f"{count} {status}" for status, count in sorted(counts.items())) or "no keywords"
    out.print(f"{total}; compiled in {milliseconds:.1f} ms")
    if report.open:
        places = ", ".join(pointer or "the root" for pointer in report.open[:MOST_PLACES])
        more = f" and {len(report.open) - MOST_PLACES} more" if len(report.open) > MOST_PLACES else ""
        said = f"open: undeclared members are allowed at {places}{more}; --closed allows none"
        out.print(said, markup=False, soft_wrap=True)
    if report.bounds_numbers:
        out.print(
            f"numbers that nothing bounds have at most {OPEN_DIGITS} digits before the point and after it; "
            "-O max_number_length=none allows any number",
            markup=False,
            soft_wrap=True,
        )
    if problem is None:
        out.print("[green]covered[/]: every output satisfies the schema")
    else:
        err.print("[red]not covered[/]:", end=" ")
        err.print(str(problem), markup=False, soft_wrap=True)
