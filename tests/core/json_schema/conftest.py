"""The data folder: STRUCTGEN_DATA, or shared/data beside the checkout; tests that need it skip without."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def data_folder(name: str) -> Path:
    """The folder ``name`` of the data, or skip."""
    beside = Path(__file__).parents[3].parent / "shared" / "data"
    folder = Path(os.environ.get("STRUCTGEN_DATA", beside)) / name
    if not folder.is_dir():
        pytest.skip(f"there is no {folder}: set STRUCTGEN_DATA to a folder with {name}")
    return folder


@pytest.fixture(scope="session")
def suite() -> Path:
    """The official JSON Schema test suite."""
    return data_folder("json-schema-test-suite")


@pytest.fixture(scope="session")
def maskbench() -> Path:
    """Real schemas with valid and invalid instances."""
    return data_folder("maskbench")
