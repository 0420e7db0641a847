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
    app.command()(compare)


def compare(
    old: Annotated[str, typer.Argument(help="The old schema: a file or JSON text. With --against: the only file.")],
    new: Annotated[str | None, typer.Argument(help="The new schema: a file or JSON text.")] = None,
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
    """Compare what two schemas allow. The answer is exact: a document that only one allows, and why. Exit code 1 if
    the change breaks what was asked for, 3 if that was not decided.

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
