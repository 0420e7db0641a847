"""The line that a fresh installation prints while its kernels are compiled."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

# Kernels that claim to be ours; compiling the real ones would take a minute.
PROGRAM = """
from numba import njit
{listen}

def double(x):
    return 2 * x

double.__module__ = {module!r}
for _ in range(2):
    njit("i8(i8)")(double)
"""


def standard_error(listen: str, module: str, folder: Path) -> list[str]:
    program = PROGRAM.format(listen=listen, module=module)
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=folder)
    return finished.stderr.splitlines()


# The module alone, without the package's root, which imports everything.
LISTEN = """
import importlib.util
spec = importlib.util.spec_from_file_location("first_import", {path!r})
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
""".format(path=str(Path(__file__).parents[1] / "structgen" / "first_import.py"))


def test_one_line_for_our_kernels(tmp_path: Path) -> None:
    lines = standard_error(LISTEN, "structgen.kernels.example", tmp_path)
    assert len(lines) == 1 and "compiling kernels, once per installation" in lines[0]


def test_nothing_for_those_of_others(tmp_path: Path) -> None:
    assert standard_error(LISTEN, "elsewhere.kernels", tmp_path) == []


def test_nothing_when_the_cache_is_warm() -> None:
    """This process has imported structgen, so its kernels are compiled."""
    import structgen

    program = "import structgen"
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert structgen and finished.stderr == ""
