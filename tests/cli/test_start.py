"""What commands load before they answer: counted in modules, since times differ from machine to machine."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCHEMA = '{"type": "object", "properties": {"tag": {"type": "string", "maxLength": 20}}}'
COUNT = """
import json, sys
from structgen.cli.main import app
try:
    app()
finally:
    print(json.dumps(list(sys.modules)), file=sys.stderr)
"""
HEAVY = ("torch", "transformers", "numba", "asyncio", "jsonschema", "lark", "httpx", "hypothesis")
COMPILING = (
    "structgen.core.engines.json.compiled",
    "structgen.core.engines.json.matcher",
    "structgen.core.engines.json.tables.arrays",
    "structgen.core.text_sets.corpus",
    "structgen.core.kernels.sorted.calls",
    "structgen.generation.generator",
)


def loaded_by(*arguments: str) -> set[str]:
    finished = subprocess.run([sys.executable, "-c", COUNT, *arguments], capture_output=True, text=True, check=False)
    return set(json.loads(finished.stderr.splitlines()[-1]))


@pytest.mark.parametrize(
    ("arguments", "forbidden", "most"),
    [
        (("compare", SCHEMA, "true"), (*HEAVY, *COMPILING), 160),
        (("examples", SCHEMA, "-n", "2"), (*HEAVY, *COMPILING), 165),
        (("lower", SCHEMA, "--for", "openai"), (*HEAVY, *COMPILING), 170),
        (("lint", "{file}"), (*HEAVY, *COMPILING), 165),
        (("check", "{file}"), HEAVY, 330),
    ],
)
def test_commands_load_what_they_need(
    arguments: tuple[str, ...], forbidden: tuple[str, ...], most: int, tmp_path: Path
) -> None:
    file = tmp_path / "schema.json"
    file.write_text(SCHEMA)
    modules = loaded_by(*(one.format(file=file) if one == "{file}" else one for one in arguments))
    assert "structgen.cli.answer_commands" in modules
    assert modules.isdisjoint(forbidden), sorted(modules.intersection(forbidden))
    assert sum(name.startswith("structgen.") for name in modules) <= most


def test_commands_without_a_model_are_commands() -> None:
    from structgen.cli.commands import app as commands
    from structgen.cli.main import WITHOUT_MODEL
    from structgen.cli.options import _name_of

    assert set(WITHOUT_MODEL) < {_name_of(one) for one in commands.registered_commands}


@pytest.mark.parametrize(
    ("command", "given", "expected"), [("lint", None, "1"), ("lint", "3", "3"), ("generate", None, None)]
)
def test_threads_of_numpy_are_not_made_for_commands_without_a_model(
    command: str, given: str | None, expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the user says holds."""
    name = "OPENBLAS_NUM_THREADS"
    monkeypatch.delenv(name, raising=False)
    if given is not None:
        monkeypatch.setenv(name, given)
    code = COUNT.replace("list(sys.modules)", f"__import__('os').environ.get({name!r})")
    finished = subprocess.run([sys.executable, "-c", code, command], capture_output=True, text=True, check=False)
    assert json.loads(finished.stderr.splitlines()[-1]) == expected


def test_the_package_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "structgen", "--version"]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.returncode == 0 and "structgen" in finished.stdout


def test_a_fault_of_a_command_is_no_verdict() -> None:
    program = "from structgen.cli import commands, main\n"
    program += "commands.app.__class__.__call__ = lambda *_: 1 / 0\nmain.app()"
    finished = subprocess.run([sys.executable, "-c", program, "compare"], capture_output=True, text=True, check=False)
    assert finished.returncode == 70
    assert "ZeroDivisionError" in finished.stderr and "fault of structgen" in finished.stderr
