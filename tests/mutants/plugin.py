"""A pytest plugin that puts one fault into one module as it is imported: ``STRUCTGEN_MUTANT=module:number``.

Nothing on disk changes, so compiled kernels stay valid, and an interrupted run leaves no fault behind.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import sys
from types import CodeType

from tests.mutants.operators import faulty, mutants


class _Loader(importlib.machinery.SourceFileLoader):
    """Compiles the module with its fault."""

    number = 0

    def get_code(self, fullname: str) -> CodeType:
        source = self.get_data(self.path).decode()
        return compile(faulty(source, mutants(source)[self.number]), self.path, "exec")


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the one module."""

    def __init__(self, module: str, number: int) -> None:
        self.module, self.number = module, number

    def find_spec(self, fullname: str, path: object, target: object = None) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.module:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)  # type: ignore[arg-type]
        assert spec is not None and spec.origin is not None
        spec.loader = _Loader(fullname, spec.origin)
        spec.loader.number = self.number
        return spec


def pytest_configure() -> None:
    """Put the finder in front, before any test imports the package."""
    module, number = os.environ["STRUCTGEN_MUTANT"].rsplit(":", 1)
    assert module not in sys.modules, f"{module} is imported already"
    sys.meta_path.insert(0, _Finder(module, int(number)))
