"""The help of each command: in a terminal of 80 columns, and in a narrow one, no name of an option is cut."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

from structgen.cli.commands import app


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name, below in getattr(command, "commands", {}).items():
        yield from commands(below, (*path, name))


COMMANDS = dict(commands(typer.main.get_command(app)))


@pytest.mark.parametrize("columns", [40, 80, 200])
@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: " ".join(path) or "structgen")
def test_names_of_options_are_whole(path: tuple[str, ...], columns: int) -> None:
    result = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": str(columns), "TERMINAL_WIDTH": str(columns)})
    assert result.exit_code == 0 and "…" not in result.output
    names = [name for item in COMMANDS[path].params for name in (*item.opts, *item.secondary_opts) if name[0] == "-"]
    whole = [name for name in names if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", result.output)]
    assert whole == names


def test_commands_are_told_in_whole_sentences() -> None:
    for path, command in COMMANDS.items():
        if hasattr(command, "commands"):
            output = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "80", "TERMINAL_WIDTH": "80"}).output
            assert "..." not in output.partition("Commands:")[2], output
            assert set(command.commands) <= set(output.split())
