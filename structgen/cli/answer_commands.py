"""The commands that answer questions about constraints; they need no model."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from structgen.cli.common import BadInput
from structgen.cli.options import AsJson, Commands
from structgen.options import JsonOptions

AsSarif = Annotated[bool, typer.Option("--sarif", help="SARIF 2.1.0 on standard output, for code hosts.")]
Formats = Annotated[bool, typer.Option("--formats/--no-formats", help="Whether formats are conditions.")]
Closed = Annotated[bool, typer.Option("--closed", help="Objects that declare members have no others.")]


def form_of(as_json: bool, as_sarif: bool) -> Any:
    """How a command reports.

    Raises:
        BadInput: in both forms.
    """
    if as_json and as_sarif:
        raise BadInput("Give --json or --sarif, not both.")
    return "json" if as_json else "sarif" if as_sarif else "text"


def register(app: Commands) -> None:
    """Add the commands to the program's."""
    for command in (compare, examples, lint, lower):
        app.command()(command)


def compare(
    old: Annotated[
        str, typer.Argument(help="The old schema (file or JSON text) or grammar. With --against: the only file.")
    ],
    new: Annotated[str | None, typer.Argument(help="The new one.")] = None,
    backward: Annotated[bool, typer.Option("--backward", help="New readers take all old data (the default).")] = False,
    forward: Annotated[bool, typer.Option("--forward", help="Old readers take all new data.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Both.")] = False,
    request: Annotated[bool, typer.Option("--request", help="A schema of requests: as --backward.")] = False,
    response: Annotated[bool, typer.Option("--response", help="A schema of responses: as --forward.")] = False,
    against: Annotated[str | None, typer.Option(help="A git revision: the old schema is the file there.")] = None,
    undecided: Annotated[str, typer.Option(help="fail or pass, where a question was not decided.")] = "fail",
    formats: Formats = True,
    closed: Closed = False,
    as_json: AsJson = False,
    as_sarif: AsSarif = False,
) -> None:
    """Compare what two schemas or grammars allow. The answer is exact: a document that only one allows, and why. Exit
    code 1 if the change breaks what was asked for, 3 if that was not decided.

    structgen compare old.json new.json --backward

    structgen compare schema.json --against HEAD
    """
    from structgen.cli.compare import ComparisonRequest, run, text_at_revision

    if undecided not in ("fail", "pass"):
        raise BadInput(f"--undecided is fail or pass, not {undecided!r}.")
    if (new is None) != (against is not None):
        raise BadInput("Give two files, or one and --against REVISION.")
    asks_both = full or ((backward or request) and (forward or response))
    direction = "full" if asks_both else "forward" if forward or response else "backward"
    options = JsonOptions(assert_formats=formats, additional_members="closed" if closed else "schema")
    asked = ComparisonRequest(
        f"{against}:{old}" if against else old, new or old, direction, options,  # type: ignore[arg-type]
        undecided == "pass", form_of(as_json, as_sarif),
    )  # fmt: skip
    raise typer.Exit(run(asked, None if against is None else text_at_revision(old, against)))


def examples(
    schema: Annotated[str, typer.Argument(help="JSON Schema or grammar: a file, JSON text, or - for standard input.")],
    n: Annotated[int, typer.Option("-n", min=0, help="How many; fewer where there are no more.")] = 10,
    style: Annotated[str, typer.Option(help="typical, minimal, boundary or invalid.")] = "typical",
    size: Annotated[int, typer.Option(min=1, help="About how many bytes optional parts may take.")] = 300,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    formats: Formats = True,
    closed: Closed = False,
    as_json: AsJson = False,
) -> None:
    """Write documents that a schema allows, a line each. Or, with --style invalid, documents that one keyword alone
    refuses. Exit code 1 if nothing satisfies the schema.

    structgen examples schema.json -n 20 --style boundary
    """
    from structgen.cli.examples import run

    options = JsonOptions(assert_formats=formats, additional_members="closed" if closed else "schema")
    raise typer.Exit(run(schema, n, style, size, seed, options, as_json))


def lint(
    files: Annotated[
        list[str], typer.Argument(help="Files with JSON Schemas or grammars; with --tools, lists of tools.")
    ],
    deep: Annotated[bool, typer.Option("--deep", help="Ask of each keyword whether the whole needs it.")] = False,
    tools: Annotated[
        bool, typer.Option("--tools", help="The files are lists of tools (OpenAI, Anthropic, MCP).")
    ] = False,
    providers: Annotated[
        str, typer.Option("--for", help="Say what providers make of it: names with commas, or all (see lower).")
    ] = "",
    fail_on: Annotated[
        str, typer.Option(help="error, warning, info or never: what makes the exit code 1.")
    ] = "warning",
    baseline: Annotated[
        str | None, typer.Option(help="Output of an earlier run with --json, whose findings are left out.")
    ] = None,
    formats: Formats = True,
    closed: Annotated[bool, typer.Option("--closed", help="Name objects that allow undeclared members.")] = False,
    as_json: AsJson = False,
    as_sarif: AsSarif = False,
) -> None:
    """Find what is wrong in schemas. That is what has no effect, contradicts itself, or was meant otherwise; each
    finding is shown by a document or a decided question. Exit code 1 if there are findings, 2 if a file is no schema.

    structgen lint schemas/*.json --sarif
    """
    from structgen.cli.lint import LintRequest, run

    options = JsonOptions(assert_formats=formats)
    form = form_of(as_json, as_sarif)
    asked = LintRequest(deep, closed, tools, tuple(name.strip() for name in providers.split(",") if name.strip()))
    raise typer.Exit(run(files, fail_on, form, baseline, options, asked))


def lower(
    schema: Annotated[str, typer.Argument(help="JSON Schema: a file, JSON text, or - for standard input.")],
    target: Annotated[str, typer.Option("--for", help="openai, anthropic, bedrock, gemini, llama.cpp, xgrammar, ...")],
    formats: Formats = True,
    closed: Closed = False,
    as_json: AsJson = False,
) -> None:
    """Write a schema for a provider. The schema on standard output is within what the provider reads; what that loses,
    and what answers may then say, is on standard error. Exit code 1 if it is still beyond a limit.

    structgen lower schema.json --for openai > sent.json
    """
    from structgen.cli.lower import run

    options = JsonOptions(assert_formats=formats, additional_members="closed" if closed else "schema")
    raise typer.Exit(run(schema, target, options, as_json))
