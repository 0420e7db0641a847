"""Running a command in this process."""

from __future__ import annotations

from typer.testing import CliRunner

from structgen.cli.commands import app


def run(*arguments: str, stdin: str | bytes | None = None) -> tuple[int, str, str]:
    """Exit code, standard output and standard error; what is no exit is raised."""
    result = CliRunner().invoke(app, list(arguments), input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr
