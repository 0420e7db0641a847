"""Puts the kernels' object code into wheels, for every platform (see structgen/kernels/build.py)."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

KERNELS = Path("structgen") / "kernels"


class KernelObjects(BuildHookInterface[Any]):
    """Compiles the kernels when a wheel is built. An editable install makes its own when first imported."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the objects beside the sources' hash, and have the wheel take them."""
        if version == "editable":
            return
        self._folder = tempfile.TemporaryDirectory()
        objects = Path(self._folder.name) / "objects"
        builder = Path(self.root) / KERNELS / "build.py"
        self.app.display_info("structgen: compiling the kernels for all platforms (about a minute) ...")
        environment = {name: value for name, value in os.environ.items() if name != "NUMBA_BOUNDSCHECK"}
        subprocess.run([sys.executable, str(builder), "--out", str(objects), "--ship"], check=True, env=environment)
        build_data["force_include"][str(objects)] = str(KERNELS / "objects")

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was built: the wheel has it."""
        if hasattr(self, "_folder"):
            self._folder.cleanup()
