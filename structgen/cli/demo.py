"""``structgen demo``: a real model writes JSON for a few schemas, and python-jsonschema judges it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from rich.rule import Rule

import structgen
from structgen.cli.common import INVALID, BadInput, print_json, summary
from structgen.cli.consoles import out
from structgen.cli.validate import schema_errors
from structgen.core.constraints.json import JsonSchemaConstraint, json_schema
from structgen.core.json_text import loads_exact
from structgen.generation.generator import Generator
from structgen.generation.results import GenerationResult
from structgen.options import JsonOptions

EXAMPLES = {
    "person": "Ada Lovelace is 36 years old. She is a mathematician and lives in London.",
    "sentiment": "Classify this review: 'The soup was cold and the waiter was rude. I will not come back.'",
    "tool_call": "What is the weather in Paris right now, in celsius? Call the right tool.",
    "invoice": "Invoice INV-0042 of 3 May 2024 for Acme Corp, in euros: 2 desks at 249.99 and 5 chairs at 89.50. Paid.",
    "recipe": "Write a recipe for tomato soup.",
}
MAX_NEW_TOKENS = 320


def run(
    generator: Generator,
    schemas: Path | None,
    only: list[str],
    temperature: float,
    seed: int,
    closed: bool,
    as_json: bool,
) -> int:
    """Run the examples; exit code 1 if an output is invalid."""
    folder = schemas or Path(structgen.__file__).resolve().parents[1] / "schemas"
    if not folder.is_dir():
        raise BadInput(f"No schemas in {folder}; run the demo from the repository, or pass --schemas.")
    unknown = set(only) - set(EXAMPLES)
    if unknown:
        raise BadInput(f"No such example: {', '.join(sorted(unknown))}; there are {', '.join(EXAMPLES)}.")
    verdicts = []
    for name in only or EXAMPLES:
        options = {"temperature": temperature, "seed": seed, "max_new_tokens": MAX_NEW_TOKENS}
        constraint = json_schema(
            folder / f"{name}.json", JsonOptions(whitespace=2, additional_members="closed" if closed else "schema")
        )
        verdicts.append(_example(generator, name, constraint, options, as_json))
    valid = sum(verdict["valid"] for verdict in verdicts)
    if as_json:
        print_json(verdicts)
    else:
        color = "green" if valid == len(verdicts) else "red"
        out.print(Rule(style="dim"))
        out.print(f"[bold {color}]{valid} of {len(verdicts)} outputs are valid[/] (judged by python-jsonschema)")
    return 0 if valid == len(verdicts) else INVALID


def _example(
    generator: Generator, name: str, constraint: JsonSchemaConstraint, options: dict[str, Any], as_json: bool
) -> dict[str, Any]:
    """Stream one example and judge it."""
    report = constraint.compile(generator.vocabulary).report
    members = "open (--closed)" if report.open else "closed by --closed" if report.closed else "closed"
    if not as_json:
        out.print(Rule(f"[bold]{name}[/]  [dim]{name}.json, objects: {members}[/]", align="left", style="dim"))
        out.print(f"[cyan]{EXAMPLES[name]}[/]")
    result: GenerationResult | None = None
    for event in generator.stream(EXAMPLES[name], constraint, **options):
        result = event.result
        if not as_json:
            sys.stdout.write(event.delta)
            sys.stdout.flush()
    assert result is not None
    errors = schema_errors(constraint.schema, loads_exact(result.text))
    if not as_json:
        sys.stdout.write("\n")
        verdict = "[green]✓ valid[/]" if not errors else f"[red]✗ invalid[/]: {errors[0]['message']}"
        out.print(f"{verdict}  [dim]{summary(result)}[/]")
    seconds, tokens = result.stats.seconds, result.stats.output_tokens
    return {
        "example": name, "valid": not errors, "text": result.text, "open": report.open, "seconds": seconds,
        "tokens": tokens,
    }  # fmt: skip
