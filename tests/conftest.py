"""What all tests share: where compiled kernels are, wherever a test puts other caches; which cases `make test` runs."""

from __future__ import annotations

import gc
import os

import pytest

from structgen.core.kernels.loading import cache_folder

# A process a core: models of tests gain nothing from threads of torch, which wait on each other where cores are shared
# (measured: ten times slower). What a test starts has it from here.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("STRUCTGEN_KERNELS_DIR", str(cache_folder().parent))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of cases that differ by their ``seed``, and of a test marked ``first_case``, ``make test`` runs the first."""
    for item in items:
        indices: dict[str, int] = item.callspec.indices if hasattr(item, "callspec") else {}
        if any(index for name, index in indices.items() if name == "seed" or item.get_closest_marker("first_case")):
            item.add_marker("full")


def pytest_collection_finish() -> None:
    """Modules and cases of all tests live to the end: collections of garbage need not look at them (1 s each else)."""
    gc.collect()
    gc.freeze()
