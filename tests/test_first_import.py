"""The line that a fresh installation prints while its kernels are compiled.

Compiling the real kernels would take a minute, so a package of the same name with one small kernel stands in for them.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "structgen" / "first_import.py"
KERNEL = """
from numba import njit

@njit("i8(i8)", cache=True)
def double(x):
    return 2 * x

@njit("i8(i8)", cache=True)
def triple(x):
    return 3 * x
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    package = tmp_path / "structgen"
    package.mkdir()
    shutil.copy(SOURCE, package)
    (package / "__init__.py").write_text("from structgen import first_import\n")
    (package / "kernels.py").write_text(KERNEL)
    (tmp_path / "elsewhere.py").write_text(KERNEL)
    return tmp_path


def standard_error(program: str, folder: Path) -> list[str]:
    """Lines that a fresh process writes whose import path begins with ``folder``."""
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=folder)
    return finished.stderr.splitlines()


def test_one_line_when_kernels_are_compiled_and_none_from_the_cache(folder: Path) -> None:
    lines = standard_error("import structgen.kernels", folder)
    assert len(lines) == 1 and "compiling kernels, once per installation" in lines[0]
    assert standard_error("import structgen.kernels", folder) == []


def test_nothing_for_the_kernels_of_others(folder: Path) -> None:
    assert standard_error("import structgen, elsewhere", folder) == []
