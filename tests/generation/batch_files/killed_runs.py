"""Runs of ``structgen batch`` that are killed and taken up again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
COUNT = 200
ITEM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "parts": {"type": "array", "items": {"type": "integer"}},
    },
    "required": ["name"],
    "additionalProperties": False,
}


def rows() -> list[dict[str, Any]]:
    """Rows of every kind, some of which fail."""
    kinds: list[dict[str, Any]] = [{}, {"schema": ITEM}, {"regex": "[a-z]{3,20}"}, {"choice": ["yes", "no", "naïve"]}]
    found: list[dict[str, Any]] = []
    for number in range(COUNT):
        own = kinds[number % len(kinds)]
        found.append({"id": f"row {number}", "prompt": f"Thing number {number}", **own})
    found[7] = {"id": 7, "prompt": "a", "regex": "(?P<broken"}
    found[90] |= {"regex": "[ab]{300}"}  # does not fit in the budget
    return found


def write_rows(path: Path) -> Path:
    """The file of rows."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows()))
    return path


def command(file: Path, output: Path, model: Path, *options: str) -> list[str]:
    """A run of the command line in this environment."""
    return [
        sys.executable, "-m", "structgen.cli.main", "batch", str(file), "-o", str(output), "--model", str(model),
        "--schema", '{"type": "string", "maxLength": 30}', "--temperature", "1", "--seed", "3",
        "--max-new-tokens", "50", "--batch-size", "8", *options,
    ]  # fmt: skip


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def run(arguments: list[str]) -> subprocess.CompletedProcess[bytes]:
    """A run to its end."""
    return subprocess.run(arguments, env=environment(), cwd=ROOT, capture_output=True, timeout=240)


def run_and_kill(arguments: list[str], output: Path, lines: int) -> int:
    """Kill a run, and all that it has started, when its output has so many lines. How many it has then."""
    process = subprocess.Popen(
        arguments, env=environment(), cwd=ROOT, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        deadline = time.monotonic() + 240
        while not output.exists() or output.read_bytes().count(b"\n") < lines:
            assert process.poll() is None, process.communicate()[0].decode()
            assert time.monotonic() < deadline
            time.sleep(0.005)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    return output.read_bytes().count(b"\n")
