"""The browser for the tests here: `make test-browser` installs it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
MODULES = os.environ.get("BROWSER_MODULES", "")  # the folder that holds node_modules
Browse = Callable[..., Any]


@pytest.fixture(scope="session")
def pictures() -> Path:
    """The folder for screenshots."""
    if not MODULES or shutil.which("node") is None:
        pytest.skip("the browser is not installed (make test-browser)")
    folder = Path(MODULES) / "pictures"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def browse(pictures: Path) -> Browse:
    """Runs a script of this folder, and gives what it saw."""

    def run(script: str, *arguments: str, timeout: float = 240) -> Any:
        command = ["node", str(HERE / script), MODULES, *arguments]
        finished = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
        assert finished.returncode == 0, finished.stderr
        return json.loads(finished.stdout)

    return run
