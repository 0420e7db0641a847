"""Triton's kernels, in its interpreter where there is no GPU: it must be chosen before Triton is imported, so they run
in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

CASES = sorted((Path(__file__).parent / "interpreted").glob("cases_*.py"))


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")
@pytest.mark.parametrize("cases", CASES, ids=lambda path: path.stem)
def test_kernels(cases: Path) -> None:
    import torch

    environment = dict(os.environ, OMP_NUM_THREADS="1")
    if not torch.cuda.is_available():
        environment["TRITON_INTERPRET"] = "1"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", "--tb=short", str(cases)]
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280)
    assert finished.returncode == 0, finished.stdout[-6000:] + finished.stderr[-2000:]
