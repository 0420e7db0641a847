"""Triton's kernels: in its interpreter where there is no GPU, which must be chosen before Triton is imported, and
compiled for a GPU that need not be there. So both run in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed"),
    pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed"),
]
HERE = Path(__file__).parent


def run(cases: Path, **environment: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", "--tb=short", str(cases)]
    finished = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=280)
    assert finished.returncode == 0, finished.stdout[-6000:] + finished.stderr[-2000:]


@pytest.mark.first_case
@pytest.mark.parametrize("name", ["apply", "sampling", "trees"])
def test_kernels_do_what_the_definition_says(name: str) -> None:
    import torch

    interpret = {} if torch.cuda.is_available() else {"TRITON_INTERPRET": "1"}
    run(HERE / "interpreted" / f"cases_{name}.py", **interpret)


@pytest.mark.full
def test_kernels_compile(tmp_path: Path) -> None:
    run(HERE / "compiled" / "cases_compile.py", TRITON_INTERPRET="0", TRITON_CACHE_DIR=str(tmp_path))
