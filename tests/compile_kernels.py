"""Compile the kernels side by side, each once: test processes that start together would each compile all of them.

python tests/compile_kernels.py
"""

from __future__ import annotations

import importlib
import sys
import types
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "structgen"


def compile_kernel(name: str) -> None:
    """Import a module of kernels without the whole package, whose own import would compile others first."""
    package = types.ModuleType("structgen")
    package.__path__ = [str(PACKAGE)]
    sys.modules["structgen"] = package
    importlib.import_module(f"structgen.{name}")


if __name__ == "__main__":
    files = [*PACKAGE.glob("kernels/[!_]*.py"), *PACKAGE.glob("*/*_kernels.py")]
    files.sort(key=lambda path: path.stat().st_size, reverse=True)
    with ProcessPoolExecutor(max_tasks_per_child=1) as pool:
        list(pool.map(compile_kernel, [f"{path.parent.name}.{path.stem}" for path in files]))
