"""A batch written by actors of Ray Data: the file of one process, also where runs are killed; errors in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.generation.batch_files.killed_runs import COUNT, command, run, run_and_kill, write_rows
from tests.tiny_folder import make_folder

pytest.importorskip("ray", reason="ray is not installed; make test-ray installs it")

pytestmark = pytest.mark.timeout(900)


def test_killed_twice(tmp_path: Path) -> None:
    model, file = make_folder(tmp_path / "model"), write_rows(tmp_path / "in.jsonl")
    here, broken = tmp_path / "here.jsonl", tmp_path / "broken.jsonl"
    slowly = ("--batch-size", "1")  # else so small a model writes all rows at once, and no kill comes between
    alone = run(command(file, here, model, *slowly))
    assert alone.returncode == 3, alone.stderr.decode()
    arguments = command(file, broken, model, *slowly, "--ray", "--actors", "2")
    first = run_and_kill(arguments, broken, COUNT // 8)
    second = run_and_kill(arguments, broken, first + 1)
    assert first < second < COUNT
    last = run(arguments)
    assert last.returncode == 3, last.stderr.decode()
    assert broken.read_bytes() == here.read_bytes()


def test_a_model_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    file = write_rows(tmp_path / "in.jsonl")
    found = run(command(file, tmp_path / "out.jsonl", tmp_path / "nothing", "--ray"))
    assert found.returncode == 2
    lines = found.stderr.decode().splitlines()
    assert any(line.startswith("ModelError") for line in lines) and "Traceback" not in found.stderr.decode()
