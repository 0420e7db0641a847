"""What type checkers see: mypy --strict reads the examples, and lines that say what the type of a value is."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = ["examples", "tests/typing/values.py"]


def mypy(*files: str) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("mypy", reason="mypy reads the types")
    command = [sys.executable, "-m", "mypy", "--strict", *files]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)


@pytest.mark.full
def test_types_are_what_they_are_said_to_be() -> None:
    done = mypy(*FILES)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.full
def test_a_wrong_type_is_seen(tmp_path: Path) -> None:
    """The check above finds something: with a value said to be of another type, mypy names the line."""
    source = (ROOT / FILES[1]).read_text("utf-8")
    wrong = source.replace(".value, City)", ".value, Person)")
    line = next(n for n, (a, b) in enumerate(zip(source.splitlines(), wrong.splitlines(), strict=True), 1) if a != b)
    path = tmp_path / "wrong_values.py"
    path.write_text(wrong, "utf-8")
    done = mypy(str(path))
    assert re.search(rf"wrong_values\.py:{line}: error: Expression is of type \"City\", not \"Person\"", done.stdout)
    assert done.stdout.count("error:") == 1


def test_examples_declare_no_types_of_values() -> None:
    """Where a value's type is known, a program needs no annotation to say it."""
    for path in sorted((ROOT / "examples").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            told = isinstance(node, ast.AnnAssign) and node.value is not None and ast.unparse(node.value)
            assert not (told and told.endswith(".value") and "dict" not in ast.unparse(node)), f"{path.name}: {told}"
